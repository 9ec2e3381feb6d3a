"""Formats bytes, sixteen a line."""

WIDTH = 16
HALF = WIDTH // 2
DIM = "\x1b[2m"
RESET = "\x1b[0m"


def _cell(data, index, color):
    if index >= len(data):
        return "  "
    digits = f"{data[index]:02x}"
    return f"{DIM}{digits}{RESET}" if color and data[index] == 0 else digits


def format_line(offset, data, color=False):
    """One line for up to sixteen bytes."""
    cells = [_cell(data, index, color) for index in range(WIDTH)]
    digits = " ".join(cells[:HALF]) + "  " + " ".join(cells[HALF:])
    text = "".join(chr(byte) if 0x20 <= byte <= 0x7E else "." for byte in data)
    return f"{offset:08x}  {digits}  |{text}|"


def lines(data, start=0, color=False):
    """Yields the lines for all of data; start is the offset of its first byte."""
    for at in range(0, len(data), WIDTH):
        yield format_line(start + at, data[at:at + WIDTH], color)


def read(stream, skip=0, count=None):
    """Reads count bytes (None: all) after skip bytes; works without seek, too."""
    while skip > 0:
        piece = stream.read(min(skip, 1 << 16))
        if not piece:
            return b""
        skip -= len(piece)
    return stream.read() if count is None else stream.read(count)
