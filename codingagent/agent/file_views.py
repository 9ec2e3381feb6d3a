"""Read files of a workspace as a request shows them."""

from codingagent.editing import notebooks
from codingagent.errors import OperationError
from codingagent.model import documents
from codingagent.model.observations import digest_of
from codingagent.model.plain_text import joined, plural, without_halves
from codingagent.prompt.file_contents import FileView
from codingagent.secrets.files import is_secret_file
from codingagent.secrets.vault import Hides
from codingagent.workspace.workspace import Workspace

# Files of many lines that are all alike: unless they are named, their ends say enough.
DATA = (".csv", ".tsv", ".jsonl", ".ndjson", ".log")


def in_brief(view: FileView) -> FileView:
    """Return a file of data as its ends; any other as it is."""
    if not view.path.endswith(DATA):
        return view
    from codingagent.context.show import ends_of

    return ends_of(view)


class Views:
    """Read files of a workspace, without their secrets; the last one's lines are cached."""

    def __init__(self, workspace: Workspace, hide: Hides = lambda text, _: text) -> None:
        self._workspace = workspace
        self._hide = hide
        self._key: object = None
        self._lines: list[str] = []
        self._digest = ""
        self._beside = 0

    def view(self, path: str, start: int | None, end: int | None) -> FileView:
        """Return the requested lines of a file; OperationError if missing, binary or shorter."""
        seen = self._workspace.read(path)
        if (path, seen.state) != self._key:
            self._beside = len(seen.data) if documents.goes_beside(seen.data) else 0
            self._lines = [] if self._beside else self._lines_of(path, seen.data)
            self._digest = digest_of(seen.data)
            self._key = (path, seen.state)
        total = len(self._lines)
        if start is not None and start > total:
            has = f"{total} {plural(total, 'line')}"
            raise OperationError(f"File '{path}' has {has}, no line {start}")
        first = start or 1
        lines = self._lines[first - 1 : min(end or total, total)]
        text = joined(lines)
        return FileView(path, text, first, total, digest=self._digest, beside_bytes=self._beside)

    def _lines_of(self, path: str, data: bytes) -> list[str]:
        decoded = self._workspace.text(path, data)
        if decoded is None:
            raise OperationError(f"File '{path}' is not text ({len(data)} bytes)")
        if notebooks.is_old(path, decoded.text):
            convert = "jupyter nbconvert --to notebook --inplace"
            raise OperationError(
                f"File '{path}' is a notebook of nbformat 3", advice=f"; {convert} makes it one of 4"
            )
        text = without_halves(notebooks.shown(path, decoded.text)).replace("\r\n", "\n")
        # A link may have a harmless name.
        real = self._workspace.resolved(path)
        # All of it, before anybody takes a part: a secret may be cut by the part's ends.
        lines = self._hide(text, real if is_secret_file(real) else path).split("\n")
        return lines if lines[-1] else lines[:-1]
