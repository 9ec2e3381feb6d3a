"""Handle an answer without any command: show its words to the person, and a block to the model."""

import re
from collections.abc import Iterable

from codingagent.model.operations import FetchFile, Kind, ListFolder, ReadFile, ShowMessage
from codingagent.model.patterns import lazy_pattern
from codingagent.model.plain_text import one_line, some
from codingagent.protocols.tags.reply import NO_BLOCK, NO_BLOCK_EXAMPLE, Problem, Step

_OUR_LINES = lazy_pattern(r"^[ \t]*\[(?:REPLY\b[^\]\n]*|END)\][ \t]*$\n?", re.MULTILINE)
# Chats may escape or embolden them.
_ANSWER_LINES = lazy_pattern(
    r"^[ \t>*_`]*\\?\[/?(?:REPLY|END|MESSAGE|DONE|READ\\?_FILE)\b[^\n]*\][*_` \t]*$\n?", re.MULTILINE
)
_FENCED = lazy_pattern(r"(`{3,}|~{3,})\w*\n((?:(?!^\1).)*)^\1[ \t]*", re.DOTALL | re.MULTILINE)
_READS = (ReadFile, FetchFile, ListFolder)
# Their words are shown with the others.
_WORDS = (Kind.ANSWER, Kind.MESSAGE, Kind.DONE)
_NAMED, _SUBJECT = 5, 60
_ONLY_ANSWERS = "Not executed, because this was only a question: {}"
_NO_MESSAGE = (
    "The answer has no operations message, so nothing was done",
    ". Answer with one JSON object, for example:",
)
_JSON_EXAMPLE = '{"protocolVersion": "1.0", "operations": [{"type": "readFile", "path": "src/main.py"}]}'
_SHOWN = ", and the user was shown your words"


def items_of(text: str, *, is_json: bool) -> tuple[Step | Problem, ...]:
    """Return the words of an answer as a message to the person, and the missing command as a problem."""
    words = _OUR_LINES.sub("", text).strip("\n")
    fact, advice = _NO_MESSAGE if is_json else NO_BLOCK
    example = _JSON_EXAMPLE if is_json else NO_BLOCK_EXAMPLE
    if not words.strip():
        return (Problem(Kind.ANSWER, fact, 1, example, advice=advice),)
    problem = Problem(Kind.ANSWER, fact, 1, example, advice=_SHOWN + advice)
    return Step(ShowMessage(words), 1), problem


def answer_items(words: str, found: Iterable[Step | Problem]) -> tuple[Step | Problem, ...]:
    """Return the answer to a question: its words and what only reads; the rest is refused by name."""
    kept: list[Step | Problem] = [Step(ShowMessage(words), 1)] if words.strip() else []
    refused: list[str] = []
    for item in found:
        operation = item.operation if isinstance(item, Step) else None
        if isinstance(operation, _READS) or (operation is None and item.kind is Kind.READ_FILE):
            kept.append(item)
        elif item.kind not in _WORDS:
            subject = getattr(operation, "path", "") or getattr(operation, "command", "")
            refused.append(" ".join(filter(None, (item.kind, one_line(subject, _SUBJECT)))))
    if refused:
        kept.append(Problem(Kind.ANSWER, _ONLY_ANSWERS.format(some(refused, _NAMED)), 1))
    return tuple(kept) or (Problem(Kind.ANSWER, "The answer contains no words", 1),)


def words_of(text: str) -> str:
    """Return the words of an answer to a question, without our own lines and a fence around all of it."""
    words = _ANSWER_LINES.sub("", text).strip("\n")
    fence = _FENCED.fullmatch(words)
    return (words if fence is None else fence[2]).strip("\n")
