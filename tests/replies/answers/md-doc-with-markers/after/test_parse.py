import unittest

from parse import PatchError, blocks


def block(size, name="a.py", old="old", new="new"):
    lines = [name, "<" * size + " SEARCH", old, "=" * size, new, ">" * size + " REPLACE"]
    return "\n".join(line for line in lines if line is not None) + "\n"


class ParseTest(unittest.TestCase):
    def test_seven(self):
        self.assertEqual([("a.py", ["old"], ["new"])], list(blocks(block(7))))

    def test_an_empty_search(self):
        self.assertEqual([("a.py", [], ["new"])], list(blocks(block(7, old=None))))

    def test_two_blocks_in_one_file(self):
        text = block(7) + block(7, name=None, old="x", new="y")
        self.assertEqual([("a.py", ["old"], ["new"]), ("a.py", ["x"], ["y"])], list(blocks(text)))

    def test_other_sizes_are_no_markers(self):
        for size in (5, 6, 8, 9):
            with self.subTest(size):
                self.assertEqual([], list(blocks(block(size))))

    def test_other_sizes_inside_of_a_block_are_text(self):
        text = block(7, old="=" * 6, new=">" * 8 + " REPLACE")
        self.assertEqual([("a.py", ["======"], [">>>>>>>> REPLACE"])], list(blocks(text)))

    def test_an_open_block(self):
        with self.assertRaises(PatchError):
            list(blocks("a.py\n" + "<" * 7 + " SEARCH\nold\n" + "=" * 8 + "\n"))


if __name__ == "__main__":
    unittest.main()
