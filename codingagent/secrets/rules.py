"""The table of rules: secrets of known kinds, each recognised by a literal lead.

Formats are those that the issuers publish; many are also listed by gitleaks (MIT licence,
Copyright (c) 2019 Zachary Rice), whose notice is in `codingagent/LICENSE`. The expressions are our own.
"""

import re
from functools import cache

from msgspec import Struct


class Rule(Struct, frozen=True):
    """One kind of secret: found by a lead, matched there by an expression."""

    kind: str
    leads: tuple[str, ...]
    expression: str
    group: int = 0


def _row(kind: str, leads: str, expression: str, group: int = 0) -> Rule:
    return Rule(kind, tuple(leads.split()), expression, group)


@cache
def compiled(expression: str) -> re.Pattern[str]:
    """Return an expression, compiled when its lead is first seen: most never are."""
    return re.compile(expression)


RULES = (
    _row("GITHUB", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[0-9A-Za-z]{36,255}"),
    _row("GITHUB", "github_pat_", r"github_pat_\w{22,255}"),
    _row("AWS", "AKIA ASIA ABIA ACCA", r"A(?:KI|SI|BI|CC)A[A-Z2-7]{16}"),
)
