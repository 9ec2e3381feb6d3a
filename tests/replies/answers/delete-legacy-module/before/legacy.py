# -*- coding: utf-8 -*-
"""DEPRECATED, see formats.py"""
import re
import warnings

_SPACE = re.compile(r"[ \t\r\n\f\v\u00a0]+")


def old_format(rows):
    """Rows, one a line, cells separated by \\t, spaces squeezed."""
    return "\n".join("\t".join(_SPACE.sub(" ", cell).strip() for cell in row) for row in rows)


def older_format(rows):
    warnings.warn("older_format goes away", DeprecationWarning)
    return repr(rows)
