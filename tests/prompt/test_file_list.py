"""The workspace's files as the model sees them: specification 003 and Design, the outbox."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.prompt import file_list
from codingagent.prompt.file_list import Ignored, Listing
from tests.builders import listing_of
from tests.helpers import cpu_below


def test_files_are_listed_with_their_sizes() -> None:
    """Specification 003, workspace files: `  path (N bytes)`. Design: sorted by path."""
    found = Listing(
        {"tests/CalculatorTests.cs": 512, "src/Program.cs": 180, "src/Calculator.cs": 245}
    )
    assert file_list.lines(found, 2000) == [
        "  src/Calculator.cs (245 bytes)",
        "  src/Program.cs (180 bytes)",
        "  tests/CalculatorTests.cs (512 bytes)",
    ]


def test_an_empty_workspace_is_said() -> None:
    """Specification 003, workspace files: or `(empty workspace)` if no files exist."""
    assert file_list.lines(Listing({}), 2000) == ["(empty workspace)"]


@pytest.mark.parametrize(
    ("ignored", "line"),
    [
        (
            Ignored(1, 5),
            "  (1 file left out by ignore rules, 5 bytes)",
        ),
        (
            Ignored(812, 40_000_000),
            "  (812 files left out by ignore rules, 40 MB)",
        ),
        (
            Ignored(9, 2_000, is_partial=True),
            "  (more than 9 files left out by ignore rules, more than 2 kB)",
        ),
    ],
)
def test_ignored_files_are_one_line(ignored: Ignored, line: str) -> None:
    """Design, the outbox, listing: one line that says how many files and bytes are left out."""
    assert file_list.lines(Listing({"a": 1}, ignored), 2000) == ["  a (1 bytes)", line]


def test_beyond_the_budget_the_largest_folders_are_summed_up() -> None:
    """Design, the outbox, listing: `  assets/ (812 files, 40 MB)`."""
    files = {f"assets/{n}.png": 50_000 for n in range(812)} | {"src/a.py": 1, "b.py": 2}
    assert file_list.lines(Listing(files), 10) == [
        "  assets/ (812 files, 41 MB)",
        "  b.py (2 bytes)",
        "  src/a.py (1 bytes)",
    ]


def test_up_to_the_budget_nothing_is_summed_up() -> None:
    """Design, the outbox, listing: only beyond the budget, default 2,000 entries."""
    files = listing_of(*(f"d/{n}" for n in range(10)))
    assert len(file_list.lines(files, 10)) == 10
    assert file_list.lines(files, 9) == ["  d/ (10 files, 100 bytes)"]


def test_folders_are_summed_up_from_within() -> None:
    """Design, the outbox, listing: the largest folders; those above them only if that is not enough."""
    files = listing_of(*(f"a/deep/{n}" for n in range(6)), "a/x", "a/y", "z/1", "z/2")
    assert file_list.lines(files, 5) == [
        "  a/deep/ (6 files, 60 bytes)",
        "  a/x (10 bytes)",
        "  a/y (10 bytes)",
        "  z/1 (10 bytes)",
        "  z/2 (10 bytes)",
    ]
    assert file_list.lines(files, 2) == ["  a/ (8 files, 80 bytes)", "  z/ (2 files, 20 bytes)"]


def test_files_that_the_session_made_or_read_are_always_listed() -> None:
    """Design, the outbox, listing: a file that this session made or read is always listed."""
    files = listing_of(*(f"d/{n}" for n in range(50)))
    assert file_list.lines(files, 5, {"d/7", "gone"}) == [
        "  d/ (49 files, 490 bytes)",
        "  d/7 (10 bytes)",
    ]


def test_a_file_that_the_session_made_is_listed_among_too_many_in_the_root() -> None:
    """Design, the outbox, listing: a file that this session made or read is always listed."""
    files = listing_of(*(f"{n:05}.txt" for n in range(10_000)))
    assert "  09999.txt (10 bytes)" in file_list.lines(files, 2_000, {"09999.txt"})


def test_many_files_in_the_root_itself_are_summed_up_too() -> None:
    """Design, the outbox, listing: the budget is for entries, wherever they lie."""
    files = listing_of(*(f"{n}.txt" for n in range(10_000)))
    assert len(file_list.lines(files, 2_000)) <= 2_000


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("a b", "a b"),
        ("été", "été"),
        ("a\nb", "a\\nb"),
        ("a\x1b[31m", "a\\x1b[31m"),
        ("a\u2028b", "a\\u2028b"),
        ("\udcff", "\\udcff"),
    ],
)
def test_a_name_from_the_disk_stands_on_one_line(path: str, shown: str) -> None:
    """Design, the outbox: text that came from outside can imitate our headings; a file name too."""
    assert file_list.shown_path(path) == shown
    assert file_list.lines(listing_of(path), 10) == [f"  {shown} (10 bytes)"]


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (1499, "1 kB"),
        (40_000_000, "40 MB"),
        (5 * 10**9, "5 GB"),
        (10**12, "1 TB"),
        (10**16, "10000 TB"),
        (999_999, "1 MB"),
        (999_500_000, "1 GB"),
    ],
)
def test_a_size_is_short(size: int, shown: str) -> None:
    """Design, the outbox, listing: `40 MB`."""
    assert file_list.human_size(size) == shown


_NAMES = st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=4).map("/".join)


@given(st.sets(_NAMES, max_size=40), st.integers(1, 30), st.sets(_NAMES, max_size=3))
def test_every_file_is_in_one_line_whatever_is_summed_up(
    names: set[str], limit: int, always: set[str]
) -> None:
    """Design, the outbox, listing: summed up, so that no file is left out or counted twice."""
    # A name can't be a file and a folder at once.
    files = {f"{name}.x" for name in names}
    always = {f"{name}.x" for name in always}
    shown = file_list.lines(listing_of(*files), limit, always)
    assert shown == sorted(shown) or not files
    counted = 0
    for line in shown:
        if line.endswith("(10 bytes)") and not line.split(" (")[0].endswith("/"):
            counted += 1
        elif "(empty" not in line:
            counted += int(line.split(" (")[1].split(" ")[0])
    assert counted == len(files)
    if len(always) <= limit // 2:
        assert all(f"  {name} (10 bytes)" in shown for name in always & files)


def test_a_hundred_thousand_files_are_summed_up_in_a_moment() -> None:
    """Design, speed: no work that grows with more than the files."""
    files = listing_of(*(f"{n % 10}/{n % 100}/{n % 1000}/{n}" for n in range(100_000)))
    with cpu_below(100):
        assert 1 <= len(file_list.lines(files, 2000)) <= 2000


def test_deep_folders_take_no_time() -> None:
    """Design, purpose: a command may make folders of any depth."""
    files = listing_of(
        *(f"{'d/' * 400}{n}" for n in range(3000)), *("e/" * n + "f" for n in range(1, 1000))
    )
    with cpu_below(100):
        assert len(file_list.lines(files, 100)) <= 100


def test_a_folder_whose_files_were_not_measured_has_a_count_only() -> None:
    """Design, the outbox, listing: of very many files only those are measured that have lines."""
    files = {f"a/{n}": None if n else 5 for n in range(9)}
    shown = file_list.lines(Listing({**files, "b": 3}), 5)
    assert shown == ["  a/ (9 files)", "  b (3 bytes)"]
    assert file_list.open_folders({"a": 9, "": 1}, 5) == {""}


def test_folders_that_the_task_names_or_that_were_touched_are_summarized_last() -> None:
    """Design, the outbox: the list serves the task."""
    files = [f"{folder}/{n}.py" for folder in ("alpha", "beta", "shop", "zoo") for n in range(50)]
    listing = listing_of(*files, "deep/er/cart.py", "deep/er/other.py")
    near = file_list.folders_for(listing, ["zoo/3.py"], "Mend the total of the Cart in shop")
    assert near == {"shop", "zoo", "deep/er"}
    shown = file_list.lines(listing, 110, ["zoo/3.py"], near)
    assert len(shown) <= 110
    assert "  alpha/ (50 files, 500 bytes)" in shown
    assert "  beta/ (50 files, 500 bytes)" in shown
    assert {f"  shop/{n}.py (10 bytes)" for n in range(50)} <= set(shown)
    assert "  deep/er/other.py (10 bytes)" in shown
