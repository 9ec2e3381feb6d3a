"""Choose parts of files for a request; nothing goes out that a person could not attach by a glob."""

import contextlib
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from msgspec import Struct

from codingagent.agent.context import may_read
from codingagent.agent.file_views import Views
from codingagent.context import choose, eligible, rank, show
from codingagent.context.choose import Chosen
from codingagent.editing import notebooks
from codingagent.errors import OperationError
from codingagent.model import documents, paths
from codingagent.model.observations import PastCommit
from codingagent.policy.rules import Policy
from codingagent.prompt.file_contents import FileView
from codingagent.prompt.file_list import Listing, shown_path
from codingagent.secrets.vault import Hides
from codingagent.workspace.real_paths import with_slashes
from codingagent.workspace.workspace import Workspace

# About two seconds of work; tests/benchmarks/choosing.py measures it.
FILES_LIMIT = 5_000
BYTES_LIMIT = 64_000_000
# What the list of files names: tests/benchmarks/context.py measures it.
_LIKELY_FILES, _LATELY_COMMITS = 100, 300
# A word that so few files hold says which are meant.
_FEW_HOLD = 5
# Fewer show nothing of use.
_FEWEST_TOKENS = 200
# No text of this many characters has more tokens.
_CHARACTERS_PER_TOKEN = 2


class Wanted(Struct, frozen=True):
    """A task to choose parts of files for, and which files not to choose."""

    task: str
    tokens: int
    leave_out: Collection[str] = ()
    """Globs of the person."""
    near: Collection[str] = ()
    """Files that come first."""
    already: Collection[str] = ()
    """Files that are shown anyway."""
    check: str = ""
    """The person's command: what it names counts as named."""
    asks: bool = False
    """It is a question, which is not told how to edit."""
    is_anew: bool = False
    """Only files that hold a word of it that few hold: the chat has the others, or can ask for them."""


class Guess:
    """The files of a workspace in the order of a task, of whose parts `show` shows what fits."""

    def __init__(
        self,
        workspace: Workspace,
        policy: Policy,
        listing: Listing,
        wanted: Wanted,
        log: Sequence[PastCommit],
        hide: Hides = lambda text, _: text,
    ) -> None:
        self._workspace, self._policy, self._wanted, self._log = workspace, policy, wanted, log
        self._views = Views(workspace, hide)
        self._asked = rank.query(wanted.task, wanted.check)
        self._shown: dict[str, FileView] = {}
        self._refused: dict[str, str] = {}
        self._rows = list(self._look(listing))
        self._ranked = rank.rank(self._asked, self._rows, log, wanted.near)
        if wanted.is_anew:
            held = Counter(word for file in self._ranked for word in file.words)
            rare = {word for word, count in held.items() if count <= _FEW_HOLD}
            self._ranked = [f for f in self._ranked if f.is_named or not rare.isdisjoint(f.words)]
        self._texts = dict(self._candidates())
        self.chosen: list[Chosen] = []

    @property
    def whole(self) -> list[FileView]:
        """Return the files that are shown whole."""
        return [self._shown[part.file.path] for part in self.chosen if part.is_whole]

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the paths of those of which only a part is shown."""
        return tuple(part.file.path for part in self.chosen if not part.is_whole)

    @property
    def likely(self) -> list[str]:
        """Return the best files of the order, and those that were changed lately."""
        lately = (path for commit in self._log[:_LATELY_COMMITS] for path in commit.paths)
        return [*(file.path for file in self._ranked[:_LIKELY_FILES]), *lately]

    @property
    def numbered(self) -> tuple[str, ...]:
        """Return the paths of the chosen files, then the globs left out, as `told` numbers them."""
        return (*(part.file.path for part in self.chosen), *self._wanted.leave_out)

    def show(self, room: int) -> str:
        """Return the section of a request with the chosen parts; empty if nothing fits in its room."""
        tokens = min(self._wanted.tokens, room // _CHARACTERS_PER_TOKEN)
        while tokens >= _FEWEST_TOKENS:
            text = show.for_model(self._choose(tokens), self._texts)
            text = text.replace(show.EDIT_IT, "", 1) if self._wanted.asks else text
            if len(text) <= room:
                return text
            tokens //= 2
        self.chosen = []
        return ""

    def _choose(self, tokens: int) -> list[Chosen]:
        """Choose, and hide the secrets of what is chosen; choose anew while that is not all hidden yet."""
        while True:
            self.chosen = choose.choose(self._asked, self._ranked, self._texts, tokens, self._log)
            new = [part.file.path for part in self.chosen if part.file.path not in self._shown]
            changed = False
            for path in new:
                shown = self._texts.pop(path)
                with contextlib.suppress(OperationError):  # gone since
                    self._shown[path] = self._views.view(path, None, None)
                    self._texts[path] = self._shown[path].text
                changed = changed or self._texts.get(path) != shown
            if not changed:
                return self.chosen

    def told(self) -> Iterator[str]:
        """Yield what the person reads before pasting: a line a file, what can't go, what was not searched."""
        told = [
            *show.for_person(self.chosen, time.time()),
            *(f"left out: {shown_path(glob)}" for glob in self._wanted.leave_out),
        ]
        width = len(str(len(told)))
        yield from (f"{number:{width}}  {line}" for number, line in enumerate(told, 1))
        for path, why in self._refused.items():
            yield f"{shown_path(path)} is named in the task and is not sent: {why}"
        if len(self._rows) < self._listed and self._is_cut:
            yield (
                f"files for the task were looked for in {len(self._rows):,} of {self._listed:,} files;"
                " --attach adds others"
            )

    def parts_as_json(self) -> Iterator[dict[str, Any]]:
        """Yield an object a part, as `show.for_programs`."""
        return show.for_programs(self.chosen, self._texts, time.time())

    def _look(self, listing: Listing) -> Iterator[rank.Row]:
        """Count the task's words in the files, up to the limits: of too many, in the likeliest first."""
        left_out = [paths.glob_matcher(with_slashes(glob)) for glob in self._wanted.leave_out]
        named = rank.named_in(self._asked.task, listing.files)
        sizes: dict[str, int] = {}
        for path, size in listing.files.items():
            if not any(fits(path) for fits in left_out):
                why = eligible.why_not_named(path, size or 0, is_named=path in named)
                if why is None:
                    sizes[path] = size or 0
                elif path in named:
                    self._refused[path] = why
        for path in rank.said_in(self._asked.task) - listing.files.keys():
            with contextlib.suppress(OperationError):
                if "." in path and self._workspace.read(path, whole=False).data:
                    self._refused[path] = "it is ignored; --attach sends it"
        order = list(sizes)
        self._listed = len(order)
        self._is_cut = len(order) > FILES_LIMIT or sum(sizes.values()) > BYTES_LIMIT
        if self._is_cut:
            nothing = (0,) * len(self._asked.words)
            blank = [rank.Row(path, 0, nothing) for path in order]
            order = [each.path for each in rank.rank(self._asked, blank, self._log)]
        left = BYTES_LIMIT
        for path, data in self._workspace.read_each(order[:FILES_LIMIT]):
            left -= len(data)
            if left < 0:
                self._is_cut = True
                return
            text = data.decode("utf-8", "replace")
            if path in named and (decoded := self._workspace.text(path, data)) is not None:
                text = decoded.text
            text = notebooks.shown(path, text)
            why = eligible.why_not_text(text, is_named=path in named)
            if why is None:
                yield rank.look(self._asked, path, text)
            elif path in named:
                is_beside = documents.goes_beside(data)
                self._refused[path] = "it is no text; --attach attaches it" if is_beside else why

    def _candidates(self) -> Iterator[tuple[str, str]]:
        """Yield the texts of the best files that may be shown, without their secrets being hidden yet."""
        workspace, count = self._workspace, 0
        for file in self._ranked:
            path = file.path
            if path in self._wanted.already:
                continue
            try:
                # A link may have a harmless name.
                real = workspace.resolved(path)
                why = eligible.why_not_named(real, is_named=file.is_named)
                if why is None and not may_read(workspace, self._policy, path):
                    why = "the policy protects it"
                decoded = None if why else workspace.text(path, workspace.read(path).data)
            except OperationError as fault:
                decoded, why = None, fault.reason
            if decoded is None:
                if file.is_named:
                    self._refused[path] = why or "it is not text, or in no encoding that is certain"
                continue
            yield path, notebooks.shown(path, decoded.text).replace("\r\n", "\n")
            count += 1
            if count == choose.FILES_LIMIT:
                return
