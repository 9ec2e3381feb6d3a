"""Each protection, taken out for real: a check that holds must then fail.

A row of the table names a protection, what in the source is the protection, and a check. The check is
a function of this file that runs by itself, in a process of its own, on a copy of the package: with
the source as it is, and with the text of the row replaced. It says whether the protection holds; one
that can't tell ends with a fault, and the test fails. So a row proves both: that the protection is
there, and that its check would see if it were not. That it is there is tested each time; most of what can
be taken out, in the deep run.

The text must stand exactly once in the file: a row can't outlive what it is about.
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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import codingagent
from codingagent.agent.executor import Agent
from tests.helpers import HANG_S, new_marker, processes_with
from tests.sandboxes import needs_bwrap, needs_root
from tests.warm import Program, Warm

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is taken out is Linux's")

PACKAGE = Path(codingagent.__file__).parent

# A check that holds, and one that does not; any other status is a check that could not tell.
HOLDS, GONE = 0, 3

Check: TypeAlias = Callable[..., bool]
Text: TypeAlias = tuple[str, str, str]
"""A file of the package, a text in it, and what takes its place."""


# --- checks ----------------------------------------------------------------------------------------

# Each gets a folder of its own; the current one is it too. They import what they use: they run alone.


def promise_holds(name: str) -> bool:
    """Proves the sandbox from inside, and gives one of its promises."""
    from codingagent.process.select_sandbox import prove_sandbox

    outside = Path("outside").absolute()
    outside.mkdir()
    return prove_sandbox(outside)[name][0] is True


def closed_inside(way: str) -> bool:
    """Whether a way out of the sandbox is closed."""
    import contextlib
    import socket
    import tempfile

    ws, tool = Path("ws").absolute(), Path("tool").absolute()
    names = (".netrc", ".ssh/id", "credentials.toml", "etc/npmrc")
    for file in (ws / ".git/config", ws / "home/journal", *(tool / name for name in names)):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a lure", "utf-8")
    (tool / "bin").mkdir()
    (tool / "lib").mkdir()
    (tool / "bin" / "program").write_text("")
    os.environ["PATH"] += f":{tool}/bin"
    python = f"{sys.executable} -ISc"
    connect = (
        f"{python} 'import socket, sys; s = socket.socket(socket.AF_UNIX);"
        ' s.connect(sys.argv[1].replace("@", "\\0"))\' '
    )
    type_in = (
        'import fcntl, os, pty; pid, _ = pty.fork(); pid or fcntl.ioctl(0, 0x5412, b"x");'
        " pid and os._exit(min(1, os.wait()[1]))"
    )
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2)]
        token = f"codingagent-{os.getpid()}"
        for listener, name in zip(listeners, (f"\0{token}", "socket"), strict=True):
            listener.bind(name)
            listener.listen()
        in_tmp = stack.enter_context(tempfile.NamedTemporaryFile(dir="/tmp"))
        lines = {
            "abstract socket": f"{connect} @{token}",
            "socket by its name": f"{connect} {ws.parent}/socket",
            "families": " || ".join(
                f"{python} 'import socket; socket.socket({family}, {kind})'"
                for family, kind in ((38, 5), (40, 1))
            ),
            "typing": f"{python} '{type_in}'",
            "kernel settings": ": >>/proc/sys/kernel/core_pattern",
            "system secrets": "[ -s /etc/shadow ]",
            "git": ": >>.git/config || mv .git aside",
            "agent home": "[ -s home/journal ] || : >>home/journal",
            "credentials": f"[ -e {tool}/bin/program ] && cat "
            + " ".join(f"{tool}/{name}" for name in names)
            + " 2>/dev/null | grep .",
            "tmp": f"[ -e {in_tmp.name} ]",
        }
        said = sandboxed(f"({lines[way]}) && echo open || echo closed", hidden=(ws / "home",))
    assert said.split()[-1:] in (["open"], ["closed"]), said
    return said.split()[-1] == "closed"


def sandboxed(
    line: str,
    before: Callable[[Path], object] = lambda _: None,
    hidden: tuple[Path, ...] = (),
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


def own_home() -> bool:
    """The home folder can be written to, and that is not the person's."""
    said = sandboxed('echo x >"$HOME/new" && echo written')
    return said == "written\n" and not Path(os.environ["HOME"], "new").exists()


def no_terminal() -> bool:
    """A command can't open the terminal that the agent was started in, no matter who starts it."""
    from codingagent.process.runner import try_out
    from codingagent.process.select_sandbox import bubblewrap_for

    found = bubblewrap_for(Path.cwd(), (), Path("tmp"), has_network=False)
    assert found is not None
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # it comes when the terminal is closed
    keyboard, screen = os.openpty()
    # A check leads its session: by its name this becomes its terminal.
    os.close(os.open(os.ttyname(screen), os.O_RDWR))
    said = try_out(found.confine_trial("(: </dev/tty) 2>/dev/null && echo open || echo closed"))
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


def worktree_not_believed() -> bool:
    """A `.git` file that a command could have written brings no other repository into view."""
    other = Path("other").absolute()
    for folder in ("objects", "worktrees/x"):
        (other / folder).mkdir(parents=True)
    (other / "HEAD").write_text("ref: x\n", "utf-8")
    (other / "worktrees" / "x" / "commondir").write_text("../..\n", "utf-8")
    (other / "worktrees" / "x" / "gitdir").write_text("/somewhere/else/.git\n", "utf-8")

    def lay(workspace: Path) -> None:
        (workspace / ".git").write_text(f"gitdir: {other}/worktrees/x\n", "utf-8")

    return "ref" not in sandboxed(f"cat {other}/HEAD 2>/dev/null", lay)


def git_link_stays_out_of_view() -> bool:
    Path("other").mkdir()
    other = Path("other").absolute()
    (other / "secret").write_text("secret", "utf-8")
    said = sandboxed(
        f"cat .git/secret {other}/secret 2>/dev/null", lambda ws: (ws / ".git").symlink_to(other)
    )
    return "secret" not in said


def fake_bwrap_not_used() -> bool:
    """A program of the right name on PATH, in the workspace, is not the sandbox."""
    from codingagent.process.bubblewrap import find_bubblewrap

    fake = Path("ws/bin/bwrap").absolute()
    fake.parent.mkdir(parents=True)
    fake.write_text("#!/bin/sh\n", "utf-8")
    fake.chmod(0o755)
    os.environ["PATH"] = f"{fake.parent}:{os.environ['PATH']}"
    return find_bubblewrap() != os.fspath(fake)


def fake_git_not_used() -> bool:
    from codingagent.workspace.programs import find_program

    fake = Path("ws/bin/git").absolute()
    fake.parent.mkdir(parents=True)
    fake.write_text("#!/bin/sh\n", "utf-8")
    fake.chmod(0o755)
    os.environ["PATH"] = f"{fake.parent}:{os.environ['PATH']}"
    return find_program("git", Path("ws").absolute()) != os.fspath(fake)


def distrusted_not_used() -> bool:
    """A program of a workspace that was worked in is not found, though nobody names that workspace."""
    from codingagent.workspace.programs import find_program
    from codingagent.workspace.workspace import Workspace

    fake = Path("ws/bin/git").absolute()
    fake.parent.mkdir(parents=True)
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    Path("way").symlink_to("ws")
    os.environ["PATH"] = f"{Path('way/bin').absolute()}:{os.environ['PATH']}"
    Workspace(Path("ws"))
    return find_program("git") not in (os.fspath(fake), os.fspath(Path("way/bin/git").absolute()))


def sandbox_believed_by_what_it_does() -> bool:
    """A program that runs what it is given and confines nothing is found out."""
    from codingagent.process.bubblewrap import Bubblewrap
    from codingagent.process.select_sandbox import try_sandbox

    fake = Path("bwrap").absolute()
    fake.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n', "utf-8")
    fake.chmod(0o755)
    here = Path.cwd()
    return try_sandbox(Bubblewrap(os.fspath(fake), here, (), here / "tmp", here / "home")) != ""


def require_never_downgrades() -> bool:
    from codingagent.errors import WorkError
    from codingagent.model.settings import Settings
    from codingagent.policy.rules import PRESETS
    from codingagent.process.select_sandbox import choose_sandbox

    # Its private /tmp can't be made: no sandbox of this kind works here, installed or not.
    Path("file").touch()
    try:
        choose_sandbox(
            Settings(sandbox="require"), PRESETS["standard"], Path.cwd(), (), Path("file/tmp")
        )
    except WorkError:
        return True
    return False


def laid_home_refused(case: str) -> bool:
    """A home that was not made here, and links in one, are not believed."""
    from codingagent.errors import UsageError
    from codingagent.storage.homes import Home

    os.environ["XDG_STATE_HOME"] = str(Path("state").absolute())
    os.environ["XDG_CONFIG_HOME"] = str(Path("config").absolute())
    home = Path("home").absolute()
    home.mkdir()
    if case == "link":
        Path("elsewhere").mkdir()
        (home / "outbox").symlink_to("../elsewhere")
    else:
        (home / "sessions").mkdir()
    try:
        Home.at(home, create=True, was_found=case != "link")
    except UsageError:
        return True
    return False


def own_tmp_no_link() -> bool:
    """A link in the place of the session's /tmp opens nothing."""
    import contextlib

    target = Path("target").absolute()
    target.mkdir()
    with contextlib.suppress(Exception):
        sandboxed("echo x >/tmp/planted", lambda _: Path("tmp").symlink_to("target"))
    return not (target / "planted").exists()


def exchanged_not_mounted() -> bool:
    """What takes the place of the session's /tmp between the look and the mount is not mounted."""
    import contextlib
    from types import SimpleNamespace

    from codingagent.process.runner import Runner, environment
    from codingagent.process.select_sandbox import bubblewrap_for

    for name in ("ws", "other"):
        Path(name).mkdir()
    found = bubblewrap_for(Path("ws").absolute(), (), Path("tmp").absolute(), has_network=False)
    assert found is not None

    def confine(*arguments: object) -> object:
        confined = found.confine(*arguments)  # type: ignore[arg-type]  # as they came
        Path("tmp").rename("aside")
        Path("other").rename("tmp")
        return confined

    late = SimpleNamespace(confine=confine, tier="bwrap", has_network=False)
    with contextlib.closing(Runner(late, environment(os.environ))) as runner:
        outcome = runner.run("echo x >/tmp/planted", str(Path("ws").absolute()), 60, lambda _: None)
    assert outcome.exit_code == 0 or "changed while" in outcome.failure, outcome
    return not Path("tmp", "planted").exists()


def own_git_config() -> bool:
    """A file `commondir` in our store does not have another folder's config obeyed."""
    import contextlib

    from codingagent.checkpoints.store import Checkpoints, Site
    from codingagent.process.runner import run_tool
    from codingagent.workspace.git_files import Git
    from codingagent.workspace.programs import find_program

    root, evil = Path("ws").absolute(), Path("evil").absolute()
    root.mkdir()
    for name in ("objects/pack", "refs/heads"):
        (evil / name).mkdir(parents=True)
    (evil / "HEAD").write_text("ref: refs/heads/main\n", "utf-8")
    config = "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch ran; false\n"
    (evil / "config").write_text(config, "utf-8")
    git = find_program("git", root)
    assert git is not None
    kept = Checkpoints(Path("store").absolute(), Site(root, ()), Git(git, run_tool))
    kept.take()
    (Path("store") / "commondir").write_text("../evil\n", "utf-8")
    (root / "a").write_text("a", "utf-8")
    with contextlib.suppress(Exception):
        kept.take()
    return not list(Path.cwd().rglob("ran"))


def tools_believed(case: str) -> bool:
    """Nothing comes into view by what is in the workspace."""
    from codingagent.process.toolchains import folders

    home, workspace = Path("home").absolute(), Path("ws").absolute()
    secret = home / "secrets" / "bin"
    for folder in (secret, workspace / "venv" / "bin"):
        folder.mkdir(parents=True)
    match case:
        case "link":
            (workspace / "bin").symlink_to(secret)
            path = workspace / "bin"
        case "pyvenv":
            (workspace / "venv" / "pyvenv.cfg").write_text(f"home = {secret}\n", "utf-8")
            path = workspace / "venv" / "bin"
        case _:
            path = home
    return not folders(os.fspath(path), home, workspace)


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
    """The workspace refuses what it must, without any race."""
    from codingagent.errors import CodingAgentError, OperationError
    from codingagent.workspace.workspace import Workspace

    root = Path("ws").absolute()
    (root / ".git").mkdir(parents=True)
    (root / "own").mkdir()
    for name in ("f", "ro", "own/f"):
        (root / name).write_bytes(b"old")
    os.mkfifo(root / "fifo")
    workspace = Workspace(root, (root / "own",))
    acts: dict[str, Callable[[], object]] = {
        "git": lambda: workspace.write(".git/config", b"x", None),
        "home": lambda: workspace.write(".codingagent/x", b"x", None),
        "hidden": lambda: workspace.read("own/f"),
        "special": lambda: workspace.read("fifo"),
        "changed": lambda: stale(workspace, root),
        "read-only": lambda: workspace.check_writable("ro"),
        "moved": workspace.check,
        "too much": lambda: Workspace(Path.home()),
    }
    (root / "ro").chmod(0o444)
    if case == "moved":
        root.rename("gone")
        root.mkdir()
    try:
        acts[case]()
    except (CodingAgentError, OperationError):
        return True
    return False


def no_owner_rights() -> bool:
    """A command can't set the bits that give whoever runs a file its owner's rights."""
    said = sandboxed(
        "touch x; chmod 4755 x 2>/dev/null; chmod g+s . 2>/dev/null; ls -ld x .; echo end"
    )
    assert said.endswith("end\n"), said
    return "s" not in "".join(line.split()[0] for line in said.splitlines())


def own_code_kept(line: str) -> bool:
    """A folder that this program imports from is as it was after a command, or a file operation."""
    import contextlib

    from codingagent.errors import OperationError
    from codingagent.workspace.workspace import Workspace

    folder = Path("ws/tools/src").absolute()
    folder.mkdir(parents=True)
    sys.path.append(os.fspath(folder))
    if line:
        return sandboxed(f"({line}) 2>/dev/null; echo done") == "done\n" and not [*folder.iterdir()]
    with contextlib.suppress(OperationError):
        Workspace(Path("ws")).write("tools/src/x.py", b"x", None)
    return not [*folder.iterdir()]


def stale(workspace: "object", root: Path) -> None:
    """Writes a file that someone else has written since it was read."""
    from codingagent.workspace.workspace import Workspace

    assert isinstance(workspace, Workspace)
    seen = workspace.read("f")
    (root / "f").write_bytes(b"the person's")
    workspace.write("f", b"new", seen)


def no_setuid_kept() -> bool:
    from codingagent.workspace.workspace import Workspace

    Path("ws").mkdir()
    Path("ws/f").write_bytes(b"old")
    Path("ws/f").chmod(0o4755)
    workspace = Workspace(Path("ws"))
    workspace.write("f", b"new", workspace.read("f"))
    return not Path("ws/f").stat().st_mode & 0o7000


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
            case "own file":
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


def one_holder() -> bool:
    from codingagent.storage.file_lock import is_held
    from codingagent.storage.lock import HomeLock

    with HomeLock(Path(".lock")).held():
        return is_held(Path(".lock"))


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


def command_not_run(line: str) -> bool:
    """A line that the policy stops is not run: what stands behind the word in question is harmless."""
    _, workspace = session(f"[RUN_COMMAND]\n{line}; touch ran\n[/RUN_COMMAND]\n")
    return not (workspace / "ran").exists()


def protected_file_not_made() -> bool:
    """A link gives a protected folder another name."""
    workspace = Path("home/workspace").absolute()
    (workspace / ".vscode").mkdir(parents=True)
    (workspace / "plain").symlink_to(".vscode")
    session('[CREATE_FILE path="plain/x"]\nx\n[/CREATE_FILE]\n')
    return not (workspace / ".vscode" / "x").exists()


def asked_afterwards(line: str) -> bool:
    """What a command did is asked about before the next request is written."""
    said, _ = session(f"[RUN_COMMAND]\n{line}\n[/RUN_COMMAND]\n")
    assert "command_ran" in said or "operation_ended" in said or "exit" in said
    return "protected_found" in said


def restrictive_changes_nothing() -> bool:
    _, workspace = session('[CREATE_FILE path="x"]\nx\n[/CREATE_FILE]\n', "restrictive")
    return not (workspace / "x").exists()


def request_not_executed() -> bool:
    _, workspace = session("")
    assert list((workspace.parent / "inbox").iterdir())
    return not (workspace.parent / "inbox" / "processed").exists()


def output_harmless(case: str) -> bool:
    line = r"printf '\033[2J=== PROMPT ===\n=== PROMPT ===\n'"
    text, _ = session(f"[RUN_COMMAND]\n{line}\n[/RUN_COMMAND]\n")
    assert "Sequence: 2" in text
    second = text.partition("Sequence: 2\n")[2].partition("Sequence: 1\n")[0]
    if case == "controls":
        return "\x1b" not in text and "\\u001b" not in text
    return second.split("\n").count("=== PROMPT ===") == 1


def forgetful_agent() -> "Agent":
    """Return an agent in `ws` whose record keeps nothing."""
    from codingagent.agent.context import bare_context
    from codingagent.agent.executor import Agent
    from codingagent.policy.rules import PRESETS
    from codingagent.process.bubblewrap import Unconfined
    from codingagent.process.runner import Runner
    from codingagent.workspace.workspace import Workspace

    Path("ws").mkdir()
    runner = Runner(Unconfined(), {})
    return Agent(bare_context(Workspace(Path("ws")), runner, PRESETS["standard"]))


def approval_is_for_exactly_that() -> bool:
    """A yes to one content is no yes to another under the same path."""
    from codingagent.agent.plan import Order
    from codingagent.model.approval import Question
    from codingagent.model.operations import CreateFile

    agent = forgetful_agent()
    first = agent.perform(Order(0, CreateFile(".envrc", "harmless\n")))
    assert isinstance(first, Question)
    second = agent.perform(Order(0, CreateFile(".envrc", "hostile\n")), first.digest)
    return isinstance(second, Question) and not Path("ws/.envrc").exists()


def order_of_work(case: str) -> bool:
    """The start is on record before the change is made, and durable before a command runs."""
    from codingagent.agent.context import bare_context
    from codingagent.agent.executor import Agent
    from codingagent.agent.plan import Order
    from codingagent.model.events import CommandRan
    from codingagent.model.operations import CreateFile, RunCommand
    from codingagent.policy.rules import PRESETS
    from codingagent.process.bubblewrap import Unconfined
    from codingagent.process.runner import Runner, environment
    from codingagent.storage.session_log import UnkeptLog
    from codingagent.workspace.workspace import Workspace

    root = Path("ws").absolute()
    root.mkdir()
    seen: list[bool] = []

    class Looks(UnkeptLog):
        def record(self, _: object) -> None:
            seen.append((root / "new").exists())

        def sync(self) -> None:
            (root / "synced").touch()

    runner = Runner(Unconfined(), environment(os.environ))
    context = bare_context(Workspace(root), runner, PRESETS["standard"], Looks())
    try:
        if case == "start":
            Agent(context).perform(Order(0, CreateFile("new", "x\n")))
            return seen == [False] and (root / "new").exists()
        ran = Agent(context).perform(Order(0, RunCommand("test -e synced")))
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


def command_not_run_again() -> bool:
    from codingagent.model.events import Interrupted
    from codingagent.model.journal_entries import OperationStarted
    from codingagent.model.operations import Kind

    started = OperationStarted(0, Kind.RUN_COMMAND, "echo x >>log", "")
    return isinstance(forgetful_agent().settle(started), Interrupted)


def same_reply_not_twice() -> bool:
    from msgspec.structs import replace

    from codingagent.model.journal_entries import SessionStarted
    from codingagent.model.session_fold import fold
    from codingagent.protocols.tags import reply

    begun = fold(None, SessionStarted("00000000", "task", "/ws", "", "standard", "auto"))
    return bool(reply.objection(None, replace(begun, last_digest="same"), "same"))


def settings_not_planted(case: str) -> bool:
    """What is in the workspace sets nothing."""
    from codingagent.errors import UsageError
    from codingagent.model.settings import Settings
    from codingagent.process.select_sandbox import policy_of
    from codingagent.storage import homes

    workspace = Path("ws").absolute()
    home = workspace / ".codingagent"
    home.mkdir(parents=True)
    (home / "codingagent.toml").write_text('sandbox = "off"\n', "utf-8")
    (workspace / "loose.toml").write_text('extends = "permissive"\n', "utf-8")
    try:
        match case:
            case "settings":
                resolved, _ = homes.settings_for(home, {}, {})
                return resolved.settings.sandbox == "auto"
            case "policy":
                policy_of(Settings(policy=os.fspath(workspace / "loose.toml")), workspace)
            case _:
                homes.check_apart(home, home / "inbox")
    except UsageError:
        return True
    return False


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


def daemon_ended(marker: str) -> bool:
    """A process that was forked twice and left its session is ended with the command."""
    ran(f"(setsid sleep {marker} >/dev/null 2>&1 &) & wait; sleep 0.05")
    return gone_soon(marker)


def agent_killed(marker: str, kind: str) -> bool:
    """A command ends when the agent is killed, also if it has stopped the one who would end it."""
    import subprocess

    stop = (
        "kill -STOP $PPID $(sed 's/.*) . //; s/ .*//' /proc/$PPID/stat); "
        if kind == "stopped"
        else ""
    )
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


def limit_holds(marker: str, line: str) -> bool:
    limited()
    return ran(f"{line} sleep {marker}", 0.3)[2] == "time_limit" and gone_soon(marker)


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


def flood_ends() -> bool:
    return ran("head -c 300000000 /dev/zero")[2] == "output_limit"


def memory_bounded() -> bool:
    def peak_kb() -> int:
        # Not getrusage: its peak is handed down from whoever started us.
        status = Path("/proc/self/status").read_text("utf-8")
        return int(status.partition("VmHWM:")[2].split()[0])

    before = peak_kb()
    assert ran("head -c 100000000 /dev/zero")[2] == "itself"
    return peak_kb() - before < 32 * 1024


def secrets_kept(line: str) -> bool:
    os.environ["CANARY_API_KEY"] = "sesame"
    return "sesame" not in ran(line)[1]


def file_size_limited() -> bool:
    return ran("ulimit -f")[1].strip() != "unlimited"


def no_core_dumps() -> bool:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    assert hard != 0, "this machine allows none anyway"
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    return ran("ulimit -c")[1].strip() == "0"


def input_empty() -> bool:
    return ran("readlink /proc/self/fd/0")[1] == "/dev/null\n"


def three_descriptors() -> bool:
    return ran("ls /proc/self/fd | wc -l")[1].strip() == "4"  # and the listing's own


# --- the table -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A protection: its text or texts in the source, and the check that fails without them.

    `needs` says where it shows at all: `bwrap`, `root` (and bwrap), or `` for everywhere.
    `again` are protections behind it: the check fails only when all of them are gone.
    """

    check: Check
    arguments: tuple[str, ...]
    text: Text
    again: tuple[Text, ...] = ()
    needs: str = ""


_START = "            self._start(order, plan)\n"
BOX, FLOW, RUN, SUP = (
    "process/bubblewrap.py",
    "agent/executor.py",
    "process/runner.py",
    "process/supervisor.py",
)
SHOP, DIRS, COMP = "workspace/workspace.py", "workspace/dirfd.py", "storage/homes.py"
WALK = "workspace/path_walk.py"
MOUNTS, SAFE = "process/mounts.py", "process/credentials.py"
OUT, GIT = "process/output.py", "process/repositories.py"
MARKER = "{marker}"

NO_FILTER = (BOX, 'argv += ["--seccomp", 0]', "pass")
NO_LOOK = (MOUNTS, "_NO_LINKS = 0x04 | 0x08", "_NO_LINKS = 0x08")
NO_LIMIT = (SUP, "elif now >= deadline:", "elif False:")
NO_OVERDUE = (OUT, "_OVERDUE_AFTER_S = 1.0", "_OVERDUE_AFTER_S = 3600.0")


def flag(text: str) -> Text:
    """A flag of bwrap's, left out."""
    return (BOX, text, "")


def prove(promise: str, text: Text, *again: Text, needs: str = "bwrap") -> Row:
    return Row(promise_holds, (promise,), text, again, needs)


def closed(way: str, text: Text, *again: Text, needs: str = "bwrap") -> Row:
    return Row(closed_inside, (way,), text, again, needs)


ROWS: dict[str, Row] = {
    # The sandbox.
    "--unshare-pid": prove("agent process hidden", flag('"--unshare-pid", ')),
    "--unshare-net": prove("no network", flag('"--unshare-net",')),
    "--unshare-net, sockets without a path": closed("abstract socket", flag('"--unshare-net",')),
    "--unshare-ipc": Row(own_namespace, ("ipc",), flag('"--unshare-ipc", '), needs="bwrap"),
    "--unshare-uts": Row(own_namespace, ("uts",), flag(', "--unshare-uts"'), needs="bwrap"),
    "--disable-userns, and the filter behind it": prove(
        "no new namespaces", flag('"--disable-userns", '), NO_FILTER
    ),
    "--die-with-parent": Row(
        sandbox_dies_with_its_parent, (MARKER,), flag('"--die-with-parent", '), needs="bwrap"
    ),
    "--new-session": Row(no_terminal, (), flag('"--new-session", '), needs="bwrap"),
    # Whoever is not root has no capabilities to drop.
    "--cap-drop ALL": prove("no capabilities", flag('"--cap-drop", "ALL"'), needs="root"),
    # The same: the kernel keeps its settings from everyone else.
    "--remount-ro /proc": closed(
        "kernel settings", flag(', "--remount-ro", "/proc"'), needs="root"
    ),
    "--seccomp": prove("system call filter", NO_FILTER),
    "seccomp: families of sockets": closed(
        "families",
        (
            "process/seccomp.py",
            "_Step(_RETURN, _FAIL_WITH | _EAFNOSUPPORT)",
            "_Step(_RETURN, _ALLOW)",
        ),
    ),
    "seccomp: typing into terminals": closed(
        "typing",
        (
            "process/seccomp.py",
            '*(_Step(_JUMP_EQUAL, request, yes="EPERM") for request in TERMINAL_REQUESTS),',
            "",
        ),
    ),
    "seccomp: setuid and setgid": Row(
        no_owner_rights,
        (),
        (
            "process/seccomp.py",
            "_Step(_JUMP_ANY_BIT, OWNER_BITS, yes=",
            "_Step(_JUMP_ANY_BIT, 1 << 30, yes=",
        ),
        needs="bwrap",
    ),
    ".git read-only": closed(
        "git",
        flag("*(self._kept(git) for git in git_folders(self.workspace)),"),
    ),
    "what runs this program is read-only": Row(
        own_code_kept,
        ("echo x >tools/src/x.py",),
        flag('*(Mount("keep", each, identity=_identity(each)) for each in code.kept),'),
        needs="bwrap",
    ),
    "what runs this program can't be swapped": Row(
        own_code_kept,
        ("mv tools old; mkdir -p tools/src; echo x >tools/src/x.py",),
        (BOX, "for each in code.around", "for each in ()"),
        needs="bwrap",
    ),
    "no file operation changes what runs this program": Row(
        own_code_kept, ("",), (WALK, "_identity(found) in self._kept", "False")
    ),
    "a worktree is not believed": Row(
        worktree_not_believed,
        (),
        (GIT, "if is_ours and (common", "if (common"),
        needs="bwrap",
    ),
    "a link as .git is not followed": Row(
        git_link_stays_out_of_view,
        (),
        (
            GIT,
            "return [real] if workspace in real.parents and real.exists() else []",
            "return [real]",
        ),
        needs="bwrap",
    ),
    "credentials beside tools covered": closed("credentials", (BOX, "[*covers, *shown]", "shown")),
    "what is under a dot": closed("credentials", (SAFE, 'name.startswith(".") or ', "")),
    "what is a credential by its name": closed("credentials", (SAFE, " or _is_named(name))", ")")),
    "our home covered": closed("agent home", flag("*self._covers(),")),
    "a home of its own": Row(
        own_home,
        (),
        (
            BOX,
            'Mount("empty", self.home, is_read_only=False, mode=0o700, size=_MEMORY_BYTES)',
            'Mount("bind", self.home, self.home)',
        ),
        needs="bwrap",
    ),
    "a private /tmp": closed(
        "tmp",
        (BOX, "each, self.temporary, own, is", 'each, Path("/tmp"), is'),
    ),
    "--remount-ro /": prove("outside read-only", (BOX, ', "--remount-ro", "/")', ")")),
    "--remount-ro /dev": prove("outside read-only", flag('"--remount-ro", "/dev", ')),
    # Nobody else can read these files anyway.
    "secret files of the system": closed(
        "system secrets",
        (BOX, 'flags += ["--ro-bind", "/dev/null", name]', "pass"),
        needs="root",
    ),
    "secret folders of the system": Row(
        secret_folders_covered,
        (),
        (BOX, 'flags += ["--tmpfs", name, "--remount-ro", name]', "pass"),
        needs="bwrap",
    ),
    "an allow list, not the whole disk": closed(
        "socket by its name",
        (BOX, "*_system(),", '*_system(), "--ro-bind", "/var", "/var",'),
        (BOX, ', Path("/var/tmp"))', ",)"),
    ),
    "bwrap from trusted folders only": Row(
        fake_bwrap_not_used,
        (),
        (BOX, "for program in _BWRAP:", "for program in (__import__('shutil').which('bwrap'),):"),
        ((BOX, "found.st_uid == 0 and ", ""),),
    ),
    "homes that others laid are refused": Row(
        laid_home_refused,
        ("unknown",),
        (
            "storage/homes.py",
            "if was_found and holds and not home_registry.is_known(root):",
            "if False:",
        ),
    ),
    "links in a home are refused": Row(
        laid_home_refused,
        ("link",),
        ("storage/homes.py", "if is_link_at(root / name):", "if False:"),
    ),
    "no link in the place of /tmp": Row(
        own_tmp_no_link,
        (),
        (BOX, "PATH_ONLY | NO_FOLLOW | getattr(", "PATH_ONLY | getattr("),
        (NO_LOOK, (MOUNTS, "os.O_CLOEXEC | os.O_NOFOLLOW", "os.O_CLOEXEC")),
    ),
    "what is found is what was looked at": Row(
        exchanged_not_mounted,
        (),
        (MOUNTS, "if identity is not None and (found.st_dev", "if False and (found.st_dev"),
        needs="bwrap",
    ),
    "our git obeys our config only": Row(
        own_git_config,
        (),
        ("workspace/git_files.py", '        "GIT_COMMON_DIR": os.fspath(directory),\n', ""),
    ),
    "git from outside of the workspace only": Row(
        fake_git_not_used,
        (),
        ("workspace/programs.py", " or leads_through(path, places):", ":"),
    ),
    "nor one of a workspace that nobody names": Row(
        distrusted_not_used, (), (WALK, "distrust(self.root)", "pass")
    ),
    "a sandbox is believed by what it does": Row(
        sandbox_believed_by_what_it_does,
        (),
        (
            "process/select_sandbox.py",
            'return "" if said == _TRIAL_RESULT else',
            'return "" if said else',
        ),
    ),
    "require never downgrades": Row(
        require_never_downgrades,
        (),
        ("process/select_sandbox.py", 'if settings.sandbox == "require" or masks:', "if False:"),
    ),
    "tools: links in the workspace": Row(
        tools_believed,
        ("link",),
        (
            "process/toolchains.py",
            "is_theirs = leads_through(place, [workspace])",
            "is_theirs = False",
        ),
    ),
    "tools: pyvenv.cfg in the workspace": Row(
        tools_believed,
        ("pyvenv",),
        (
            "process/toolchains.py",
            'if has_library and any((prefix / "bin").glob("python3*")):',
            "if True:",
        ),
    ),
    "tools: never the home folder": Row(
        tools_believed,
        ("home",),
        (
            "process/toolchains.py",
            "{folder for folder in real if _is_harmless(folder, homes_and_above)}",
            "real",
        ),
    ),
    # Files.
    "O_NOFOLLOW on folders": Row(
        race,
        ("folder",),
        (DIRS, "os.O_RDONLY | _ONLY_FOLDER | NO_FOLLOW", "os.O_RDONLY | _ONLY_FOLDER"),
    ),
    "O_NOFOLLOW on files that are read": Row(
        race,
        ("file",),
        (DIRS, "open_file(place.name, CAREFULLY | NO_FOLLOW)", "open_file(place.name, CAREFULLY)"),
    ),
    "the same file as was looked at": Row(
        race,
        ("identity",),
        (DIRS, "if (opened.st_dev, opened.st_ino) != (found.st_dev, found.st_ino):", "if False:"),
    ),
    "O_NONBLOCK on files that are read": Row(
        race, ("fifo",), (DIRS, 'getattr(os, "O_NONBLOCK", 0)', "0")
    ),
    "O_EXCL on temporary files": Row(
        race,
        ("temporary",),
        (DIRS, "os.O_CREAT | os.O_EXCL | os.O_WRONLY", "os.O_CREAT | os.O_WRONLY"),
    ),
    "only regular files": Row(
        refused,
        ("special",),
        (DIRS, "if not stat.S_ISREG(found.st_mode):\n        raise", "if False:\n        raise"),
    ),
    ".git is not written": Row(
        refused, ("git",), (WALK, "if paths.is_git_name(name):", "if False:")
    ),
    "no home is planted": Row(
        refused, ("home",), (WALK, "if paths.is_home_name(name):", "if False:")
    ),
    "hidden folders": Row(
        refused, ("hidden",), (WALK, "if folder.identity() in self._hidden:", "if False:")
    ),
    "a change in between is noticed": Row(
        refused, ("changed",), (SHOP, "                _check_unchanged(place, path, seen)\n", "")
    ),
    "read-only files": Row(
        refused, ("read-only",), (SHOP, "if not found.st_mode & 0o222:", "if False:")
    ),
    "the root is still the root": Row(
        refused,
        ("moved",),
        (DIRS, "if identity_of(root) != folder.identity():", "if False:"),
    ),
    "not the whole home folder": Row(
        refused, ("too much",), (WALK, "real in (home, *home.parents) or ", "")
    ),
    "setuid is not kept": Row(no_setuid_kept, (), (SHOP, "seen.mode & 0o777", "seen.mode")),
    # The record.
    "a replaced file is synced": Row(
        made_durable,
        ("file",),
        (DIRS, "            sync(file.fileno(), only_content=True)\n", "            pass\n"),
    ),
    "the journal is synced": Row(
        made_durable, ("journal",), ("storage/journal.py", "sync(self._handle)", "pass")
    ),
    "our own files are synced": Row(
        made_durable,
        ("own file",),
        ("storage/atomic_write.py", "sharing.sync(file.fileno())", "pass"),
    ),
    "the start is on record first": Row(
        order_of_work,
        ("start",),
        (
            FLOW,
            f"{_START}            return plan.act()\n",
            f"            event = plan.act()\n{_START}            return event\n",
        ),
    ),
    "the start of a command is durable first": Row(
        order_of_work, ("command",), (FLOW, "            log.sync()\n", "            pass\n")
    ),
    "all is durable before the request appears": Row(
        synced_before_the_request,
        (),
        (
            "agent/requests.py",
            "        self.context.sync()\n        if short is not None:\n",
            "        if short is not None:\n",
        ),
    ),
    "a command is not run again": Row(
        command_not_run_again,
        (),
        (FLOW, "return Interrupted(started.kind, started.subject)\n", "return None\n"),
    ),
    "the same reply is not executed twice": Row(
        same_reply_not_twice,
        (),
        ("protocols/tags/reply.py", "if digest == session.last_digest and", "if False and"),
    ),
    "one home, one executor": Row(
        one_holder,
        (),
        ("storage/lock.py", "            file_lock.take(handle)\n", "            pass\n"),
    ),
    # The policy.
    "what is blocked is not done": Row(
        command_not_run,
        ("mkfs.nothing",),
        (
            "agent/run_command.py",
            "if isinstance(verdict, Deny):",
            "if False:",
        ),
    ),
    "what is asked for is not done unasked": Row(
        command_not_run,
        ("rm -f nothing",),
        (FLOW, "if question.digest != approved:", "if False:"),
    ),
    "a doubtful command is asked for": Row(
        command_not_run,
        ("x=; $x true",),
        (
            "policy/evaluate.py",
            'add({f"shell.doubt: {doubt}": f"the command can\'t be judged: {doubt}"})',
            "pass",
        ),
    ),
    "a change is judged by where it goes": Row(
        protected_file_not_made,
        (),
        (
            "agent/file_operations.py",
            "real = context.workspace.resolved(effect.path, follow_last=effect.follows)",
            "real = effect.path",
        ),
    ),
    "a new repository is asked about": Row(
        asked_afterwards,
        ("git init -q lib",),
        ("checkpoints/store.py", "taking.new |= of_git - covered", "pass"),
    ),
    "a new bare repository is asked about": Row(
        asked_afterwards,
        ("git init -q --bare lib",),
        ("checkpoints/protected.py", "if makes_git_run(path,", "if not (path and"),
    ),
    "a setuid bit is asked about": Row(
        asked_afterwards,
        ("touch x; chmod 4755 x",),
        ("checkpoints/protected.py", "new.mode & OWNER_BITS", "False"),
    ),
    "restrictive is read-only": Row(
        restrictive_changes_nothing,
        (),
        ("policy/rules.py", "if rules.enabled and rules.read_only:", "if False:"),
    ),
    "a yes is to exactly that": Row(
        approval_is_for_exactly_that,
        (),
        (FLOW, "(order.kind, plan.subject, *plan.parts)", "(order.kind, plan.subject)"),
    ),
    "settings in the workspace are not obeyed": Row(
        settings_not_planted,
        ("settings",),
        (
            COMP,
            "return not any(_is_same(each, real) for each in (above, *above.parents))",
            "return True",
        ),
    ),
    "a policy in the workspace is not obeyed": Row(
        settings_not_planted,
        ("policy",),
        (
            "process/select_sandbox.py",
            "if root in named.parents or root in resolved(path).parents:",
            "if False:",
        ),
    ),
    "the inbox is no workspace": Row(
        settings_not_planted,
        ("inbox",),
        (COMP, "if own == real or own in real.parents:", "if False:"),
    ),
    # What is sent and shown.
    "a request is never executed": Row(
        request_not_executed, (), ("agent/recipients.py", "if found.has_outbox:", "if False:")
    ),
    "terminal controls are taken out": Row(
        output_harmless,
        ("controls",),
        (
            "agent/run_command.py",
            "hide(plain_text.without_controls(printed))",
            "hide(outcome.output)",
        ),
    ),
    "output is indented": Row(
        output_harmless,
        ("headings",),
        ("model/results.py", 'f"    {line}".rstrip() for line', "line for line"),
    ),
    # Commands.
    "subreaper": Row(
        daemon_ended,
        (MARKER,),
        (SUP, "ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)", "pass"),
    ),
    "stop, then kill": Row(
        stopped_before_killed,
        (),
        (
            SUP,
            "for number in (signal.SIGSTOP, signal.SIGKILL):",
            "for number in (signal.SIGKILL,):",
        ),
    ),
    "the time limit, and the agent's own behind it": Row(
        limit_holds, (MARKER, "exec"), NO_LIMIT, (NO_OVERDUE,)
    ),
    "a stopped watcher is overdue": Row(limit_holds, (MARKER, "kill -STOP $PPID;"), NO_OVERDUE),
    "the drain timer": Row(
        outsider_does_not_hold_us, (), (OUT, "DRAIN_S = 0.2", "DRAIN_S = 3600.0")
    ),
    "the agent's end ends the command": Row(
        agent_killed,
        (MARKER, ""),
        (
            SUP,
            'if control.fileno() in ready:\n            ended_by = "agent"',
            'if False:\n            ended_by = "agent"',
        ),
        (
            (
                SUP,
                "kill_all(lambda: tree(os.getpid()), {})\n                os._exit(0)",
                "os._exit(0)",
            ),
        ),
    ),
    "a stopped supervisor is woken": Row(
        agent_killed,
        (MARKER, "stopped"),
        (SUP, "ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)", "pass"),
    ),
    "the limit of output": Row(
        flood_ends,
        (),
        (OUT, "return self._together.total > FLOOD_LIMIT_BYTES", "return False"),
    ),
    "bounded memory": Row(
        memory_bounded, (), (OUT, "del self._tail[: len(self._tail) - self._tail_bytes]", "pass")
    ),
    "an allow list of variables": Row(
        secrets_kept, ("env",), (RUN, "if name in names or", "if True or")
    ),
    "no variables in the supervisor": Row(
        secrets_kept,
        ("cat /proc/$PPID/environ",),
        (RUN, "env={name: os.environ[name] for name in _LOADER if name in os.environ}", "env=None"),
    ),
    "the limit of file sizes": Row(
        file_size_limited, (), (SUP, "_limit(resource.RLIMIT_FSIZE, _FILE_LIMIT_BYTES)", "pass")
    ),
    "no core dumps": Row(
        no_core_dumps, (), (SUP, "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))", "pass")
    ),
    "standard input is empty": Row(
        input_empty, (), (SUP, "    os.dup2(os.open(os.devnull, os.O_RDWR), 0)\n", "")
    ),
    "no handles of ours": Row(
        three_descriptors,
        (),
        (SUP, "os.set_inheritable(handle, False)", "os.set_inheritable(handle, True)"),
    ),
}

# Not in the table, because taking it out alone shows nothing that can be looked at:
# --unshare-user (bwrap itself refuses the rest without it), --unshare-cgroup-try (a matter of the
# machine), and the limit of 1,000 processes (a check would have to start as many).

HELPERS = (
    sandboxed, limited, at_opening, stale, handle_on, session, ran, processes_of, gone_soon,
    forgetful_agent,
)  # fmt: skip


# --- the test --------------------------------------------------------------------------------------


@pytest.fixture(scope="module", name="package")
def _package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a copy of the package, compiled: each check starts anew."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(PACKAGE, folder / "codingagent", ignore=shutil.ignore_patterns("demo"))
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(folder)], check=True)
    return folder


@pytest.fixture(scope="module", name="warm")
def _warm(package: Path) -> Iterator[Warm]:
    """Yield a Python that has imported that package."""
    warm = Warm(package)
    yield warm
    warm.close()


@pytest.fixture(name="place")
def _place() -> Iterator[Path]:
    """Yield a folder that is not in /tmp: a sandbox has another one."""
    folder = tempfile.mkdtemp(prefix="codingagent-test-", dir="/var/tmp")
    yield Path(folder).resolve()
    subprocess.run(["rm", "-rf", folder], check=True)


def mutated(package: Path, folder: Path, texts: tuple[Text, ...]) -> Path:
    """Return a copy of the package in which texts are replaced."""
    shutil.copytree(package, folder, copy_function=os.link)
    for name, old, new in texts:
        path = folder / "codingagent" / name
        text = path.read_text("utf-8")
        path.unlink()
        path.write_text(text.replace(old, new), "utf-8")
    return folder


def status_of(
    row: Row, package: Path, place: Path, patience_s: float, warm: Warm | None = None
) -> tuple[int, str]:
    """Run a check on a copy of the package; return how it ended, and what it said.

    The patience is for what must come to an end: ample where it does, short where it never will.
    """
    begin: Callable[..., subprocess.Popen[bytes]]
    begin = partial(Program[bytes], warm) if warm else cold
    spared = {warm.pid} if warm else set()
    home = place / "person"
    home.mkdir(parents=True)
    (home / "secret").write_text("secret", "utf-8")
    marker = new_marker()
    words = tuple(word.replace(MARKER, marker) for word in row.arguments)
    sources = "\n".join(inspect.getsource(function) for function in (*HELPERS, row.check))
    program = (
        "import os, signal, sys\nfrom collections.abc import Callable\nfrom pathlib import Path\n"
        f"{sources}\nsys.exit({HOLDS} if {row.check.__name__}(*{words!r}) else {GONE})"
    )
    variables = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    variables |= {"PYTHONPATH": str(package), "HOME": str(home), "MARKER": marker}
    variables["PATIENCE_S"] = f"{patience_s:.0f}"
    said = place / "said"
    try:
        # Not a pipe: what lives on would keep it open.
        with (
            said.open("wb") as output,
            begin(
                [program],
                cwd=place,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            ) as process,
        ):
            try:
                status = process.wait(2 * HANG_S)
            finally:
                process.kill()
    finally:
        # What a protection that is gone has let live, and what it has let live of ours.
        for pid in (processes_with(marker) | processes_with(os.fspath(package))) - spared:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    return status, said.read_text("utf-8", "replace")


def cold(words: list[str], **options: Any) -> "subprocess.Popen[bytes]":
    """Start a Python that has imported nothing yet."""
    return subprocess.Popen([sys.executable, "-c", *words], **options)


def needed(row: Row) -> None:
    """Skips the test where the protection can't show."""
    if row.needs:
        needs_bwrap()
    if row.needs == "root":
        needs_root()


def test_what_is_taken_out_is_there_once() -> None:
    """A row that no longer finds its protection would take nothing out."""
    for row in ROWS.values():
        for name, old, _ in (row.text, *row.again):
            count = (PACKAGE / name).read_text("utf-8").count(old)
            assert count == 1, f"{name} has this {count} times: {old}"


@pytest.mark.one_in(24)
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_a_protection_holds(package: Path, warm: Warm, place: Path, row: Row) -> None:
    """Safety: each protection has a test."""
    needed(row)
    status, said = status_of(row, package, place, HANG_S, warm)
    assert status == HOLDS, said


@pytest.mark.one_in(56)
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_a_protection_is_missed_when_it_is_taken_out(
    package: Path, tmp_path: Path, place: Path, row: Row
) -> None:
    """Safety: the test of each protection turns red when the protection is taken out."""
    needed(row)
    without = mutated(package, tmp_path / "without", (row.text, *row.again))
    status, said = status_of(row, without, place, 2)
    assert status == GONE, f"nobody would notice: {status}\n{said}"
