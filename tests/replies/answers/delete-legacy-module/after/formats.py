"""Formats for rows of text."""
import re

_SPACE = re.compile(r"[ \t\r\n\f\v\u00a0]+")


def compact(rows):
    """Rows, one a line, cells separated by \\t, spaces squeezed."""
    return "\n".join("\t".join(_SPACE.sub(" ", cell).strip() for cell in row) for row in rows)


def table(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
        for row in rows
    )
