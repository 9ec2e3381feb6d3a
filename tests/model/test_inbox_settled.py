"""When a file in the inbox is finished: Design, the inbox."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from codingagent.model.observations import SETTLED_AFTER_S, Hint, InboxFile, first_looks, is_finished
from tests.rows import each_row

_FIRST = InboxFile("a", inode=1, size_bytes=10, modified_ns=5, at_s=100.0)


def _later(by_s: float) -> InboxFile:
    return replace(_FIRST, at_s=_FIRST.at_s + by_s)


@each_row(("by_s", "finished"), [(0, False), (0.1, False), (0.29, False), (0.31, True), (5, True)])
def test_a_file_unchanged_for_300_ms_is_finished(by_s: float, finished: bool) -> None:
    """Design, the inbox: size and time unchanged for 300 ms."""
    assert SETTLED_AFTER_S == 0.3
    assert is_finished(_FIRST, _later(by_s), Hint.NOTHING) is finished
    assert is_finished(_FIRST, _later(by_s), Hint.APPEARED) is finished


@pytest.mark.parametrize(
    "now", [replace(_later(5), size_bytes=11), replace(_later(5), modified_ns=6), replace(_later(5), inode=2)]
)
def test_a_file_that_changed_is_not_finished(now: InboxFile) -> None:
    """Design, the inbox: unchanged in size, time and identity."""
    assert not is_finished(_FIRST, now, Hint.NOTHING)


@pytest.mark.parametrize("hint", list(Hint))
def test_an_empty_file_waits(hint: Hint) -> None:
    """Design, the inbox: empty files wait."""
    empty = replace(_FIRST, size_bytes=0)
    assert not is_finished(empty, replace(empty, at_s=200.0), hint)


def test_a_closed_or_renamed_file_is_finished_at_once() -> None:
    """Design, the inbox: closed or renamed into place."""
    assert is_finished(_FIRST, _FIRST, Hint.CLOSED)


@pytest.mark.parametrize(("is_open", "finished"), [(False, True), (None, False), (True, False)])
def test_a_file_that_appeared_is_finished_if_nobody_writes_it(is_open: bool | None, finished: bool) -> None:
    """Design, the inbox: renamed into place; a new file that is being written looks alike."""
    now = replace(_FIRST, is_open=is_open)
    assert is_finished(now, now, Hint.APPEARED) is finished


@pytest.mark.parametrize("hint", list(Hint))
def test_a_file_open_for_writing_is_not_finished(hint: Hint) -> None:
    """Design, the inbox: a file is taken when it is finished."""
    now = replace(_later(5), is_open=True)
    assert not is_finished(_FIRST, now, hint)


def test_a_look_keeps_the_first_unchanged_look() -> None:
    """Design, the inbox: unchanged for 300 ms counts from the first look at this state."""
    assert first_looks({"a": _FIRST}, [_later(0.1)]) == {"a": _FIRST}


def test_a_look_begins_anew_when_a_file_changes() -> None:
    """Design, the inbox: size and time unchanged."""
    grown = replace(_later(0.1), size_bytes=11)
    assert first_looks({"a": _FIRST}, [grown]) == {"a": grown}


def test_a_look_forgets_files_that_are_gone() -> None:
    """Design, the inbox: the folder is the truth."""
    other = replace(_FIRST, name="b")
    found = first_looks({"a": _FIRST, "b": other}, [replace(other, at_s=101.0)])
    assert found == {"b": other}
    assert first_looks(first_looks(found, []), [_later(2)]) == {"a": _later(2)}


_LOOKS = st.lists(
    st.dictionaries(
        st.sampled_from(["a", "b"]),
        st.builds(
            InboxFile,
            name=st.just(""),
            inode=st.integers(1, 2),
            size_bytes=st.integers(0, 2),
            modified_ns=st.integers(0, 1),
            at_s=st.just(0.0),
        ),
    ),
    max_size=8,
)


@given(_LOOKS)
def test_a_tracked_look_is_the_start_of_an_unbroken_row_of_equal_ones(
    looks: list[dict[str, InboxFile]],
) -> None:
    """Design, the inbox: a file is never taken for finished while it still changes."""
    timed = [
        {name: replace(look, name=name, at_s=float(n)) for name, look in files.items()}
        for n, files in enumerate(looks)
    ]
    found: dict[str, InboxFile] = {}
    for files in timed:
        found = first_looks(found, files.values())
    for name, first in found.items():
        row = timed[int(first.at_s) :]
        assert all(name in files and files[name].is_same(first) for files in row)
        before = timed[int(first.at_s) - 1] if first.at_s else {}
        assert name not in before or not before[name].is_same(first)
