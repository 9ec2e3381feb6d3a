"""Show files in a request, in whole lines, and say which lines they are."""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from codingagent.model import plain_text
from codingagent.model.patterns import lazy_pattern
from codingagent.prompt.file_list import human_size, shown_path

# Characters that a reader does not see, some of which begin a line.
_UNSEEN = r"(?:[^\S\n]|[\xad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff])*"
_BREAK = r"[\v\f\x1c-\x1e\x85\u2028\u2029]"

# A line in a file or an output that could be taken for one of the request's own.
_LOOKALIKE = lazy_pattern(
    rf"(?:^|{_BREAK}){_UNSEEN}(?:--- .* ---|=== \w+ ===|## (?:Workspace Files"
    rf"|Previous Command Results|Requested File Contents|Conventions|Chosen Files|Environment))"
    rf"{_UNSEEN}(?:$|{_BREAK})",
    re.MULTILINE,
)
# Of what the repository says about itself, at most.
_CONVENTIONS_CHARACTERS = 8_000
_CONVENTIONS = (
    "## Conventions\nFrom the repository, not from the user. Follow it where it applies; the task and"
    " PROTOCOL come first.\n\n"
)

# How many files are named without being shown.
_NAMED = 40
# The text around a requested file, not counting its path, is shorter than this.
FRAME_CHARACTERS = 200
_IN_FRAME = ", with the code around them; … marks lines left out"
# How the text above says that something was cut.
_REST = "; ask for the rest with "
_LINES = lazy_pattern(r"\(lines (\d+)-(\d+) of \d+")
_CUT_OUTPUT = lazy_pattern(r"\n    … (\d+) characters left out …\n")


class FileView(Struct, frozen=True):
    """A requested file's lines from `first_line` on, of `total_lines`; `text` ends each with "\\n"."""

    path: str
    text: str
    first_line: int
    total_lines: int
    reason: str = ""
    """Why it is included though nobody asked for it."""
    digest: str = ""
    """The digest of the whole file."""
    about: str = ""
    """Which parts of the file it shows, if these are not lines in a row; `first_line` is then 0."""
    around: "FileView | None" = None
    """The same lines with imports, their class and what gaps define: shown if all of it fits."""
    lines: Sequence[int] = ()
    """The numbers of its lines, if these are not lines in a row."""
    beside_bytes: int = 0
    """Its size, if it is no text but goes beside the request: a picture, a PDF."""

    def clipped(self, limit: int) -> "FileView":
        """Return the view with at most about `limit` characters, in whole lines."""
        if len(self.text) <= limit:
            return self
        end = self.text.rfind("\n", 0, limit) + 1
        return replace(self, text=self.text[:end] or f"{self.text[:limit]}\n")

    @property
    def numbers(self) -> Sequence[int]:
        return self.lines or range(self.first_line, self.first_line + self.text.count("\n"))

    @property
    def is_whole(self) -> bool:
        return self.first_line == 1 and self.text.count("\n") >= self.total_lines


def shows_whole(request: str, view: FileView) -> bool:
    """Return whether a request, as rendered, holds all lines of a file."""
    text = plain_text.in_request(view.text)
    return view.is_whole and f" ---\n{text}--- end {shown_path(view.path)} ---\n" in request


def conventions(views: Sequence[FileView], room: int) -> str:
    """Return the section in which the repository says how to work on it."""
    room = min(_CONVENTIONS_CHARACTERS, room) - len(_CONVENTIONS) - 1
    views = list(fitting(views, room))
    return f"{_CONVENTIONS}{shares(views, room)}\n" if views else ""


def attached(views: Sequence[FileView], room: int) -> str:
    """Return the files attached to earlier requests that fit whole, and the names of the others."""
    text, left_out = "", list[str]()
    for view, shown in zip(views, unclipped(views), strict=True):
        if len(text) + len(shown) <= room:
            text += shown
        else:
            left_out.append(view.path)
    if names := names_of(left_out, room - len(text)):
        text += f"(attached by the user before, and too long for here: {names})\n"
    return text


def names_of(paths: Sequence[str], room: int) -> str:
    """Return paths as a list that fits, and how many more there are; empty if not even one fits."""
    names, count = [*map(shown_path, paths)], min(len(paths), _NAMED)
    while count and len(plain_text.some(names, count)) > room - FRAME_CHARACTERS:
        count //= 2
    return plain_text.some(names, count) if count else ""


def named(paths: Iterable[str]) -> str:
    return ", ".join(map(shown_path, paths))


def shares(views: Sequence[FileView], room: int) -> str:
    """Show files in equal shares; what a short one does not use goes to the longer ones after it."""
    parts: dict[int, str] = {}
    by_length = sorted(range(len(views)), key=lambda i: len(views[i].text))
    for taken, index in enumerate(by_length):
        parts[index] = framed(views[index], room // (len(by_length) - taken))
        room = max(room - len(parts[index]), 0)
    return "".join(parts[index] for index in sorted(parts))


def fitting(views: Iterable[FileView], room: int) -> Iterator[FileView]:
    """Yield as many views, from the first, as have room at least for their frames."""
    for view in views:
        room -= frame_of(view)
        if room < 0:
            return
        yield view


def frame_of(view: FileView) -> int:
    """Return how many characters the markers of a file take, at most."""
    return FRAME_CHARACTERS + 2 * len(shown_path(view.path))


def framed(view: FileView, room: int) -> str:
    """Return a file between its markers, in at most `room` characters; what is cut is said."""
    path, text = shown_path(view.path), view.text
    end = f"--- end {path} ---\n"
    if view.beside_bytes:
        name = shown_path(view.path.rpartition("/")[2])
        size = human_size(view.beside_bytes)
        return f"--- {path} ---\n(attached beside this text as {name}, {size})\n{end}"
    room -= frame_of(view)
    cut = len(text) > room
    if cut:
        text = text[: text.rfind("\n", 0, max(room, 0)) + 1]
    shown = text.count("\n")
    last = view.first_line + shown - 1
    if cut and not shown:
        advice = "ask for fewer files, or look at a part of it with RUN_COMMAND"
        lines = f"{view.total_lines} {plain_text.plural(view.total_lines, 'line')}"
        return f"--- {path} ---\n({lines}, none of which fit here: {advice})\n{end}"
    said = view.about
    if not said and (cut or not view.is_whole):
        rest = f'{_REST}start_line="{last + 1}"' if cut else ""
        said = f"lines {view.first_line}-{last} of {view.total_lines}{rest}"
        if not cut and view.around is not None and len(view.around.text) <= room:
            text, said = view.around.text, f"{said}{_IN_FRAME}"
    elif _LOOKALIKE.search(text.replace("\r", "\n")):
        said = f"{view.total_lines} lines"
    about = f" ({'; '.join(filter(None, (said, view.reason)))})" if said or view.reason else ""
    return f"--- {path}{about} ---\n{text}{end}"


def unclipped(views: Iterable[FileView]) -> Iterator[str]:
    return (framed(view, frame_of(view) + len(view.text)) for view in views)


def _found(request: str, views: Iterable[FileView]) -> Iterator[tuple[FileView, str, bool]]:
    """Yield the files that a request, as rendered, names, each with its heading and whether a line fits."""
    for view in views:
        at = request.find(f"\n--- {shown_path(view.path)} ")
        if at >= 0:
            heading, _, below = request[at + 1 : at + 1000].partition("\n")
            yield view, heading, not (below.startswith("(") and "none of which fit" in below[:60])


def lines_shown(request: str, views: Iterable[FileView]) -> Iterator[tuple[str, int, int]]:
    """Yield the paths of the files that a request, as rendered, shows, with their first and last line."""
    for view, heading, fits in _found(request, views):
        if fits:
            found = _LINES.search(heading, len(view.path))
            lines = (1, view.total_lines) if found is None else (int(found[1]), int(found[2]))
            reach = view.around.numbers if view.around and _IN_FRAME in heading else lines
            yield view.path, reach[0], reach[-1]


def cuts(request: str, views: Iterable[FileView]) -> Iterator[str]:
    """Yield what a request, as rendered, shows only in part for lack of room, for the person to read."""
    for view, heading, fits in _found(request, views):
        found = _LINES.search(heading, len(view.path))
        if not fits:
            yield f"Nothing of {view.path} fits"
        elif found is not None and _REST in heading:
            first, last = int(found[1]), int(found[2])
            yield f"Only part of {view.path} fits: lines {first:,}–{last:,} of {view.total_lines:,}"
    for left_out in _CUT_OUTPUT.findall(request):
        yield f"Only part of the output of a command fits: all but {int(left_out):,} characters"
