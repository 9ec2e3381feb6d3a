"""Split a request into numbered parts, for chats that limit the length of a message."""

# The words around the text of a part; a chat that takes less than this is useless.
_FRAME_CHARACTERS = 400
SMALLEST_CHARACTERS = 1_000


def split(text: str, limit: int) -> tuple[str, ...]:
    """Return the text in parts of at most `limit` characters, at line ends; all but the last ask to wait."""
    if len(text) <= limit:
        return (text,)
    room = limit - _FRAME_CHARACTERS
    pieces: list[str] = []
    at = 0
    while at < len(text):
        end = min(at + room, len(text))
        if end < len(text):
            # Cut at a line end in the last half, if any: code that is cut within a line misleads.
            line_end = text.rfind("\n", at + room // 2, end)
            end = line_end + 1 if line_end >= 0 else end
        pieces.append(text[at:end])
        at = end
    count, parts = len(pieces), list[str]()
    for number, piece in enumerate(pieces, start=1):
        then = ": this was all. Now answer the whole request, as its PROTOCOL says."
        if number < count:
            then = f'. Don\'t answer yet: reply only "OK" and wait for part {number + 1}.'
        ended = piece if piece.endswith("\n") else f"{piece}\n"
        closing = f"[end of part {number} of {count}{then}]\n"
        parts.append(f"[part {number} of {count} of one request]\n{ended}{closing}")
    return tuple(parts)
