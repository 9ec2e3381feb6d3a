"""Plan the operations that change nothing: all of each is its event."""

import base64

from codingagent.agent import put_back
from codingagent.agent.context import Context
from codingagent.agent.file_views import Views
from codingagent.agent.plan import Order
from codingagent.errors import OperationError
from codingagent.model import charsets, documents, paths, plain_text
from codingagent.model.approval import Question
from codingagent.model.events import Denied, Event, FileFetched, FileRequested, FolderListed
from codingagent.model.journal_entries import ApprovalAsked
from codingagent.model.operations import FetchFile, Kind, ListFolder, ReadFile
from codingagent.policy.rules import Deny, judge_read
from codingagent.storage.clock import now
from codingagent.workspace.programs import quoted

# More files in one request do not help a model; it can narrow the glob.
_GLOB_LIMIT_FILES = 100


def request(context: Context, order: Order, operation: ReadFile, views: Views) -> Event:
    """Return the files that the next request shows: one, or those that a glob matches."""
    workspace, path = context.workspace, operation.path
    lines = (operation.start_line, operation.end_line)
    if not paths.is_glob(path) or workspace.exists(path):
        if (denied := _denied(context, order, path)) is not None:
            return denied
        views.view(path, *lines)
        _ask_to_show(context, path)
        return FileRequested(path, (path,), *lines)
    fits = paths.glob_matcher(path)
    listed = filter(paths.is_utf8, workspace.listing().files)
    found = sorted(each for each in listed if fits(each) and documents.is_asked_for(each, path))
    readable = list(filter(context.may_read, found))
    if not readable:
        which = "that the policy lets be read " if found else ""
        raise OperationError(
            f"No file {which}matches '{path}'", advice="; see Workspace Files for what there is"
        )
    for each in readable[:_GLOB_LIMIT_FILES]:
        _ask_to_show(context, each)
    notes: tuple[str, ...] = ()
    if len(readable) < len(found):
        notes += (f"{len(found) - len(readable)} more files match; the policy blocks them",)
    if len(readable) > _GLOB_LIMIT_FILES:
        notes += (f"{len(readable)} files match; only the first {_GLOB_LIMIT_FILES} were read",)
    return FileRequested(path, tuple(readable[:_GLOB_LIMIT_FILES]), *lines, notes=notes)


def fetch(context: Context, order: Order, operation: FetchFile) -> Event:
    """Return a file's whole content, if there is room for it among the results."""
    path = operation.path
    if (denied := _denied(context, order, path)) is not None:
        return denied
    data = context.workspace.read(path).data
    _ask_to_show(context, path)
    size_bytes = len(data)
    if size_bytes > order.room:
        raise OperationError(
            f"File '{path}' has {size_bytes} bytes and no room is left for them among these results",
            advice="; ask for fewer files at a time",
        )
    if operation.encoding == "base64":
        content = base64.b64encode(data).decode()
    elif (text := charsets.decoded(data, "utf-8")) is not None:
        content = text
    else:
        found = context.workspace.text(path, data)
        if found is None or "?" in found.others:
            raise OperationError(
                f"File '{path}' is no text in a known encoding",
                advice="; ask for it with encoding base64",
            )
        content = found.text
    if plain_text.json_length(content) > order.room:
        raise OperationError(
            f"File '{path}' is full of control characters, which take more room than is left among these"
            " results",
            advice="; ask for it with encoding base64",
        )
    return FileFetched(path, content, operation.encoding, size_bytes)


def list_folder(context: Context, order: Order, operation: ListFolder) -> Event:
    denied = _denied(context, order, operation.path)
    return denied or FolderListed(operation.path, context.workspace.entries(operation.path))


def _ask_to_show(context: Context, path: str) -> None:
    """Ask once, without waiting, whether the chat may see the values in a secret file."""
    if context.texts is None:
        return  # no chat
    secrecy, path = context.secrecy, context.workspace.resolved(path)
    if not secrecy.may_ask(path):
        return
    if not secrecy.may_ask(path, put_back.reader(context.workspace)(path)):
        return
    asked = ApprovalAsked(-1, Question(Kind.READ_FILE, path, (), (_VALUES,), path, ""), now())
    answer = None if context.person.approves_all else context.person.ask(asked)
    if answer is not None:
        secrecy.decide(path, is_allowed=answer.decision != "no")
    else:
        words = quoted([path])
        context.remark(f"{_NAMES.format(paths.shown(path))}: codingagent secrets allow {words}")


_VALUES = (
    "an answer reads it, and it holds secrets: without a yes the chat sees names in their place"
)
_NAMES = "{} holds secrets: the chat sees the names of its variables only; to show it the values"


def _denied(context: Context, order: Order, path: str) -> Denied | None:
    # The root has no name of its own that a policy could block; what matters is whether it can be read.
    verdict = judge_read(context.policy, path if path == "." else context.workspace.resolved(path))
    return order.denied(path, verdict) if isinstance(verdict, Deny) else None
