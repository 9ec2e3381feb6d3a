"""The methods of specification 004: what a host can ask of a workspace, or of a whole guest.

The executor is the one that executes a chat's answers, under the same policy and sandbox. But there is
nobody to ask: an operation that needs approval is refused, and nothing is kept for undo.
"""

import contextlib
import os
import posixpath
import secrets
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from codingagent.agent import executor, factory, placeholders
from codingagent.agent.context import OperationRequest, bare_context
from codingagent.checkpoints.checkpointer import git_for
from codingagent.errors import OperationError, UsageError, WorkError
from codingagent.model import approval, paths, plain_text, results
from codingagent.model.events import CommandRan, Denied, Event, FileFetched, FolderListed, Refused
from codingagent.model.operations import CreateFile, FetchFile, ListFolder, Operation, RunCommand
from codingagent.model.settings import Settings
from codingagent.policy.rules import Policy, in_sandbox, with_named
from codingagent.process import memory
from codingagent.process.bubblewrap import Bubblewrap, Unconfined
from codingagent.process.runner import Runner, environment
from codingagent.process.select_sandbox import choose_sandbox, policy_of
from codingagent.protocols.tags.reply import Problem, Step
from codingagent.rpc.protocol import Code, Method, MethodError, method
from codingagent.storage import atomic_write, homes
from codingagent.workspace import git_programs, programs, real_paths
from codingagent.workspace.workspace import Workspace

# Specification 004, language mapping: each language's interpreter, and how it takes a program's text.
_LANGUAGES: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("python", "python3"), ("python3", "-c")),
    **dict.fromkeys(("node", "javascript", "js"), ("node", "-e")),
    "bash": ("bash", "-c"),
    "sh": ("sh", "-c"),
}


class Host(Struct, frozen=True):
    """State shared by all connections of a server.

    `root` is the root as the person wrote it. What the policy would ask about is refused. Without
    `timeout_s` and `memory_bytes` commands have no limit.
    """

    workspace: Workspace
    root: Path
    sandbox: Bubblewrap | Unconfined
    policy: Policy
    variables: Mapping[str, str]
    timeout_s: float | None
    memory_bytes: int | None
    settings: Settings

    @contextlib.contextmanager
    def open_methods(self) -> Iterator["RemoteMethods"]:
        """Yield the methods of one connection; what they left running, and their /tmp, end with it.

        Enter and leave it in the thread that calls them: a command ends with the thread that started it.
        """
        sandbox = self.sandbox.with_temporary(secrets.token_hex(8))
        runner = Runner(sandbox, self.variables, self.memory_bytes)
        try:
            yield RemoteMethods(self, runner)
        finally:
            runner.close()
            sandbox.clear_temporary()


@contextlib.contextmanager
def host_of(home: Path, root: Path, settings: Settings, timeout_s: float | None) -> Iterator[Host]:
    """Yield the state for a server of this root; `/` is the whole machine, which no sandbox confines."""
    with contextlib.ExitStack() as stack:
        # It may be the current folder only, in which no home was ever created.
        is_home = (home / "sessions").is_dir() and not is_machine(root)
        hidden = homes.own_folders(home, root) if is_home else ()
        workspace = Workspace(root, hidden, is_guest=True)
        stack.callback(workspace.close)
        if is_machine(root):
            if settings.sandbox == "require" or settings.secrets == "mask":
                raise UsageError(
                    "no sandbox can confine commands when the whole machine is served: name another --root,"
                    " or leave out --sandbox require and --secrets mask"
                )
            # A policy file is always inside the root here.
            policy = policy_of(settings, Path(os.devnull))
            sandbox: Bubblewrap | Unconfined = Unconfined("the root is the whole machine")
        else:
            policy = with_named(policy_of(settings, root), git_programs.named_by_git(root, git_for(root)))
            # /tmp of a whole machine is one of the folders served: no files of ours go there.
            temporary = Path(tempfile.mkdtemp(prefix="codingagent-"))
            stack.callback(atomic_write.remove_folder, temporary)
            sandbox = choose_sandbox(settings, policy, root, hidden, temporary / "tmp")
            if sandbox.tier != "none":
                policy = in_sandbox(policy, has_network=sandbox.has_network)
        variables = environment(programs.persons_variables(), settings.pass_env)
        most = memory.limit_bytes(settings.command_memory)
        yield Host(workspace, root, sandbox, policy, variables, timeout_s, most, settings)


def is_machine(root: Path) -> bool:
    real = root.resolve()
    return real == Path(real.anchor)


_Seconds = Annotated[float, Meta(gt=0)]


class RemoteMethods:
    """The methods of one connection; one call at a time."""

    def __init__(self, host: Host, runner: Runner) -> None:
        self._host = host
        self._runner = runner
        # Threads share no vault: names hold for one connection.
        self._secrecy = factory.secrecy_for(host.settings)
        context = bare_context(host.workspace, runner, host.policy)
        self._executor = executor.Executor(replace(context, secrecy=self._secrecy))

    def cancel(self) -> None:
        """End the current command, if any; called from another thread."""
        self._runner.end_command()

    def exec(self, cmd: str, timeout: _Seconds | None = None) -> dict[str, Any]:
        """Run a shell command in the root (004, exec)."""
        # The executor takes 0 for no limit, and None for its own. System timers count no further
        # than 2^31 ms, 24 days.
        limit_s = timeout or self._host.timeout_s or 0
        limit_s = limit_s if limit_s <= 2_000_000 else 0
        event = self._perform(RunCommand(cmd, limit_s, parts_streams=True))
        if why := _why_not(event):
            return _not_started(why)
        assert isinstance(event, CommandRan)
        errors = event.stderr or ""
        if event.ended_by != "itself":
            errors += f"\n... [ended: {event.limit or 'cancelled'}]"
        return {"exit_code": results.exit_code_of(event), "stdout": event.stdout or "", "stderr": errors}

    def exec_code(self, lang: str, code: str, timeout: _Seconds | None = None) -> dict[str, Any]:
        """Run a program (004, exec_code)."""
        if lang not in _LANGUAGES:
            return _not_started(f"unsupported language: {lang}")
        if os.name == "nt":
            why = "exec_code needs a POSIX shell: write_file the program, then exec it"
            return _not_started(why)
        interpreter, flag = _LANGUAGES[lang]
        if shutil.which(interpreter, path=self._host.variables.get("PATH", os.defpath)) is None:
            return _not_started(f"{interpreter} is not installed here")
        return self.exec(f"{interpreter} {flag} {shlex.quote(code)}", timeout)

    def read_file(self, path: str) -> dict[str, Any]:
        """Return a file's text (004, read_file)."""
        event = _done(self._perform(FetchFile(self._path(path, paths.workspace_path))))
        assert isinstance(event, FileFetched)
        return {"content": event.content}

    def write_file(self, path: str, content: str) -> dict[str, Any]:
        """Write a whole file; missing folders are made (004, write_file)."""
        plain = self._path(path, paths.workspace_path)
        _done(self._perform(CreateFile(plain, content.encode())))
        return {"success": True}

    def list_dir(self, path: str) -> dict[str, Any]:
        """Return the contents of a folder, by name (004, list_dir)."""
        event = _done(self._perform(ListFolder(self._path(path, paths.folder_path))))
        assert isinstance(event, FolderListed)
        return {
            "entries": [
                {"name": plain_text.without_halves(e.name), "is_dir": e.is_folder, "size": e.size_bytes}
                for e in event.entries
            ]
        }

    def _perform(self, operation: Operation) -> Event:
        try:
            self._host.workspace.check()
            (item,) = placeholders.restored(self._secrecy.vault, [Step(operation, 0)])
            if isinstance(item, Problem):
                return Refused(item.kind, item.fact, advice=item.advice)
            found = self._executor.perform(OperationRequest(0, item.operation, names=item.names))
        except WorkError as fault:
            raise MethodError(Code.INTERNAL_ERROR, self._secrecy.hide(str(fault))) from fault
        if isinstance(found, approval.Question):
            reason = f"it needs approval, which nobody can give here: {'; '.join(found.reasons)}"
            found = Denied(found.kind, found.subject, found.rules, reason)
        return self._secrecy.event(found)

    def _path(self, text: str, plain: Callable[[str], str]) -> str:
        """Return a path in normal form, relative to the root; it may come relative or absolute."""
        relative = text = real_paths.with_slashes(text)
        if text.startswith("/") or os.path.splitdrive(text)[0]:
            roots = (self._host.root.absolute(), self._host.workspace.root)
            inner = real_paths.below(_normal(text), (_normal(root.as_posix()) for root in roots))
            relative = text if inner is None else inner.lstrip("/") or "."
        try:
            return plain(relative)
        except OperationError as fault:
            raise MethodError(Code.INVALID_PARAMS, f"invalid params: {fault.reason}") from fault


def _normal(absolute: str) -> str:
    """Return an absolute path without `//`, `.` and `..`; a trailing slash stays."""
    end = "/" if absolute.endswith(("/", "/.", "/..")) else ""
    return f"/{posixpath.normpath(absolute).lstrip('/')}".rstrip("/") + end


def _done(event: Event) -> Event:
    """Return the event of a file operation; raise the error that a failed one means to the caller."""
    if why := _why_not(event):
        is_outside = why.startswith(paths.OUTSIDE)
        raise MethodError(Code.INVALID_PARAMS if is_outside else Code.INTERNAL_ERROR, why)
    return event


def _why_not(event: Event) -> str:
    if isinstance(event, Denied):
        return f"refused by policy: {event.reason}"
    return event.reason if isinstance(event, Refused) else ""


def _not_started(reason: str) -> dict[str, Any]:
    """Return what 004's ExecResult says of a command that could not start."""
    return {"exit_code": -1, "stdout": "", "stderr": reason}


TABLE: Mapping[str, Method] = {
    "ping": method(lambda _: {"pong": True}, is_quick=True),
    "exec": method(RemoteMethods.exec),
    "exec_code": method(RemoteMethods.exec_code),
    "read_file": method(RemoteMethods.read_file),
    "write_file": method(RemoteMethods.write_file),
    "list_dir": method(RemoteMethods.list_dir),
}
"""The methods of 004."""
