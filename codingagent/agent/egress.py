"""The record of the data that a request carries out of this machine."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from codingagent.agent.secrecy import Secrecy
from codingagent.model.journal_entries import Egress, ShownLines
from codingagent.model.observations import digest_of
from codingagent.prompt import file_contents, tokens

if TYPE_CHECKING:
    from codingagent.agent.guess import Guess


def egress_of(
    secrecy: Secrecy,
    texts: tuple[str, str],
    views: Iterable[file_contents.FileView],
    guess: "Guess | None",
    whole: Iterable[str],
) -> Egress:
    """Return what a request carries out: its text, and its short version (empty: none).

    `whole` are the paths of all that it shows whole; events as JSON hold some of them.
    """
    data, brief = (text.encode("utf-8", "replace") for text in texts)
    lines = {path: (a, b) for path, a, b in file_contents.lines_shown(texts[0], views)}
    for part in () if guess is None else guess.chosen:
        lines[part.file.path] = (min(part.shown), max(part.shown))
    lines |= {path: (1, 0) for path in whole if path not in lines}
    return Egress(
        len(data),
        digest_of(data),
        tuple(ShownLines(path, *span) for path, span in lines.items()),
        secrecy.counts(texts[0]),
        secrecy.mode,
        len(brief),
        digest_of(brief) if brief else "",
        *(size for text in texts for size in (len(text), tokens.estimate(text))),
    )
