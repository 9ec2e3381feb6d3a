"""Tell copies of secret files, under whatever name, by their lines."""

from collections.abc import Iterable, Iterator

from codingagent.model.patterns import lazy_pattern
from codingagent.secrets import files, values
from codingagent.secrets.assigned import is_setting
from codingagent.secrets.texts import places

# Between a variable and its value, as files, outputs and programs write it.
_TO_VALUE = lazy_pattern(r"(?:%3[Dd]|[^\w\n]{1,40})(?:value\W{1,6})?")


class Copies:
    """Files of another name that hold, or held, what was in a secret file.

    `lines` are those of secret files, and the names of their variables with a `=`.
    """

    def __init__(self, lines: Iterable[str] = (), paths: Iterable[str] = ()) -> None:
        self.lines, self.paths = {*lines}, {*paths}
        self._variables: dict[str, set[str]] = {}
        self._read = 0

    def is_secret_file(self, path: str, text: str | None = None) -> bool:
        """Return whether a file holds secrets, by its name or because a secret file holds or held the same.

        With its text a copy is known by half of its lines; one that has nothing of it any more is none.
        """
        if text is not None and files.is_public(path, text):
            return False
        if (is_named := files.is_secret_file(path)) or text is None or not self.lines:
            return is_named or path in self.paths
        lines = _lines_of(text)
        is_kept = path in self.paths and not self.lines.isdisjoint(lines | _names_of(text))
        return is_kept or len(lines & self.lines) * 2 >= max(len(lines), 1)

    def keep(self, path: str, text: str = "") -> bool:
        """Remember a secret file's lines, which its copies have too. Return whether any is new."""
        news = (_lines_of(text) | _names_of(text)) - self.lines
        news = news if len(news) + len(self.lines) <= 20_000 else set()
        is_new = path not in self.paths and not files.is_secret_file(path)
        self.lines |= news
        self.paths |= {path} if is_new else set()
        return is_new or bool(news)

    def beside_variables(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where values of secret files stand beside their variable, as in `PIN: 1234` of an output.

        Settings that other files name, too, and words are not told.
        """
        if self._read != len(self.lines):
            self._read, lines = len(self.lines), "\n".join(self.lines)
            self._variables = {}
            for each in files.variables_in(lines):
                value = lines[each.start : each.end]
                is_plain = value.isalpha() or values.is_plain(value) or is_setting(each.name)
                if len(each.name) > 1 and not is_plain and len(self._variables) < 1_000:
                    self._variables.setdefault(each.name, set()).add(value)
        for name, known in self._variables.items():
            for at in places(text, name):
                found = _TO_VALUE.match(text, at + len(name))
                start = found.end() if found else len(text)
                ends = (start + len(value) for value in known if text.startswith(value, start))
                yield from ((start, end) for end in ends if not text[end : end + 1].isalnum())


def _lines_of(text: str) -> set[str]:
    return {line for line in map(str.strip, text.split("\n")) if len(line) > 2}  # no brackets


def _names_of(text: str) -> set[str]:
    return {f"{each.name}=" for each in files.variables_in(text) if each.name}
