"""Read a shell line as bash does: every command in it, also of `env` or `sh -c`, and what is uncertain."""

import re
import unicodedata
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from codingagent.model.patterns import lazy_pattern
from codingagent.policy import shell_commands
from codingagent.policy.shell_commands import ShellCommand, ShellLine, Word, Words

# Nobody writes longer lines for a person to read, and an unread line can't be judged.
TEXT_LIMIT_BYTES = 16 * 1024
COMMAND_LIMIT = 200
_BROKEN = "it can't be parsed as a shell command"
_NO_NAME = "a command name in it is known only when it runs"
_HIDDEN = "it contains invisible characters"
_PIPED_PROGRAM = "it runs text that is piped into a shell"
_BRACES = "it may contain options in braces"
_SETTING = ("export", "declare", "typeset", "local", "readonly")
# Each is matched at the place that is read. `(?![^\s;&|<>()])`: the word ends here.
_BLANKS = lazy_pattern(r"(?:[ \t]|\\\n)+")
_PLAIN = lazy_pattern(r"[^ \t\n;&|<>()$`\\'\"*?\[}]+")
_BEFORE_COMMAND = lazy_pattern(
    r"!(?=[\s(])|time(?:[ \t]+-p)?(?=[ \t]*(?:[({!]|(?:if|for|select|while|until|case)\b))"
    r"|coproc\b(?:[ \t]+\w+(?=[ \t]+[{(]))?|(?:then|elif|else|do)(?![^\s;&|<>()])"
)
_OPENING = lazy_pattern(r"(?:if|while|until|for|select|case|function|\{|\[\[)(?=\s)|\(")
_CLOSING = lazy_pattern(r"(?:fi|done|esac|\})(?![^\s;&|<>()])|;;&?|;&|\)")
_CLOSED_BY = {"if": "fi", "while": "done", "until": "done", "{": "}", "(": ")"}
_BETWEEN = lazy_pattern(r"&&|\|\||;(?![;&])|&(?!>)")
_PIPE = lazy_pattern(r"\|&?(?!\|)")
_REDIRECTION = lazy_pattern(r"(?:\d+|\{\w+\})?(<<<|<<-?|<>|<&|<(?!\()|>>|>\||>&|>(?!\()|&>>?)(?:[ \t]|\\\n)*")
_NUMBERED = lazy_pattern(r"\d*-?")
_PARENTHESES = lazy_pattern(r"[ \t]*\([ \t]*\)")
# With parentheses in it, three deep; deeper ones are read as commands.
_ARITHMETIC = lazy_pattern(r"\(\(((?:[^()]++|\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\))*+)\)\)")
# The rest of a line before a here-document; a quoted line end does not end it.
_LINE_END = lazy_pattern(
    r"""(?:[^'"\\\n#]++|(?<![ \t])\#|\#[^\n]*+|\\.|'[^']*+'|"(?:[^"\\]++|\\.)*+")*+\n""", re.DOTALL
)
_BACKTICKS = lazy_pattern(r"`((?:[^`\\]|\\.)*)`?", re.DOTALL)
_UNESCAPED = lazy_pattern(r"\\([`\\$])")
_PARAMETER = lazy_pattern(r"\$(?:\w+|[@*#?$!-])")
_ANSI_C_QUOTED = lazy_pattern(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ANSI_C = lazy_pattern(r"\\(?:([0-7]{1,3})|[xuU]([0-9A-Fa-f]{1,8})|(.))", re.DOTALL)
_ANSI_C_LETTERS = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))


def read_line(text: str) -> ShellLine:
    """Find every command in a shell line. Never raises; takes bounded time and memory."""
    reader = _Reader()
    try:
        reader.read(text)
    except (_TooLargeError, RecursionError):
        return ShellLine(too_large=True)
    odd = {each for each in text if not each.isprintable()} - {"\n", "\t"}
    if any(unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp", "Zs") for each in odd):
        reader.doubts.append(_HIDDEN)
    doubts = tuple(dict.fromkeys(reader.doubts))
    return ShellLine(tuple(reader.commands), doubts, False, frozenset(reader.functions), text)


class _TooLargeError(Exception):
    """The text is too long or too complex to read."""


def _names(commands: list[ShellCommand]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(command.name for command in commands if command.name))


class _Draft(Struct):
    """A command as far as it is read."""

    words: Words = ()
    writes: Words = ()
    assignments: tuple[tuple[str, Word], ...] = ()
    sources: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    """The literal texts that it gets as its input."""


class _Reader:
    def __init__(self) -> None:
        self.commands: list[ShellCommand] = []
        self.doubts: list[str] = []
        self.functions: list[str] = []
        self._text, self._at = "", 0
        # Where the here-documents of a line end, by the position of the line's end.
        self._bodies: dict[int, int] = {}
        self._reads: tuple[str, ...] = ()
        self._bytes_left = 4 * TEXT_LIMIT_BYTES

    def read(self, text: str, *, is_script: bool = True) -> None:
        """Read another text, a script or one with substitutions, and go on in this one."""
        size = len(text.encode(errors="replace"))
        self._bytes_left -= size
        if size > TEXT_LIMIT_BYTES or self._bytes_left < 0:
            raise _TooLargeError
        outer = self._text, self._at, self._bodies
        self._text, self._at, self._bodies = text, 0, {}
        while self._at < len(text) and is_script:
            self._list("")
        self._word("")
        self._text, self._at, self._bodies = outer

    def _here(self, size: int = 1) -> str:
        return self._text[self._at : self._at + size]

    def _passes(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _list(self, *ends: str) -> str:
        """Read commands up to one of the words or operators that end them; return it."""
        waits = False  # for a command, after && or ||
        while True:
            self._blanks(lines=True)
            closing = self._passes(_CLOSING)
            text = closing[0] if closing else ""
            if closing or self._at >= len(self._text):
                if waits or text not in ends:
                    self.doubts.append(_BROKEN)
                if text in ("", ")", *ends):
                    return text
                continue
            begin = self._at
            self._pipeline()
            is_empty = self._at == begin
            operator = self._passes(_BETWEEN)
            waits = operator is not None and operator[0] in ("&&", "||")
            if is_empty or not (operator or self._here() in ("", "\n", ")", ";")):
                self.doubts.append(_BROKEN)
                self._at += is_empty and not operator

    def _pipeline(self) -> None:
        start, reads = len(self.commands), self._reads
        while True:
            begin = self._at
            self._command()
            is_empty = self._at == begin
            pipe = self._passes(_PIPE)
            if is_empty and (pipe or self._reads != reads):
                self.doubts.append(_BROKEN)
            if pipe is None:
                break
            self._blanks(lines=True)
            self._reads = (*reads, "|", *_names(self.commands[start:]))
        self._reads = reads

    def _command(self) -> None:
        while self._passes(_BEFORE_COMMAND):
            self._blanks(lines=True)
        start = len(self.commands)
        opening = _OPENING.match(self._text, self._at)
        if opening is None:
            self._simple()
        elif opening[0] != "(" or not self._arithmetic():
            self._at = opening.end()
            self._compound(opening[0])
        self._blanks()
        found = _Draft()
        while self._redirection(found):
            pass
        read = self.commands[start:]
        inside = [replace(each, reads_from=(*each.reads_from, *found.sources)) for each in read]
        writes = [ShellCommand(writes=found.writes)] if found.writes else []
        self.commands[start:] = writes + inside
        if found.sources:
            self._doubt_input(inside)

    def _compound(self, word: str) -> None:
        if word in ("[[", "case", "function"):  # what follows is not certain to run
            self.commands.append(ShellCommand())
        match word:
            case "for" | "select":
                start, words = len(self.commands), self._words()
                given = tuple((words[0].text, value) for value in words[2:])
                self.commands[start:start] = [ShellCommand(assignments=given)] if given else []
                if not words:
                    self._arithmetic()
                self._blanks()
                self._at += self._here() == ";"
                self._list("done")
            case "case":
                self._case()
            case "function":
                self._blanks()
                self._function(self._word())
            case "[[":
                self._pass_words("]]")
            case _:
                self._list(_CLOSED_BY[word])

    def _function(self, name: Word) -> None:
        self.functions.append(name.text)
        self._passes(_PARENTHESES)
        self._blanks(lines=True)
        self._command()

    def _case(self) -> None:
        self._blanks()
        self._word()
        self._blanks(lines=True)
        self._word()  # in
        end = ""
        while end != "esac":
            self._blanks(lines=True)
            self._at += self._here() == "("
            if self._passes(_CLOSING):
                return
            while self._words() and self._here() == "|":
                self._at += 1
            if self._here() != ")":
                self.doubts.append(_BROKEN)
                return
            self._at += 1
            end = self._list("esac", ";;", ";&", ";;&")

    def _simple(self) -> None:
        start, found = len(self.commands), _Draft()
        while True:
            self._blanks()
            if self._redirection(found):
                continue
            begin, before = self._at, len(self.commands)
            if len(found.words) == 1 and _PARENTHESES.match(self._text, self._at):
                self._function(found.words[0])
                return
            word = self._word()
            if self._at == begin:
                break
            is_setting = not found.words or found.words[0].text in _SETTING
            assigned = shell_commands.split_assignment(word) if is_setting else None
            if assigned is not None and self._here() == "(" and not assigned[1].text:
                self._at += 1
                self._pass_words(")")
            if assigned is not None and not found.words:
                found.assignments += (assigned,)
                continue
            if self._text[begin] == "{" and (not found.words or re.search("[{,]-", word.text)):
                self.doubts.append(_BRACES if found.words else _NO_NAME)
            found.words += (word,)
            found.sources += _names(self.commands[before:])
        if found != _Draft():
            inside = self.commands[start:]
            del self.commands[start:]
            reads = tuple(dict.fromkeys((*self._reads, *found.sources)))
            command = ShellCommand(found.words, found.writes, found.assignments, reads)
            self._run(command, found.given)
            self.commands += inside

    def _run(self, command: ShellCommand, given: tuple[str, ...] = ()) -> None:
        if len(self.commands) >= COMMAND_LIMIT:
            raise _TooLargeError
        words, assignments = command.words, command.assignments
        while words and (assigned := shell_commands.split_assignment(words[0])) is not None:
            words, assignments = words[1:], (*assignments, assigned)
        if words and words[0].text in _SETTING:
            assignments += tuple(filter(None, map(shell_commands.split_assignment, words)))
        what = shell_commands.inner(words) if words else shell_commands.InnerCommands()
        reads, runs = command.reads_from, what.runs_input
        command = ShellCommand(words, command.writes, assignments, reads, runs)
        self.commands.append(command)
        self.doubts += what.doubts
        if words and command.name is None:
            self.doubts.append(_NO_NAME)
        texts = what.texts
        if not what.doubts and not given:
            self._doubt_input([command])
        elif not what.doubts and command.runs_input and command.name in shell_commands.SHELLS:
            texts += given
        outer, self._reads = self._reads, reads
        for below in what.commands:
            self._run(ShellCommand(below, reads_from=reads))
        before = len(self.doubts)
        for text in texts:
            self.read(text)
        if what.doubts:
            del self.doubts[before:]  # one doubt already says that the text is unknown
        self._reads = outer

    def _doubt_input(self, commands: Sequence[ShellCommand]) -> None:
        for each in commands:
            if each.runs_input and each.name in shell_commands.SHELLS and each.reads_from:
                self.doubts.append(_PIPED_PROGRAM)

    def _redirection(self, found: _Draft) -> bool:
        operator = self._passes(_REDIRECTION)
        if operator is None:
            return False
        begin, before, kind = self._at, len(self.commands), operator[1]
        word = self._word()
        if self._at == begin:
            self.doubts.append(_BROKEN)
        if kind in ("<<", "<<-"):
            is_quoted = self._text[begin : self._at] != word.text
            found.given += (self._here_document(word.text, kind, is_quoted),)
        elif kind == "<<<":
            found.given += (word.text,)
        elif ">" in kind and not (kind == ">&" and _NUMBERED.fullmatch(word.text)):
            found.writes += (word,)
        found.sources += _names(self.commands[before:])
        self._blanks()
        return True

    def _here_document(self, end: str, kind: str, is_quoted: bool) -> str:
        """Return the text of a here-document, and read the commands in it."""
        line = _LINE_END.match(self._text, self._at)
        newline = line.end() - 1 if line else self._text.find("\n", self._at)
        if newline < 0:
            return ""
        start = self._bodies.get(newline, newline + 1)
        tabs = "\t*" if kind == "<<-" else ""
        last = re.compile(rf"^{tabs}{re.escape(end)}(?:\n|\Z)", re.MULTILINE).search(self._text, start)
        body = self._text[start : last.start() if last else None]
        self._bodies[newline] = last.end() if last else len(self._text)
        if not is_quoted:
            self.read(body, is_script=False)
        return body

    def _blanks(self, *, lines: bool = False) -> None:
        """Pass blanks and comments, and the ends of lines with the here-documents after them."""
        while True:
            self._passes(_BLANKS)
            here = self._here()
            if here == "#" and (not self._at or self._text[self._at - 1] in " \t\n;&|()"):
                end = self._text.find("\n", self._at)
                self._at = end if end >= 0 else len(self._text)
            elif here == "\n" and lines:
                self._at = self._bodies.pop(self._at, self._at + 1)
            else:
                return

    def _words(self) -> list[Word]:
        words: list[Word] = []
        while True:
            self._blanks()
            begin = self._at
            word = self._word()
            if self._at == begin:
                return words
            words.append(word)

    def _pass_words(self, end: str) -> None:
        """Pass words, among which operators are words too, up to the one that ends them."""
        while self._at < len(self._text):
            self._blanks(lines=True)
            begin = self._at
            if self._word().text == end:
                return
            if self._at == begin:
                self._at += 1
                if self._text[begin : self._at] == end:
                    return
        self.doubts.append(_BROKEN)

    def _word(self, ends: str = " \t\n;&|<>()", *, begins_quoted: bool = False) -> Word:
        """Return the word here, unquoted, or an empty one; with empty `ends` all of a text without quotes."""
        out, head, behind, wild = "", None, 0, False
        is_body, quoted = not ends, begins_quoted
        while self._at < len(self._text):
            begin, here = self._at, self._here()
            if plain := self._passes(_PLAIN):
                out += plain[0]
            elif here == "\\":
                escaped = self._here(2)[1:]
                if escaped != "\n":
                    out += escaped if not quoted or escaped in '$`"\\' else here + escaped
                self._at += 2
            elif here in "$`<>" and self._expansion(quoted or is_body):
                head = out if head is None else head
                out += self._text[begin : self._at]
                behind = len(out)
            elif here in ends and quoted == begins_quoted:
                break
            elif here == '"' and not is_body:
                quoted = not quoted
                self._at += 1
            elif quoted or is_body or here not in "'$":
                wild = wild or (not quoted and here in "*?[")
                out += here
                self._at += 1
            elif here == "'":
                close = self._text.find("'", self._at + 1)
                if close < 0:
                    self.doubts.append(_BROKEN)
                    close = len(self._text)
                out += self._text[self._at + 1 : close]
                self._at = close + 1
            elif text := self._passes(_ANSI_C_QUOTED):
                out += _ANSI_C.sub(_ansi_c, text[1]).partition("\0")[0]
            else:
                out += "" if self._here(2) == '$"' else here
                self._at += 1
        else:
            if quoted != begins_quoted or ends == "}":
                self.doubts.append(_BROKEN)
        return Word(out, head, "" if head is None else out[behind:], wild)

    def _expansion(self, quoted: bool) -> bool:
        """Pass an expansion and read the commands in it; return whether one is here."""
        if ticks := self._passes(_BACKTICKS):
            if len(ticks[0]) < 2 or ticks[0][-1] != "`":
                self.doubts.append(_BROKEN)
            self.read(_UNESCAPED.sub(r"\1", ticks[1]))
        elif self._here(2) == "$(":
            self._at += 1
            if not self._arithmetic():
                self._at += 1
                self._list(")")
        elif self._here(2) == "${":
            self._at += 2
            self._word("}", begins_quoted=quoted)
            self._at += 1
        elif not quoted and self._here(2) in ("<(", ">("):
            self._at += 2
            self._list(")")
        else:
            return self._passes(_PARAMETER) is not None
        return True

    def _arithmetic(self) -> bool:
        found = self._passes(_ARITHMETIC)
        if found is not None:
            self.read(found[1], is_script=False)
        return found is not None


def _ansi_c(escape: re.Match[str]) -> str:
    octal, code, letter = escape.groups()
    if octal or code:
        return chr(min(int(octal, 8) & 255 if octal else int(code, 16), 0x10FFFF))
    return _ANSI_C_LETTERS.get(letter, f"\\{letter}")
