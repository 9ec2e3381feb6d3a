"""The runner: exact exit codes, limits that hold, a chosen environment, and nothing left behind."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codingagent.core.findings import Outcome
from codingagent.world.runner import FLOOD_LIMIT_BYTES, Runner, environment
from codingagent.world.sandbox import Unconfined
from tests.helpers import (
    children,
    descendants,
    descriptors,
    is_zombie,
    line_from,
    new_marker,
    none_left,
    processes_with,
    python,
    wait_until,
)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the supervisor is for POSIX systems")

KEPT_BYTES = 2 * 64 * 1024


def ignore(_: str) -> None:
    """Shows nothing."""


@contextlib.contextmanager
def a_runner(**variables: str) -> Iterator[Runner]:
    runner = Runner(Unconfined(), environment({**os.environ, **variables}))
    with contextlib.closing(runner):
        yield runner


@pytest.fixture
def runner() -> Iterator[Runner]:
    with a_runner() as made:
        yield made


Run = Callable[..., Outcome]


@pytest.fixture
def run(runner: Runner, tmp_path: Path) -> Run:
    """Runs a shell line in the test's own folder."""

    def run_line(
        line: str, timeout_s: float | None = 20, show: Callable[[str], None] = ignore
    ) -> Outcome:
        return runner.run(line, str(tmp_path), timeout_s, show)

    return run_line


# --- how it ended ----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 2, 3, 42, 126, 127, 128, 137, 255])
def test_an_exit_code_is_exact(run: Run, code: int) -> None:
    """Specification 003, RUN_COMMAND: the exit code is the shell's own."""
    outcome = run(f"exit {code}")
    assert (outcome.exit_code, outcome.ended_by, outcome.limit) == (code, "itself", "")


def test_an_unknown_command_ends_with_the_shells_code_and_words(run: Run) -> None:
    """Specification 003, RUN_COMMAND: runs via /bin/sh -c; stdout and stderr are captured."""
    outcome = run("no-such-command-at-all")
    assert outcome.exit_code == 127
    assert "no-such-command-at-all" in outcome.output


@pytest.mark.parametrize(("name", "number"), [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("INT", 2)])
def test_a_signal_is_minus_its_number(run: Run, name: str, number: int) -> None:
    """Design, commands: how a command ended is told exactly."""
    assert run(f"kill -{name} $$").exit_code == -number


def test_a_folder_that_is_gone_is_told_or_survived(runner: Runner, tmp_path: Path) -> None:
    """Design, commands: a handle on the folder counts, whatever became of its name."""
    folder = tmp_path / "here"
    folder.mkdir()
    handle = os.open(folder, os.O_RDONLY)
    try:
        folder.rename(tmp_path / "there")
        assert runner.run("pwd -P", handle, 20, ignore).output == f"{tmp_path / 'there'}\n"
    finally:
        os.close(handle)


def test_a_command_that_cannot_start_says_why(tmp_path: Path) -> None:
    """Specification 003, execution errors: what could not be done is said."""

    class Nowhere:
        def wrap(self, argv: object) -> list[str]:
            return ["/no/such/sandbox", str(argv)]

    with contextlib.closing(Runner(Nowhere(), {})) as runner:
        outcome = runner.run("true", str(tmp_path), 20, ignore)
    assert outcome.failure == "No such file or directory"


# --- limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "sleep {}",
        "trap '' TERM INT HUP; while :; do sleep {}; done",
        "exec >&- 2>&- <&-; sleep {}",
        "kill -STOP $$; sleep {}",
        "sleep {} & wait",
        "sleep {} | sleep {}",
    ],
)
def test_the_time_limit_ends_a_command(run: Run, line: str) -> None:
    """Specification 003, command execution: timed-out processes are killed, the entire tree."""
    marker = new_marker()
    with none_left(marker):
        started = time.monotonic()
        outcome = run(line.format(marker, marker), 0.4)
        assert 0.4 <= time.monotonic() - started <= 2.4
        assert not processes_with(marker)
    assert (outcome.ended_by, outcome.limit) == ("time_limit", "0.4 s")


def test_output_before_the_time_limit_is_kept(run: Run) -> None:
    """Specification 003, RUN_COMMAND: stdout and stderr are captured, also of what timed out."""
    outcome = run("echo out; echo err >&2; sleep 60", 0.3)
    assert outcome.output == "out\nerr\n"


def test_no_limit_means_none(run: Run) -> None:
    """Design, commands: 30 s unless said; a host may say none."""
    assert run("sleep 0.05; echo done", None).output == "done\n"


@pytest.mark.parametrize("line", ["yes", "yes >&2 & yes"])
def test_a_flood_is_ended(run: Run, line: str) -> None:
    """Specification 003, command execution: output is bounded to prevent memory exhaustion."""
    outcome = run(line, 60)
    assert (outcome.ended_by, outcome.limit) == ("output_limit", "256 MiB")
    assert len(outcome.output) <= KEPT_BYTES + 1
    assert outcome.dropped_characters >= FLOOD_LIMIT_BYTES - KEPT_BYTES
    assert outcome.duration_s < 30


def test_long_output_keeps_its_head_and_tail(run: Run) -> None:
    """Design, outbox: of long output the head and the tail are shown, and what is missing is counted."""
    outcome = run("echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert outcome.output.startswith("first\nxxx")
    assert outcome.output.endswith("xxx\nlast\n")
    assert len(outcome.output) <= KEPT_BYTES + 1
    total = len("first\n") + 3_000_000 + len("\nlast\n")
    assert outcome.dropped_characters == total - (len(outcome.output) - 1)
    assert outcome.exit_code == 0


@pytest.mark.parametrize("size", [KEPT_BYTES - 1, KEPT_BYTES, KEPT_BYTES + 1])
def test_only_what_does_not_fit_is_dropped(run: Run, size: int) -> None:
    """Design, commands: output is read as it comes and held in bounded memory."""
    outcome = run(f"head -c {size} /dev/zero | tr '\\0' x")
    assert outcome.dropped_characters == max(size - KEPT_BYTES, 0)
    assert outcome.output.count("x") == min(size, KEPT_BYTES)


def test_a_cut_does_not_split_a_character(run: Run) -> None:
    """Design, commands: what is cut is cut between characters."""
    outcome = run("printf a; yes € | head -c 900000")
    assert "\ufffd" not in outcome.output.removesuffix("\ufffd")
    assert outcome.dropped_characters > 0


def test_bytes_that_are_no_text_come_through_replaced(run: Run) -> None:
    """Specification 003, design goals: malformed input produces results rather than crashes."""
    assert run(r"printf 'a\377b\0c'").output == "a\ufffdb\0c"


def test_output_is_shown_as_it_comes(run: Run, tmp_path: Path) -> None:
    """Design, commands: output is read as it comes; here the command waits until it was seen."""
    seen: list[str] = []

    def show(text: str) -> None:
        seen.append(text)
        (tmp_path / "seen").touch()

    outcome = run("echo first; while [ ! -e seen ]; do sleep 0.01; done; echo second", 20, show)
    assert outcome.ended_by == "itself"
    assert "".join(seen) == "first\nsecond\n"
    assert len(seen) == 2


# --- what a command sees ---------------------------------------------------------------------------


def test_stdin_is_empty_and_there_is_no_terminal(run: Run) -> None:
    """Design, commands: stdin empty, own session; whoever asks gets no answer."""
    outcome = run(
        "cat; read x; echo $?; [ -t 0 ] || [ -t 1 ] || echo no; cat </dev/tty || echo none"
    )
    assert outcome.output.startswith("1\nno\n")
    assert outcome.output.endswith("none\n")


def test_a_command_leads_its_own_session(run: Run) -> None:
    """Design, commands: own session and process group."""
    shell, group, session = run("echo $$; cut -d' ' -f5,6 /proc/self/stat; :").output.split()
    assert shell == group == session


def test_nothing_secret_is_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Design, commands: an allow list; nothing whose name looks like a secret passes unasked."""
    for name in ("SECRET_TOKEN", "OPENAI_API_KEY", "AWS_SESSION_TOKEN", "LD_PRELOAD", "PYTHONPATH"):
        monkeypatch.setenv(name, "canary-7f3a")
    with a_runner() as runner:
        assert "canary-7f3a" not in runner.run("env; export -p", str(tmp_path), 20, ignore).output


def test_a_named_variable_passes(tmp_path: Path) -> None:
    """Design, commands: an allow list, plus those named by the person."""
    variables = environment({"SECRET_TOKEN": "canary", "OTHER": "no", "TERM": "xterm"}, ("TERM",))
    assert variables["TERM"] == "xterm"
    variables = environment({"SECRET_TOKEN": "canary", "OTHER": "no"}, ("SECRET_TOKEN", "MISSING"))
    with contextlib.closing(Runner(Unconfined(), variables)) as runner:
        outcome = runner.run('echo "$SECRET_TOKEN$OTHER$MISSING"', str(tmp_path), 20, ignore)
    assert outcome.output == "canary\n"


def test_the_usual_variables_pass_and_nobody_asks(tmp_path: Path) -> None:
    """Design, commands: PATH, HOME, LANG, LC_*, TERM=dumb; pagers, prompts and colours off."""
    given = {
        "PATH": "/bin:/usr/bin",
        "HOME": "/nowhere",
        "LANG": "C",
        "LC_TIME": "C",
        "TMPDIR": "/t",
    }
    with contextlib.closing(
        Runner(Unconfined(), environment({**given, "TERM": "xterm"}))
    ) as runner:
        lines = runner.run("env", str(tmp_path), 20, ignore).output.splitlines()
    assert {f"{name}={value}" for name, value in given.items()} <= set(lines)
    expected = {"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"}
    assert expected <= set(lines)


def test_only_three_descriptors_are_open(run: Run) -> None:
    """Design, commands: a command gets its three streams and nothing of ours."""
    # The fourth is the listing's own.
    program = "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"
    assert run(f'exec {sys.executable} -c "{program}"').output == "[0, 1, 2]\n"


# --- nothing is left -------------------------------------------------------------------------------

DOUBLE_FORK = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 256)
        time.sleep(86400)
    os._exit(0)
os.wait()
"""

HOPPER = """
import os, sys, time
os.closerange(0, 256)
while True:
    if os.fork():
        os._exit(0)
    time.sleep(float(sys.argv[2]))
"""

LEAVERS = {
    "background": "sleep {m} &",
    "background with the pipe": "sleep {m} & echo started",
    "setsid": "setsid sleep {m} &",
    "setsid -f, closed": "setsid -f sleep {m} <&- >&- 2>&-",
    "double fork, closed": "{python} double.py {m}",
    "without environment": 'env -i PATH="$PATH" setsid -f sleep {m}',
    "150 sessions": "i=0; while [ $i -lt 150 ]; do setsid sleep {m} & i=$((i+1)); done",
    "hopper": "setsid {python} hopper.py {m} 0 & sleep 0.1",
    "slower hopper": "setsid {python} hopper.py {m} 0.001 & sleep 0.1",
    "nohup": "nohup sleep {m} >/dev/null 2>&1 &",
    "stopped": "sleep {m} & kill -STOP $!",
    "deaf": "(trap '' TERM INT HUP; sleep {m}) &",
}


@pytest.mark.parametrize("line", LEAVERS.values(), ids=LEAVERS.keys())
def test_what_a_command_leaves_is_ended(run: Run, tmp_path: Path, line: str) -> None:
    """Design, commands: the whole tree is ended, also what called setsid or forked twice."""
    (tmp_path / "double.py").write_text(DOUBLE_FORK, "utf-8")
    (tmp_path / "hopper.py").write_text(HOPPER, "utf-8")
    marker = new_marker()
    with none_left(marker):
        started = time.monotonic()
        outcome = run(line.format(m=marker, python=sys.executable))
        assert time.monotonic() - started < 5
        assert not processes_with(marker)
    assert (outcome.exit_code, outcome.ended_by) == (0, "itself")
    assert outcome.stopped_processes >= (150 if "150" in line else 1)


@pytest.mark.parametrize(
    "line",
    [
        "sleep {m} & kill -9 0",
        "setsid sh -c 'touch up; sleep {m}' & while [ ! -e up ]; do :; done; kill -9 0",
    ],
)
def test_a_command_that_kills_its_group_takes_nobody_along(run: Run, line: str) -> None:
    """Design, commands: own process group; what else it left is ended."""
    marker = new_marker()
    with none_left(marker):
        outcome = run(line.format(m=marker))
        assert not processes_with(marker)
    assert (outcome.exit_code, outcome.notes) == (-9, ())
    assert run("echo on").output == "on\n"


def test_a_command_that_kills_its_guard_is_ended(run: Run) -> None:
    """Design, commands: the whole tree is ended, whatever it does to those who watch it."""
    marker = new_marker()
    with none_left(marker):
        outcome = run(f"setsid sleep {marker} & kill -9 $PPID; sleep {marker}", 20)
        assert outcome.duration_s < 5
        assert outcome.exit_code == -9
        assert any("ended the process that watched over it" in note for note in outcome.notes)
    assert run("echo on").output == "on\n"


STOPPER = """
from codingagent.world.runner import Runner, environment
from codingagent.world.sandbox import Unconfined
import os, sys
runner = Runner(Unconfined(), environment(os.environ))
line = f"echo up; kill -STOP $PPID; sleep {sys.argv[1]}"
outcome = runner.run(line, "/", 0.5, lambda text: print(text, end="", flush=True))
print("ended", outcome.ended_by, flush=True)
"""


def test_a_command_that_stops_its_guard_has_the_same_limit(run: Run) -> None:
    """Design, what it is: no command outlives its limit, also one that holds up its watcher."""
    marker = new_marker()
    with none_left(marker, 3), python(STOPPER, marker) as process:
        ended = threading.Event()
        assert line_from(process) == "up"

        def wait() -> None:
            if line_from(process).startswith("ended"):
                ended.set()

        guards = descendants(process.pid)
        reader = threading.Thread(target=wait)
        reader.start()
        in_time = ended.wait(0.5 + 2)
        process.kill()
        reader.join()
        for pid in guards - processes_with(marker):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # one that is stopped would stay for ever
        assert in_time
    assert run("echo on").output == "on\n"


def test_a_pipe_that_someone_else_keeps_does_not_hold_us(run: Run, tmp_path: Path) -> None:
    """Design, commands: a background child that keeps the pipe open does not keep us."""
    keeper = (
        "import os, sys\nwhile not os.path.exists('pid'): pass\n"
        "open('pid.fifo', 'w').close()\n"
        "pipe = os.open(f'/proc/{open(\"pid\").read().strip()}/fd/1', os.O_WRONLY)\n"
        "print('kept', flush=True)\nopen('kept', 'w').close()\nsys.stdin.read()\n"
    )
    os.mkfifo(tmp_path / "pid.fifo")
    with python(f"import os; os.chdir({str(tmp_path)!r})\n{keeper}") as process:
        line = "echo $$ >pid.tmp; mv pid.tmp pid; cat pid.fifo; while [ ! -e kept ]; do :; done; echo x"
        started = time.monotonic()
        outcome = run(line, 20)
        assert time.monotonic() - started < 10
        assert outcome.output == "x\n"
        assert line_from(process) == "kept"
        assert process.poll() is None


KILLED = """
from codingagent.world.runner import Runner, environment
from codingagent.world.sandbox import Unconfined
import os, sys
runner = Runner(Unconfined(), environment(os.environ))
runner.run(sys.argv[1], sys.argv[2], 60, lambda text: print(text, flush=True))
"""


@pytest.mark.parametrize(
    "line",
    [
        "echo up; sleep {m}",
        "setsid sleep {m} & setsid -f sleep {m} <&- >&- 2>&-; echo up; sleep {m}",
        "trap '' TERM INT HUP; echo up; while :; do sleep {m}; done",
        "exec 2>&-; echo up; exec >&-; sleep {m}",
    ],
)
def test_a_killed_agent_leaves_no_command(tmp_path: Path, line: str) -> None:
    """Design, commands: interrupting us ends the command, and so does `kill -9`."""
    marker = new_marker()
    # The marker stands in the agent's arguments too; it is gone by then.
    with none_left(marker), python(KILLED, line.format(m=marker), str(tmp_path)) as process:
        assert line_from(process) == "up"
        assert processes_with(marker)
        process.kill()
        process.wait()


def test_an_interrupt_ends_the_command_and_goes_on(run: Run) -> None:
    """Design, commands: interrupting us ends the command."""
    marker = new_marker()

    def show(_: str) -> None:
        raise KeyboardInterrupt

    with none_left(marker):
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            run(f"for i in $(seq 150); do setsid sleep {marker} & done; echo up; wait", 60, show)
        assert time.monotonic() - started < 2
        assert not processes_with(marker)
    assert run("echo on").output == "on\n"


def test_many_runs_leave_nothing(runner: Runner, run: Run) -> None:
    """Design, commands: no descriptor and no dead process is kept."""
    run("true")
    before = descriptors()
    (supervisor,) = (pid for pid in children(os.getpid()) if _is_supervisor(pid))
    theirs = descriptors(supervisor)
    for number in range(50):
        assert run(f"sleep 100 & echo {number}").output == f"{number}\n"
    assert descriptors() == before
    wait_until(lambda: not children(supervisor))
    assert descriptors(supervisor) == theirs
    assert not [pid for pid in children(os.getpid()) if is_zombie(pid)]
    runner.close()
    assert supervisor not in children(os.getpid())


def test_a_dead_supervisor_is_replaced(run: Run) -> None:
    """Design, nothing is lost: a command that kills all our helpers costs its own result only."""
    marker = new_marker()
    with none_left(marker):
        parent = "$(cut -d' ' -f4 /proc/$PPID/stat)"
        run(f"kill -9 {parent} $PPID; sleep {marker}", 20)
        for pid in processes_with(marker):
            os.kill(pid, 9)  # no one could have: all who watched were killed first
    assert run("echo on").output == "on\n"


def _is_supervisor(pid: int) -> bool:
    return b"supervisor.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
