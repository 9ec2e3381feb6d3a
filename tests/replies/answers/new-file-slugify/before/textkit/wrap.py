"""Wrapping and shortening."""


def shorten(text, width, mark="…"):
    """Cut text at a word so that it fits in width.

    >>> shorten("Donaudampfschiff fährt", 18)
    'Donaudampfschiff…'
    """
    if len(text) <= width:
        return text
    cut = text[: width - len(mark) + 1].rsplit(None, 1)[0]
    return cut[: width - len(mark)] + mark


def indent(text, by="    ", first=None):
    '''Indent all lines that aren't empty; "first" is for the first.'''
    lines = text.splitlines(keepends=True)
    return "".join(
        ((first if first is not None and not n else by) + line) if line.strip() else line
        for n, line in enumerate(lines)
    )
