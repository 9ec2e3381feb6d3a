"""Which paths the ignore files leave out: Design, the outbox, listing; git's rules."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.workspace.gitignore import IGNORE_FILES, IgnoreRules
from tests.helpers import cpu_below


def rules(text: str, folder: str = "") -> IgnoreRules:
    return IgnoreRules().extended(folder, text)


@pytest.mark.parametrize(
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
        ("", "a", False, False),
    ],
)
def test_rules_are_gits(text: str, path: str, is_folder: bool, ignored: bool) -> None:
    """Design, the outbox, listing: what `.gitignore` excludes is left out."""
    assert rules(text).ignores(path, is_folder=is_folder) is ignored


def test_the_innermost_file_that_speaks_decides() -> None:
    """Design, the outbox, listing: as in git, a file in a folder below has the last word."""
    both = rules("*.log\n").extended("d", "!keep.log\n")
    assert not both.ignores("d/keep.log", is_folder=False)
    assert both.ignores("d/other.log", is_folder=False)


def test_rules_of_a_folder_are_relative_to_it() -> None:
    """Design, the outbox, listing: git anchors a pattern at the folder of its file."""
    inner = rules("/a\n", "d")
    assert inner.ignores("d/a", is_folder=False)
    assert not inner.ignores("d/e/a", is_folder=False)


def test_our_own_ignore_file_comes_behind_gits() -> None:
    """Design, the outbox, listing: `.gitignore` or `.codingagentignore`; the later of two wins."""
    assert IGNORE_FILES == (".gitignore", ".codingagentignore")
    both = rules("*.log\n").extended("", "!a.log\n")
    assert not both.ignores("a.log", is_folder=False)


def test_without_files_nothing_is_ignored() -> None:
    """Design, the outbox, listing: only what the files exclude."""
    assert not IgnoreRules().ignores("a", is_folder=False)
    assert rules("# nothing\n\n") == IgnoreRules()


@pytest.mark.parametrize(
    "line",
    [
        "!",
        "\\",
        "a\\",
        "[z-a]",
        "[[:foo:]",
        "[[a]",
        "[!]",
        "/",
        "//",
        "***",
        "[",
        "\0",
        "!/",
        "a||b",
        "[a--b]",
    ],
)
def test_a_line_that_is_no_pattern_costs_only_itself(line: str) -> None:
    """Design, purpose: an ignore file may be the model's; other patterns hold; nothing is printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = rules(f"{line}\n*.log\n")
        assert found.ignores("a.log", is_folder=False)
        assert not found.ignores("q.txt", is_folder=False) or line == "***"


@given(
    st.one_of(
        st.text(max_size=30), st.lists(st.sampled_from(list("!*?[]-\\/#ab \n\r^:"))).map("".join)
    ),
    st.sampled_from(["a", "a/b", "a b", "[a]"]),
    st.booleans(),
)
def test_no_ignore_file_raises(text: str, path: str, is_folder: bool) -> None:
    """Design, purpose: nothing in the workspace may stop the agent."""
    assert rules(text).ignores(path, is_folder=is_folder) in {True, False}


def test_a_hostile_pattern_takes_no_time() -> None:
    """Design, purpose: the pattern and the file name may both be the model's."""
    with cpu_below(10):
        for _ in range(100):
            assert not rules("*a" * 100 + "b\n").ignores("a" * 255, is_folder=False)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("**/a" * 30 + "/**/b\n", "a/" * 150 + "a"),
        ("*a*a*/" * 5 + "b\n", f"{'a' * 250}/" * 5 + "c"),
        ("**/*a*a*/" * 5 + "b\n", f"{'a' * 250}/" * 15 + "c"),
        ("x**/" + "*a*a*/**/" * 5 + "b\n", "x" + f"{'a' * 250}/" * 15 + "c"),
    ],
)
def test_a_hostile_pattern_for_paths_takes_no_time(text: str, path: str) -> None:
    """Design, purpose: the pattern and the path may both be the model's."""
    with cpu_below(10):
        for _ in range(30):
            assert not rules(text).ignores(path, is_folder=False)


@pytest.mark.parametrize("line", ["a{}\n", "a{}?\n", "*/{}?/**/x\n", "!*{}[a-z]\n", "/d/{}\n"])
def test_a_file_of_patterns_without_end_takes_no_time(line: str) -> None:
    """Design, purpose: an ignore file may be the model's; beyond a number of patterns it is not read."""
    text = "a\n" + "".join(line.format(number) for number in range(60_000))
    with cpu_below(40):  # without the limit it is many times that
        assert rules(text).ignores("a", is_folder=False)


@pytest.mark.parametrize(
    ("text", "path"),
    [("*a*b*c*d*e\n", "xaxbxcxdxe"), ("a*?*b*c\n", "axbbbc"), ("*[a-c]*?*[!a]x\n", "qbqqx")],
)
def test_many_stars_are_stars(text: str, path: str) -> None:
    """Design, the outbox, listing: git's rules."""
    assert rules(text).ignores(path, is_folder=False)
    assert not rules(text).ignores(path[1:-1], is_folder=False)


def test_many_hostile_patterns_take_no_time() -> None:
    """Design, purpose: the patterns and the file names may both be the model's, and many."""
    with cpu_below(10):
        assert not rules("*a*a*ab\n" * 100).ignores("a" * 255, is_folder=False)
