"""Replies in other formats done by the real agent in a folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from codingagent.agent.context import OperationRequest, bare_context, subject_of
from codingagent.agent.executor import Executor
from codingagent.model.approval import Question
from codingagent.model.events import Denied, Event, FileEdited, Interrupted, Refused
from codingagent.policy.rules import PRESETS
from codingagent.process.bubblewrap import Unconfined
from codingagent.process.runner import Runner
from codingagent.protocols.foreign.items import ForeignAnswer
from codingagent.protocols.foreign.parser import read
from codingagent.protocols.tags import reply
from codingagent.protocols.tags.reply import Problem, Step
from codingagent.workspace.workspace import Workspace


@dataclass(frozen=True)
class Done:
    """What came of a reply: what was found in it, the files after, and all that failed, in words."""

    found: ForeignAnswer
    files: dict[str, bytes]
    failures: tuple[str, ...]
    events: tuple[Event, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        own = [note for item in self.found.items for note in item.notes]
        return (*self.found.notes, *self.found.asides, *own)

    @property
    def operations(self) -> list[object]:
        return [item.operation for item in self.found.items if isinstance(item, Step)]


def files_in(folder: Path) -> dict[str, bytes]:
    if not folder.is_dir():
        return {}
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def do(text: str, before: Mapping[str, bytes | str], root: Path) -> Done:
    """Read an answer against some files and do what it asks for in `root`, an empty folder."""
    for path, data in before.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data.encode() if isinstance(data, str) else data)
    own = reply.read(text)
    found = read(text, set(before)) if own.is_bare else ForeignAnswer(own.items, own.notes)
    workspace, runner = Workspace(root), Runner(Unconfined(), {})
    agent = Executor(bare_context(workspace, runner, PRESETS["standard"]))
    failures = []
    events: list[Event] = []
    try:
        for index, item in enumerate(found.items):
            if isinstance(item, Problem):
                failures.append(f"{item.kind}: {item.reason}")
                events.append(Refused(item.kind, item.fact, item.detail, advice=item.advice))
                continue
            path = subject_of(item.operation)
            edits = [each for each in events if isinstance(each, FileEdited) and each.path == path]
            order = OperationRequest(index, item.operation, edits, foreign="accepted", later=tuple)
            event = agent.perform(order)
            if isinstance(event, Question):
                event = agent.perform(order, event.digest)
            assert not isinstance(event, Question)
            events.append(event)
            if isinstance(event, Refused | Denied | Interrupted):
                failures.append(f"{item.kind}: {getattr(event, 'reason', 'interrupted')}")
    finally:
        runner.close()
        workspace.close()
    return Done(found, files_in(root), tuple(failures), tuple(events))
