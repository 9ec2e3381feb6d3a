"""Slugs for URLs and file names."""
import re
import unicodedata

_UMLAUTS = str.maketrans({
    "ä": "ae",
    "ö": "oe",
    "ü": "ue",
    "ß": "ss",
})


def slugify(text, max_length=None):
    """Turn text into a slug of lower case letters, digits and dashes.

    >>> slugify("Grüße aus Köln!")
    'gruesse-aus-koeln'
    """
    text = unicodedata.normalize("NFC", text).lower().translate(_UMLAUTS)
    text = unicodedata.normalize("NFKD", text)
    text = "".join(c for c in text if not unicodedata.combining(c))
    slug = re.sub(r"[^a-z0-9]+", "-", text).strip("-")
    if max_length is not None:
        slug = slug[:max_length].rstrip("-")
    return slug
