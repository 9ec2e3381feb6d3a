"""Find the answer in what a chat or an API writes as JSON: a conversation, an account, a response.

Everyone has another form. In all of them an object says who wrote a message, and has its text beside that;
which request a text answers, its `[REPLY …]` line says.
"""

import json
from collections.abc import Iterator
from typing import Any

from codingagent.errors import UsageError
from codingagent.model.patterns import lazy_pattern
from codingagent.protocols.tags import transcript
from codingagent.protocols.tags.reply import Header

_BEGINS = lazy_pattern(r'\s*(?:data: ?)?(?:\{(?!\s*"(?:protocolVersion|operations)")|\[\s*[\[{])')
_FENCED = lazy_pattern(r"(?s)\s*(`{3,}|~{3,})[^\n`]*\n(.*)\n[ \t]*\1[`~]*\s*")
# JSON has no such line: each of its strings is on one line, behind a quote.
_BLOCK = lazy_pattern(r"(?m)^[ \t]*\[/?[A-Z]+(?:_[A-Z]+)?\b")
_WRITER = lazy_pattern(r'"(?:role|sender|from)"\s*:\s*"(?:assistant|model|user|human|system|gpt|ai|bot)"')
_MODELS = ("assistant", "model", "gpt", "ai", "bot")
_WRITERS, _TEXTS = ("role", "sender", "from", "author"), ("content", "text", "parts", "value")
# What a model thought, or asked of a tool, is no answer.
_ASIDE = ("thinking", "thoughts", "reasoning", "reasoning_recap", "tool_use", "code", "function_call")


def answer_in(text: str, session_id: str, sequence: int) -> str:
    """Return the last answer to a request in a chat's export; a text that is none as it is.

    Without one, the last text that names any request. UsageError if there is none.
    """
    fenced = _FENCED.fullmatch(text)
    export = text if fenced is None else fenced[2]
    if not _BEGINS.match(export) or _BLOCK.search(export):
        return text
    try:
        texts = [*_messages(_parsed(export))]
    except (ValueError, RecursionError):
        texts = []
    if not texts and not _WRITER.search(text):
        return text
    named = [(header, each) for each in texts if (header := transcript.last_header(each)) is not None]
    if not named:
        raise UsageError("it is a chat's export in JSON, and no answer in it begins with [REPLY …]")
    ours = [each for header, each in named if header == Header(session_id, sequence)]
    return ours[-1] if ours else named[-1][1]


def _parsed(text: str) -> Any:
    """Return a text's value; of lines of JSON, or of a stream of events, all of theirs."""
    try:
        return json.loads(text)
    except ValueError:
        lines = (line.removeprefix("data:").strip() for line in text.splitlines())
        return [json.loads(line) for line in lines if line.startswith(("{", "["))]


def _messages(value: Any) -> Iterator[str]:
    """Yield the texts that a model wrote, in the order of the file."""
    if isinstance(value, dict):
        if (nodes := value.get("mapping")) and isinstance(nodes, dict):
            value = {**value, "mapping": _branch(nodes, value.get("current_node"))}
        elif value.get("messages"):
            value = {**value, "history": None}  # the same, with all branches
        chosen, versions = value.get("currentlySelected"), value.get("versions")
        if isinstance(chosen, int) and isinstance(versions, list):
            value = {"versions": versions[chosen : chosen + 1]}
        writer = next((value[key] for key in _WRITERS if value.get(key)), None)
        writer = writer.get("role") if isinstance(writer, dict) else writer
        if (is_person := value.get("isCreatedByUser")) is not None:
            writer = "user" if is_person else "model"  # which may have any name
        if isinstance(writer, str) and (text := _text(value)):
            if writer.lower() in _MODELS:
                yield text
            value = {"children": value.get("children")}
        value = [*value.values()]
        # Some APIs say of nobody that he wrote it.
        yield from (each for each in value if isinstance(each, str) and "[REPLY" in each)
    for each in value if isinstance(value, list) else ():
        yield from _messages(each)


def _branch(nodes: dict[str, Any], at: Any) -> list[Any]:
    """Return the messages up to the one that the person saw last, of a tree; all, if that is not known."""
    found: list[Any] = []
    while isinstance(at, str) and isinstance(node := nodes.get(at), dict) and len(found) < len(nodes):
        found.append(node)
        at = node.get("parent")
    return found[::-1] or [*nodes.values()]


def _text(value: Any) -> str:
    """Return what a message says, whatever its parts are in."""
    if isinstance(value, list):
        return "".join(map(_text, value))
    if isinstance(value, dict):
        is_aside = value.get("type") in _ASIDE or value.get("content_type") in _ASIDE
        return "" if is_aside else next(filter(None, (_text(value.get(key)) for key in _TEXTS)), "")
    return value if isinstance(value, str) else ""
