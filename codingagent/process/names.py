"""Names by which commands are confined, as names.txt lists them."""

from codingagent.model.patterns import sections

_SECTIONS = sections(__file__)


def listed(section: str) -> tuple[str, ...]:
    return tuple(_SECTIONS[section].split())


def pairs(section: str) -> dict[str, str]:
    """Return the lines of a section by what is before their first colon."""
    return pairs_in(_SECTIONS[section])


def pairs_in(text: str) -> dict[str, str]:
    lines = (line.strip().partition(": ") for line in text.splitlines())
    return {name: rest for name, _, rest in lines}
