"""A shell line taken apart: Design, commands: every command in it, by a real grammar."""

import shlex
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codingagent.policy import shell_parser
from codingagent.policy.shell_line import ShellCommand
from codingagent.policy.shell_parser import read_line
from tests.helpers import cpu_below


def words(command: ShellCommand) -> list[str]:
    return [word.text for word in command.words]


def commands(line: str) -> list[str]:
    """Return the commands in a line, each with its words joined by blanks."""
    return [" ".join(words(command)) for command in read_line(line).commands if command.words]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a b", ["a b"]),
        ("", []),
        ("# a", []),
        ("a # b", ["a"]),
        ("a b#c", ["a b#c"]),
        ("a; b\nc & d", ["a", "b", "c", "d"]),
        ("a && b || c", ["a", "b", "c"]),
        ("a | b |& c", ["a", "b", "c"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("for x in $(a); do b; done", ["a", "b"]),
        ("until a; do b; done < <(c)", ["a", "b", "c"]),
        ("case $(a) in b) c;; *) d;; esac", ["a", "c", "d"]),
        ("f() { a; }; f", ["a", "f"]),
        ("(a; b) > f", ["a", "b"]),
        ("! a", ["a"]),
        ('echo "$(a "$(b)")" ${x:-`c`}', ['echo $(a "$(b)") ${x:-`c`}', "a $(b)", "b", "c"]),
        ("x=$(a) y=1 b", ["b", "a"]),
        ("cat <<EOF | b && c\n$(a)\nEOF", ["cat", "b", "c", "a"]),
        ("cat <<'EOF'\n$(a) `b`\nEOF\nc", ["cat", "c"]),
        ("cat <<EOF\nx \\$(a) \\`b\\`\nEOF", ["cat"]),
        ("cat << EOF > f | b\nx\nEOF", ["cat", "b"]),
        ("a >f b >&2 c", ["a b c"]),
        ("a <<EOF b\nEOF", ["a b"]),
        ("[ $(a) ] && [[ b || $(c) ]]", ["[ $(a) ]", "a", "c"]),
        ("((a))", []),
        ("x $((a); b)", ["x $((a); b)", "a", "b"]),
        ("echo $((1 + $(a)))", ["echo $((1 + $(a)))", "a"]),
        ("a\\\n  b", ["a b"]),
        ("a\\\nb", ["ab"]),
    ],
)
def test_every_command_is_found(line: str, expected: list[str]) -> None:
    """Design, commands: loops, pipes, redirections, substitutions are looked through."""
    read = read_line(line)
    assert sorted(commands(line)) == sorted(expected)
    assert read.doubts == ()


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a\\ b", "a b"),
        ("'a b'\"c\"d", "a bcd"),
        ('"a\\"\\$\\`\\\\\\n"', 'a"$`\\\\n'),
        ("'a\\n'", "a\\n"),
        ("$'a\\n\\x41\\101\\u00e9\\'\\q'", "a\nAAé'\\q"),
        ("$'a\\0b'", "a"),
        ('$"a"', "a"),
        ('"a\\\nb"', "ab"),
        ("''", ""),
        ("{a,b}", "{a,b}"),
        ("é'日'", "é日"),
        ("a=b", "a=b"),
    ],
)
def test_quotes_are_removed_as_the_shell_does(text: str, plain: str) -> None:
    """The words of a rule are compared with what the program would be given."""
    (command,) = read_line(f"x {text}").commands
    assert [word.text for word in command.arguments] == [plain]
    assert all(word.literal for word in command.arguments)


@pytest.mark.parametrize(
    ("text", "head", "tail"),
    [
        ("$x", "", ""),
        ("a${x}b", "a", "b"),
        ('"a$x b$y"c', "a", "c"),
        ("-r`x`", "-r", ""),
        ("$((1+1))", "", ""),
        ("<(a)", "", ""),
    ],
)
def test_a_word_with_an_expansion_is_known_at_its_ends(text: str, head: str, tail: str) -> None:
    """An option or a folder may stand before what only the shell will know."""
    word = read_line(f"x {text}").commands[0].arguments[0]
    assert (word.head, word.tail, word.literal, word.sure) == (head, tail, False, head)


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("a > f", ["f"]),
        ("a >> f 2>| g", ["f", "g"]),
        ("a &> f &>> g", ["f", "g"]),
        ("a >& f", ["f"]),
        ("> f", ["f"]),
        ("a 2>&1 >&- <f <&3 3>&1-", []),
        ("{ a; b; } > f", ["f"]),
        ("while a; do b; done >> 'f g'", ["f g"]),
        ("a | b > f", ["f"]),
        ("cat <<EOF > f\nx\nEOF", ["f"]),
        ("cat <<EOF >> f | b\nx\nEOF", ["f"]),
        ("[ a > f ]", ["f"]),
        ("sh -c 'a > f'", ["f"]),
    ],
)
def test_the_files_that_redirections_write_are_given(line: str, files: list[str]) -> None:
    """Protected files are asked for as the target of a redirection too."""
    written = [word.text for command in read_line(line).commands for word in command.writes]
    assert written == files


@pytest.mark.parametrize(
    ("line", "name", "sources"),
    [
        ("a | b | sh x", "sh", {"a", "b"}),
        ("(a; b) | { c; sh x; }", "sh", {"a", "b"}),
        ("a; b | sh x", "sh", {"b"}),
        ("timeout 5 a | sh x", "sh", {"timeout", "a"}),
        ("sh -c 'a b' | sh x", "sh", {"sh", "a"}),
        ("a | sh -c 'b c'", "b", {"a"}),
        ("cat <<EOF | sh x\n$(a)\nEOF", "sh", {"cat", "a"}),
        ('x "$(a | b)"', "x", {"a", "b"}),
        ("x <(a) < <(b)", "x", {"a", "b"}),
        ("x <<< $(a)", "x", {"a"}),
        ("{ x; } < <(a)", "x", {"a"}),
        ("a | xargs x", "x", {"a"}),
    ],
)
def test_what_a_command_reads_from_is_known(line: str, name: str, sources: set[str]) -> None:
    """A download piped into a shell is one, however many commands are between."""
    command = [command for command in read_line(line).commands if command.name == name][-1]
    assert set(command.reads_from) - {"|"} == sources


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


@pytest.mark.one_in(3)
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
