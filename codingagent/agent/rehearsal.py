"""Say what an answer would do, and do nothing: its file operations are done to copies of the files."""

import contextlib
import copy
import tempfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from codingagent.agent.context import Context, bare_context
from codingagent.agent.executor import Agent
from codingagent.agent.plan import Order, Plan, subject_of
from codingagent.agent.spelling import Spellings
from codingagent.errors import OperationError
from codingagent.model import results
from codingagent.model.events import succeeded
from codingagent.model.operations import Finish, Kind, RunCommand, ShowMessage, named
from codingagent.protocols.tags.reply import Problem, Reply, Step
from codingagent.workspace.workspace import Workspace


class Rehearsed(Struct, frozen=True):
    """What one item of an answer would do.

    `difference` is the diff of a file change, or the text of a command or a message. `fault` says why it
    would fail, `reasons` what the person would be asked.
    """

    index: int
    operation: Kind
    subject: str
    difference: str = ""
    fault: str = ""
    reasons: tuple[str, ...] = ()
    can_skip: bool = False


def rehearse(context: Context, found: Reply) -> Iterator[Rehearsed]:
    """Yield what each item of an answer would do; commands are only named, as what they do is not known.

    What depends on other files than those that the answer names may be judged otherwise in the end.
    """
    with contextlib.ExitStack() as stack:
        made = tempfile.TemporaryDirectory(prefix="codingagent-", ignore_cleanup_errors=True)
        copies = stack.enter_context(contextlib.closing(Workspace(Path(stack.enter_context(made)))))
        spellings = Spellings(context.workspace)
        items = [spellings.meant(item) for item in found.items]
        for item in items:
            if isinstance(item, Step):
                _copy(context.workspace, item, copies)
        # What would be known of secrets afterwards is not kept.
        context = replace(context, secrecy=copy.deepcopy(context.secrecy))
        bare = bare_context(copies, context.runner, context.policy)
        agent = Agent(replace(bare, secrecy=context.secrecy, texts=context.texts))
        for index, item in enumerate(items):
            yield _rehearsed(context, agent, index, item)


def _copy(workspace: Workspace, step: Step, copies: Workspace) -> None:
    """Copy the files that an operation names, unless an earlier one did."""
    for change in named(step.operation):
        with contextlib.suppress(OperationError):
            if not copies.exists(change.path):
                copies.write(change.path, workspace.read(change.path).data, None)


def _rehearsed(context: Context, agent: Agent, index: int, item: Step | Problem) -> Rehearsed:
    hide = context.secrecy.hide
    if isinstance(item, Problem):
        return Rehearsed(index, item.kind, hide(item.subject), fault=hide(item.fact))
    operation, subject = item.operation, hide(subject_of(item.operation))
    told = Rehearsed(index, operation.kind, subject)
    match operation:
        case RunCommand():
            return replace(told, difference=subject, can_skip=True)
        case ShowMessage():
            return replace(told, difference=hide(operation.text))
        case Finish():
            return replace(told, difference=hide(operation.summary))
        case _ if not operation.changes:
            return told
        case _:
            pass
    told = replace(told, can_skip=True)
    order = Order(index, operation, id=item.id, foreign=item.foreign, names=item.names)
    order = replace(order, later=tuple, session=context.log.session, texts=context.texts)
    try:
        plan = agent.plan(order)
        if not isinstance(plan, Plan):
            fault = "" if succeeded(plan) else results.fact_of(plan).words
            return replace(told, fault=hide(fault))
        shown = context.secrecy.hide_diff(plan.shown(), plan.subject)
        plan.act()
    except OperationError as fault:
        return replace(told, fault=hide(fault.fact))
    reasons = tuple(reason for each in plan.asked for reason in each.reasons)
    return replace(told, difference=shown, reasons=tuple(map(hide, reasons)))
