"""Slugs for addresses and file names."""
import re
import unicodedata

GERMAN = str.maketrans({
    "ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss",
    "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ẞ": "SS",
})


def slugify(text, max_length=None):
    """Make a slug of a-z, 0-9 and single dashes.

    >>> slugify("Größe & Maß: Übung №1")
    'groesse-mass-uebung-no1'
    >>> slugify("Crème brûlée", max_length=8)
    'creme'
    """
    # NFC first, so that a decomposed umlaut ("a" + U+0308) is one, too.
    text = unicodedata.normalize("NFC", text).translate(GERMAN)
    text = unicodedata.normalize("NFKD", text)
    text = "".join(char for char in text if not unicodedata.combining(char))
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if max_length is not None and len(slug) > max_length:
        cut = slug[:max_length]
        if slug[max_length] != "-" and "-" in cut:
            cut = cut.rsplit("-", 1)[0]
        slug = cut.strip("-")
    return slug
