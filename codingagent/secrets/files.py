"""Names of files that hold secrets, and the variables in such a file."""

from msgspec import Struct

from codingagent.model.patterns import lazy_pattern
from codingagent.secrets.rules import any_of, words

NAMES = words("files")
"""Names of files and folders of credentials, in lower case, without a leading dot or underscore."""
_PLACES = words("files in a folder")
_SECRET = any_of("files like")
# No pattern above fits such a name, unless it begins with .env: most files are told by their ends.
_HARMLESS = tuple(words("ends of other files"))
# What editors and people add to the name of a copy.
_COPY = lazy_pattern(r"(?:~|\.(?:bak|backup|old|orig|save|swp|copy|\d))+$")
_EXAMPLE = lazy_pattern(r"example|sample|template")
# Of a file of keys.
_BLOCK = lazy_pattern(r"-----(?:BEGIN|END) ([^-]{1,40})-----")


def is_secret_file(path: str) -> bool:
    """Return whether a file of this name (separated by `/` or `\\`) holds secrets."""
    if path.endswith(_HARMLESS) and ".env" not in path:
        return False
    folders, _, name = path.replace("\\", "/").casefold().rpartition("/")
    name = _COPY.sub("", name).strip("#")
    if _EXAMPLE.search(name):
        return False
    inside = f"{folders.rpartition('/')[2].lstrip('._')}/{name}"
    return name.lstrip("._") in NAMES or inside in _PLACES or _SECRET.fullmatch(name) is not None


def is_public(path: str, text: str) -> bool:
    """Return whether a file of keys has certificates only, which everyone may see."""
    return path.casefold().endswith(".pem") and {*_BLOCK.findall(text)} == {"CERTIFICATE"}


class Variable(Struct, frozen=True):
    """A value in a secret file, by offsets into its text; `name` is empty if it has none."""

    name: str
    start: int
    end: int


_ASSIGNED = lazy_pattern(
    r"""[ \t]*(?:[#;]+[ \t]*(?=(?:export )?[\w.-]+[ \t]*=))?"""
    r"""(?:export[ \t]+|set[ \t]+|-[ \t]+|//)?["']?(?P<name>[\w.$/@:\[\]-]+?)["']?"""
    r"""[ \t]*(?:=|:(?=[ \t"'])|[ \t](?=[^ \t]))[ \t]*(?P<value>[^\r\n]*)"""
)
_TRIM = " \t\r,;"


def variables_in(text: str) -> list[Variable]:
    """Return the variables of a secret file; a line of another form is a value without a name.

    Of comments only assignments have an entry. Every character of a value is inside its span.
    """
    found: list[Variable] = []
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
                found.append(Variable(name, start + first, start + last))
        start += len(line)
    return found
