"""What a path may say as text: specification 003, path sandboxing, and Design, the workspace."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codingagent.errors import OperationError
from codingagent.model import paths
from tests.helpers import cpu_below

_PIECES = st.sampled_from(
    ["a", "b.py", "..", ".", "", "/", "//", "~", "C:", "\\", " ", "\0", "é", "*", "[id]", "\u202e"]
)
_PATHS = st.one_of(st.text(max_size=40), st.lists(_PIECES, max_size=8).map("/".join))


def _refusal(text: str) -> str:
    with pytest.raises(OperationError) as caught:
        paths.workspace_path(text)
    return caught.value.reason


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("src/Calculator.cs", "src/Calculator.cs"),
        ("./a", "a"),
        ("a//b", "a/b"),
        ("a/./b", "a/b"),
        ("a/../b", "b"),
        ("a/b/../../c", "c"),
        ("..a/b..", "..a/b.."),
        ("a..b", "a..b"),
        ("...", "..."),
        ("app/[id]/page.tsx", "app/[id]/page.tsx"),
        ("my file.txt", "my file.txt"),
        (" a", " a"),
        ("a ", "a "),
        ("'a'", "'a'"),
        (".gitignore", ".gitignore"),
        ("été/日本.txt", "été/日本.txt"),
        ("dir/a:b", "dir/a:b"),
    ],
)
def test_a_path_inside_the_workspace_is_given_in_its_plain_form(text: str, plain: str) -> None:
    """Specification 003, path sandboxing: joined to the root, resolved, then compared."""
    assert paths.workspace_path(text) == plain


@pytest.mark.parametrize(
    "text",
    ["../../../etc/passwd", "..", "../a", "a/../../b", "a/../..", "./..", "a/b/../../../c", "../"],
)
def test_a_path_that_steps_out_is_rejected(text: str) -> None:
    """Specification 003, path sandboxing: `REJECTED: Path is outside workspace`."""
    assert _refusal(text) == f"REJECTED: Path is outside workspace: '{text}'"


@pytest.mark.parametrize("text", ["/etc/passwd", "/", "//a", "C:/a", "c:a", "~/x"])
def test_an_absolute_path_or_drive_is_rejected(text: str) -> None:
    """Design, the workspace: no absolute path or drive. The answer says what to write."""
    assert _refusal(text) == (
        f"REJECTED: Path is outside workspace: '{text}'; write a path relative to the workspace"
    )


@pytest.mark.parametrize("text", ["~$report.docx", "~lock.txt"])
def test_a_name_that_begins_with_a_tilde_is_a_name(text: str) -> None:
    """Specification 003, path sandboxing: paths are joined to the root; no shell expands them."""
    assert paths.workspace_path(text) == text


@pytest.mark.parametrize("text", ["src\\a.py", "a\\", "..\\a", "\\\\host\\share"])
def test_a_backslash_is_refused_and_the_answer_says_write_a_slash(text: str) -> None:
    """Design, tag blocks: a backslash in a path is refused: "write /"."""
    assert re.fullmatch(r"REJECTED: '.*' has a backslash; write / between names", _refusal(text))


@pytest.mark.parametrize(
    "text", ["a\0b", "a\nb", "a\tb", "a\x7f", "a\x1b[31m", "a\x85b", "a\u2028b", "\ud800", "a\r"]
)
def test_control_characters_are_refused(text: str) -> None:
    """Design, the workspace: no NUL or control characters, and none of them reaches the message."""
    reason = _refusal(text)
    assert "has a character that can't be in a file name here" in reason
    assert reason.isprintable()


@pytest.mark.parametrize("text", ["", " ", "   "])
def test_an_empty_path_is_refused(text: str) -> None:
    """Design, the workspace: a path names a file."""
    assert _refusal(text) == "REJECTED: Path is empty; name a file"


@pytest.mark.parametrize("text", ["a/", ".", "./", "a/..", "a/.", "a/b/.."])
def test_a_folder_is_no_file(text: str) -> None:
    """Design, the workspace: only regular files are read or replaced."""
    assert _refusal(text) == f"'{text}' names a folder, not a file"


def test_a_name_of_255_bytes_is_the_longest() -> None:
    """Design, the workspace: component ≤ 255 bytes, counted as UTF-8."""
    assert paths.workspace_path("a/" + "é" * 127 + "b") == "a/" + "é" * 127 + "b"
    assert _refusal("a/" + "é" * 128) == "REJECTED: Path has a name of more than 255 bytes"


def test_a_path_of_4096_bytes_is_the_longest() -> None:
    """Design, the workspace: path ≤ 4,096 bytes."""
    longest = "a/" * 2047 + "ab"
    assert len(longest) == 4096
    assert paths.workspace_path(longest) == longest
    assert _refusal(longest + "c") == "REJECTED: Path is longer than 4096 bytes"


def test_a_path_of_megabytes_is_refused_at_once() -> None:
    """Design, the workspace: path ≤ 4,096, and the refusal is short."""
    with cpu_below(20):
        assert len(_refusal("../" * 3_000_000)) < 400


@given(_PATHS)
@example("a/../b")
@example("a/./b//c")
def test_an_accepted_path_never_leaves_the_root(text: str) -> None:
    """Design, the workspace: no absolute path, no step out, and the plain form stays as it is."""
    try:
        plain = paths.workspace_path(text)
    except OperationError as fault:
        assert "\n" not in fault.reason
        return
    parts = plain.split("/")
    assert parts
    assert not {"", ".", ".."} & set(parts)
    assert "\0" not in plain
    assert "\\" not in plain
    assert paths.workspace_path(plain) == plain


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (".", "."),
        ("./", "."),
        ("src", "src"),
        ("src/", "src"),
        ("./src", "src"),
        ("src/.", "src"),
        ("src/./", "src"),
        ("src/sub/..", "src"),
        ("src/..", "."),
        ("././", "."),
    ],
)
def test_a_folder_is_given_in_its_plain_form(text: str, plain: str) -> None:
    """Design, tag blocks: RUN_COMMAND takes `cwd`, a folder by whatever spelling."""
    assert paths.folder_path(text) == plain


@pytest.mark.parametrize("text", ["..", "../", "/", "///", "/tmp", "src/../..", "~/", "C:/"])
def test_a_folder_outside_is_rejected(text: str) -> None:
    """Specification 003, path sandboxing: so is a folder to run in."""
    with pytest.raises(OperationError, match=r"^REJECTED: Path is outside workspace"):
        paths.folder_path(text)


@pytest.mark.parametrize(
    "name",
    [
        "CON",
        "con.txt",
        "aux",
        "NUL.tar.gz",
        "COM1",
        "lpt9.log",
        "COM¹",
        "a<b",
        'a"b',
        "a|b",
        "a?",
        "a*",
        "a.",
        "a ",
        "d:x",
        "CONIN$",
    ],
)
def test_a_name_that_windows_has_not_is_refused_for_a_new_file(name: str) -> None:
    """Design, the workspace: one resolver, the same on every system; names must hold there too."""
    with pytest.raises(
        OperationError, match=r"is not a file name on Windows; choose another name$"
    ):
        paths.check_new_name(f"src/{name}")


@pytest.mark.parametrize(
    "name", ["console.py", "a.b", ".env", "[id].tsx", "com10", "a b", "COM.txt"]
)
def test_a_plain_name_is_accepted_for_a_new_file(name: str) -> None:
    """Design, the workspace: only what can't be a name somewhere is refused."""
    paths.check_new_name(f"src/{name}")


@pytest.mark.parametrize(
    "name",
    [
        ".git",
        ".GIT",
        ".Git",
        ".git.",
        ".git ",
        ".git. .",
        "GIT~1",
        "git~2",
        ".g\u200cit",
        ".git::$INDEX_ALLOCATION",
        "\uff0egit",
    ],
)
def test_each_way_to_write_git_is_git(name: str) -> None:
    """Design, the workspace: `.git` is not writable through file operations, however it is spelt."""
    assert paths.is_git_name(name)


@pytest.mark.parametrize(
    "name", [".gitignore", ".github", "git", ".gitattributes", "a.git", ".gi", ".git2"]
)
def test_names_that_only_resemble_git_are_not_git(name: str) -> None:
    """Design, the workspace: only `.git` is closed."""
    assert not paths.is_git_name(name)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("*.py", True),
        ("a?", True),
        ("**", True),
        ("[id].tsx", False),
        ("a/{b}", False),
        ("!a", False),
    ],
)
def test_only_star_and_question_mark_make_a_glob(path: str, expected: bool) -> None:
    """Design, tag blocks: `*`, `**`, `?`; brackets are never a glob."""
    assert paths.is_glob(path) is expected


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "d/a.py", False),
        ("d/*.py", "d/a.py", True),
        ("**/*.py", "a.py", True),
        ("**/*.py", "d/e/a.py", True),
        ("**", "d/e/a.py", True),
        ("d/**", "d/e/a.py", True),
        ("d/**", "da/e", False),
        ("d/**", "d", False),
        ("d/**/a.py", "d/a.py", True),
        ("d/**/a.py", "d/e/f/a.py", True),
        ("d/**/a.py", "d/ea.py", False),
        ("?.py", "a.py", True),
        ("?.py", "ab.py", False),
        ("?", "/", False),
        ("[id].*", "[id].tsx", True),
        ("[id].*", "i.tsx", False),
        ("a.b*", "axb", False),
        ("*", "a\nb", True),
        ("*", "", True),
        ("*.PY", "a.py", False),
    ],
)
def test_a_glob_fits_whole_paths(glob: str, path: str, fits: bool) -> None:
    """Design, tag blocks: `*` and `?` stay within one name, `**` crosses folders."""
    assert (paths.glob_matcher(glob)(path)) is fits


@pytest.mark.parametrize(
    ("glob", "path"),
    [("*a" * 5 + "b", "a" * 150), ("**a" * 5 + "b", "a" * 150), ("**/" * 8 + "b", "a/" * 40 + "c")],
)
def test_a_hostile_glob_takes_no_time(glob: str, path: str) -> None:
    """Design, purpose: whatever the text says; a glob and a file name may both be the model's."""
    with cpu_below(10):
        assert not paths.glob_matcher(glob)(path)


@given(st.text(max_size=400))
def test_shown_text_is_one_short_printable_line(text: str) -> None:
    """Design, tag blocks: a problem says what is wrong, in one line that can't imitate another."""
    shown = paths.shown(text)
    assert shown.isprintable()
    assert len(shown) <= 200 * 10 + 1
    if text.isprintable() and len(text) <= 200:
        assert shown == text
