"""Formatting for hexview."""

BYTES_PER_LINE = 16
HEX_WIDTH = 48  # 16 * 2 digits, 14 single spaces, 1 double space

DIM = "\x1b[2m"
RESET = "\x1b[0m"


def hex_column(chunk, color=False):
    """Return the hex digits of chunk, padded to the full width."""
    parts = []
    for index, byte in enumerate(chunk):
        if index:
            parts.append("  " if index == 8 else " ")
        digits = f"{byte:02x}"
        parts.append(f"{DIM}{digits}{RESET}" if color and byte == 0 else digits)
    visible = len(chunk) * 3 - 1 + (1 if len(chunk) > 8 else 0)
    return "".join(parts) + " " * (HEX_WIDTH - visible)


def text_column(chunk):
    return "".join(chr(b) if 0x20 <= b <= 0x7E else "." for b in chunk)


def format_line(offset, chunk, color=False):
    return f"{offset:08x}  {hex_column(chunk, color)}  |{text_column(chunk)}|"


def dump(data, offset=0, color=False):
    """Yield one formatted line per sixteen bytes."""
    for start in range(0, len(data), BYTES_PER_LINE):
        yield format_line(offset + start, data[start:start + BYTES_PER_LINE], color)
