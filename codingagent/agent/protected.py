"""Find protected files that a command changed unasked at the end of a turn; keep or restore them.

What was not approved beforehand is journalled, then asked about, then the answer is carried out: after a kill
in between, it continues with the same files and the same answer. Restoring is a part of the turn, so undo and
redo cover it. A file that differs from what was shown is left alone.
"""

import contextlib
from collections.abc import Mapping
from operator import methodcaller

from codingagent.agent import placeholders
from codingagent.agent.context import Context
from codingagent.checkpoints.history import NAMED, Change, LeftOut, named
from codingagent.checkpoints.repository import makes_git_run
from codingagent.errors import OperationError
from codingagent.model import approval, events, observations, paths, plain_text
from codingagent.model.journal_entries import ProtectedChange, ProtectedFound, ProtectedSettled
from codingagent.model.operations import Kind
from codingagent.policy.rules import Ask, ask_for_change, ask_for_path, together
from codingagent.storage.clock import now

NAME = "changed-files"
"""The name of the question, used where an operation has its id."""

# setuid and setgid, as a checkpoint holds them.
_OWNER_BITS = 0o6000
# How much of a command's changes is compared, and shown of that.
_SHOWN_BYTES, _SHOWN_CHARACTERS = 200_000, 20_000
_NO_GIT = "the checkpoints can't be read any more"
# What git says of a folder that can't be listed.
_CLOSED = "permission denied"
_UNHELD = "no checkpoint holds it; delete it if you do not want it"
_Changes = Mapping[str, tuple[Change, str, str]]


class Protection:
    """The protected files that the commands of a turn changed."""

    def __init__(self, context: Context) -> None:
        self._context, self._log = context, context.log
        self._checkpointer, self._rules = context.checkpointer, context.policy.filesystem

    def changes(self) -> _Changes:
        """Return the files that differ after a turn that ran commands, whoever changed them."""
        found: dict[str, tuple[Change, str, str]] = {}
        for before, after in self._log.session.checkpoints.parts if self._has_commands() else ():
            for change in self._checkpointer.changes(before, after) or ():
                first, since, _ = found.get(change.path, (change, before, after))
                found[change.path] = first.joined(change), since, after
        return {path: found[path] for path in sorted(found) if not found[path][0].is_void}

    def notes(self, changes: _Changes) -> tuple[str, ...]:
        """Return what the next request says about this turn's files besides the results."""
        session, own = self._log.session, self._checkpointer.written
        changed = [f"{path} ({what.kind})" for path, (what, *_) in changes.items() if path not in own]
        said = [f"files that commands changed: {named(changed)}"] if changed else []
        settled = session.protected_settled
        if settled is not None and (refused := settled.put_back or settled.left):
            reason = f": {settled.reason}" if settled.reason else ""
            how = "restored" if settled.put_back else "did not want"
            fact = f"the user {how} {named(refused)}, which commands had changed{reason}"
            said.append(plain_text.Note("", fact))
            if any(isinstance(event, events.Finished) for event in session.results):
                again = "your DONE was about the files before that: send it again"
                said.append(plain_text.Note("", again))
        return tuple(said)

    def _has_commands(self) -> bool:
        # An interrupted operation on files has changed no others.
        return any(
            isinstance(event, events.CommandRan)
            or (isinstance(event, events.Interrupted) and event.kind in (Kind.RUN_COMMAND, Kind.CHECK))
            for event in (*self._log.session.results, self._log.session.checked)
        )

    def look(self) -> None:
        """Find protected files that were changed unasked, and journal them."""
        changed, session, workspace = self.changes(), self._log.session, self._context.workspace
        # A file operation was approved beforehand; a command may have changed its file again.
        made = {each.place: each.after for start in session.written for each in start.changes}
        found: list[ProtectedChange] = []
        for path, ask in self._asks(changed).items():
            if session.agreed.issuperset(ask.grants):
                continue
            with contextlib.suppress(OperationError):
                if path in made and workspace.digest(path, follow_last=False) == made[path]:
                    continue
            found.append(ProtectedChange(path, *changed.get(path, ("", "", ""))[1:]))
        if found:
            self._log.record(ProtectedFound(tuple(found), now()))

    def _asks(self, changes: _Changes) -> Mapping[str, Ask]:
        """Return the questions that changes call for, and what no checkpoint holds, by path."""
        every = [change for change, _, _ in changes.values()]
        asks: dict[str, Ask] = {}
        for change in every:
            # By its name, or by what it does.
            ask = ask_for_path(self._rules, path := change.path)
            if ask is None and self._rules.approval_required:
                if makes_git_run(path, self._context.workspace.root):
                    ask = ask_for_change(path, "git runs what it contains")
                elif (new := change.new) and new.mode & _OWNER_BITS and not new.is_link:
                    ask = ask_for_change(path, "whoever runs it gets its owner's rights")
            if ask is not None:
                asks[path] = ask
        states = [state for change in every for state in (change.old, change.new)]
        ids = {state.blob for state in states if state}
        held = self._checkpointer.tried(lambda store: store.contents(ids), dict[str, bytes]())
        data = [None if each is None else held.get(each.blob) for each in states]
        files = zip(changes, data[::2], data[1::2], strict=True)
        for path, ask in placeholders.moved(self._context, files).items():
            asks[path] = together(asks[path], ask) if path in asks else ask
        if self._rules.approval_required and self._has_commands():
            for each in self._checkpointer.unheld():
                ask = ask_for_path(self._rules, path := each.path.rstrip("/"))
                if ask is None and each.reason == _CLOSED and path != each.path:
                    ask = ask_for_change(each.path, "nobody sees which files it holds")
                if ask is not None and not each.is_ignored:
                    asks.setdefault(path, ask)
        return {path: asks[path] for path in sorted(asks)}

    def question(self) -> approval.Question:
        names = [change.path for change in self._log.session.protected_found]
        known = self._asks(self.changes())
        asks = [known[path] for path in names if path in known]
        reasons = [f"changed by a command: {'; '.join(ask.reasons)}" for ask in asks[:NAMED]]
        if is_long := len(asks) > NAMED:
            reasons.append(f"{len(asks) - NAMED} more protected files were changed")
        names, parts = [*map(paths.shown, names)], self._parts()
        held = {part: files for part, files in parts.items() if part[0]}
        diffs = self._checkpointer.tried(
            lambda store: [store.diff(*part, files, _SHOWN_BYTES) for part, files in held.items()], []
        )
        shown = f"changed: {', '.join(names)}\n{''.join(diffs)}".rstrip("\n")
        return approval.Question(
            Kind.FILES_CHANGED,
            named(names),
            tuple(dict.fromkeys(rule for ask in asks for rule in ask.rules)),
            tuple(reasons),
            plain_text.clip_middle(shown, _SHOWN_CHARACTERS),
            observations.digest_of("\0".join((*names, *map("".join, parts))).encode(errors="replace")),
            () if is_long else tuple(dict.fromkeys(grant for ask in asks for grant in ask.grants)),
        )

    def _parts(self) -> dict[tuple[str, str], list[str]]:
        """Return the files found, by the checkpoints before and after their change; "" if there are none."""
        parts: dict[tuple[str, str], list[str]] = {}
        for change in self._log.session.protected_found:
            parts.setdefault((change.before, change.after), []).append(change.path)
        return parts

    def carry_out(self, answer: approval.Answer) -> None:
        """Keep the files found, or restore them."""
        if answer.decision != "no":
            kept = tuple(change.path for change in self._log.session.protected_found)
            self._log.record(ProtectedSettled(kept, (), (), now()))
            return
        # Their current content must be durable before it is overwritten.
        self._checkpointer.before()
        self._checkpointer.sync()
        done: list[str] = []
        left: list[LeftOut] = []
        for part, names in self._parts().items():
            alone = [LeftOut(path, _NO_GIT if part[0] else _UNHELD) for path in names]
            if part[0]:
                restore = methodcaller("restore", *part, names)
                alone = self._checkpointer.tried(restore, alone)
            done += sorted({*names}.difference(each.path for each in alone))
            left += alone
        self._checkpointer.after()
        refused = tuple(each.path for each in left)
        self._log.record(ProtectedSettled((), tuple(done), refused, now(), answer.reason))
        for each in left:
            self._context.remark(each.told)
