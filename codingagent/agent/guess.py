"""Choose files of a workspace for a request; nothing goes out that a person could not attach by a glob."""

import time
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from codingagent.agent.context import may_read
from codingagent.agent.file_views import Views
from codingagent.context import eligible, rank, show
from codingagent.context.choose import Chosen, choose
from codingagent.errors import OperationError
from codingagent.model import paths
from codingagent.model.observations import PastCommit
from codingagent.policy.rules import Policy
from codingagent.prompt.file_contents import FileView
from codingagent.prompt.file_list import Listing
from codingagent.secrets.vault import Hides
from codingagent.workspace.workspace import Workspace

# About two seconds of work; tests/benchmarks/choosing.py measures it.
FILES_LIMIT = 5_000
BYTES_LIMIT = 64_000_000
# Fewer show nothing of use.
_FEWEST_TOKENS = 200
# No text of this many characters has more tokens.
_CHARACTERS_PER_TOKEN = 2


class Wanted(Struct, frozen=True):
    """A task to choose files for, and which not to: globs that the person leaves out, files shown anyway."""

    task: str
    tokens: int
    leave_out: Collection[str] = ()
    near: Collection[str] = ()
    """Files that come first."""
    already: Collection[str] = ()


class Guess:
    """The files of a workspace in the order of a task, of which `show` shows what fits."""

    def __init__(
        self,
        workspace: Workspace,
        policy: Policy,
        listing: Listing,
        wanted: Wanted,
        log: Sequence[PastCommit],
        hide: Hides = lambda text, _: text,
    ) -> None:
        self._workspace, self._policy, self._wanted = workspace, policy, wanted
        self._views = Views(workspace, hide)
        self._asked = rank.query(wanted.task)
        self._log = log
        self._rows = list(self._look(listing))
        ranked = rank.rank(self._asked, self._rows, self._log, wanted.near)
        self._ranked = [file for file in ranked if file.is_named or file.score > 0]
        self._shown: dict[str, FileView] = {}
        self.chosen: list[Chosen] = []

    @property
    def whole(self) -> list[FileView]:
        """Return the files that are shown whole."""
        return [self._shown[part.file.path] for part in self.chosen if part.is_whole]

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the paths of those of which only a part is shown."""
        return tuple(part.file.path for part in self.chosen if not part.is_whole)

    def show(self, room: int) -> str:
        """Return the section of a request with the chosen files, at most `room` characters; or nothing."""
        tokens = min(self._wanted.tokens, room // _CHARACTERS_PER_TOKEN)
        while tokens >= _FEWEST_TOKENS:
            self.chosen = choose(self._asked, self._ranked, self._text, tokens)
            texts = {part.file.path: self._shown[part.file.path].text for part in self.chosen}
            text = show.for_model(self.chosen, texts)
            if len(text) <= room:
                return text
            tokens //= 2
        self.chosen = []
        return ""

    def told(self) -> Iterator[str]:
        """Yield what the person reads before pasting: a line a file, and how far the search went."""
        yield from show.for_person(self.chosen, time.time())
        if len(self._rows) < self._listed and self._is_cut:
            yield (
                f"files for the task were looked for in {len(self._rows):,} of {self._listed:,} files;"
                " --attach adds others"
            )

    def _look(self, listing: Listing) -> Iterator[rank.Row]:
        """Count the task's words in the files, up to the limits: of too many, in the likeliest first."""
        left_out = [paths.glob_matcher(glob) for glob in self._wanted.leave_out]
        sizes = {
            path: size or 0
            for path, size in listing.files.items()
            if not (any(fits(path) for fits in left_out) or eligible.why_not_named(path))
        }
        order = list(sizes)
        self._listed = len(order)
        self._is_cut = len(order) > FILES_LIMIT or sum(sizes.values()) > BYTES_LIMIT
        if self._is_cut:
            nothing = (0,) * len(self._asked.words)
            blank = [rank.Row(path, 0, nothing) for path in order]
            order = [each.path for each in rank.rank(self._asked, blank, self._log)]
        left = BYTES_LIMIT
        wanted = (path for path in order[:FILES_LIMIT] if sizes[path] <= eligible.SIZE_LIMIT_BYTES)
        for path, data in self._workspace.read_each(wanted):
            left -= len(data)
            if left < 0:
                self._is_cut = True
                return
            text = data.decode("utf-8", "replace")
            if not eligible.why_not_text(data, text):
                yield rank.look(self._asked, path, text)

    def _text(self, path: str) -> str | None:
        """Return a file's text as a request shows it; None if it must not or need not be shown."""
        if path in self._wanted.already:
            return None
        try:
            # A link may have a harmless name.
            real = self._workspace.resolved(path)
            if eligible.why_not_named(real) or not may_read(self._workspace, self._policy, path):
                return None
            view = self._views.view(path, None, None)
        except OperationError:
            return None  # not text, or gone since
        self._shown[path] = view
        return view.text
