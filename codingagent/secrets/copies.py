"""Tell copies of secret files, under whatever name, by their lines."""

from collections.abc import Iterable

from codingagent.secrets import files

# So many lines of secret files are kept.
_MOST = 20_000
# Shorter ones are brackets.
_SHORTEST = 3


class Copies:
    """Files of another name that hold, or held, what was in a secret file.

    `lines` are those of secret files, and the names of their variables with a `=`.
    """

    def __init__(self, lines: Iterable[str] = (), paths: Iterable[str] = ()) -> None:
        self.lines, self.paths = {*lines}, {*paths}

    def is_secret_file(self, path: str, text: str | None = None) -> bool:
        """Return whether a file holds secrets, by its name or because a secret file holds or held the same.

        With its text a copy is known by half of its lines; one that has nothing of it any more is none.
        """
        if text is not None and files.is_public(path, text):
            return False
        if files.is_secret_file(path) or text is None or not self.lines:
            return path in self.paths or files.is_secret_file(path)
        lines = _lines_of(text)
        if len(lines & self.lines) * 2 >= max(len(lines), 1):
            return True
        return path in self.paths and not self.lines.isdisjoint(lines | _names_of(text))

    def keep(self, path: str, text: str = "") -> bool:
        """Remember a secret file's lines, which its copies have too. Return whether any is new."""
        news = (_lines_of(text) | _names_of(text)) - self.lines
        news = news if len(news) + len(self.lines) <= _MOST else set()
        is_new = path not in self.paths and not files.is_secret_file(path)
        self.lines |= news
        self.paths |= {path} if is_new else set()
        return is_new or bool(news)


def _lines_of(text: str) -> set[str]:
    return {line for line in map(str.strip, text.split("\n")) if len(line) >= _SHORTEST}


def _names_of(text: str) -> set[str]:
    return {f"{each.name}=" for each in files.variables_in(text) if each.name}
