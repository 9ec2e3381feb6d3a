"""Files that hold secrets: their names, the variables in them, and copies of them under whatever name."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from codingagent.model.patterns import lazy_pattern
from codingagent.secrets import assigned, rules, texts, values

NAMES = rules.words("files")
"""Names of files and folders of credentials, in lower case, without a leading dot or underscore."""
_PLACES = rules.words("files in a folder")
_SECRET = rules.any_of("files like")
# No pattern above fits such a name, unless it begins with .env: most files are told by their ends.
_HARMLESS = tuple(rules.words("ends of other files"))
# What editors and people add to the name of a copy.
_COPY = lazy_pattern(r"(?:~|\.(?:bak|backup|old|orig|save|swp|copy|\d))+$")
_EXAMPLE = lazy_pattern(r"example|sample|template")
# Of a file of keys.
_BLOCK = lazy_pattern(r"-----(?:BEGIN|END) ([^-]{1,40})-----")
# Between a variable and its value, as files, outputs and programs write it.
_TO_VALUE = lazy_pattern(r"(?:%3[Dd]|[^\w\n]{1,40})(?:value\W{1,6})?")


def is_secret_file(path: str) -> bool:
    """Return whether a file of this name (separated by `/` or `\\`) holds secrets."""
    return not (path.endswith(_HARMLESS) and ".env" not in path) and _is_of_secrets(path)


@lru_cache(maxsize=1_000)
def _is_of_secrets(path: str) -> bool:
    folders, _, name = path.replace("\\", "/").casefold().rpartition("/")
    name = _COPY.sub("", name).strip("#")
    if _EXAMPLE.search(name):
        return False
    inside = f"{folders.rpartition('/')[2].lstrip('._')}/{name}"
    return name.lstrip("._") in NAMES or inside in _PLACES or _SECRET.fullmatch(name) is not None


_ASSIGNED = lazy_pattern(rules.part("variable"))
_TRIM = " \t\r,;"


def variables_in(text: str) -> list[tuple[str, int, int]]:
    """Return the variables of a secret file, each with the start and end of its value.

    A line of another form is a value whose name is empty.
    """
    found: list[tuple[str, int, int]] = []
    start = 0
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        match = _ASSIGNED.match(line) if bare else None
        is_comment = bare.startswith(("#", ";")) and not match
        if not is_comment and not bare.startswith(("<!--", "-----")) and bare.strip("{}[](),;"):
            name, first, last = "", line.index(bare), line.index(bare) + len(bare)
            if match and match["value"].strip(_TRIM):
                name, first = match["name"], match.start("value")
                last = first + len(match["value"].rstrip(_TRIM))
                if line[first] in "\"'" and last - first > 1 and line[last - 1] == line[first]:
                    first, last = first + 1, last - 1
            elif match:
                first = last
            if first < last and line[first:last].strip("{}[]"):
                found.append((name, start + first, start + last))
        start += len(line)
    return found


class Copies:
    """Files of another name with `lines` of secret files, or names of their variables with a `=`."""

    def __init__(self, lines: Iterable[str] = (), paths: Iterable[str] = ()) -> None:
        self.lines, self.paths = {*lines}, {*paths}
        self._variables: dict[str, set[str]] = {}
        self._likely, self._read = texts.likely(()), 0

    def is_secret_file(self, path: str, text: str | None = None) -> bool:
        """Return whether a file holds secrets: by its name, or as a copy, by half of its lines."""
        if text is None:
            return is_secret_file(path) or path in self.paths
        if path.casefold().endswith(".pem") and {*_BLOCK.findall(text)} == {"CERTIFICATE"}:
            return False  # everyone may see certificates
        if (is_named := is_secret_file(path)) or not self.lines:
            return is_named or path in self.paths
        lines = _lines_of(text)
        is_kept = path in self.paths and not self.lines.isdisjoint(lines | _names_of(text))
        return is_kept or len(lines & self.lines) * 2 >= max(len(lines), 1)

    def keep(self, path: str, text: str = "") -> bool:
        """Remember a secret file's lines, which its copies have too. Return whether any is new."""
        news, room = _lines_of(text) - self.lines, 20_000 - len(self.lines)
        news |= _names_of(text) - self.lines if len(news) <= room else set()
        news = news if len(news) <= room else set()
        is_new = path not in self.paths and not is_secret_file(path)
        self.lines |= news
        self.paths |= {path} if is_new else set()
        return is_new or bool(news)

    def beside_variables(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where values of secret files stand beside their variable, `PIN: 1234`; no words."""
        if self._read != len(self.lines):
            self._read, lines = len(self.lines), "\n".join(self.lines)
            self._variables = {}
            for name, start, end in variables_in(lines):
                value = lines[start:end]
                is_plain = value.isalpha() or values.is_plain(value) or assigned.is_setting(name)
                if len(name) > 1 and not is_plain and len(self._variables) < 1_000:
                    self._variables.setdefault(name, set()).add(value)
            self._likely = texts.likely(self._variables)
        if not self._variables:
            return
        lengths = {*map(len, self._variables)}
        for at in (found.start() for found in self._likely.finditer(text)):
            for length in lengths:
                known = self._variables.get(text[at : at + length], ())
                beside = _TO_VALUE.match(text, at + length) if known else None
                start = beside.end() if beside else len(text)
                ends = (start + len(value) for value in known if text.startswith(value, start))
                yield from ((start, end) for end in ends if not text[end : end + 1].isalnum())


def _lines_of(text: str) -> set[str]:
    return {line for line in map(str.strip, text.split("\n")) if len(line) > 2}  # no brackets


def _names_of(text: str) -> set[str]:
    return {f"{name}=" for name, *_ in variables_in(text) if name}
