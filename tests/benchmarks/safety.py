"""What safety costs: sandbox, supervisor, journal, race-safe open, bounded output, checkpoints."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from codingagent.agent.context import OperationRequest, bare_context
from codingagent.agent.executor import Executor
from codingagent.checkpoints.store import Checkpoints
from codingagent.model.journal_entries import SessionStarted
from codingagent.model.operations import CreateFile
from codingagent.model.session_fold import fold
from codingagent.model.session_state import Phase
from codingagent.policy.rules import PRESETS
from codingagent.process.bubblewrap import Unconfined
from codingagent.process.runner import Runner, environment, run_tool
from codingagent.process.select_sandbox import bubblewrap_for, try_sandbox
from codingagent.storage.clock import now
from codingagent.storage.journal import SessionLog, Sessions, UnkeptLog
from codingagent.workspace.git_files import Git
from codingagent.workspace.programs import find_program
from codingagent.workspace.workspace import Workspace
from tests.benchmarks.measuring import Figure, interleaved, ratio
from tests.sandboxes import line_by_names

Work = Callable[[], object]


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="codingagent-bench-") as name:
        yield Path(name).resolve()


def sandboxed_true() -> Iterator[Figure]:
    """Design, commands: what the supervisor adds to bubblewrap."""
    with folder() as root:
        (root / "workspace").mkdir()
        found = bubblewrap_for(root / "workspace", (), root / "tmp", has_network=False)
        if found is None or try_sandbox(found):
            return
        variables = environment(os.environ)
        runner = Runner(found, variables)

        def ours() -> None:
            assert runner.run("true", str(root / "workspace"), 30, lambda _: None).exit_code == 0

        confined = found.confine("true", variables, str(root / "workspace"))

        def bare() -> None:
            for handle in confined.handles:
                os.lseek(handle, 0, os.SEEK_SET)
            line = line_by_names(confined)
            words = [str(confined.handles[w]) if isinstance(w, int) else w for w in line]
            subprocess.run(
                words,
                env=dict(confined.variables),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                pass_fds=confined.handles,
                check=True,
            )

        with contextlib.closing(runner):
            yield ratio("a sandboxed `true` against the same bwrap line, bare", ours, bare, 1.3, 60)


def supervised_true() -> Iterator[Figure]:
    """Design, commands: what the supervisor adds to `sh -c true`, in milliseconds."""
    with folder() as root:
        runner = Runner(Unconfined(), environment(os.environ))

        def ours() -> None:
            runner.run("true", str(root), 30, lambda _: None)

        def bare() -> None:
            subprocess.run(["/bin/sh", "-c", "true"], capture_output=True, check=True)

        with contextlib.closing(runner):
            a, b = interleaved(ours, bare, 100)
        yield Figure(
            "an unsandboxed `true` beyond `sh -c true`", f"{a:.2f} ms", f"{b:.2f} ms", a - b, 4, "ms"
        )


def journalled_turn() -> Iterator[Figure]:
    """Design, nothing is lost: what the journal adds to a turn of 100 file operations."""
    with folder() as root, contextlib.ExitStack() as stack:
        (root / "workspace").mkdir()
        sessions = Sessions(root / "sessions")
        started = SessionStarted("0" * 8, "task", str(root), now())
        sessions.begin("0" * 8, started)
        journal = stack.enter_context(contextlib.closing(sessions.open("0" * 8)))
        session = replace(fold(None, started), phase=Phase.EXECUTING)
        workspace = stack.enter_context(contextlib.closing(Workspace(root / "workspace")))
        runner = Runner(Unconfined(), {})

        def turn(log: SessionLog) -> Work:
            agent = Executor(bare_context(workspace, runner, PRESETS["standard"], log))

            def do() -> None:
                for index in range(100):
                    operation = CreateFile(f"d{index % 10}/f{index}.py", f"x = {index}\n" * 50)
                    event = agent.perform(OperationRequest(index, operation))
                    assert event.class_name == "file_created"  # type: ignore[union-attr]

            return do

        yield ratio(
            "100 file operations with the journal against without",
            turn(SessionLog(journal, session)),
            turn(UnkeptLog()),
            1.5,
            15,
        )


def race_safe_open() -> Iterator[Figure]:
    """Design, the workspace: the walk that no swapped link can lead astray."""
    with folder() as root:
        inner = root / "a" / "b"
        inner.mkdir(parents=True)
        (inner / "file.py").write_bytes(b"x" * 4096)
        with contextlib.closing(Workspace(root)) as workspace:

            def ours() -> None:
                for _ in range(200):
                    workspace.read("a/b/file.py")

            def peer() -> None:
                for _ in range(200):
                    real = os.path.realpath(root / "a" / "b" / "file.py")
                    assert real.startswith(f"{root}/")
                    with open(real, "rb") as file:  # noqa: PTH123  # what is compared with
                        file.read()

            yield ratio("200 race-safe reads against realpath, open, read", ours, peer, 1.2, 15)


def peak_kb() -> int:
    status = Path("/proc/self/status").read_text("utf-8")
    return int(status.partition("VmHWM:")[2].split()[0])


def flood() -> Iterator[Figure]:
    """Design, commands: output is read as it comes and held in bounded memory."""
    with folder() as root, contextlib.closing(Runner(Unconfined(), {"PATH": "/usr/bin:/bin"})) as runner:
        runner.run("true", str(root), 30, lambda _: None)
        # The peak so far is forgotten (proc(5)): what came before must not hide this.
        Path("/proc/self/clear_refs").write_text("5", "utf-8")
        before = peak_kb()
        outcome = runner.run("yes", str(root), 30, lambda _: None)
        grown = (peak_kb() - before) / 1024
        read = f"{(len(outcome.output) + outcome.dropped_characters) / 2**20:.0f} MiB read"
        yield Figure("`yes` until it is ended: memory grows by", f"{grown:.1f} MB", read, grown, 16, "MB")


def checkpoints(files: int = 100_000) -> Iterator[Figure]:
    """Design, log, diff, undo: what a turn's two checkpoints cost, with ten files changed."""
    with folder() as root:
        program = find_program("git", root / "workspace")
        if program is None:
            return
        work = root / "workspace"
        for number in range(files):
            path = work / f"d{number // 2000}" / f"e{number // 100}"
            if number % 100 == 0:
                path.mkdir(parents=True)
            (path / f"f{number}.py").write_text(f"x = {number}\n" * 10, "utf-8")
        own = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run([program, "init", "-q", work], env=own, check=True)
        subprocess.run([program, "-C", work, "add", "-A"], env=own, check=True)
        kept = Checkpoints(root / "store", work, (), Git(program, run_tool))
        with contextlib.closing(kept):
            kept.take()
            rounds = iter(range(10_000))

            def ours() -> None:
                kept.take()
                number = next(rounds)
                for index in range(10):
                    (work / f"d{index}" / f"e{index * 20}" / "changed.py").write_text(f"y = {number}\n")
                kept.take()

            def status() -> None:
                subprocess.run(
                    [program, "-C", work, "status", "-s"], env=own, capture_output=True, check=True
                )

            yield ratio(f"a turn's checkpoints of {files} files against `git status`", ours, status, 3, 7)


ALL = (sandboxed_true, supervised_true, journalled_turn, race_safe_open, flood, checkpoints)
