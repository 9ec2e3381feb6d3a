"""Find the workspace files, with lines, that the output of a failed command names."""

from collections.abc import Iterable

from codingagent.model.patterns import lazy_pattern

# More files do not help: the cause is near a compiler's first error, or the last frame of a stack.
_FILES_LIMIT = 5
_IN_NO_PATH = r"\s\"'`()\[\]{}<>|:,;*?=\x00-\x1f"
# Only where a path can begin: otherwise each character of a long word would be tried.
_PATH = rf"(?:\b[A-Za-z]:(?=[\\/]))?(?<![^{_IN_NO_PATH}])[^{_IN_NO_PATH}]{{1,300}}"
_PLACE = lazy_pattern(
    # Python, and what prints like it.
    r'File "([^"\n]{1,300})", line (\d{1,7})'
    # x.py:12, x.c:3:7, --> src/main.rs:3:5, at f (/w/x.js:10:5); C# writes x.cs:line 12.
    rf"|({_PATH}\.\w{{1,10}}):(?:line )?(\d{{1,7}})"
    # x.ts(10,5), C:\w\x.cs(10,5)
    rf"|({_PATH}\.\w{{1,10}})\((\d{{1,7}})(?:,\d{{1,7}})?\)"
    # PHP: in /w/x.php on line 3
    rf"|({_PATH}\.\w{{1,10}}) on line (\d{{1,7}})"
)
_STACK_ENDS_LAST = lazy_pattern(r"Traceback \(most recent call last\)|(?m:^ *\S+\.py:\d+: in )")


def named_in(output: str, root: str, files: Iterable[str]) -> list[tuple[str, list[int]]]:
    """Return which files an output names, with lines, the cause first; `root` is as commands see it."""
    known = frozenset(files)
    lines: dict[str, list[int]] = {}
    by_name: dict[str, list[str]] = {}
    for path in known:
        by_name.setdefault(path.rpartition("/")[2], []).append(path)
    # No output of a result is much longer; and no expression here may be made to run for hours.
    for place in _PLACE.finditer(output[:20_000]):
        written, line = filter(None, place.groups())
        meant = _resolve(written.replace("\\", "/"), root, known, by_name)
        if meant is not None and int(line):
            lines.setdefault(meant, []).append(int(line))
    found = [*lines.items()]
    # A stack ends with its innermost frame, a compiler begins with the cause.
    return (found[::-1] if _STACK_ENDS_LAST.search(output) else found)[:_FILES_LIMIT]


def _resolve(written: str, root: str, known: frozenset[str], by_name: dict[str, list[str]]) -> str | None:
    """Return the file that a path in an output means; a bare name must be unique."""
    if written.startswith("//"):
        written = f"/{written.lstrip('/')}"  # what is left of file:///
    prefix = f"{root.replace(chr(92), '/').rstrip('/')}/"
    # Windows: terminals differ in the drive's case.
    fold = str.lower if prefix[1:3] == ":/" else str
    if fold(written).startswith(fold(prefix)):
        inner = written[len(prefix) :]
        return inner if inner in known else None
    if written.startswith("/") or written[1:3] == ":/":
        return None
    inner = written.removeprefix("./")
    if inner in known:
        return inner
    # Relative to the folder in which the command ran.
    likely = by_name.get(inner.rpartition("/")[2], ())
    ends = [path for path in likely if path.endswith(f"/{inner}")]
    return ends[0] if len(ends) == 1 else None
