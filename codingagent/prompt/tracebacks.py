"""Find the workspace files, with lines, that the output of a failed command names."""

from collections.abc import Iterable, Iterator

from msgspec import Struct

from codingagent.model.patterns import lazy_pattern

# More files do not help: the cause is near a compiler's first error, or the last frame of a stack.
_FILES_LIMIT = 5

# How many lines to show around those that are named; a file no longer than this is shown whole.
_AROUND_LINES = 25
_WHOLE_LINES = 120

# No output of a result is much longer; and no expression here may be made to run for hours.
_OUTPUT_LIMIT = 20_000
_IN_NO_PATH = r"\s\"'`()\[\]{}<>|:,;*?=\x00-\x1f"
# Only where a path can begin: otherwise each character of a long word would be tried.
_PATH = rf"(?<![^{_IN_NO_PATH}])[^{_IN_NO_PATH}]{{1,300}}"
_PLACE = lazy_pattern(
    # Python, and what prints like it.
    r'File "([^"\n]{1,300})", line (\d{1,7})'
    # x.py:12, x.c:3:7, --> src/main.rs:3:5, at f (/w/x.js:10:5); C# writes x.cs:line 12.
    rf"|((?:\b[A-Za-z]:(?=[\\/]))?{_PATH}\.\w{{1,10}}):(?:line )?(\d{{1,7}})"
    # x.ts(10,5)
    rf"|({_PATH}\.\w{{1,10}})\((\d{{1,7}})(?:,\d{{1,7}})?\)"
    # PHP: in /w/x.php on line 3
    rf"|({_PATH}\.\w{{1,10}}) on line (\d{{1,7}})"
)
_STACK_ENDS_LAST = "Traceback (most recent call last)"


class Named(Struct, frozen=True):
    """A file, and the lines of it that an output names, 1-based, in the order of the output."""

    path: str
    lines: tuple[int, ...]

    def range_of(self, total_lines: int) -> tuple[int, int]:
        """Return the first and the last line to show of a file of this length."""
        if total_lines <= _WHOLE_LINES:
            return 1, max(total_lines, 1)
        known = [line for line in self.lines if line <= total_lines] or [total_lines]
        # Lines near the last one named are shown with it.
        near = [line for line in known if abs(line - known[-1]) <= _WHOLE_LINES - 2 * _AROUND_LINES]
        return max(min(near) - _AROUND_LINES, 1), min(max(near) + _AROUND_LINES, total_lines)


def named_in(output: str, root: str, files: Iterable[str]) -> tuple[Named, ...]:
    """Return the files, of all that may be meant, that an output names together with a line.

    `root` is the workspace's full path, as a command sees it.
    """
    known = frozenset(files)
    lines: dict[str, list[int]] = {}
    by_name: dict[str, list[str]] = {}
    for path in known:
        by_name.setdefault(path.rpartition("/")[2], []).append(path)
    for written, line in _places(output[:_OUTPUT_LIMIT]):
        meant = _resolve(written.replace("\\", "/"), root, known, by_name)
        if meant is not None and line:
            lines.setdefault(meant, []).append(line)
    found = [Named(path, tuple(numbers)) for path, numbers in lines.items()]
    chosen = found[-_FILES_LIMIT:] if _STACK_ENDS_LAST in output else found[:_FILES_LIMIT]
    return tuple(chosen)


def _places(output: str) -> Iterator[tuple[str, int]]:
    for found in _PLACE.finditer(output):
        path, line = filter(None, found.groups())
        yield path, int(line)


def _resolve(
    written: str, root: str, known: frozenset[str], by_name: dict[str, list[str]]
) -> str | None:
    """Return the file that a path in an output means; a bare name must be unique."""
    if written.startswith("//"):
        written = f"/{written.lstrip('/')}"  # what is left of file:///
    prefix = f"{root.replace(chr(92), '/').rstrip('/')}/"
    if written.startswith(prefix):
        inner = written.removeprefix(prefix)
        return inner if inner in known else None
    if written.startswith("/") or written[1:3] == ":/":
        return None
    inner = written.removeprefix("./")
    if inner in known:
        return inner
    # Relative to the folder in which the command ran.
    ends = [
        path for path in by_name.get(inner.rpartition("/")[2], ()) if path.endswith(f"/{inner}")
    ]
    return ends[0] if len(ends) == 1 else None
