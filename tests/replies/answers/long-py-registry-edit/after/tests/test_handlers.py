import csv
import io
import json
import unittest

from handlers import HANDLERS

EDITOR = {"name": "eve", "permissions": ["edit"]}
ADMIN = {"name": "ada", "permissions": ["admin"]}


class AdminTest(unittest.TestCase):
    def test_an_editor_may_not(self):
        for name in ("delete", "archive"):
            with self.subTest(name):
                item = {"id": 1}
                with self.assertRaisesRegex(PermissionError, "eve may not admin"):
                    HANDLERS[name](EDITOR, [item])
                self.assertEqual({"id": 1}, item)

    def test_an_admin_may(self):
        for name in ("delete", "archive"):
            with self.subTest(name):
                result = json.loads(HANDLERS[name](ADMIN, [{"id": 1}]))
                self.assertEqual(
                    {"action": name, "count": 1, "items": [{"id": 1, "last": name}]}, result)

    def test_the_others_still_need_edit(self):
        for name in set(HANDLERS) - {"delete", "archive"}:
            with self.subTest(name):
                HANDLERS[name](EDITOR, [])
                with self.assertRaises(PermissionError):
                    HANDLERS[name](ADMIN, [])


class ExportTest(unittest.TestCase):
    def rows(self, items, **options):
        return list(csv.DictReader(io.StringIO(HANDLERS["export"](EDITOR, items, **options))))

    def test_header_and_rows(self):
        text = HANDLERS["export"](EDITOR, [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
        self.assertEqual("id,name,last\n1,a,export\n2,b,export\n", text)

    def test_quoting(self):
        name = 'a "b", c\nd'
        self.assertEqual(name, self.rows([{"id": 1, "name": name}])[0]["name"])

    def test_different_fields(self):
        rows = self.rows([{"id": 1}, {"id": 2, "tag": "x"}])
        self.assertEqual(["", "x"], [row["tag"] for row in rows])

    def test_locked_items_are_left_out(self):
        items = [{"id": 1, "locked": True}, {"id": 2}]
        self.assertEqual(["2"], [row["id"] for row in self.rows(items)])
        self.assertEqual(2, len(self.rows(items, force=True)))

    def test_nothing_to_export(self):
        self.assertEqual("", HANDLERS["export"](EDITOR, []))


if __name__ == "__main__":
    unittest.main()
