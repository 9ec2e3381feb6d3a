"""Files for a request: those that the person attaches, the repository's conventions, parts for a task."""

import contextlib
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, structs

from codingagent.agent.context import Views, may_read
from codingagent.context import blocks, choose, rank, show
from codingagent.context.held import Held, spans
from codingagent.editing import notebooks
from codingagent.errors import OperationError, UsageError
from codingagent.model import documents, journal_entries, observations, paths, plain_text
from codingagent.model.patterns import alternatives, lazy_pattern, sections
from codingagent.policy.rules import Deny, Policy, judge_read
from codingagent.prompt.file_contents import FileView, unclipped
from codingagent.prompt.file_list import Listing, shown_path
from codingagent.prompt.tokens import estimate
from codingagent.secrets import files, vault
from codingagent.workspace.real_paths import typed_in, with_slashes
from codingagent.workspace.workspace import Workspace

_WORDS = sections(__file__)
# As for READ_FILE: more files in one request do not help a model.
_ATTACHED_LIMIT = 100
_NAMED = 5
# In each folder the first of these that exists; each tool has its own name for the same thing.
CONVENTIONS = _WORDS["conventions"].split()
# About two seconds of work; tests/benchmarks/choosing.py measures it.
FILES_LIMIT = 5_000
BYTES_LIMIT = 64_000_000
# What the list of files names: tests/benchmarks/context.py measures it.
_LIKELY_FILES, _LATELY_COMMITS = 100, 300
# A word that so few files hold says which are meant.
_FEW_HOLD = 5
# Where no file stands out, so many others are named.
_ASKED_FIRST = 6
_UNSURE = "This choice is unsure: no file stands out for the task."
# Fewer show nothing of use.
_FEWEST_TOKENS = 200
# Of files of which the chat has parts: it knows what the rest defines, and can ask for it.
_MORE_CHARACTERS, _RUNS = 800, 5
# No text of this many characters has more tokens.
_CHARACTERS_PER_TOKEN = 2
# What no person would attach by a guess.
_SIZE_LIMIT_BYTES = 1_000_000
# Far longer lines than anyone writes.
_LINE_CHARACTERS = 400
_HEAD_CHARACTERS = 600
_MADE = alternatives(_WORDS["made by programs"], re.IGNORECASE)
_SAYS_SO = alternatives(_WORDS["says that it is made"])
# FILE:120-180, FILE::name.
IN_PART = lazy_pattern(r"(.+?)(?:::([^\s/\\]+)|:(\d{1,9}(?:-\d{1,9})?))")


def attachable(
    workspace: Workspace, patterns: Iterable[str], folder: Path, policy: Policy
) -> tuple[dict[str, journal_entries.Attached], list[str]]:
    """Return the files that paths, folders or globs name, and what can't be shown, with the reason.

    They are as the person wrote them: absolute, from `folder`, or from the workspace; FILE:120-180 and
    FILE::name are parts. What the policy protects is named by itself. UsageError if one names none.
    """
    found: dict[str, journal_entries.Attached] = {}
    left_out: list[str] = []
    views = Views(workspace)
    for pattern in patterns:
        what, part = f"--attach '{paths.shown(pattern)}'", ""
        try:
            chosen, is_named = _files_of(workspace, pattern, folder)
            if not chosen and (meant := IN_PART.fullmatch(pattern)):
                chosen, is_named = _files_of(workspace, meant[1], folder)
                # A part is one of a file that is named by itself.
                chosen, part = (chosen, meant[2] or meant[3]) if is_named else ([], "")
        except OperationError as fault:
            raise UsageError(f"{what}: {fault.reason}") from fault
        shown = 0
        for path in chosen:
            if not (is_named or documents.is_asked_for(path, pattern)):
                left_out.append(f"File '{paths.shown(path)}' is no text; name it by itself")
                continue
            try:
                workspace.check_leaves(path)
                _check(path, may_be_read=is_named or may_read(workspace, policy, path))
                before = found.get(path, ())
                found[path] = before is True or is_named
                view_of(views, path, part)
                if part and isinstance(before, tuple):
                    found[path] = *before, part
                shown += 1
            except OperationError as fault:
                if is_named:
                    raise UsageError(f"{what}: {fault.reason}") from fault
                left_out.append(fault.reason)
        if chosen and not shown:
            raise UsageError(f"{what}: nothing that can be shown fits ({'; '.join(left_out[:_NAMED])})")
        if not chosen:
            how = "or a glob such as 'src/**/*.py'; files that git ignores: one by one"
            raise UsageError(f"{what}: no file in the workspace matches; name one of {workspace.root}, {how}")
    return found, left_out


def view_of(views: Views, path: str, part: str) -> FileView:
    """Return a file, or the part of it that is named; OperationError if it has none of this name."""
    view = views.view(path, None, None)
    if not part:
        return view
    if not (lines := blocks.lines_meant(path, view.text, part)):
        has = f"{view.total_lines:,} {plain_text.plural(view.total_lines, 'line')}, and defines no"
        raise OperationError(f"File '{paths.shown(path)}' has {has} '{paths.shown(part)}'")
    return views.view(path, lines[0], lines[-1])


def conventions(
    workspace: Workspace, policy: Policy, listed: Collection[str], near: Iterable[str], hide: vault.Hides
) -> Iterator[FileView]:
    """Yield, whole, what the repository tells agents; what `--attach` would refuse or ask is passed over."""
    views = Views(workspace, hide)
    for path in told_in(listed, near):
        with contextlib.suppress(OperationError):
            # A link may have a harmless name.
            is_odd = why_not_named(workspace.resolved(path)) or not paths.is_utf8(path)
            if not is_odd and may_read(workspace, policy, path):
                yield views.view(path, None, None)


def told_in(listed: Collection[str], near: Iterable[str] = ()) -> Iterator[str]:
    """Yield one listed file for the root, and one for each folder on the way to `near`, outermost first."""
    folders = {""}
    for path in near:
        while path := path.rpartition("/")[0]:  # up to the root
            folders.add(f"{path}/")
    for folder in sorted(folders):
        yield from [folder + name for name in CONVENTIONS if folder + name in listed][:1]


def _files_of(workspace: Workspace, pattern: str, folder: Path) -> tuple[list[str], bool]:
    """Return the files that a pattern names (OperationError: too many), and whether it names exactly one."""
    from codingagent.agent.spelling import Spellings

    listed: list[str] | None = None
    for meaning in _meanings(workspace.root, pattern, folder):
        spellings = ["."] if meaning == "." else Spellings(workspace).of(meaning)
        inner = spellings[0] if len(spellings) == 1 else meaning
        if inner != "." and workspace.exists(inner):
            try:
                workspace.entries(inner)
            except OperationError:  # it is no folder
                return [inner], True
            # A linked folder is replaced by its target: the listing does not follow links.
            inner = workspace.resolved(inner)
        if listed is None:
            listed = list(workspace.listing().files)
        glob = inner if paths.is_glob(inner) else "**" if inner == "." else f"{inner}/**"
        fits = paths.glob_matcher(glob)
        chosen = sorted(path for path in listed if fits(path))
        if (count := len(chosen)) > _ATTACHED_LIMIT:
            raise OperationError(f"{count} files fit, more than {_ATTACHED_LIMIT}; name those that matter")
        if chosen:
            return chosen, False
    return [], False


def _meanings(root: Path, pattern: str, folder: Path) -> list[str]:
    """Return the possible meanings of a path in the workspace: from the current folder, then its root."""
    if not pattern:
        raise OperationError("it is empty; name a file")
    written = with_slashes(pattern)
    given = os.path.expanduser(pattern)
    meanings = [] if (near := typed_in(root, pattern, folder)) is None else [near]
    if near is None and (os.path.isabs(given) or os.path.lexists(os.path.join(folder, given))):
        raise OperationError(f"it is outside the workspace {root}; copy it there, or paste it into the task")
    if not os.path.isabs(given):
        try:
            meanings.append(paths.folder_path(written))
        except OperationError:
            # From a subfolder "../x.py" is right, and has no meaning from the root.
            if not meanings:
                raise
    return list(dict.fromkeys(meanings))


def _check(path: str, *, may_be_read: bool) -> None:
    if not paths.is_utf8(path):
        raise OperationError(f"File '{paths.shown(path)}' has a name that is not UTF-8; rename it")
    if not may_be_read:
        raise OperationError(f"File '{paths.shown(path)}' is blocked by the policy; name it by itself")


def why_not_named(path: str, size_bytes: int = 0, *, is_named: bool = False) -> str | None:
    """Return why a file must not be chosen, by its name and size; what the task names may be a lock file."""
    if files.is_secret_file(path):
        return "its name is that of a secret"
    if size_bytes > _SIZE_LIMIT_BYTES:
        return "it is larger than 1 MB"
    return "programs make it" if _MADE.search(path) and not is_named else None


def why_not_text(text: str, *, is_named: bool = False) -> str | None:
    """Return why a file of this text must not be chosen; what the task names may be generated."""
    if "\0" in text or text.startswith("%PDF-"):
        return "it is not text"
    head = text[:_HEAD_CHARACTERS].lower()
    if not is_named and _SAYS_SO.search(head):
        return "it says that it is generated"
    # Most files have lines enough in their first eighth.
    long = all(len(text) > _LINE_CHARACTERS * (text.count("\n", 0, len(text) // n) + 1) for n in (8, 1))
    return "it is minified" if long else None


class Wanted(Struct, frozen=True):
    """A task to choose parts of files for, and which files not to choose."""

    task: str
    tokens: int
    leave_out: Collection[str] = ()
    near: Mapping[str, str] = {}
    already: Collection[str] = ()
    check: str = ""
    """The person's command: what it names counts as named."""
    asks: bool = False
    """It is a question, which is not told how to edit."""
    is_taught: bool = False
    is_anew: bool = False
    """Only files that hold a word of it that few hold: the chat has the others, or can ask for them."""
    had: Callable[[FileView], Held | None] = lambda _: None
    """Returns the lines of a file that the chat has: these are not chosen again."""


class RankedFiles:
    """The files of a workspace in the order of a task, of whose parts `show` shows what fits."""

    def __init__(
        self,
        workspace: Workspace,
        policy: Policy,
        listing: Listing,
        wanted: Wanted,
        log: Sequence[observations.PastCommit],
        hide: vault.Hides = lambda text, _: text,
    ) -> None:
        self._held = dict[str, Held]()
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
            self._ranked = [f for f in self._ranked if f.named or not rare.isdisjoint(f.words)]
        self._texts = dict(self._candidates())
        self.chosen: list[choose.Chosen] = []

    @property
    def views(self) -> list[FileView]:
        """Return the chosen files, all of their text, with which lines are shown."""
        return [structs.replace(self._shown[part.file.path], lines=part.shown) for part in self.chosen]

    @property
    def likely(self) -> list[str]:
        """Return the best files of the order, and those that were changed lately."""
        lately = (path for commit in self._log[:_LATELY_COMMITS] for path in commit.paths)
        return [*(file.path for file in self._ranked[:_LIKELY_FILES]), *lately]

    @property
    def numbered(self) -> tuple[str, ...]:
        """Return the paths of the chosen files, then the globs left out, as `told` numbers them."""
        return (*(part.file.path for part in self.chosen), *self._wanted.leave_out)

    @property
    def to_ask_for(self) -> list[str]:
        """Return the likeliest files that are not chosen, if the choice for a first request is unsure."""
        if self._wanted.is_taught or self._wanted.is_anew or not rank.is_unsure(self._ranked, self._log):
            return []
        chosen = {part.file.path for part in self.chosen}
        others = (file.path for file in self._ranked if file.path not in chosen)
        return [path for path in others if self._texts.get(path, "").strip()][:_ASKED_FIRST]

    def show(self, room: int, *, is_anew: bool = False) -> str:
        """Return the section with the chosen parts, or nothing; if `is_anew`, for a chat that has none."""
        # In steps: some words more or less in the request change nothing.
        most = room // _CHARACTERS_PER_TOKEN // _FEWEST_TOKENS * _FEWEST_TOKENS
        tokens, relied = min(self._wanted.tokens, most), ""
        while tokens >= _FEWEST_TOKENS:
            chosen = self._choose(tokens)
            relied = self._relied()
            self.chosen = [part for each in chosen if (part := self._unseen(each, is_anew=is_anew))]
            text = show.for_model(self.views, "" if is_anew else relied)
            is_told = self._wanted.asks or (self._wanted.is_taught and not is_anew)
            edit_it = "" if is_told else show.EDIT_IT
            if asked := self.to_ask_for:
                first = f"READ_FILE first, if it lacks what you need: {', '.join(map(shown_path, asked))}."
                edit_it = f" {_UNSURE} {first}{edit_it}"
            text = text.replace(show.EDIT_IT, edit_it, 1)
            is_more = bool(self._held) and all(part.file.path in self._held for part in self.chosen)
            if len(text) <= (min(room, _MORE_CHARACTERS) if is_more else room):
                sizes = map(estimate, unclipped(show.some_lines(v, v.lines) for v in self.views))
                self.chosen = [structs.replace(p, tokens=n) for p, n in zip(self.chosen, sizes, strict=True)]
                return text
            tokens //= 2
        self.chosen = []  # what the chat has is said all the same
        return "" if is_anew else show.for_model([], relied)[:room]

    def _unseen(self, part: choose.Chosen, *, is_anew: bool) -> choose.Chosen | None:
        path = part.file.path
        if path not in self._held:
            return part
        shown = () if is_anew else self._held[path].unseen(part.shown, self._texts[path])
        return structs.replace(part, shown=shown) if shown else None

    def _relied(self) -> str:
        """Say which lines the chat has of the files chosen; find this out where it is not known yet."""
        told = []
        for path in (part.file.path for part in self.chosen):
            if path not in self._held:
                if (had := self._wanted.had(self._shown[path])) is None:
                    continue
                self._held[path] = had
            runs = [f"{first}-{last}" for first, last in spans(sorted(self._held[path].lines))]
            more = f" and {len(runs) - _RUNS} more runs" if len(runs) > _RUNS else ""
            told.append(f"{shown_path(path)} {', '.join(runs[:_RUNS])}{more}")
        said = "Not sent again, as this chat has them (else READ_FILE), by their numbers of now"
        return f"{said}: {'; '.join(told)}." if told else ""

    def _choose(self, tokens: int) -> list[choose.Chosen]:
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
            yield f"{shown_path(path)} is {self._named.get(path, rank.BY_TASK)} and is not sent: {why}"
        if self.chosen and self.to_ask_for:
            yield f"{_UNSURE} Name files or functions in the task, or /attach them"
        if len(self._rows) < self._listed and self._is_cut:
            where = f"{len(self._rows):,} of {self._listed:,} files"
            yield f"files for the task were looked for in {where}; --attach adds others"

    def _look(self, listing: Listing) -> Iterator[rank.Row]:
        """Count the task's words in the files, up to the limits: of too many, in the likeliest first."""
        left_out = [paths.glob_matcher(with_slashes(glob)) for glob in self._wanted.leave_out]
        self._named = named = self._asked.named(listing.files)
        sizes: dict[str, int] = {}
        for path, size in listing.files.items():
            if not any(fits(path) for fits in left_out):
                why = why_not_named(path, size or 0, is_named=path in named)
                if why is None:
                    sizes[path] = size or 0
                elif path in named:
                    self._refused[path] = why
        said = rank.said_in(f"{self._asked.task}\n{self._asked.check}")
        for path in said - listing.files.keys() - {*self._wanted.already}:
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
            why = why_not_text(text, is_named=path in named)
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
                workspace.check_leaves(real)
                why = why_not_named(real, is_named=bool(file.named))
                if why is None and isinstance(judge_read(self._policy, real), Deny):
                    why = "the policy protects it"
                decoded = None if why else workspace.text(path, workspace.read(path).data)
            except OperationError as fault:
                decoded, why = None, fault.reason
            if decoded is not None and notebooks.is_old(path, decoded.text):
                decoded, why = None, "it is a notebook of nbformat 3; save it as one of 4"
            if decoded is None:
                if file.named:
                    self._refused[path] = why or "it is not text, or in no encoding that is certain"
                continue
            yield path, notebooks.shown(path, decoded.text).replace("\r\n", "\n")
            count += 1
            if count == choose.FILES_LIMIT:
                return
