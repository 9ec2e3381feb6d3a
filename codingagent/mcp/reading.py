"""What tools read: files, lists, searches, the parts for a task, changes. Nothing of it is journalled."""

import contextlib
import re
from collections.abc import Sequence
from typing import Any

from codingagent.agent.context import Context, OperationRequest, Views
from codingagent.agent.executor import Executor
from codingagent.agent.wanted_files import IN_PART, RankedFiles, Wanted, view_of
from codingagent.checkpoints.undo import changed_in, history_of
from codingagent.errors import OperationError
from codingagent.model import paths
from codingagent.model.events import FileRequested
from codingagent.model.operations import ReadFile
from codingagent.model.plain_text import clip_middle
from codingagent.prompt import file_contents, file_list
from codingagent.protocols import calls
from codingagent.storage.homes import Home

# What one result shows at most, and what a search looks through.
_CHARACTERS, _LINE_CHARACTERS, _LINES = 60_000, 300, 200
_PATHS, _FILE_BYTES = 100, 2**20


class ToolReader:
    """Read a workspace for one session, without its secrets."""

    def __init__(self, context: Context) -> None:
        self._context, self._hide = context, context.secrecy.hide
        self._views, self._executor = Views(context.workspace, self._hide), Executor(context)
        self._is_new = True
        self.whole: dict[str, str] = {}
        """The digests of files that were read whole, by path."""

    def forget(self) -> None:
        """Something was changed: there may be other files, and secrets."""
        self._is_new = True

    def read(self, call: Any) -> str:
        """Return what a call shows; OperationError if there is nothing to show."""
        workspace, secrecy, listing = self._context.workspace, self._context.secrecy, file_list.Listing({})
        if self._is_new:
            listing, self._is_new = workspace.listing(), False
        # The values in secret files are learned before anything is shown: any other file may hold them.
        secrecy.look_again()
        secrecy.read_files(workspace, (*listing.files, *listing.ignored.names, *workspace.names()))
        match calls.tool_of(call):
            case "read_files":
                return self.files(call.paths)
            case "search":
                return self._search(call.texts, call.glob)
            case "context":
                return self._for_task(call.task)
            case _:
                return "\n".join(file_list.lines(self._matching(call.glob)))

    def diff(self, home: Home) -> str:
        """Return what the session changed, as git's diff."""
        text = ""
        self._context.checkpointer.settle()
        with history_of(home, self._context.log.session) as (store, found):
            if found:
                _, before, after, touched = changed_in(store, found, None)
                text = store.diff(before, after, sorted(touched)) if touched else ""
        return clip_middle(self._context.secrecy.hide_diffs(text), _CHARACTERS) or "nothing was changed"

    def _matching(self, glob: str) -> file_list.Listing:
        """Return the listing of the files that fit a glob, or are in a folder of that name."""
        listing, glob = self._context.workspace.listing(), glob.strip("/") or "**"
        known = "\0".join(("", *filter(paths.is_utf8, listing.files), ""))
        found = {*paths.matches(glob, known), *paths.matches(f"{glob}/**", known)}
        may_read = self._context.may_read
        return file_list.Listing(
            {p: n for p, n in listing.files.items() if p in found and may_read(p)}, listing.ignored
        )

    def files(self, asked_for: Sequence[str]) -> str:
        """Return the lines of files, of globs too, or of their parts: FILE:120-180, FILE::name."""
        wanted, faults, shown = dict[tuple[str, str], None](), list[str](), list[file_contents.FileView]()
        self._executor.begin()
        if len(asked_for) > _PATHS:
            raise OperationError(f"At most {_PATHS} paths can be read at once", advice="; use a glob")
        for asked in asked_for:
            path, *parts = found.groups("") if (found := IN_PART.fullmatch(asked)) else (asked,)
            try:
                operation = ReadFile(paths.workspace_path(path))
                event = self._executor.plan(OperationRequest(0, operation))
                if isinstance(event, FileRequested):
                    wanted |= dict.fromkeys((path, "".join(parts)) for path in event.paths)
                    faults += event.notes
                else:
                    faults.append(f"'{paths.shown(asked)}': {getattr(event, 'reason', 'refused')}")
            except OperationError as fault:
                faults.append(fault.reason)
        for path, part in wanted:
            try:
                view = view_of(self._views, path, part)
                shown += [view] * (not view.beside_bytes)
                faults += [f"File '{paths.shown(path)}' is a picture or a document"] * bool(view.beside_bytes)
            except OperationError as fault:
                faults.append(fault.reason)
        if not shown:
            raise OperationError("\n".join(faults) or "No path was given")
        text = file_contents.shares(list(file_contents.fitting(shown, _CHARACTERS)), _CHARACTERS)
        is_whole = (file_contents.shows_whole(f"\n{text}", view) for view in shown)
        self.whole |= {view.path: view.digest for view, fits in zip(shown, is_whole, strict=True) if fits}
        return self._hide("\n".join((text.removesuffix("\n"), *faults)))

    def _search(self, texts: Sequence[str], glob: str) -> str:
        """Return the lines that have one of some texts, without secrets: no search can guess what is hidden.

        The parts of a text between `*` stand in the line in their order, so that no pattern takes long.
        """
        is_small, found = all(text == text.lower() for text in texts), list[str]()
        split = [[part for part in text.split("*") if part] for text in texts]
        every = ["".join(f"(?>.*?{re.escape(part)})" for part in parts) for parts in split if parts]
        in_order = re.compile("|".join(every) or "(?!)")
        for path, data in self._context.workspace.read_each(sorted(self._matching(glob).files)):
            if len(data) > _FILE_BYTES or len(found) > _LINES:
                continue
            # To hide secrets takes long.
            held = data.lower() if is_small else data
            if not any(self._may_hold(held, parts) for parts in split):
                continue
            with contextlib.suppress(OperationError):  # no text
                lines = self._views.view(path, None, None).text.split("\n")
                for number, line in enumerate(lines, 1):
                    if in_order.match(line.lower() if is_small else line):
                        found.append(f"{file_list.shown_path(path)}:{number}: {line[:_LINE_CHARACTERS]}")
        more = ["… more lines have it: narrow the search"] * (len(found) > _LINES)
        return "\n".join((*found[:_LINES], *more)) or "no line has it"

    @staticmethod
    def _may_hold(data: bytes, parts: Sequence[str]) -> bool:
        """Return whether a file may have a text, whose secrets have other names, letters other bytes."""
        is_plain = all(part.isascii() and "SECRET-" not in part for part in parts)
        return not is_plain or all(part.encode() in data for part in parts)

    def _for_task(self, task: str) -> str:
        context, workspace, listing = self._context, self._context.workspace, self._matching("**")
        wanted = Wanted(task, context.settings.context or 8_000, context.settings.never_choose, asks=True)
        ranked = RankedFiles(workspace, context.policy, listing, wanted, workspace.history(), self._hide)
        return ranked.show(_CHARACTERS) or "no file stands out: list_files, or search"
