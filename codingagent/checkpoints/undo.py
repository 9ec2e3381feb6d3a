"""Undo turns: restore the files that they changed, by commands or by operations.

The current workspace is checkpointed first, so that an undo is a step like a turn and can be undone itself.
All is journalled: an interrupted undo is finished later, and leaves alone what is correct.
"""

import contextlib
import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from codingagent.checkpoints.checkpointer import Checkpointer, LazyStore, place_of
from codingagent.checkpoints.history import NO_CHECKPOINT, Change, HistoryStep, LeftOut, named, steps
from codingagent.errors import UsageError
from codingagent.model import notices, plain_text, session_state
from codingagent.model.journal_entries import OperationStarted, UndoBegan, UndoEnded
from codingagent.model.paths import shown
from codingagent.storage.clock import now
from codingagent.storage.homes import Home
from codingagent.storage.journal import SessionLog
from codingagent.workspace.programs import quoted

if TYPE_CHECKING:
    from codingagent.checkpoints.store import Checkpoints


class UndoChoice(Struct, frozen=True):
    turns: int | None = 1
    """So many of the last turns that changed something; None: redo the last undo."""
    files: tuple[str, ...] = ()
    """Only these files of the last turns that changed them, or these folders; empty: all."""
    force: bool = False


_UNCOVERED = "no checkpoint holds it: git ignores it, or it is too large"
# Trying again would not help.
_NEVER = (NO_CHECKPOINT, _UNCOVERED)


@contextlib.contextmanager
def history_of(
    home: Home, session: session_state.Session
) -> "Iterator[tuple[Checkpoints, tuple[HistoryStep, ...]]]":
    """Yield a session's checkpoints, for reading, and the steps between them, as its records tell."""
    sessions, session_id = home.sessions, session.session_id
    with contextlib.closing(LazyStore(place_of(home, session))) as store:
        if session.late:  # the process of its edits was killed, or is not so far yet
            with home.lock.held(lambda _: None), contextlib.closing(sessions.open(session_id)) as journal:
                log = SessionLog(journal, sessions.load(session_id))
                Checkpointer(log, store, (), lambda _: None).settle()
        yield store.needed(), steps(home.records(session_id))


def changed_in(
    checkpoints: "Checkpoints", steps: Sequence[HistoryStep], turn: int | None
) -> tuple[Sequence[HistoryStep], str, str, set[str]]:
    """Return the steps of a turn, or of all, the checkpoints before and after, and the files they changed.

    UsageError if there is none, or the last one has no checkpoint after it.
    """
    chosen = [step for step in steps if turn is None or step.sequence == turn]
    if not chosen:
        which = "no turn" if turn is None else f"no turn {turn}"
        raise UsageError(f"{which} of this session changed files; see `codingagent show`")
    later = steps[steps.index(chosen[-1]) + 1 :]
    after = chosen[-1].after or (later[0].before if later else "")
    if not after:
        raise UsageError(
            "the last turn has no checkpoint after it: `codingagent resume` finishes an interrupted turn,"
            " `codingagent diff --turn N` shows an earlier one"
        )
    # Between the parts the person may have changed other files, which do not belong to the session.
    touched = {
        change.path
        for step in chosen
        for change in step.its(checkpoints.changes(step.before, step.after or after))
    }
    return chosen, chosen[0].before, after, touched


def take_back(home: Home, checkpointer: Checkpointer, what: "UndoChoice") -> str:
    """Undo turns, or redo an undo; return what could not be restored and how to try again, or nothing."""
    checkpointer.lazy_store.needed()
    checkpointer.settle()
    return _Undo(home, checkpointer, force=what.force).begin(what)


def finish_undo(home: Home, checkpointer: Checkpointer) -> None:
    """Finish an undo that a kill interrupted, if any; without git, leave it pending."""
    began = checkpointer.log.session.undoing
    if began is not None and checkpointer.lazy_store.opened is not None:
        undo = _Undo(home, checkpointer, force=began.force)
        if complaint := undo.finish(began):
            checkpointer.show(notices.Remark(complaint))


class _Undo:
    def __init__(self, home: Home, checkpointer: Checkpointer, *, force: bool) -> None:
        self.checkpointer, self.log, self.show = checkpointer, checkpointer.log, checkpointer.show
        self.checkpoints = checkpointer.lazy_store.needed()
        self.force = force
        records = [*home.records(self.log.session.session_id)]
        self.steps = steps(records)
        # Files that operations changed are undone even if git ignores them.
        started = [record.changes for record in records if isinstance(record, OperationStarted)]
        self.held = {change.place for changes in started for change in changes}
        self.moves = [{change.place for change in changes} for changes in started if changes[1:]]

    def begin(self, what: UndoChoice) -> str:
        session = self.log.session
        if session.phase not in (session_state.Phase.AWAITING_ANSWER, session_state.Phase.COMPLETE):
            awaits = session.phase is session_state.Phase.AWAITING_APPROVAL
            commands = ("approve", "deny") if awaits else ("resume",)
            how = " or ".join(f"`codingagent {each} {session.session_id}`" for each in commands)
            raise UsageError(f"a turn is in progress: end it with {how}, then undo")
        present = self.checkpoints.take(self.held).id
        files = self._named(what.files, present)
        if what.turns is None:
            undos = (
                index
                for index, step in reversed([*enumerate(self.steps)])
                if any(self.steps[other].sequence for other in step.undoes) and self._is_open(index, present)
            )
            chosen = (*itertools.islice(undos, 1),)
            if not chosen:
                raise UsageError("this session has no undo to redo")
        else:
            chosen = self._last_turns(what.turns, present, files)
            files = self._with_ends(files, chosen, present)
        began = UndoBegan(chosen, present, now(), self.force, tuple(sorted(files)))
        self.log.record(began)
        # Old content must be on disk before it is overwritten.
        self.checkpointer.sync()
        return self.finish(began)

    def _named(self, names: Collection[str], present: str) -> set[str]:
        """Return the files with these names, or in folders with them, that turns changed."""
        turns = (index for index, step in enumerate(self.steps) if step.sequence)
        touched = set[str]()
        for index in turns if names else ():
            touched |= self._touched(index, present)
            touched.update(() if self.steps[index].undo else self.steps[index].uncovered)
        found: set[str] = set()
        for name in names:
            new = {path for path in touched if path == name or path.startswith(f"{name}/")}
            if not new:
                how = "nothing was done; `codingagent diff --name-only` lists what is changed"
                raise UsageError(f"no turn changed {shown(name)}, or that is undone: {how}")
            found |= new
        return found

    def _with_ends(self, files: set[str], chosen: tuple[int, ...], present: str) -> set[str]:
        """Return files with the other ends of their moves in these steps, by operations or commands."""
        touched, moves = set[str](), list(self.moves)
        for index in chosen if files else ():
            touched |= self._touched(index, present)
            ends: dict[str, tuple[list[str], list[str]]] = {}
            for change in self._changes(index, present):
                if (state := change.old or change.new) and change.kind in ("added", "deleted"):
                    sides = ends.setdefault(state.blob, ([], []))
                    sides[change.kind == "added"].append(change.path)
            # Of a folder's equal files, the first went to the first.
            alike = (zip(*sides, strict=True) for sides in ends.values() if len({*map(len, sides)}) == 1)
            moves += map(set, itertools.chain.from_iterable(alike))
        while more := [m for m in moves if m & files and m - files and m <= touched]:
            files = files.union(*more)
        return files

    def _last_turns(self, count: int, present: str, files: set[str]) -> tuple[int, ...]:
        """Return the steps of the last turns that changed something, or these files, and can be undone."""
        chosen: list[int] = []
        sequences: set[int] = set()
        for index in reversed(range(len(self.steps))):
            step = self.steps[index]
            if not step.sequence or not self._is_open(index, present):
                continue
            if step.sequence not in sequences and len(sequences) == count:
                break
            touched = self._touched(index, present)
            uncovered = set(() if step.undo else step.uncovered)
            if (touched | uncovered) & files if files else touched | uncovered:
                sequences.add(step.sequence)
                chosen.append(index)
        if len(sequences) < count:
            count = len(sequences)
            found = f"only {count} {plain_text.plural(count, 'turn')}" if count else "no turn"
            raise UsageError(f"{found} of this session can be undone: see `codingagent log`")
        return tuple(sorted(chosen))

    def finish(self, began: UndoBegan) -> str:
        """Restore files; return what could not be restored, and how to try again."""
        touched = {index: self._touched(index, began.name) for index in began.steps}
        if began.files:
            touched = {index: found.intersection(began.files) for index, found in touched.items()}
        edited, settled = set[str](), set[str]()
        for index in () if began.force else reversed(began.steps):
            # What someone changed after the last of the steps that changed it is theirs.
            if after := self.steps[index].after:
                since = {change.path for change in self.checkpoints.changes(after, began.name)}
                edited |= touched[index] & since - settled
            settled |= touched[index]
        restored: list[str] = []
        alone: list[LeftOut] = []
        settled = set(edited)
        for index in began.steps:
            step = self.steps[index]
            wanted = touched[index] - settled
            settled |= wanted
            left = self.checkpoints.restore(step.before, began.name, wanted)
            restored += sorted(wanted.difference(each.path for each in left))
            uncovered = (path for path in step.uncovered if path in (began.files or (path,)))
            alone += (*left, *(LeftOut(path, _UNCOVERED) for path in uncovered))
        failed = {left.path: left.reason for left in alone if left.reason not in _NEVER}
        again = f"`codingagent {self._command(began, edited, '--force')}`"
        alone += [
            LeftOut(path, f"it was changed again since; {again} undoes that too") for path in sorted(edited)
        ]
        for each in alone:
            self.show(notices.Remark(each.told))
        left_alone = f"; left as it is: {named([left.path for left in alone])}" if alone else ""
        is_void = bool(failed) and not restored
        words = "nothing was undone" if is_void else self._words(began)
        after = self.checkpoints.take(self.held).id
        note = f"{words}: {_done(restored, self.checkpoints.changes(began.name, after))}{left_alone}"
        told = (self.log.session.undo_note, "" if is_void else f"the user {note}")
        kept, missing = tuple(sorted(edited)), tuple(sorted(failed))
        so_far = "; ".join(filter(None, told))
        self.log.record(UndoEnded(after, (note,), now(), so_far, kept, missing, is_void))
        if not failed:
            return ""
        what = f"{'nothing' if is_void else 'not everything'} could be restored: {named([*failed])}"
        why = "; ".join(dict.fromkeys(failed.values()))
        again = f"`codingagent {self._command(began, {*failed})}`"
        return f"{what} ({why}); once that is fixed, {again} does the rest"

    def _is_open(self, index: int, present: str) -> bool:
        return self.steps[index].undo is None or bool(self._touched(index, present))

    def _command(self, began: UndoBegan, left: set[str], *words: str) -> str:
        """Return the command that undoes exactly the files left."""
        if self.steps[began.steps[0]].undoes:
            return " ".join(("undo --redo", *words))
        left_in = [index for index in began.steps if self._touched(index, began.name) & left]
        turns = {self.steps[index].sequence for index in left_in}
        more = () if len(turns) < 2 else ("--turns", str(len(turns)))
        return " ".join(("undo", *words, *more, *(quoted([path]) for path in began.files)))

    def _touched(self, index: int, present: str) -> set[str]:
        """Return the files of a step to undo; for an undone step, those that were left."""
        undo, found = self.steps[index].undo, {each.path for each in self._changes(index, present)}
        if undo is None:
            return found
        left = {*undo.failed, *(undo.kept if self.force else ())}
        return {path for path in found if path in left or (undo.files and path not in undo.files)}

    def _changes(self, index: int, present: str) -> tuple[Change, ...]:
        step, later = self.steps[index], (other.before for other in self.steps[index + 1 :])
        # Without a checkpoint after it, a step lasts until the next, or to now.
        return step.its(self.checkpoints.changes(step.before, step.after or next(later, present)))

    def _words(self, began: UndoBegan) -> str:
        first = self.steps[began.steps[0]]
        turns = sorted({self.steps[index].sequence for index in first.undoes or began.steps})
        named = f"{plain_text.plural(len(turns), 'turn')} {', '.join(map(str, turns))}"
        return f"{'redid' if first.undoes else 'undid'} {named}{' in part' * bool(began.files)}"


def _done(paths: Collection[str], changes: Collection[Change]) -> str:
    gone = {change.path for change in changes if change.kind == "deleted"}
    removed = [path for path in paths if path in gone]
    restored = [path for path in paths if path not in gone]
    told = [f"restored {named(restored)}"] if restored or not removed else []
    return ", ".join((*told, *(["removed " + named(removed)] if removed else [])))
