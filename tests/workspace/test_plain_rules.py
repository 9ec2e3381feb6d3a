"""Plain ignore rules: those of our own ignore file, and all rules where git can't be asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.workspace.walk import PlainRules
from tests.helpers import cpu_below
from tests.rows import each_row


def rules(*texts: tuple[str, str]) -> PlainRules:
    made = PlainRules()
    for folder, text in texts:
        made.add(folder, text)
    return made


@each_row(
    ("text", "path", "is_folder", "ignored"),
    [
        ("*.log\n", "a.log", False, True),
        ("*.log\n", "d/a.log", False, True),
        ("*.log\n", "a.txt", False, False),
        ("build/\n", "build", True, True),
        ("build/\n", "build", False, False),
        ("build/\n", "d/build", True, True),
        ("/build\n", "build", True, True),
        ("/build\n", "d/build", True, False),
        ("d/*.py\n", "d/a.py", False, True),
        ("d/*.py\n", "d/e/a.py", False, False),
        ("**/a\n", "x/y/a", False, True),
        ("a/**\n", "a/b/c", False, True),
        ("a/**/b\n", "a/b", False, True),
        ("*.log\n!keep.log\n", "keep.log", False, False),
        ("*.log\n!keep.log\n", "other.log", False, True),
        ("!a\na\n", "a", False, True),
        ("# *.py\n", "a.py", False, False),
        ("\\#a\n", "#a", False, True),
        ("\\!a\n", "!a", False, True),
        ("\n  \n", "a", False, False),
        ("a?c\n", "abc", False, True),
        ("[ab].txt\n", "a.txt", False, True),
        ("[!ab].txt\n", "a.txt", False, False),
        ("a \n", "a", False, True),
        ("build\r\n*.log\r\n", "a.log", False, True),
        ("build\r\n*.log\r\n", "build", True, True),
        ("x\x0cb\u2028a\n", "a", False, False),
        ("", "a", False, False),
    ],
)
def test_rules_are_gits(text: str, path: str, is_folder: bool, ignored: bool) -> None:
    """Design, the outbox, listing: what `.gitignore` excludes is left out."""
    assert bool(rules(("", text)).decides(path, is_folder=is_folder)) is ignored


def test_the_innermost_file_that_speaks_decides() -> None:
    """Design, the outbox, listing: as in git, a file in a folder below has the last word, and only there."""
    both = rules(("", "*.log\n"), ("d/", "!keep.log\n/x\n"))
    assert both.decides("d/keep.log") is False
    assert both.decides("keep.log") is True
    assert both.decides("d/other.log") is True
    assert both.decides("d/x") is True
    assert both.decides("x") is both.decides("d/e/x") is None


def test_what_is_below_an_ignored_folder_stays_ignored() -> None:
    """As in git, nothing in it can be taken back."""
    made = rules(("", "out/\n!out/keep\n"))
    assert made.decides("out/keep") is made.decides("a/out/b/c") is True


@given(st.text(alphabet="ab/*?[]!^\\- #.", max_size=20), st.text(alphabet="ab/.", min_size=1))
def test_no_ignore_file_raises(text: str, path: str) -> None:
    """Design, purpose: nothing in the workspace may stop the agent."""
    rules(("", text)).decides(path.strip("/") or "a")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("*a" * 40 + "b\n", "a" * 250),
        ("**/a/" * 40 + "b\n", "a/" * 120 + "a"),
        ("[" * 5_000 + "\n", "[" * 200),
        ("x\n" * 100_000, "y"),
    ],
    ids=["stars", "folders", "classes", "lines"],
)
def test_a_hostile_pattern_takes_no_time(text: str, path: str) -> None:
    """Design, the listing: whatever the patterns, each path is tried in a bounded number of steps."""
    made = rules(("", text))
    with cpu_below(2):
        for _ in range(20):
            assert not made.decides(path)


def test_more_patterns_than_anyone_writes_are_cut() -> None:
    """What comes first counts, and it is known that the rest does not."""
    assert not rules(("", "a\n" * 1_000)).is_cut
    made = rules(("", "a\n" * 1_000), ("", "b\n"))
    assert made.is_cut
    assert made.decides("b") is None
