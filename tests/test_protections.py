"""Protections that only a process of their own can show: one that changes itself, or dies.

Each check is a function that runs by itself, in a process forked from a Python that has imported the
package. It says whether the protection holds; one that can't tell ends with a fault, and the test fails.
"""

import contextlib
import inspect
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import warm
from tests.helpers import HANG_S, new_marker, processes_with
from tests.sandboxes import needs_bwrap

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is looked at is Linux's")

HOLDS, GONE = 0, 3


# --- checks ----------------------------------------------------------------------------------------

# Each gets a folder of its own; the current one is it too. They import what they use: they run alone.


def sandboxed(
    line: str, before: Callable[[Path], object] = lambda _: None, hidden: tuple[Path, ...] = ()
) -> str:
    """Runs a shell line in a sandbox around `ws`; gives what it printed."""
    import contextlib

    from codingagent.process.runner import Runner, environment
    from codingagent.process.select_sandbox import bubblewrap_for

    workspace = Path("ws").absolute()
    workspace.mkdir(exist_ok=True)
    before(workspace)
    found = bubblewrap_for(workspace, hidden, Path("tmp").absolute(), has_network=False)
    assert found is not None
    with contextlib.closing(Runner(found, environment(os.environ))) as runner:
        outcome = runner.run(line, os.fspath(workspace), 60, lambda _: None)
    assert not outcome.failure, outcome.failure
    return outcome.output


def own_namespace(kind: str) -> bool:
    inside = sandboxed(f"readlink /proc/self/ns/{kind}").strip()
    assert inside.startswith(kind), inside
    return inside != str(Path(f"/proc/self/ns/{kind}").readlink())


def no_terminal() -> bool:
    """A command can't open the terminal that the agent was started in, no matter who starts it."""
    import subprocess

    from codingagent.process.select_sandbox import bubblewrap_for

    found = bubblewrap_for(Path.cwd(), (), Path("tmp"), has_network=False)
    assert found is not None
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # it comes when the terminal is closed
    keyboard, screen = os.openpty()
    # A check leads its session: by its name this becomes its terminal.
    os.close(os.open(os.ttyname(screen), os.O_RDWR))
    trial = found.confine_trial("(: </dev/tty) 2>/dev/null && echo open || echo closed")
    # In the session of this check: the sandbox alone leaves it.
    words = [str(trial.handles[word]) if isinstance(word, int) else word for word in trial.argv]
    said = subprocess.run(
        words, env={}, capture_output=True, pass_fds=trial.handles, check=True, text=True
    ).stdout
    os.close(keyboard)
    assert said in {"open\n", "closed\n"}, said
    return said == "closed\n"


def secret_folders_covered() -> bool:
    from codingagent.process import bubblewrap

    named: tuple[str, ...] = vars(bubblewrap)["_SECRET_FOLDERS"]
    there = [name for name in named if Path(name).is_dir()]
    assert there, "this machine has none"
    kinds = sandboxed(f"stat -f -c %T {' '.join(there)}").split()
    return kinds == ["tmpfs"] * len(there)


def sandbox_dies_with_its_parent(marker: str) -> bool:
    """A sandbox whose watchers are killed at once, so that none of them can act, ends all the same."""
    from codingagent.process import supervisor
    from codingagent.process.runner import Runner, environment
    from codingagent.process.select_sandbox import bubblewrap_for

    workspace = Path("ws").absolute()
    workspace.mkdir()
    found = bubblewrap_for(workspace, (), Path("tmp").absolute(), has_network=False)
    assert found is not None
    runner = Runner(found, environment(os.environ))

    def show(_: str) -> None:
        watchers = supervisor.tree(os.getpid())[:2]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in watchers:
                os.kill(pid, number)

    runner.run(f"echo up; sleep {marker}; true", os.fspath(workspace), 100, show)
    return gone_soon(marker)


def sandbox_believed_by_what_it_does() -> bool:
    """A program that runs what it is given and confines nothing is found out."""
    from codingagent.process.bubblewrap import Bubblewrap
    from codingagent.process.select_sandbox import try_sandbox

    fake = Path("bwrap").absolute()
    fake.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n', "utf-8")
    fake.chmod(0o755)
    here = Path.cwd()
    return try_sandbox(Bubblewrap(os.fspath(fake), here, (), here / "tmp", here / "home")) != ""


def limited() -> None:
    """End the check when the patience is over: what does not end does not hold."""

    def stop(*_: object) -> None:
        os._exit(3)

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(int(os.environ["PATIENCE_S"]))


def at_opening(name: str, act: Callable[[], object]) -> None:
    """Acts at the very moment before a file of that name is opened: the narrowest race there is."""
    armed = [True]

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and armed[0] and str(arguments[0]) == name:
            armed[0] = False
            act()

    sys.addaudithook(hook)


def race(case: str) -> bool:
    """A name is swapped between the look at it and its opening; nothing outside is read or written."""
    from codingagent.errors import OperationError
    from codingagent.workspace.dirfd import temporary_name
    from codingagent.workspace.workspace import Workspace

    root, outside = Path("ws"), Path("out")
    for folder in (root / "d", outside):
        folder.mkdir(parents=True)
        (folder / "f").write_bytes(b"inside" if folder != outside else b"SECRET")
    (root / "f").write_bytes(b"inside")
    (root / "same").hardlink_to(outside / "f")
    workspace = Workspace(root)
    out = outside.absolute() / "f"

    def swap(name: str, put: Callable[[Path], object]) -> None:
        at_opening(Path(name).name, lambda: ((root / name).rename(root / "gone"), put(root / name)))

    path = "f"
    match case:
        case "folder":
            path = "d/f"
            swap("d", lambda place: place.symlink_to(outside.absolute()))
        case "file":
            # Linked twice, so that the identity of what is opened would be the right one.
            path = "same"
            swap("same", lambda place: place.symlink_to(out))
        case "identity":
            swap("f", lambda place: place.hardlink_to(out))
        case "fifo":
            swap("f", os.mkfifo)
        case _:
            at_opening(temporary_name("f"), lambda: (root / temporary_name("f")).hardlink_to(out))
    found: list[bytes] = []

    def act() -> None:
        try:
            if case == "temporary":
                workspace.write("f", b"new", workspace.read("f"))
            else:
                found.append(workspace.read(path).data)
        except OperationError:
            pass

    limited()
    act()
    return not found and out.read_bytes() == b"SECRET"


def refused(case: str) -> bool:
    """No home is planted in the workspace, and the home folder is none."""
    from codingagent.errors import CodingAgentError, OperationError
    from codingagent.workspace.workspace import Workspace

    try:
        if case == "home":
            Path("ws").mkdir()
            Workspace(Path("ws")).write(".codingagent/x", b"x", None)
        else:
            Workspace(Path.home())
    except (CodingAgentError, OperationError):
        return True
    return False


def made_durable(case: str) -> bool:
    """What must be synced is: the kernel refuses to sync a pipe, which is where the file was."""
    from codingagent.errors import CodingAgentError, OperationError
    from codingagent.storage import atomic_write
    from codingagent.storage.journal import Journal
    from codingagent.workspace.workspace import Workspace

    pipe = os.pipe()[1]
    Path("ws").mkdir()
    Path("ws/f").write_bytes(b"old")
    try:
        match case:
            case "journal":
                journal = Journal(Path("journal.jsonl"))
                os.dup2(pipe, handle_on(Path("journal.jsonl").absolute()))
                journal.sync()
            case "own":
                os.mkfifo("own.tmp")
                os.open("own.tmp", os.O_RDONLY | os.O_NONBLOCK)
                atomic_write.write_whole(Path("own"), "text")
            case _:

                def hook(event: str, arguments: tuple[object, ...]) -> None:
                    # The last thing that happens to the temporary file before it is synced.
                    if event == "os.chmod" and isinstance(arguments[0], int):
                        os.dup2(pipe, arguments[0])

                workspace = Workspace(Path("ws"))
                seen = workspace.read("f")
                sys.addaudithook(hook)
                workspace.write("f", b"new", seen)
    except (CodingAgentError, OperationError, OSError):
        return True
    return False


def handle_on(path: Path) -> int:
    """Return the descriptor by which this process holds a file open."""
    for link in Path("/proc/self/fd").iterdir():
        try:
            if link.readlink() == path:
                return int(link.name)
        except FileNotFoundError:
            continue  # the one that the listing itself took
    raise LookupError(path)


def session(reply: str, policy: str = "standard") -> tuple[str, Path]:
    """Has a reply taken; gives all that the journal and the requests hold then, and the workspace."""
    from codingagent.agent import context, factory
    from codingagent.errors import CodingAgentError
    from codingagent.model.settings import Settings
    from codingagent.storage import homes

    settings = Settings(sandbox="off", policy=policy)
    home = homes.Home.at(Path("home").absolute(), create=True)
    begun = factory.start_session(home, home.root / "workspace", "a task", settings)
    with factory.session_in(home, begun, settings, context.Person(lambda _: None)) as opened:
        work = opened.conversation
        work.recover()
        # What says whose answer it is would have it refused too.
        request = home.mailbox.outbox_path(begun.session_id, 1)
        (home.mailbox.inbox / "reply.txt").write_text(
            reply or request.read_text("utf-8").replace("[REPLY", "(REPLY"), "utf-8"
        )
        try:
            work.take("reply.txt")
        except CodingAgentError as fault:
            (home.root / "outbox" / "fault").write_text(str(fault), "utf-8")
    written = [path for path in home.mailbox.outbox.iterdir() if path.is_file()]
    texts = [*written, home.sessions.journal_path(begun.session_id)]
    return "".join(path.read_text("utf-8") for path in texts), home.root / "workspace"


def approval_is_for_exactly_that() -> bool:
    """A yes to one content is no yes to another under the same path."""
    from codingagent.agent.context import OperationRequest, bare_context
    from codingagent.agent.executor import Executor
    from codingagent.model.approval import Question
    from codingagent.model.operations import CreateFile
    from codingagent.policy.rules import PRESETS
    from codingagent.process.bubblewrap import Unconfined
    from codingagent.process.runner import Runner
    from codingagent.workspace.workspace import Workspace

    Path("ws").mkdir()
    runner = Runner(Unconfined(), {})
    agent = Executor(bare_context(Workspace(Path("ws")), runner, PRESETS["standard"]))
    first = agent.perform(OperationRequest(0, CreateFile(".envrc", "harmless\n")))
    assert isinstance(first, Question)
    second = agent.perform(OperationRequest(0, CreateFile(".envrc", "hostile\n")), first.digest)
    return isinstance(second, Question) and not Path("ws/.envrc").exists()


def command_is_durable_first() -> bool:
    """The start of a command is durable before it runs."""
    from codingagent.agent.context import OperationRequest, bare_context
    from codingagent.agent.executor import Executor
    from codingagent.model.events import CommandRan
    from codingagent.model.operations import RunCommand
    from codingagent.policy.rules import PRESETS
    from codingagent.process.bubblewrap import Unconfined
    from codingagent.process.runner import Runner, environment
    from codingagent.storage.journal import UnkeptLog
    from codingagent.workspace.workspace import Workspace

    root = Path("ws").absolute()
    root.mkdir()

    class Looks(UnkeptLog):
        def sync(self) -> None:
            (root / "synced").touch()

    runner = Runner(Unconfined(), environment(os.environ))
    context = bare_context(Workspace(root), runner, PRESETS["standard"], Looks())
    try:
        ran = Executor(context).perform(OperationRequest(0, RunCommand("test -e synced")))
        assert isinstance(ran, CommandRan)
        return ran.exit_code == 0
    finally:
        runner.close()


def synced_before_the_request() -> bool:
    """A request and all that it tells of are durable before it has its name."""
    import re

    seen: list[str] = []

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "ctypes.dlsym" and "syncfs" in map(str, arguments):
            seen.append("sync")
        elif event == "open" and re.search(r"/outbox/[^/]*\.txt\.tmp$", str(arguments[0])):
            seen.append("written")
        elif event == "os.rename" and re.search(r"/outbox/[^/]*\.txt$", str(arguments[1])):
            seen.append("request")

    sys.addaudithook(hook)
    session("[MESSAGE]\nhi\n[/MESSAGE]\n")
    assert seen.count("request") == 2, seen
    return all(re.search("written.*sync", each) for each in " ".join(seen).split("request")[:2])


def agent_killed(marker: str, kind: str) -> bool:
    """A command ends when the agent is killed, also if it has stopped the one who would end it."""
    import subprocess

    stop = "kill -STOP $PPID $(sed 's/.*) . //; s/ .*//' /proc/$PPID/stat); " if kind == "stopped" else ""
    program = (
        "import os, sys\nfrom codingagent.process.runner import Runner, environment\n"
        "from codingagent.process.bubblewrap import Unconfined\n"
        "Runner(Unconfined(), environment(os.environ)).run(sys.argv[1], '/', 60,"
        " lambda text: print(text, flush=True))"
    )
    line = f"echo up; {stop}exec sleep {marker}"
    with subprocess.Popen([sys.executable, "-c", program, line], stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"up\n"
        while not processes_of(marker):
            pass
        agent.kill()
    return gone_soon(marker)


def stopped_before_killed() -> bool:
    """A process that sees its child killed can't do anything about it: it is stopped already."""
    from codingagent.process.supervisor import _reap_all, kill_all, living

    dead = os.fork()
    if dead == 0:
        os._exit(0)
    os.waitpid(dead, 0)
    told, tell = os.pipe()
    parent = os.fork()
    if parent == 0:
        child = os.fork()
        if child == 0:
            signal.pause()
        os.write(tell, child.to_bytes(4, "big"))
        os.waitpid(child, 0)
        Path("saw").touch()
        signal.pause()
    child = int.from_bytes(os.read(told, 4), "big")
    # Between the two lies what takes a while: the names of those who are gone.
    pids = [child, *[dead] * 5000, parent]
    kill_all(lambda: pids if living([parent]) else [])
    _reap_all()
    return not Path("saw").exists()


def ran(
    line: str, timeout_s: float = 100, show: Callable[[str], None] = lambda _: None
) -> tuple[int, str, str]:
    """Runs a line without a sandbox; gives its exit code, its output and what ended it."""
    from codingagent.process.bubblewrap import Unconfined
    from codingagent.process.runner import Runner, environment

    runner = Runner(Unconfined(), environment(os.environ))
    try:
        outcome = runner.run(line, str(Path.cwd()), timeout_s, show)
    finally:
        runner.close()
    assert not outcome.failure, outcome.failure
    return outcome.exit_code, outcome.output, outcome.ended_by


def supervisor_knows_nothing() -> bool:
    """Not even the one that starts a command has variables that it could read."""
    os.environ["CANARY_API_KEY"] = "sesame"
    return "sesame" not in ran("cat /proc/$PPID/environ")[1]


def processes_of(marker: str) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            words = (folder / "cmdline").read_bytes()
            state = (folder / "stat").read_bytes().rpartition(b")")[2].split()[0]
        except OSError:
            continue
        # The check itself has it in its arguments too.
        if marker.encode() in words and state not in b"ZX" and b"-c\0" not in words[:200]:
            found.append(int(folder.name))
    return found


def gone_soon(marker: str) -> bool:
    import time

    until = time.monotonic() + int(os.environ["PATIENCE_S"])
    while processes_of(marker) and time.monotonic() < until:
        time.sleep(0.005)
    return not processes_of(marker)


def outsider_does_not_hold_us() -> bool:
    """A pipe that someone outside of the command's tree keeps open ends nothing later."""
    import subprocess

    os.mkfifo("go")
    keep = (
        "import os, sys\npid = open('go').read().strip()\n"
        "os.open(f'/proc/{pid}/fd/1', os.O_WRONLY)\nopen('go', 'w').close()\nsys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", keep], stdin=subprocess.PIPE) as keeper:
        limited()
        ended_by = ran("echo $$ >go; cat go")[2]
        keeper.kill()
    return ended_by == "itself"


def memory_bounded() -> bool:
    def peak_kb() -> int:
        # Not getrusage: its peak is handed down from whoever started us.
        status = Path("/proc/self/status").read_text("utf-8")
        return int(status.partition("VmHWM:")[2].split()[0])

    before = peak_kb()
    assert ran("head -c 100000000 /dev/zero")[2] == "itself"
    return peak_kb() - before < 32 * 1024


def no_core_dumps() -> bool:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    assert hard != 0, "this machine allows none anyway"
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    return ran("ulimit -c")[1].strip() == "0"


# --- the test --------------------------------------------------------------------------------------

MARKER = "{marker}"
HELPERS = (sandboxed, limited, at_opening, handle_on, session, ran, processes_of, gone_soon)

Check = Callable[..., bool]

# What needs a sandbox to show, and what does not.
CHECKS: dict[bool, tuple[tuple[Check, str], ...]] = {
    True: (
        (own_namespace, "ipc"),
        (own_namespace, "uts"),
        (no_terminal, ""),
        (secret_folders_covered, ""),
        (sandbox_dies_with_its_parent, MARKER),
    ),
    False: (
        (sandbox_believed_by_what_it_does, ""),
        *((race, case) for case in ("folder", "file", "identity", "fifo", "temporary")),
        *((refused, case) for case in ("home", "folder")),
        *((made_durable, case) for case in ("journal", "own", "file")),
        (synced_before_the_request, ""),
        (command_is_durable_first, ""),
        (approval_is_for_exactly_that, ""),
        (agent_killed, f"{MARKER} running"),
        (agent_killed, f"{MARKER} stopped"),
        (stopped_before_killed, ""),
        (outsider_does_not_hold_us, ""),
        (memory_bounded, ""),
        (no_core_dumps, ""),
        (supervisor_knows_nothing, ""),
    ),
}


@pytest.fixture(name="place")
def _place() -> Iterator[Path]:
    """Yield a folder that is not in /tmp: a sandbox has another one."""
    folder = tempfile.mkdtemp(prefix="codingagent-test-", dir="/var/tmp")
    yield Path(folder).resolve()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(
    ("check", "argument", "needs_sandbox"),
    [
        pytest.param(check, argument, needed, id=f"{check.__name__} {argument}".strip())
        for needed, checks in CHECKS.items()
        for check, argument in checks
    ],
)
def test_a_protection_holds(place: Path, check: Check, argument: str, *, needs_sandbox: bool) -> None:
    """Safety: each protection has a test."""
    if needs_sandbox:
        needs_bwrap()
    home, marker = place / "person", new_marker()
    home.mkdir()
    words = argument.replace(MARKER, marker).split()
    sources = "\n".join(inspect.getsource(function) for function in (*HELPERS, check))
    program = (
        "import os, signal, sys\nfrom collections.abc import Callable\nfrom pathlib import Path\n"
        f"{sources}\nsys.exit({HOLDS} if {check.__name__}(*{words!r}) else {GONE})"
    )
    variables = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    variables |= {"HOME": str(home), "PATIENCE_S": f"{HANG_S:.0f}"}
    said = place / "said"
    try:
        # Not a pipe: what lives on would keep it open.
        with said.open("wb") as output:
            process = warm.start(
                program,
                cwd=place,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            status = process.wait(2 * HANG_S)
    finally:
        for pid in processes_with(marker):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert status == HOLDS, said.read_text("utf-8", "replace")
