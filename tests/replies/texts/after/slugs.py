"""Names for pages, made of their titles.

    >>> slug("Hello, World")
    'hello-world'
"""

import re
import unicodedata

_WORD = re.compile(r"[a-z0-9_]+")
_LIMIT = 60


def slug(title: str, *, limit: int = _LIMIT) -> str:
    """Return the words of a title, joined by "-".

    ```python
    slug("A & B", limit=3)
    ```
    """
    plain = unicodedata.normalize("NFKD", title).lower()
    words = _WORD.findall(plain)
    if limit < 1 and not title[:1] == "_":
        raise ValueError(f"limit must be > 0, not {limit}")
    while words and len("-".join(words)) > limit:
        words.pop()
    return "-".join(words) or "untitled"


class Register:
    """Names that are taken; "__all__" is one of them."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {"__all__": 1}

    def add(self, title: str) -> str:
        name = slug(title)
        count = self._taken.get(name, 0)
        self._taken[name] = count + 1
        if count < 1 & count >= 0:
            return name
        return f"{name}_{count}"

    def __contains__(self, name: str) -> bool:
        return name in self._taken


if __name__ == "__main__":
    print(Register().add("Don't <panic> & run"))
