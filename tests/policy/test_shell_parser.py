"""A shell line taken apart: Design, commands: every command in it, by a real grammar."""

import shlex
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codingagent.policy import shell_parser
from codingagent.policy.shell_commands import ShellCommand, Word
from codingagent.policy.shell_parser import read_line
from tests import golden
from tests.helpers import cpu_below
from tests.rows import each_row


def words(command: ShellCommand) -> list[str]:
    return [word.text for word in command.words]


def commands(line: str) -> list[str]:
    """Return the commands in a line, each with its words joined by blanks."""
    return [" ".join(words(command)) for command in read_line(line).commands if command.words]


def show(line: str) -> str:
    """Return each command of a line: its words, the files that it writes and what it reads from."""
    read = read_line(line)
    return " · ".join([*map(_shown, read.commands), *map(str, read.doubts)]) or "nothing"


def _shown(command: ShellCommand) -> str:
    shown = [_word(word) for word in command.words]
    shown += [f"> {word.text!r}" for word in command.writes]
    shown += [f"< {name}" for name in sorted(command.reads_from)]
    return " ".join(shown) or "no words"


def _word(word: Word) -> str:
    ends = "" if word.literal else f" ({word.head!r} … {word.tail!r})"
    return f"{word.text!r}{ends}"


TABLES: dict[str, golden.Show] = {"shell_lines.txt": show}


@each_row(("line", "outcome"), golden.cases(__file__, "shell_lines.txt"))
def test_what_is_read_of_a_line(line: str, outcome: str) -> None:
    """Design, commands: every command, through loops, pipes, redirections and substitutions."""
    assert show(line) == outcome


def test_commands_within_commands_are_followed() -> None:
    """However deep; what nobody could read is too large."""
    assert "a" in commands("env " * 99 + "a")
    line = "a"
    for _ in range(12):
        line = f"sh -c {shlex.quote(line)}"
    assert read_line(line).too_large
    assert read_line("(" * 5_000).too_large


_HOSTILE = [
    "(", ")", "$(", "`", "{ ", "((", "$((", "[[ ", "<<A ", "<<A\n", '"$(', '"', "'", "a|", "a;", "if ",
    "case x in ", "${x:-", "a=(", "<(", "!", "&", "|", "\\", "f(){ ", "$", "<", "#\n", "for ((", "@(a",
    "a)", "*$[", "[", "sh -c ", "env ", "xargs ", "eval ", "${", "a=", "2>", "~", "\n", "\0", "é",
]  # fmt: skip


@pytest.mark.one_in(12)
@pytest.mark.parametrize("piece", _HOSTILE)
@pytest.mark.parametrize("size", [3_000, shell_parser.TEXT_LIMIT_BYTES, 1_000_000])
def test_hostile_lines_take_bounded_time(piece: str, size: int) -> None:
    """No RecursionError and no second of thought, whatever is repeated how often."""
    line = (piece * (size // len(piece) + 1))[:size]
    before = sys.getrecursionlimit()
    with cpu_below(20):
        read = read_line(line)
    assert size < 1_000_000 or read.too_large
    assert len(read.commands) <= shell_parser.COMMAND_LIMIT
    assert sys.getrecursionlimit() == before


def test_the_limits_are_where_they_are_said_to_be() -> None:
    """16 KiB counted as UTF-8, 200 commands."""
    assert not read_line("# " + "a" * (shell_parser.TEXT_LIMIT_BYTES - 2)).too_large
    assert read_line("# " + "a" * (shell_parser.TEXT_LIMIT_BYTES - 1)).too_large
    assert read_line("# " + "é" * (shell_parser.TEXT_LIMIT_BYTES // 2)).too_large
    assert not read_line("a;" * shell_parser.COMMAND_LIMIT).too_large
    assert read_line("a;" * (shell_parser.COMMAND_LIMIT + 1)).too_large


_PLAIN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@given(st.lists(_PLAIN, max_size=5))
@example(["it's", "", "a\nb", "$(x)", "`", "\\", "-", "*", "#", "\r"])
def test_quoted_words_come_back_exactly(arguments: list[str]) -> None:
    """What shlex quotes is what the program would be given, and what is judged."""
    line = shlex.join(["x", *arguments])
    assert words(read_line(line).commands[0]) == ["x", *arguments]


_WORDS = """
    a sh -c eval env find xargs sudo $x $( ) ` ' " \\ ; & | && || < > >> << <<< EOF { } ( (( )) [[ ]] [ ]
    if then fi for in do done case esac while = $' ${ # ! ~ * ? {a,b} 2>&1 trap alias git -exec
"""
_PIECES = st.sampled_from(["\n", *_WORDS.split()])


@given(
    st.text(max_size=80)
    | st.lists(_PIECES, max_size=25).map(" ".join)
    | st.lists(_PIECES, max_size=25).map("".join)
)
@example("\ud800")
@example("env")
@example("<<<")
@example("\U00051b1c{\U0002d145'")  # the grammar's scanner crashed at such characters
def test_reading_never_raises(line: str) -> None:
    """Whatever a model writes can be judged."""
    read = read_line(line)
    assert len(read.commands) <= shell_parser.COMMAND_LIMIT
