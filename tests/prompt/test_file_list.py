"""The workspace's files as the model sees them: specification 003 and Design, the outbox."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.prompt import file_list
from codingagent.prompt.file_list import Ignored, Listing
from codingagent.prompt.tokens import estimate
from tests.builders import listing_of
from tests.helpers import cpu_below
from tests.rows import each_row


def test_files_are_listed_with_their_sizes() -> None:
    """Specification 003, workspace files: `  path (N bytes)`. Design: sorted by path."""
    found = Listing({"tests/CalculatorTests.cs": 512, "src/Program.cs": 180, "src/Calculator.cs": 245})
    assert file_list.lines(found) == [
        "  src/Calculator.cs (245 bytes)",
        "  src/Program.cs (180 bytes)",
        "  tests/CalculatorTests.cs (512 bytes)",
    ]


def test_an_empty_workspace_is_said() -> None:
    """Specification 003, workspace files: or `(empty workspace)` if no files exist."""
    assert file_list.lines(Listing({})) == ["(empty workspace)"]


@pytest.mark.parametrize(
    ("ignored", "line"),
    [
        (Ignored(1, 5), "  (1 file left out by ignore rules, 5 bytes)"),
        (Ignored(812, 40_000_000), "  (812 files left out by ignore rules, 40 MB)"),
        (
            Ignored(9, 2_000, is_partial=True),
            "  (more than 9 files left out by ignore rules, more than 2 kB)",
        ),
    ],
)
def test_ignored_files_are_one_line(ignored: Ignored, line: str) -> None:
    """Design, the outbox, listing: one line that says how many files and bytes are left out."""
    assert file_list.lines(Listing({"a": 1}, ignored)) == ["  a (1 bytes)", line]


def test_more_files_have_a_line_a_folder() -> None:
    """Design, the outbox: the list serves the task; a folder's name stands once, and no sizes."""
    files = {f"src/shop/{n}.py": 1 for n in range(30)} | {"src/a.py": 1, "b.toml": 2, "c": 3}
    assert file_list.lines(Listing(files)) == [
        "  b.toml, c",
        "  src/: a.py",
        f"  src/shop/: {', '.join(sorted(f'{n}.py' for n in range(30)))}",
    ]


def test_of_too_many_the_likely_ones_are_named_and_the_others_counted_by_kind() -> None:
    """Design, the outbox: the best of the order and what changed lately by name."""
    files = [f"assets/{n:05}_{'long' * 9}.png" for n in range(800)]
    files += [f"lib/{n:05}_{'long' * 9}.py" for n in range(200)] + ["lib/LICENSE"]
    likely = [files[810], files[3]]
    found = file_list.lines(listing_of(*files), likely, 2)
    assert found == [
        f"  assets/: {files[3][7:]} and 799 .png",
        f"  lib/: {files[810][4:]} and 199 .py, 1 other",
    ]


def test_among_many_files_a_large_one_has_its_size() -> None:
    """What is better read in parts; in the list of a question, too."""
    sizes = {f"src/{n:02}.py": 500 for n in range(40)} | {"src/big.py": 19_999, "src/log.txt": 84_000}
    (line,) = file_list.lines(Listing(sizes))
    assert line.endswith(", 39.py, big.py, log.txt (84 kB)")


def test_folders_without_a_named_file_are_one_line() -> None:
    """Design, the outbox: from above; of many beside each other only how many."""
    files = [f"vendor/{a}/{b}/{n}.go" for a in "xy" for b in "abc" for n in range(9)]
    files += [f"many/{n}/deep/{m}.c" for n in range(50) for m in range(4)]
    found = file_list.lines(listing_of("a.py", *files), ["a.py", "many/3/deep/1.c"], 2)
    assert found == [
        "  a.py",
        "  many/*/: 196 .c in 49 folders",
        "  many/3/deep/: 1.c and 3 .c",
        "  vendor/: 54 .go in 6 folders",
    ]


def test_a_list_keeps_its_budget_of_tokens_and_its_room() -> None:
    """Design, the outbox: what does not fit is cut where it hurts least."""
    files = listing_of(*(f"d{n % 40}/{n}_{'name' * 5}.py" for n in range(5_000)))
    assert 700 < estimate("\n".join(file_list.lines(files))) <= 1_400
    assert len("\n".join(file_list.lines(files, characters=900))) <= 900


def test_files_that_the_session_made_or_read_are_always_listed() -> None:
    """Design, the outbox, listing: also among too many in the root."""
    files = listing_of(*(f"{n:05}.txt" for n in range(10_000)))
    [line] = file_list.lines(files, ["09999.txt", "gone"])
    assert ", 09999.txt and " in line


@each_row(
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
    assert file_list.lines(listing_of(path)) == [f"  {shown} (10 bytes)"]


@each_row(
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


@given(st.sets(_NAMES, max_size=40), st.integers(1, 60), st.lists(_NAMES, max_size=3))
def test_every_file_is_in_one_line_whatever_is_summed_up(
    names: set[str], limit: int, likely: list[str]
) -> None:
    """Design, the outbox, listing: summed up, so that no file is left out or counted twice."""
    # A name can't be a file and a folder at once.
    files = {f"{name}.x" for name in names}
    found = file_list.lines(listing_of(*files), [f"{name}.x" for name in likely], limit)
    counted = 0
    for line in found if files else ():
        for each in re.split(", | and ", line.rpartition("/: ")[2].strip()):
            count = re.match(r"(\d+) \.x", each)
            counted += int(count[1]) if count else 1
    assert counted == len(files)


def test_fifty_thousand_files_are_summed_up_in_a_moment() -> None:
    """Design, speed: no work that grows with more than the files."""
    files = listing_of(*(f"{n % 10}/{n % 100}/{n % 1000}/{n}" for n in range(50_000)))
    with cpu_below(50):
        assert 1 <= len(file_list.lines(files)) <= 2000


def test_deep_folders_take_no_time() -> None:
    """Design, purpose: a command may make folders of any depth."""
    files = listing_of(*(f"{'d/' * 400}{n}" for n in range(1000)), *("e/" * n + "f" for n in range(1, 600)))
    with cpu_below(35):
        assert len(file_list.lines(files)) <= 100
