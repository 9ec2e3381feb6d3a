"""Formats for rows of text."""


def table(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
        for row in rows
    )
