"""What a path may say as text: specification 003, path sandboxing, and Design, the workspace."""

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codingagent.errors import OperationError
from codingagent.model import paths
from tests import golden
from tests.helpers import calls_of, cpu_below
from tests.rows import each_row

_PIECES = st.sampled_from(
    ["a", "b.py", "..", ".", "", "/", "//", "~", "C:", "\\", " ", "\0", "é", "*", "[id]", "\u202e"]
)
_PATHS = st.one_of(st.text(max_size=40), st.lists(_PIECES, max_size=8).map("/".join))


def _refusal(text: str) -> str:
    with pytest.raises(OperationError) as caught:
        paths.workspace_path(text)
    return caught.value.reason


def show(case: tuple[str, ...]) -> str:
    """Return what a text is as a path of some kind, or why it is refused."""
    kind, text, *more = case
    try:
        match kind:
            case "file":
                return repr(paths.workspace_path(text))
            case "folder":
                return repr(paths.folder_path(text))
            case "new file":
                paths.check_new_name(f"src/{text}")
                return "may be made"
            case "git":
                return str(paths.is_git_name(text))
            case "glob":
                return str(paths.is_glob(text))
            case _:
                return str(paths.glob_matcher(text)(*more))
    except OperationError as fault:
        assert fault.reason.isprintable()
        return fault.reason


TABLES: dict[str, golden.Show] = {"paths.txt": show}


@each_row(("case", "outcome"), golden.cases(__file__, "paths.txt"))
def test_what_a_path_may_say(case: tuple[str, ...], outcome: str) -> None:
    """Specification 003, path sandboxing, and Design, the workspace and tag blocks."""
    assert show(case) == outcome


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


def test_a_glob_finds_in_a_listing_what_it_fits() -> None:
    """2,000 patterns in 2,000 files: most names need no look."""
    luck = random.Random(1)
    signs = ("a", "b", "\u00e9", "e\u0301", "K", "\u212a", "/", ".", "\n")
    for _ in range(3_000):
        names = [*{"".join(luck.choices(signs, k=luck.randint(1, 6))) for _ in range(6)}]
        glob = "".join(luck.choices((*signs, "*", "**", "?"), k=luck.randint(1, 5)))
        found = paths.matches(glob, "\0".join(("", *names, "")))
        assert found == [*filter(paths.glob_matcher(glob), names)]
    listing = "\0".join(("", *(f"d/file_{n}.txt" for n in range(2_000)), ""))
    fits = calls_of(paths.names_fit, lambda: [paths.matches(f"d/*_{n}.txt", listing) for n in range(200)])
    assert fits < 500
