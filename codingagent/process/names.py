"""Names by which commands are confined, as names.txt lists them."""

from codingagent.model.patterns import sections

_SECTIONS = sections(__file__.removesuffix("py") + "txt")


def listed(section: str) -> tuple[str, ...]:
    return tuple(_SECTIONS[section].split())
