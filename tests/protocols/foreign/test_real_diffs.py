"""What diff, git, hg, brz, svn, darcs, quilt and patchutils wrote of one change of some files.

`before` are the files, `after` what became of them, `renamed` the same with a file that was also renamed.
"""

from itertools import cycle
from pathlib import Path

from tests.protocols.foreign.doing import do, files_in
from tests.rows import each_row

FOLDER = Path(__file__).parents[2] / "replies" / "diffs"
BEFORE = files_in(FOLDER / "before")
NOT_UNIFIED = "send a unified one, as diff -u writes it"
# What asks, and for which files: all that change, where none are named.
ASKED = {
    "brz-rename": ('[MOVE_FILE path="old.txt" to="new.txt"], then', "old.txt new.txt"),
    "darcs-whatsnew": ("it names no file", ""),
    "filterdiff-context": (f"it is a context diff; {NOT_UNIFIED}", ""),
    "git-porcelain": ("hunk 1 of 2 not found", ""),
    "git-word": ("it changes nothing; begin the lines that go", ""),
    "gnu-context": (f"it is a context diff; {NOT_UNIFIED}", ""),
    "gnu-ed": (f"it is an ed script; {NOT_UNIFIED}", ""),
    "gnu-normal": (f"it is a normal diff; {NOT_UNIFIED}", ""),
    "gnu-rcs": (f"it is an ed script; {NOT_UNIFIED}", ""),
    "gnu-ru": ("'Only in old: gone.txt' shows no lines of that file", "gone.txt sub/made.txt"),
    "gnu-side": (f"it is a side-by-side diff; {NOT_UNIFIED}", ""),
    "svn-log-diff": ("it has no hunks", "gone.txt"),
    "svn-rename": ("File 'new.txt' not found", "new.txt"),
}
# What is above their first header may as well be the first line of a file.
NEED_A_LABEL = {"git-log-p-oneline", "git-raw", "git-stat-patch"}
DIFFS = sorted(path.stem for path in FOLDER.glob("*.diff"))
# Each in a fence of diffs, and in one of three other ways.
ROWS = [(name, "in a fence of diffs") for name in DIFFS]
ROWS += zip(DIFFS, cycle(("in a fence", "bare", "done before")), strict=False)


def test_the_outputs_are_there() -> None:
    assert len(DIFFS) >= 50
    assert set(DIFFS) >= set(ASKED)


@each_row(("name", "how"), ROWS)
def test_the_diff_of_a_tool_makes_its_change_once_or_is_asked(name: str, how: str, tmp_path: Path) -> None:
    after = files_in(FOLDER / ("renamed" if "rename" in name else "after"))
    text = (FOLDER / f"{name}.diff").read_bytes().decode()
    language = "" if how == "in a fence" else "diff"
    answer = f"Here:\n\n{text}\nThat is all.\n" if how == "bare" else f"```{language}\n{text}```\n"
    (root := tmp_path / name / how).mkdir(parents=True)
    came = do(answer, after if how == "done before" else BEFORE, root)
    advice, paths = ASKED.get(name, ("", ""))
    if how == "done before":
        assert came.files == after
    elif how == "in a fence" and name in NEED_A_LABEL:
        assert came.files == BEFORE
    elif not advice:
        assert came.files == after
        assert came.failures == ()
    else:
        left = {*paths.split()} or {*BEFORE, *after}
        wanted = {path: (BEFORE if path in left else after).get(path) for path in {*BEFORE, *after}}
        assert came.files == {path: data for path, data in wanted.items() if data is not None}
        assert how in ("bare", "in a fence") or any(advice in failure for failure in came.failures), (
            came.failures
        )
