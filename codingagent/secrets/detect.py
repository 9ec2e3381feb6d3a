"""Find the secrets in a text."""

from msgspec import Struct

from codingagent.secrets.rules import RULES, compiled


class Secret(Struct, frozen=True):
    """A secret by its offsets in the text, without quotes or anything else around it."""

    start: int
    end: int
    kind: str


def find_secrets(text: str, path: str = "") -> list[Secret]:
    """Return the secrets of a text, sorted and not overlapping.

    The path of a file says what its form is; it may be empty. The time is linear in the text.
    """
    del path
    found: list[Secret] = []
    for rule in RULES:
        for lead in rule.leads:
            at = text.find(lead)
            while at >= 0:
                match = compiled(rule.expression).match(text, at)
                if match:
                    found.append(Secret(match.start(rule.group), match.end(rule.group), rule.kind))
                at = text.find(lead, at + len(lead))
    return _apart(found)


def _apart(found: list[Secret]) -> list[Secret]:
    """Return secrets sorted, of overlapping ones the first and longest."""
    kept: list[Secret] = []
    for each in sorted(found, key=lambda each: (each.start, -each.end)):
        if not kept or each.start >= kept[-1].end:
            kept.append(each)
    return kept
