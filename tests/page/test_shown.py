"""What the page makes of a diff: each file by its name, each line whole, and what is not shown is said."""

from codingagent.cli.page.view import DiffView, files_of

HEAD = "diff --git {0} {1}\nindex 1..2 100644\n--- {0}\n+++ {1}\n"


def text_of(found: DiffView) -> list[str]:
    return ["".join(text for text, _ in row.pieces) for row in found.rows]


def test_a_long_file_hides_none_of_those_behind_it() -> None:
    long = HEAD.format("a/a.txt", "b/a.txt") + "@@ -0,0 +1,3100 @@\n" + "+x\n" * 3100
    behind = HEAD.format("a/z.py", "b/z.py") + "@@ -0,0 +1 @@\n+print(1)\n"
    first, second, third = files_of(long + behind, ["a.txt", "large.bin", "z.py"])
    assert (first.path, second.path, third.path) == ("a.txt", "z.py", "large.bin")
    assert len(first.rows) == 3000
    assert all("codingagent diff" in each.about for each in (first, second, third))


def test_a_name_is_the_files_own_however_git_writes_it() -> None:
    """The button beside it undoes the change in this file."""
    odd = 'we"ird b/ é.txt'
    quoted = HEAD.format('"a/we\\"ird b/ é.txt"', '"b/we\\"ird b/ é.txt"')
    binary = "diff --git a/b/x b/x.bin b/b/x b/x.bin\nBinary files differ\n"
    assert [each.path for each in files_of(f"{quoted}@@ -1 +1 @@\n-x\n+y\n{binary}")] == [odd, "b/x b/x.bin"]
    # A dry run writes a path as it is.
    assert files_of("--- b/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-x\n+y\n")[0].path == "b/x.py"


def test_lines_are_whole_and_what_is_cut_is_said() -> None:
    text = HEAD.format("a/a.py", "b/a.py") + '@@ -1 +1,2 @@\n-x\n+evil("👩\u200d💻")\r# fine\n+\x9d; y\n'
    (found,) = files_of(text + "\\ No newline at end of file\n… 9 more lines")
    assert text_of(found) == [
        "x",
        'evil("👩\u200d💻")\\r# fine',
        "\\x9d; y",
        "\\ No newline at end of file",
        "… 9 more lines",
    ]
