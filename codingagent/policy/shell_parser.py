"""Parse a shell line: every command in it, at any depth, and what is uncertain.

tree-sitter's bash grammar finds the commands. A command's words are read by the shell's own quoting
rules, from the text and not from the syntax tree; commands passed to others (`env`, `sh -c`, `find
-exec`) are read as if they were in the line itself. What sh (often dash) reads differently from
bash is read both ways.

Over 500 lines: it is one grammar's reader, a function for each kind of node.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, cached_property
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from codingagent.model.patterns import lazy_pattern, words
from codingagent.policy.shell_wrappers import (
    SHELLS,
    InnerCommands,
    Word,
    Words,
    command_name,
    inner,
    is_assignment,
)

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

# Nobody writes longer lines for a person to read, and an unread line can't be judged.
TEXT_LIMIT_BYTES = 16 * 1024
COMMAND_LIMIT = 200
_DEPTH_LIMIT = 8

# Characters that make the grammar's time or memory grow quadratically: this many take up to a
# second, ten times as many half a minute and gigabytes.
_COSTLY = {"\0": 100, **dict.fromkeys("|?@!", 1000), **dict.fromkeys("<>()[$;&", 2000)}

_EXPANSIONS = words(
    "simple_expansion expansion command_substitution process_substitution arithmetic_expansion"
)
_REDIRECTS = ("file_redirect", "heredoc_redirect", "herestring_redirect")
_WRITING = (">", ">>", ">|", "&>", "&>>", ">&", "<>")

# `cat <<'EOF' 2>&1 | tail`: the grammar fails on a redirection between the two; before the
# here-document, it means the same.
_HEREDOC_FIRST = lazy_pattern(
    rb"""(<<-?[ \t]*(?:'[^'\n]+'|"[^"\n]+"|\\?\w+))((?:[ \t]+\d*(?:>>|>|<)&?[ \t]*[^\s<>|&;()]+)+)"""
)
_BACKTICKS = lazy_pattern(r"(?<!\\)`((?:[^`\\]|\\.)*)`", re.DOTALL)
_UNESCAPED = lazy_pattern(r"\\([`\\$])")
# The first word of a supposed command where the grammar missed a reserved word.
_RESERVED = frozenset({"{", "}", "!", "(", "if", "then", "else", "elif", "do", "while", "until"})

# The grammar's scanner calls C's isalpha() and the like with whole code points, which reads far
# beyond their tables and may crash. It is given a letter for each non-ASCII byte: to the shell both
# are parts of a word, and the words are read from the text itself.
_ASCII = bytes(byte if byte < 0x80 else ord("x") for byte in range(256))

# Replaces `[` when its content is read as command arguments.
_TEST = ": "

_BROKEN = "it can't be parsed as a shell command"
_NO_NAME = "a command name in it is known only when it runs"
_HIDDEN = "it contains invisible characters"
_DEEP = f"it has commands within commands, more than {_DEPTH_LIMIT} deep"
_PIPED_PROGRAM = "it runs text that is piped into a shell"
_BRACES = "it may contain options in braces"


# With a dict, for the cached name: each rule of a policy asks each command for it.
class ShellCommand(Struct, frozen=True, dict=True):
    """One simple command: a name and its arguments, or only assignments or redirections."""

    words: Words = ()
    writes: Words = ()
    """The files that redirections write to; not `2>&1`."""
    assignments: tuple[tuple[str, Word], ...] = ()
    """The variables set for it, or by it."""
    reads_from: tuple[str, ...] = ()
    """The names of the commands whose output it reads, by a pipe or substituted into its words."""
    runs_input: bool = False
    """Whether it runs its input as a program."""

    @cached_property
    def name(self) -> str | None:
        """The name without folders, in lower case; None if it has none or it is unknown."""
        return command_name(self.words[0]) if self.words else None

    @property
    def arguments(self) -> Words:
        return self.words[1:]


class ShellLine(Struct, frozen=True):
    """Everything that a shell line would run."""

    commands: tuple[ShellCommand, ...] = ()
    doubts: tuple[str, ...] = ()
    """Why parts of it could not be judged, worded for a person."""
    too_large: bool = False
    """It was not read, or not to the end."""
    functions: frozenset[str] = frozenset()
    """The names of the functions that it defines."""
    text: str = ""


def read_line(text: str) -> ShellLine:
    """Find every command in a shell line. Never raises; takes bounded time and memory."""
    reader = _Reader()
    try:
        commands = reader.read(text, 0, ())
    except _TooLargeError:
        return ShellLine(too_large=True)
    if any(map(_is_hidden, text)):
        reader.doubts.append(_HIDDEN)
    doubts = tuple(dict.fromkeys(reader.doubts))
    functions = frozenset(reader.functions)
    return ShellLine(tuple(commands), doubts, False, functions, text)


class _TooLargeError(Exception):
    """The text is too long or too complex to parse."""


def _is_hidden(character: str) -> bool:
    if character.isprintable() or character in "\n\t":
        return False
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp", "Zs")


@cache
def _parser() -> "Parser":
    # Takes 20 ms to import, paid only when a command is judged.
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


_Span = tuple[int, int]


class _FoundCommand(Struct):
    """A command from the syntax tree, before its input and its inner commands are resolved."""

    span: _Span
    words: Words = ()
    writes: Words = ()
    assignments: tuple[tuple[str, Word], ...] = ()
    sources: tuple[_Span, ...] = ()
    """The positions of the commands whose output it reads."""
    given: tuple[str, ...] = ()
    """The literal texts that it gets as its input."""


class _Tree(Struct):
    """The results so far of walking one text's syntax tree."""

    source: bytes
    found: list[_FoundCommand] = field(default_factory=list)
    again: list[tuple[_Span, str, bool]] = field(default_factory=list)
    """Nested texts to read separately: position, text, and whether doubts count."""
    redirects: dict[int, list["Node"]] = field(default_factory=dict)
    """Redirections that the grammar attached above their command, by its id."""


class _Reader:
    """Reads a text and its nested texts, and counts them all."""

    def __init__(self) -> None:
        self.doubts: list[str] = []
        self.functions: list[str] = []
        self._budget_bytes = 4 * TEXT_LIMIT_BYTES
        self._commands_left = COMMAND_LIMIT

    def read(self, text: str, depth: int, reads: tuple[str, ...]) -> list[ShellCommand]:
        """Return the commands of a text that was passed through `depth` other commands.

        `reads` names the commands whose output all of it reads. _TooLargeError if any limit is exceeded.
        """
        if depth > _DEPTH_LIMIT:
            self.doubts.append(_DEEP)
            return []
        if len(text) > TEXT_LIMIT_BYTES or any(text.count(c) > n for c, n in _COSTLY.items()):
            raise _TooLargeError
        source = text.encode(errors="replace")
        self._budget_bytes -= len(source)
        if len(source) > TEXT_LIMIT_BYTES or self._budget_bytes < 0:
            raise _TooLargeError
        root = _parser().parse(source.translate(_ASCII)).root_node
        if root.has_error:
            source = _HEREDOC_FIRST.sub(rb"\2 \1", source)
            root = _parser().parse(source.translate(_ASCII)).root_node
        if root.has_error:
            self.doubts.append(_BROKEN)
        tree = _Tree(source)
        self._walk(tree, root)
        return self._settle(tree, depth, reads)

    # --- the tree ------------------------------------------------------------------------------

    def _walk(self, tree: _Tree, root: "Node") -> None:
        """Collect the commands of a tree in order. Depth costs no stack."""
        todo: list[tuple[Node, tuple[_Span, ...]]] = [(root, ())]
        while todo:
            node, sources = todo.pop()
            todo += [(child, below) for child, below in reversed(self._visit(tree, node, sources))]
            if len(tree.found) > COMMAND_LIMIT:
                raise _TooLargeError

    def _visit(
        self, tree: _Tree, node: "Node", sources: tuple[_Span, ...]
    ) -> list[tuple["Node", tuple[_Span, ...]]]:
        """Record a node, and return its children with the sources that they read."""
        children = node.children
        match node.type:
            case "command" | "declaration_command" | "unset_command":
                return self._note_command(tree, node, sources)
            case "redirected_statement":
                return self._note_redirects(tree, node, sources)
            case "pipeline":
                return [
                    (child, (*sources, (node.start_byte, child.start_byte)) if index else sources)
                    for index, child in enumerate(children)
                ]
            case "variable_assignment":
                tree.found.append(
                    _FoundCommand(_span(node), assignments=(self._assignment(tree, node),))
                )
            case "for_statement":
                name = node.child_by_field_name("variable")
                values = self._words(tree, node.children_by_field_name("value"))
                if name is not None and values:
                    given = tuple((_text_of(tree, _span(name)), value) for value in values)
                    tree.found.append(_FoundCommand(_span(node), assignments=given))
            case "test_command" | "compound_statement" if children and children[0].type != "{":
                # sh has no `[[` and no `((`; inside `[`, these are ordinary words.
                prefix = "" if children[0].type == "((" else _TEST
                text = _text_of(tree, (children[0].end_byte, children[-1].start_byte))
                if set(text) & set("|&;<>") or not prefix:
                    tree.again.append((_span(node), prefix + text, False))
            case "command_substitution" if children and children[0].type == "`":
                text = _text_of(tree, (children[0].end_byte, children[-1].start_byte))
                if "\\" in text:
                    tree.again.append((_span(node), _UNESCAPED.sub(r"\1", text), True))
                    return []
            case "function_definition":
                name = node.child_by_field_name("name")
                if name is not None:
                    self.functions.append(_text_of(tree, _span(name)))
            case "word" | "string_content" | "regex" if b"`" in (node.text or b""):
                # The grammar does not look for backticks inside `${x:-`command`}`.
                tree.again += _ticked(tree, node)
            case _:
                pass
        return [(child, sources) for child in children]

    def _note_command(
        self, tree: _Tree, node: "Node", sources: tuple[_Span, ...]
    ) -> list[tuple["Node", tuple[_Span, ...]]]:
        assigned = [child for child in node.children if child.type == "variable_assignment"]
        own = [child for child in node.children if child.type in _REDIRECTS]
        redirects = own + tree.redirects.pop(node.id, [])
        parts = [c for c in node.children if c.type not in (*_REDIRECTS, "variable_assignment")]
        if any(part.type == "subshell" for part in parts):
            self.doubts.append(_BROKEN)
        parts = [part for part in parts if part.type not in ("subshell", "ERROR")]
        writes, given, inputs, strays = self._redirections(tree, redirects)
        words = self._words(tree, [*parts, *strays])
        tree.found.append(
            _FoundCommand(
                _span(node),
                words,
                writes,
                tuple(self._assignment(tree, child) for child in assigned),
                (*sources, *_expansions(parts), *inputs),
                given,
            )
        )
        below = [
            child for c in node.children for child in ([c] if c not in assigned else c.children)
        ]
        return [(child, sources) for child in below]

    def _note_redirects(
        self, tree: _Tree, node: "Node", sources: tuple[_Span, ...]
    ) -> list[tuple["Node", tuple[_Span, ...]]]:
        """Attach redirections where they belong: to the last command, or to a whole group."""
        body = node.child_by_field_name("body")
        redirects = [child for child in node.children if child.type in _REDIRECTS]
        below = []
        if body is not None:
            last = _last_command(body)
            if last.type == "command":
                tree.redirects.setdefault(last.id, []).extend(redirects)
                below.append((body, sources))
            else:
                writes, given, inputs, _ = self._redirections(tree, redirects)
                tree.found.append(_FoundCommand(_span(node), (), writes, (), (), given))
                below.append((body, (*sources, *inputs)))
        else:
            writes, given, inputs, strays = self._redirections(tree, redirects)
            words = self._words(tree, strays)
            tree.found.append(_FoundCommand(_span(node), words, writes, (), inputs, given))
        for redirect in redirects:
            for child in redirect.children:
                piped = child.type == "pipeline" and child.children[0].type == "|"
                before = (node.start_byte, redirect.start_byte)
                bodies = [_span(c) for c in redirect.children if c.type == "heredoc_body"]
                below.append((child, (*sources, before, *bodies) if piped else sources))
                if child.type == "heredoc_body" and not _is_quoted(redirect):
                    tree.again += _ticked(tree, child)
        return below

    def _redirections(
        self, tree: _Tree, redirects: "list[Node]"
    ) -> tuple[Words, tuple[str, ...], tuple[_Span, ...], "list[Node]"]:
        """Return the files written, the literal texts, the sources read, and stray words.

        The grammar takes all words after a redirection as its targets: only the first is.
        """
        writes: list[Word] = []
        given: list[str] = []
        inputs: list[_Span] = []
        strays: list[Node] = []
        queue = list(redirects)
        while queue:
            redirect = queue.pop(0)
            targets = redirect.children_by_field_name("destination")
            operator = next((c.type for c in redirect.children if set(c.type) & set("<>")), "")
            match redirect.type:
                case "heredoc_redirect":
                    queue += [c for c in redirect.children if c.type in _REDIRECTS]
                    strays += redirect.children_by_field_name("argument")
                    bodies = [c for c in redirect.children if c.type == "heredoc_body"]
                    given += [_text_of(tree, _span(body)) for body in bodies]
                    inputs += _expansions(bodies)
                case "herestring_redirect":
                    texts = [c for c in redirect.named_children if c.type != "file_descriptor"]
                    given += [word.text for word in self._words(tree, texts)]
                    inputs += _expansions(texts)
                case _ if targets:
                    strays += targets[1:]
                    target = self._words(tree, targets[:1])
                    numbered = operator == ">&" and re.fullmatch(r"\d*-?", target[0].text)
                    if operator in _WRITING and not numbered:
                        writes += target
                    inputs += _expansions(targets[:1])
                case _:
                    pass
        return tuple(writes), tuple(given), tuple(inputs), strays

    def _assignment(self, tree: _Tree, node: "Node") -> tuple[str, Word]:
        value = node.child_by_field_name("value")
        words = self._words(tree, [value] if value is not None and value.type != "array" else [])
        return _text_of(tree, _span(node)).partition("=")[0].rstrip("+"), (*words, Word(""))[0]

    # --- words ---------------------------------------------------------------------------------

    def _words(self, tree: _Tree, nodes: "list[Node]") -> Words:
        """Return the words of nodes; adjacent nodes form one word."""
        spans: list[tuple[_Span, list[Node]]] = []
        for node in sorted(nodes, key=lambda n: n.start_byte):
            start, end = _span(node)
            if spans:
                (first, last), group = spans[-1]
                if not tree.source[last:start].replace(b"\\\n", b""):
                    spans[-1] = ((first, end), [*group, node])
                    continue
            spans.append(((start, end), [node]))
        return tuple(
            self._word(tree.source, span, dict(_expansions(group))) for span, group in spans
        )

    def _word(self, source: bytes, span: _Span, expansions: dict[int, int]) -> Word:
        word, sure = _unquoted(source[: span[1]], span[0], expansions)
        if not sure:
            self.doubts.append(_BROKEN)
        if source[span[0] : span[0] + 1] == b"{" and re.search(r"[{,]-", word.text):
            self.doubts.append(_BRACES)
        return word

    # --- what the commands read and run --------------------------------------------------------

    def _settle(self, tree: _Tree, depth: int, reads: tuple[str, ...]) -> list[ShellCommand]:
        """Return the commands of a tree and the commands that they run in turn."""
        names = [
            (found.span[0], name) for found in tree.found if (name := _name(found)) is not None
        ]
        done: list[tuple[int, list[ShellCommand]]] = []
        for span, text, counts in tree.again:
            before = len(self.doubts)
            commands = self.read(text, depth + 1, reads)
            if not counts:
                del self.doubts[before:]
                if text.startswith(_TEST) and commands:
                    commands[0] = replace(commands[0], words=())
            names += [(span[0], command.name) for command in commands if command.name is not None]
            done.append((span[0], commands))
        # Inner commands and those earlier in a pipe end first, so they are already resolved.
        for found in sorted(tree.found, key=lambda f: f.span[1]):
            sources = (name for at, name in names if any(a <= at < b for a, b in found.sources))
            commands = self._run(found, depth, tuple(dict.fromkeys((*reads, *sources))))
            names += [(found.span[0], c.name) for c in commands[1:] if c.name is not None]
            done.append((found.span[0], commands))
        done.sort(key=lambda item: item[0])
        return [command for _, commands in done for command in commands]

    def _run(self, found: _FoundCommand, depth: int, reads: tuple[str, ...]) -> list[ShellCommand]:
        """Return a command and all that it runs."""
        piped = bool(found.sources) or bool(reads)
        first = ShellCommand((), found.writes, found.assignments, reads)
        commands: list[ShellCommand] = []
        todo = [(found.words, first, depth)]
        while todo:
            words, base, level = todo.pop(0)
            words, assignments = _without_assignments(words)
            self._commands_left -= 1
            if self._commands_left < 0:
                raise _TooLargeError
            what = inner(words) if words else InnerCommands()
            commands.append(
                ShellCommand(
                    words, base.writes, base.assignments + assignments, reads, what.runs_input
                )
            )
            self.doubts += what.doubts
            name = command_name(words[0]) if words else ""
            if name is None:
                self.doubts.append(_NO_NAME)
            if level >= _DEPTH_LIMIT and (what.commands or what.texts):
                self.doubts.append(_DEEP)
                continue
            todo += [(below, ShellCommand(), level + 1) for below in what.commands]
            texts = what.texts
            if what.runs_input and name in SHELLS and not what.doubts:
                texts += found.given
                if piped and not found.given:
                    self.doubts.append(_PIPED_PROGRAM)
            before = len(self.doubts)
            for text in texts:
                commands += self.read(text, level + 1, reads)
            if what.doubts:
                del self.doubts[before:]  # one doubt already says that the text is unknown
        return commands


def _span(node: "Node") -> _Span:
    return node.start_byte, node.end_byte


def _last_command(body: "Node") -> "Node":
    """Return the node to which redirections after a body belong."""
    while body.type in ("pipeline", "list", "negated_command"):
        body = body.named_children[-1]
    return body


def _text_of(tree: _Tree, span: _Span) -> str:
    return tree.source[span[0] : span[1]].decode(errors="replace")


def _name(found: _FoundCommand) -> str | None:
    return command_name(found.words[0]) if found.words else None


def _ticked(tree: _Tree, node: "Node") -> list[tuple[_Span, str, bool]]:
    """Return the texts between backticks in what the grammar took for plain text."""
    return [
        (_span(node), _UNESCAPED.sub(r"\1", text), True)
        for text in _BACKTICKS.findall(_text_of(tree, _span(node)))
    ]


def _is_quoted(heredoc: "Node") -> bool:
    start = next((c.text for c in heredoc.children if c.type == "heredoc_start"), b"")
    return bool(start and set(start) & set(b"'\"\\"))


def _without_assignments(words: Words) -> tuple[Words, tuple[tuple[str, Word], ...]]:
    """Split off assignments (`A=1 command`) as env and sudo do; drop a reserved word before a command."""
    assignments: list[tuple[str, Word]] = []
    at = 0
    if words and words[0].text in ("export", "declare", "typeset", "local", "readonly"):
        return words, tuple(_assigned(word) for word in words if is_assignment(word))
    while at < len(words) and (is_assignment(words[at]) or words[at].text in _RESERVED):
        assignments += [_assigned(words[at])] if is_assignment(words[at]) else []
        at += 1
    return words[at:], tuple(assignments)


def _assigned(word: Word) -> tuple[str, Word]:
    name, _, value = word.text.partition("=")
    return name.rstrip("+"), Word(value, None if word.literal else word.sure.partition("=")[2])


def _expansions(nodes: "list[Node]") -> Iterator[_Span]:
    """Yield the positions of the outermost expansions in a word."""
    todo = list(nodes)
    while todo:
        node = todo.pop()
        if node.type in _EXPANSIONS:
            yield _span(node)
        else:
            todo += node.children


# --- quotes -----------------------------------------------------------------------------------

_ANSI_C = lazy_pattern(
    rb"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c(.)|(.))",
    re.DOTALL,
)
_ANSI_C_LETTERS = dict(zip(b"abeEfnrtv", b"\a\b\x1b\x1b\f\n\r\t\v", strict=True))
_ANSI_C_QUOTED = lazy_pattern(rb"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_MAKES_EXPANSION = lazy_pattern(rb"\$[A-Za-z0-9_@*#?$!({-]|`")


def _unquoted(source: bytes, at: int, expansions: dict[int, int]) -> tuple[Word, bool]:
    """Return the word from a position to the end of the source, by the shell's rules.

    Also return whether it is a single word by those rules: if it contains a blank or an operator,
    the grammar was wrong.
    """
    out = bytearray()
    head: bytes | None = None
    behind = 0
    quoted = wild = False
    sure = True
    while at < len(source):
        byte = source[at : at + 1]
        end = expansions.get(at)
        if end is not None or _MAKES_EXPANSION.match(source, at):
            head = bytes(out) if head is None else head
            out += source[at : end or at + 1]
            at = end or at + 1
            behind = len(out)
        elif byte == b"\\" and at + 1 < len(source):
            escaped = source[at + 1 : at + 2]
            if escaped != b"\n":
                out += escaped if not quoted or escaped in b'$`"\\' else byte + escaped
            at += 2
        elif byte == b'"':
            quoted = not quoted
            at += 1
        elif quoted:
            out += byte
            at += 1
        elif byte == b"'":
            close = source.find(b"'", at + 1)
            sure = sure and close >= 0
            close = close if close >= 0 else len(source)
            out += source[at + 1 : close]
            at = close + 1
        elif byte == b"$" and (text := _ANSI_C_QUOTED.match(source, at)):
            out += _ANSI_C.sub(_ansi_c, text[1]).partition(b"\0")[0]
            at = text.end()
        elif source[at : at + 2] == b'$"':
            at += 1
        else:
            sure = sure and byte not in b" \t\n;|&<>()"
            wild = wild or byte in b"*?["
            out += byte
            at += 1
    return (
        Word(
            out.decode(errors="replace"),
            None if head is None else head.decode(errors="replace"),
            "" if head is None else bytes(out[behind:]).decode(errors="replace"),
            wild,
        ),
        sure and not quoted,
    )


def _ansi_c(escape: re.Match[bytes]) -> bytes:
    octal, byte, short, long, control, letter = escape.groups()
    if octal or byte:
        return bytes([int(octal, 8) & 255 if octal else int(byte, 16)])
    if short or long:
        number = int(short or long, 16)
        return chr(number).encode(errors="replace") if number <= 0x10FFFF else b"?"
    if control:
        return bytes([control[0] & 31])
    known = _ANSI_C_LETTERS.get(letter[0])
    if known is not None:
        return bytes([known])
    return bytes(letter) if letter in b"\\'\"?" else b"\\" + letter
