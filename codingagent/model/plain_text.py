"""Text from commands and models made harmless and short, for a terminal and for the next request."""

import re

# ECMA-48: CSI, then OSC, DCS, SOS, PM and APC up to their end (or the end of the line, for a string
# that never ends), then the two-character escapes, then stray C0 and C1 controls.
_CONTROL = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)


def without_controls(text: str) -> str:
    """Return the text without terminal control sequences.

    Of a line drawn over with carriage returns (a progress bar) the last drawing stays.
    """
    if "\r" in text:
        text = "\n".join(map(_last_drawing, text.split("\n")))
    return _CONTROL.sub("", text)


# Unicode's embeddings, overrides and isolates: what follows them is shown in another order.
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")


def on_screen(text: str) -> str:
    """Return the text as a terminal may show it: without controls, and with nothing turned round unseen."""
    clean = without_controls(text)
    return clean if clean.isascii() else _TURNING.sub(lambda m: _unmasked_character(m[0]), clean)


def unmasked(text: str) -> str:
    """Return the text with an escape for whatever can't be seen, or would change what is seen.

    What a person is to say yes to must not be drawn over by its own carriage returns, or turned round.
    """
    if text.isprintable():
        return text
    lines = (line.rstrip("\r") for line in text.split("\n"))
    return "\n".join("".join(map(_unmasked_character, line)) for line in lines)


def _unmasked_character(character: str) -> str:
    if character.isprintable() or character == "\t":
        return character
    return character.encode("unicode_escape").decode()


def _last_drawing(line: str) -> str:
    return line if "\r" not in line else line.rstrip("\r").rpartition("\r")[2]


def clip_middle(text: str, limit: int, dropped: int = 0) -> str:
    """Return at most about `limit` characters of a text, its head and its tail.

    Args:
        text: what there is.
        limit: in characters, without the line that says what was left out.
        dropped: how many characters of the middle were never kept.
    """
    left_out = max(len(text) - limit, 0) + dropped
    if not left_out:
        return text
    half = min(limit, len(text)) // 2
    head, tail = text[:half], text[len(text) - half :]
    # Whole lines read better than halves, where a line end is near.
    head_end, tail_start = head.rfind("\n") + 1, tail.find("\n") + 1
    head = head[:head_end] if head_end > half * 3 // 4 else head
    tail = tail[tail_start:] if 0 < tail_start < half // 4 else tail
    left_out = len(text) - len(head) - len(tail) + dropped
    return f"{head.rstrip(chr(10))}\n… {left_out} characters left out …\n{tail}"


def visible(text: str, limit: int = 200) -> str:
    """Return a text on one line, clipped; what is not printable is written as an escape."""
    clipped = text if len(text) <= limit else f"{text[:limit]}…"
    return clipped if clipped.isprintable() else repr(clipped)[1:-1]


def without_halves(text: str) -> str:
    """Return text without halves of characters, which no UTF-8 and no JSON may hold: each becomes `?`.

    They stand for bytes that are no UTF-8, in names and on command lines.
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


_CONTROLS = tuple(map(chr, range(32)))


def json_length(text: str) -> int:
    """Return about how many characters a text takes in JSON, where a control character is six."""
    return len(text) + 5 * sum(map(text.count, _CONTROLS)) - 4 * text.count("\n")


def one_line(text: str, limit: int = 200) -> str:
    """Return the first line of a text, clipped, with a word on how much follows; nothing in it hides."""
    text = unmasked(text.strip("\n"))
    first, _, rest = text.partition("\n")
    if len(first) > limit:
        return f"{first[:limit]}…"
    more = rest.count("\n") + 1 if rest else 0
    return first if not more else f"{first} … (+{more} {'line' if more == 1 else 'lines'})"
