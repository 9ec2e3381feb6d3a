"""The PROTOCOL section: what the model is taught, made from the table of commands.

It is the same text in every outbox of one protocol version (specification 003, PROTOCOL section), unless
a chat keeps it. A model that has never seen this tool must get its first answer right from it alone, so each
sentence here has earned its place by a reply that went wrong without it.
"""

import hashlib
import re
from functools import cache

from codingagent.model.commands import BY_TAG, COMMANDS, TO, UNCHECKED, UNTIL, TagCommand
from codingagent.model.patterns import text_at

_FOLDER = __file__.removesuffix("guide.py")
_TAGS, _QUESTION = (text_at(f"{_FOLDER}{name}.txt").strip() for name in ("tags", "question"))
EXAMPLE = _TAGS.split("````")[1].strip()


def question_text() -> str:
    """Return the PROTOCOL section of a request that asks a question."""
    return _QUESTION.replace("{read}", _describe(BY_TAG["READ_FILE"]))


@cache
def protocol_text() -> str:
    """Return the PROTOCOL section without its heading."""
    reference = "\n\n".join(_describe(command) for command in COMMANDS)
    return _TAGS.replace("{operations}", reference)


@cache
def mark() -> str:
    """Return what an answer by this version says of itself where the chat keeps it; no request has it."""
    return hashlib.sha256(protocol_text().encode()).hexdigest()[:8]


def kept_text() -> str:
    """Return the guide for a chat to keep. Its answers show by their mark that they were written by it."""
    text = re.sub(r"(\[REPLY [^\]]*)\]", rf'\1 guide="{mark()}"]', protocol_text())
    return (
        f"Guide {mark()[:4]} of codingagent, for messages with the section === HEADER ===: where PROTOCOL"
        f" names it, answer by this guide; what else PROTOCOL says goes first.\n\n{text}\n"
    )


def reminder(session_id: str, sequence: int | str, *, is_asking: bool = False, is_kept: bool = False) -> str:
    if is_kept:
        reply = f'[REPLY session="{session_id}" sequence="{sequence}" guide="…"]'
        return f"Answer by your guide: first {reply}, last [END].\n"
    how, last = "with operations", "End with [DONE] unless you must see results first."
    if is_asking:
        how, last = "in words", "Nothing is changed or run this time."
    return (
        f'Answer {how} as PROTOCOL says: first [REPLY session="{session_id}" sequence="{sequence}"],'
        f" last [END]. {last}\n"
    )


def _describe(command: TagCommand) -> str:
    attributes = [
        f'  {attribute.name}="{attribute.example}": {attribute.meaning}'
        for attribute in command.attributes
        # The example shows `path`, rule 11 tells of `until`, and the refusal that it lifts of `unchecked`.
        if attribute.name != "path" and attribute not in (TO, UNCHECKED, UNTIL)
    ]
    parts = [f"### {command.kind}", command.meaning]
    if f"\n[{command.kind}" not in EXAMPLE:
        parts.append(command.example)
    if attributes:
        parts.append("Optional:")
        parts.extend(attributes)
    return "\n".join(parts)
