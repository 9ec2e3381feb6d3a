"""The runner: exact exit codes, limits that hold, a chosen environment, and nothing left behind."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from codingagent.model.events import CommandRan
from codingagent.model.observations import PLAIN, Confined, Extras, Outcome
from codingagent.model.results import words_of
from codingagent.process import memory
from codingagent.process.bubblewrap import NOTHING, Bubblewrap, Unconfined
from codingagent.process.output import FLOOD_LIMIT_BYTES
from codingagent.process.runner import Runner, environment
from codingagent.process.select_sandbox import bubblewrap_for
from tests.helpers import (
    HANG_S,
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
from tests.sandboxes import needs_bwrap

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the supervisor is for POSIX systems")

KEPT_BYTES = 2 * 64 * 1024


Run = Callable[..., Outcome]


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


def sandbox_of(tier: str, folder: Path, temporary: Path) -> Unconfined | Bubblewrap:
    """Return the sandbox of a tier, for a folder."""
    if tier == "none":
        return Unconfined()
    needs_bwrap()
    found = bubblewrap_for(folder, (), temporary, has_network=False)
    assert found is not None
    return found


@pytest.fixture
def either(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Run]:
    """Runs a shell line in the test's own folder, once without a sandbox and once in one."""
    sandbox = sandbox_of(request.param, tmp_path, tmp_path_factory.mktemp("own"))
    made = Runner(sandbox, environment(os.environ))

    def run_line(
        line: str,
        timeout_s: float | None = HANG_S,
        show: Callable[[str], None] = ignore,
        extras: Extras = PLAIN,
    ) -> Outcome:
        outcome = made.run(line, str(tmp_path), timeout_s, show, extras)
        assert outcome.sandbox == request.param
        return outcome

    run_line.runner = made  # type: ignore[attr-defined]  # for what is done from another thread
    with contextlib.closing(made):
        yield run_line


def after_signal(outcome: Outcome, number: int) -> int:
    """Return the exit code of a shell that a signal ended: a sandbox has it from a shell of its own."""
    return 128 + number if outcome.sandbox == "bwrap" else -number


with_and_without_a_sandbox = pytest.mark.parametrize("either", ["none", "bwrap"], indirect=True)
in_each_tier = pytest.mark.parametrize("tier", ["none", "bwrap"])


@pytest.fixture
def run(runner: Runner, tmp_path: Path) -> Run:
    """Runs a shell line in the test's own folder."""

    def run_line(
        line: str, timeout_s: float | None = HANG_S, show: Callable[[str], None] = ignore
    ) -> Outcome:
        return runner.run(line, str(tmp_path), timeout_s, show)

    return run_line


# --- how it ended ----------------------------------------------------------------------------------


@pytest.mark.one_in(6)
@with_and_without_a_sandbox
@pytest.mark.parametrize("code", [0, 1, 2, 3, 42, 126, 127, 128, 137, 255])
def test_an_exit_code_is_exact(either: Run, code: int) -> None:
    """Specification 003, RUN_COMMAND: the exit code is the shell's own."""
    outcome = either(f"exit {code}")
    assert (outcome.exit_code, outcome.ended_by, outcome.limit) == (code, "itself", "")


@with_and_without_a_sandbox
def test_an_unknown_command_ends_with_the_shells_code_and_words(either: Run) -> None:
    """Specification 003, RUN_COMMAND: runs via /bin/sh -c; stdout and stderr are captured."""
    outcome = either("no-such-command-at-all")
    assert outcome.exit_code == 127
    assert "no-such-command-at-all" in outcome.output


@with_and_without_a_sandbox
@pytest.mark.parametrize(("name", "number"), [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("INT", 2)])
@pytest.mark.one_in(3)
def test_a_signal_is_told_by_its_number(either: Run, name: str, number: int) -> None:
    """Design, commands: how a command ended is told exactly."""
    outcome = either(f"kill -{name} $$")
    assert outcome.exit_code == after_signal(outcome, number)
    assert (outcome.ended_by, outcome.notes) == ("itself", ())


def test_a_folder_that_is_gone_is_told_or_survived(runner: Runner, tmp_path: Path) -> None:
    """Design, commands: a handle on the folder counts, whatever became of its name."""
    folder = tmp_path / "here"
    folder.mkdir()
    handle = os.open(folder, os.O_RDONLY)
    try:
        folder.rename(tmp_path / "there")
        assert runner.run("pwd -P", handle, HANG_S, ignore).output == f"{tmp_path / 'there'}\n"
    finally:
        os.close(handle)


def test_a_command_that_cannot_start_says_why(tmp_path: Path) -> None:
    """Specification 003, execution errors: what could not be done is said."""

    class Nowhere(Unconfined, frozen=True):
        def confine(
            self, command: str, variables: Mapping[str, str], folder: str, added: Mapping[str, str] = NOTHING
        ) -> Confined:
            return replace(
                super().confine(command, variables, folder, added), argv=("/no/such/sandbox", command)
            )

    with contextlib.closing(Runner(Nowhere(), {})) as runner:
        outcome = runner.run("true", str(tmp_path), HANG_S, ignore)
    assert outcome.failure == "No such file or directory"


# --- limits ----------------------------------------------------------------------------------------

HOPPER = """
import os, sys, time
os.closerange(0, 256)
while True:
    if os.fork():
        os._exit(0)
    time.sleep(float(sys.argv[2]))
"""


@pytest.mark.one_in(6)
@with_and_without_a_sandbox
@pytest.mark.parametrize(
    "line",
    [
        "sleep {m}",
        "trap '' TERM INT HUP; while :; do sleep {m}; done",
        "exec >&- 2>&- <&-; sleep {m}",
        "kill -STOP $$; sleep {m}",
        "sleep {m} & wait",
        "sleep {m} | sleep {m}",
        'setsid -f sleep {m} <&- >&- 2>&-; env -i PATH="$PATH" setsid -f sleep {m}; sleep {m}',
        "i=0; while [ $i -lt 150 ]; do setsid sleep {m} & i=$((i+1)); done; wait",
        "setsid {python} -c '{hopper}' {m} 0 & setsid {python} -c '{hopper}' {m} 0.01 & sleep {m}",
    ],
)
def test_the_time_limit_ends_a_command(either: Run, line: str) -> None:
    """Specification 003, command execution: timed-out processes are killed, the entire tree."""
    marker = new_marker()
    with none_left(marker):
        started = time.monotonic()
        outcome = either(line.format(m=marker, python=sys.executable, hopper=HOPPER), 0.4)
        assert time.monotonic() - started >= 0.4
        assert not processes_with(marker)
    assert (outcome.ended_by, outcome.limit) == ("time_limit", "0.4 s")


@with_and_without_a_sandbox
def test_output_before_the_time_limit_is_kept(either: Run) -> None:
    """Specification 003, RUN_COMMAND: stdout and stderr are captured, also of what timed out."""
    outcome = either("echo out; echo err >&2; sleep 60", 3)  # a busy machine needs a while to begin
    assert outcome.output == "out\nerr\n"


@with_and_without_a_sandbox
def test_no_limit_means_none(either: Run) -> None:
    """Design, commands: 30 s unless said; a host may say none."""
    assert either("sleep 0.05; echo done", None).output == "done\n"


@pytest.mark.one_in(4)
@with_and_without_a_sandbox
@pytest.mark.parametrize("line", ["yes", "yes >&2 & yes"])
def test_a_flood_is_ended(either: Run, line: str) -> None:
    """Specification 003, command execution: output is bounded to prevent memory exhaustion."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = either(line)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 16 * 1024  # in KiB
    assert (outcome.ended_by, outcome.limit) == ("output_limit", "256 MiB")
    assert len(outcome.output) <= KEPT_BYTES + 1
    assert outcome.dropped_characters >= FLOOD_LIMIT_BYTES - KEPT_BYTES


@with_and_without_a_sandbox
def test_long_output_keeps_its_head_and_tail(either: Run) -> None:
    """Design, outbox: of long output the head and the tail are shown, and what is missing is counted."""
    outcome = either("echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert outcome.output.startswith("first\nxxx")
    assert outcome.output.endswith("xxx\nlast\n")
    assert len(outcome.output) <= KEPT_BYTES + 1
    total = len("first\n") + 3_000_000 + len("\nlast\n")
    assert outcome.dropped_characters == total - (len(outcome.output) - 1)
    assert outcome.exit_code == 0


@pytest.mark.parametrize("size", [KEPT_BYTES - 1, KEPT_BYTES, KEPT_BYTES + 1])
def test_only_what_does_not_fit_is_dropped(run: Run, size: int) -> None:
    """Design, commands: output is read as it comes and held in bounded memory; words are cut whole."""
    outcome = run(f"head -c {size} /dev/zero | tr '\\0' ' '")
    assert outcome.dropped_characters == max(size - KEPT_BYTES, 0)
    assert outcome.output.count(" ") == min(size, KEPT_BYTES)


def test_a_cut_does_not_split_a_character(run: Run) -> None:
    """Design, commands: what is cut is cut between characters."""
    outcome = run("printf a; yes € | head -c 900000")
    assert "\ufffd" not in outcome.output.removesuffix("\ufffd")
    assert outcome.dropped_characters > 0


def test_bytes_that_are_no_text_come_through_replaced(run: Run) -> None:
    """Specification 003, design goals: malformed input produces results rather than crashes."""
    assert run(r"printf 'a\377b\0c'").output == "a\ufffdb\0c"


@with_and_without_a_sandbox
def test_output_is_shown_as_it_comes(either: Run, tmp_path: Path) -> None:
    """Design, commands: output is read as it comes; here the command waits until it was seen."""
    seen: list[str] = []

    def show(text: str) -> None:
        seen.append(text)
        (tmp_path / "seen").touch()

    outcome = either("echo first; while [ ! -e seen ]; do sleep 0.01; done; echo second", HANG_S, show)
    assert outcome.ended_by == "itself"
    assert "".join(seen) == "first\nsecond\n"
    assert len(seen) == 2


BOMBS = {
    "sleeps": "while :; do sleep {m} & done",
    "sleeps that end": "while :; do (sleep 0.01 &); sleep {m} & done",
}


@pytest.mark.one_in(4)
@with_and_without_a_sandbox
@pytest.mark.parametrize("line", BOMBS.values(), ids=BOMBS.keys())
@pytest.mark.deep
def test_a_fork_bomb_is_ended(either: Run, line: str) -> None:
    """Safety, runner: a machine does not go down for one command that starts more and more."""
    marker = new_marker()
    with none_left(marker):
        outcome = either(line.format(m=marker))
        assert not processes_with(marker)
    assert (outcome.ended_by, outcome.limit) == ("process_limit", f"{memory.PROCESS_LIMIT} processes")
    assert outcome.exit_code == -9
    assert either("echo on").output == "on\n"


@with_and_without_a_sandbox
@pytest.mark.parametrize("word", ["", "exec "])
def test_a_file_without_end_is_ended(either: Run, tmp_path: Path, word: str) -> None:
    """Safety, runner: no file grows beyond 2 GiB; the signal that ended it is named."""
    # A hole costs no disk: only the last byte is written, or is not.
    writing = "dd if=/dev/zero of=big bs=1 count=1 seek={}"
    assert either(writing.format(2 * 2**30 - 1)).exit_code == 0
    line = word + writing.format(2 * 2**30)
    outcome = either(line)
    (tmp_path / "big").unlink()
    # The shell tells of a program of its own in its exit code; one in its place is seen directly.
    is_seen = bool(word) and outcome.sandbox == "none"
    assert outcome.exit_code == (-signal.SIGXFSZ if is_seen else 128 + signal.SIGXFSZ)
    event = CommandRan(line, outcome.exit_code, outcome.output, outcome.duration_s)
    assert "SIGXFSZ" in words_of(event)


# --- memory ----------------------------------------------------------------------------------------

MEMORY_BYTES = 150 * 2**20

# In MiB: each is told how much to take, and then waits.
TAKE = f"{sys.executable} -I -S -c \"import sys; x = b'x' * (int(sys.argv[1]) << 20); input()\" {{}}"


@pytest.fixture
def bounded(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Run]:
    """Runs a shell line as `either` does, with so much memory."""
    sandbox = sandbox_of(request.param, tmp_path, tmp_path_factory.mktemp("own"))
    made = Runner(sandbox, environment(os.environ), MEMORY_BYTES)
    with contextlib.closing(made):
        yield lambda line: made.run(line, str(tmp_path), HANG_S, ignore)


watched = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what processes take")
in_both = pytest.mark.parametrize("bounded", ["none", "bwrap"], indirect=True)

HUNGRY = {
    "one": f"mkfifo p; {TAKE.format(400)} <>p",
    "many": f"mkfifo p; for i in 1 2 3 4 5 6 7 8; do {TAKE.format(40)} <>p & done; wait",
    "left behind": f"mkfifo p; setsid -f {TAKE.format(400)} <>p; cat <>p",
}


@pytest.mark.one_in(2)
@watched
@in_both
@pytest.mark.parametrize("line", HUNGRY.values(), ids=HUNGRY.keys())
def test_a_command_that_takes_too_much_memory_is_ended(bounded: Run, line: str) -> None:
    """Safety, runner: a machine does not go down for one command, nor for all that it starts."""
    marker = new_marker()
    with none_left(marker):
        outcome = bounded(f"sleep {marker} & {line}")
    assert (outcome.ended_by, outcome.limit) == ("memory_limit", "150 MiB of memory")
    assert outcome.exit_code == -9
    event = CommandRan("x", -9, "", 0, outcome.ended_by, outcome.limit)
    assert words_of(event) == "Ran 'x' (ended after using more than 150 MiB of memory)"
    assert bounded("rm p; echo on").output == "on\n"


SHARED = """
import os, time
x = b"x" * (90 << 20)
if all(os.fork() for _ in range(4)): time.sleep(0.5)
else: os.read(0, 1)
"""
RESERVED = """
import mmap, time
m = mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
m[:4] = b"used"
time.sleep(0.3)
"""


@watched
@in_both
@pytest.mark.parametrize("program", [SHARED, RESERVED], ids=["shared", "reserved"])
@pytest.mark.one_in(2)
def test_what_is_not_taken_does_not_count(bounded: Run, program: str) -> None:
    """What processes share is there once; what is only reserved (by a sanitizer, Java, Go) is not there."""
    outcome = bounded(f"{sys.executable} -I -S - <<'END'\n{program}\nEND")
    assert (outcome.ended_by, outcome.exit_code, outcome.output) == ("itself", 0, "")


@watched
@in_both
def test_where_all_memory_is_taken_commands_are_ended_first(bounded: Run) -> None:
    """Safety, runner: not the person's desktop, and not the agent."""
    own = Path("/proc/self/oom_score_adj").read_text("ascii")
    assert bounded("cat /proc/self/oom_score_adj; cat /proc/$PPID/oom_score_adj").output.startswith("1000\n")
    assert Path("/proc/self/oom_score_adj").read_text("ascii") == own


@watched
def test_how_much_a_command_may_take() -> None:
    """Three quarters of what there is, or what the person says."""
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found = memory.limit_bytes(0)
    assert found is not None
    assert 0 < found <= available * 3 // 4
    assert memory.limit_bytes(512) == 512 * 2**20
    assert memory.in_words(20_000 * 2**20) == "20,000 MiB of memory"


# --- what a command sees ---------------------------------------------------------------------------


@with_and_without_a_sandbox
def test_stdin_is_empty_and_there_is_no_terminal(either: Run) -> None:
    """Design, commands: stdin empty, own session; anyone who asks gets no answer."""
    outcome = either("cat; read x; echo $?; [ -t 0 ] || [ -t 1 ] || echo no; cat </dev/tty || echo none")
    assert outcome.output.startswith("1\nno\n")
    assert outcome.output.endswith("none\n")


def test_a_command_leads_its_own_session(run: Run) -> None:
    """Design, commands: own session and process group."""
    shell, group, session = run("echo $$; cut -d' ' -f5,6 /proc/self/stat; :").output.split()
    assert shell == group == session


def test_nothing_secret_is_in_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Design, commands: an allow list; nothing whose name looks like a secret passes unasked."""
    for name in ("SECRET_TOKEN", "OPENAI_API_KEY", "AWS_SESSION_TOKEN", "LD_PRELOAD", "PYTHONPATH"):
        monkeypatch.setenv(name, "canary-7f3a")
    with a_runner() as runner:
        assert "canary-7f3a" not in runner.run("env; export -p", str(tmp_path), HANG_S, ignore).output


def test_a_named_variable_passes(tmp_path: Path) -> None:
    """Design, commands: an allow list, plus those named by the person."""
    variables = environment({"SECRET_TOKEN": "canary", "OTHER": "no", "TERM": "xterm"}, ("TERM",))
    assert variables["TERM"] == "xterm"
    # Not every name that begins as one of a locale is one.
    base = {"SECRET_TOKEN": "canary", "OTHER": "no", "LC_KEY": "no"}
    variables = environment(base, ("SECRET_TOKEN", "MISSING"))
    with contextlib.closing(Runner(Unconfined(), variables)) as runner:
        line = 'echo "$SECRET_TOKEN$OTHER$LC_KEY$MISSING"'
        outcome = runner.run(line, str(tmp_path), HANG_S, ignore)
    assert outcome.output == "canary\n"


def test_the_usual_variables_pass_and_nobody_asks(tmp_path: Path) -> None:
    """Design, commands: PATH, HOME, LANG, LC_*, TERM=dumb; pagers, prompts and colours off."""
    given = {"PATH": "/bin:/usr/bin", "HOME": "/nowhere", "LANG": "C", "LC_TIME": "C", "TMPDIR": "/t"}
    with contextlib.closing(Runner(Unconfined(), environment({**given, "TERM": "xterm"}))) as runner:
        lines = runner.run("env", str(tmp_path), HANG_S, ignore).output.splitlines()
    assert {f"{name}={value}" for name, value in given.items()} <= set(lines)
    expected = {"TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"}
    assert expected <= set(lines)
    assert not [line for line in lines if "COLOR" in line]  # tests may be about them


@with_and_without_a_sandbox
def test_only_three_descriptors_are_open(either: Run) -> None:
    """Design, commands: a command gets its three streams and nothing of ours."""
    # The fourth is the listing's own.
    program = "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"
    assert either(f'exec {sys.executable} -c "{program}"').output == "[0, 1, 2]\n"


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

LEAVERS = {
    "background": "sleep {m} &",
    "background with the pipe": "sleep {m} & echo started",
    "setsid": "setsid sleep {m} &",
    "setsid -f, closed": "setsid -f sleep {m} <&- >&- 2>&-",
    "double fork, closed": "{python} double.py {m}",
    "without environment": 'env -i PATH="$PATH" setsid -f sleep {m}',
    "150 sessions": "i=0; while [ $i -lt 150 ]; do setsid sleep {m} & i=$((i+1)); done",
    "hopper": "setsid {python} hopper.py {m} 0 & sleep 0.1",
    "hopper, 1 ms": "setsid {python} hopper.py {m} 0.001 & sleep 0.1",
    "hopper, 10 ms": "setsid {python} hopper.py {m} 0.01 & sleep 0.1",
    "nohup": "nohup sleep {m} >/dev/null 2>&1 &",
    "stopped": "sleep {m} & kill -STOP $!",
    "deaf": "(trap '' TERM INT HUP; sleep {m}) &",
}


@pytest.mark.one_in(6)
@with_and_without_a_sandbox
@pytest.mark.parametrize("line", LEAVERS.values(), ids=LEAVERS.keys())
def test_what_a_command_leaves_is_ended(either: Run, tmp_path: Path, line: str) -> None:
    """Design, commands: the whole tree is ended, also what called setsid or forked twice."""
    (tmp_path / "double.py").write_text(DOUBLE_FORK, "utf-8")
    (tmp_path / "hopper.py").write_text(HOPPER, "utf-8")
    marker = new_marker()
    with none_left(marker):
        outcome = either(line.format(m=marker, python=sys.executable))
        assert not processes_with(marker)
    assert (outcome.exit_code, outcome.ended_by) == (0, "itself")
    assert outcome.stopped_processes >= (150 if "150" in line else 1)


COUNTS = {
    "true": 0,
    "sleep 0.01 & wait": 0,
    "sleep {m} &": 1,
    "sleep {m} & sleep {m} & setsid sleep {m} &": 3,
    "setsid -f sleep {m} <&- >&- 2>&-": 1,
    "touch up; (setsid sh -c 'sleep {m}; :' & wait) & while ! pgrep -f '^sleep {m}'; do :; done": 3,
    "echo before; sleep {m} & kill -STOP $!; exit 3": 1,
    "i=0; while [ $i -lt 150 ]; do setsid sleep {m} & i=$((i+1)); done": 150,
}


@pytest.mark.one_in(6)
@with_and_without_a_sandbox
@pytest.mark.parametrize(("line", "count"), COUNTS.items())
def test_what_was_left_is_counted(either: Run, line: str, count: int) -> None:
    """Design, commands: leftover processes are ended with the command, and the result says how many."""
    marker = new_marker()
    with none_left(marker):
        outcome = either(line.format(m=marker))
    assert (outcome.stopped_processes, outcome.ended_by, outcome.notes) == (count, "itself", ())


@with_and_without_a_sandbox
@pytest.mark.parametrize(
    "line",
    [
        "sleep {m} & kill -9 0",
        "setsid sh -c 'touch up; sleep {m}' & while [ ! -e up ]; do :; done; kill -9 0",
    ],
)
def test_a_command_that_kills_its_group_takes_nobody_along(either: Run, line: str) -> None:
    """Design, commands: own process group; what else it left is ended."""
    marker = new_marker()
    with none_left(marker):
        outcome = either(line.format(m=marker))
        assert not processes_with(marker)
    assert (outcome.exit_code, outcome.notes) == (after_signal(outcome, 9), ())
    assert either("echo on").output == "on\n"


def test_a_command_that_kills_all_in_its_sandbox_takes_nobody_along(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Safety, hostile inputs: `kill -9 -1` reaches what is in the sandbox, and nothing else."""
    # Never without a sandbox: it would end whatever runs these tests.
    sandbox = sandbox_of("bwrap", tmp_path, tmp_path_factory.mktemp("own"))
    marker = new_marker()
    with none_left(marker), contextlib.closing(Runner(sandbox, environment(os.environ))) as made:
        line = f"setsid sleep {marker} & kill -9 -1; sleep {marker}"
        outcome = made.run(line, str(tmp_path), HANG_S, ignore)
        assert (outcome.exit_code, outcome.ended_by) == (137, "itself")
        assert not processes_with(marker)
        assert made.run("echo on", str(tmp_path), HANG_S, ignore).output == "on\n"


@with_and_without_a_sandbox
def test_a_command_that_kills_its_guard_is_ended(either: Run) -> None:
    """Design, commands: the whole tree is ended, whatever it does to those who watch it."""
    marker = new_marker()
    with none_left(marker):
        outcome = either(f"setsid sleep {marker} & kill -9 $PPID; sleep {marker}", HANG_S)
        assert outcome.ended_by != "time_limit"
        assert not processes_with(marker)
    assert outcome.exit_code == after_signal(outcome, 9)
    # In a sandbox the guard can't be reached.
    is_told = any("ended the process that watched over it" in note for note in outcome.notes)
    assert is_told == (outcome.sandbox == "none")
    assert either("echo on").output == "on\n"


@with_and_without_a_sandbox
def test_streams_can_be_kept_apart(either: Run) -> None:
    """Specification 001, shell: stdout and stderr are captured, each by itself."""
    outcome = either("echo out; echo err >&2; echo more", extras=Extras(parts_streams=True))
    assert (outcome.stdout, outcome.stderr) == ("out\nmore\n", "err\n")
    assert sorted(outcome.output.split()) == ["err", "more", "out"]
    assert either("echo out").stdout is None


@with_and_without_a_sandbox
def test_a_stream_of_its_own_is_cut_at_its_end_between_characters(either: Run) -> None:
    """Specification 004, ExecResult: 1 MB of each stream, then a line that says so."""
    line = "head -c 1048575 /dev/zero | tr '\\0' x; printf '\\342\\202\\254€'; echo e >&2"
    outcome = either(line, extras=Extras(parts_streams=True))
    assert outcome.stdout == "x" * (2**20 - 1) + "\n... [output truncated]"
    assert outcome.stderr == "e\n"


@with_and_without_a_sandbox
def test_streams_of_one_mebibyte_are_whole(either: Run) -> None:
    """Specification 004: at most 1 MB is a limit, not a cut."""
    outcome = either("head -c 1048576 /dev/zero | tr '\\0' x", extras=Extras(parts_streams=True))
    assert outcome.stdout == "x" * 2**20


@with_and_without_a_sandbox
def test_variables_are_added_for_one_command(either: Run) -> None:
    """Specification 001, shell: env is additional, for this command."""
    extras = Extras({"GREETING": "a b'c\n", "PAGER": "less"})
    assert either('echo "$GREETING$PAGER"', extras=extras).output == "a b'c\nless\n"
    assert either('echo "$GREETING"').output == "\n"


def test_variables_of_a_command_do_not_reach_the_sandbox_itself(tmp_path: Path) -> None:
    """Design, commands: what a reply sets acts inside; bwrap runs outside, where LD_PRELOAD would act."""
    sandbox = sandbox_of("bwrap", tmp_path, tmp_path / "own")
    confined = sandbox.confine("true", {}, "/", {"LD_PRELOAD": "/x.so"})
    for handle in confined.handles:
        os.close(handle)
    assert "LD_PRELOAD" not in confined.variables
    at = confined.argv.index("--setenv")
    assert confined.argv[at : at + 3] == ("--setenv", "LD_PRELOAD", "/x.so")


def test_one_that_stops_its_watcher_is_ended_by_another_thread_too(tmp_path: Path) -> None:
    """Design, JSON-RPC: a client that is gone ends its commands, also those without a limit."""
    marker = new_marker()
    with contextlib.closing(Runner(Unconfined(), environment(os.environ))) as runner:
        up = threading.Event()
        line = f"kill -STOP $PPID; echo up; sleep {marker}"
        worker = threading.Thread(target=lambda: runner.run(line, str(tmp_path), None, lambda _: up.set()))
        worker.start()
        assert up.wait(HANG_S)
        runner.end_command()
        worker.join(HANG_S)
        assert not worker.is_alive()
    assert not processes_with(marker)


@with_and_without_a_sandbox
def test_a_command_can_be_ended_by_another_thread(either: Run) -> None:
    """Design, JSON-RPC: a client that is gone ends its commands."""
    done: list[Outcome] = []
    up = threading.Event()
    worker = threading.Thread(
        target=lambda: done.append(either("echo up; sleep 600", None, lambda _: up.set()))
    )
    worker.start()
    assert up.wait(HANG_S)
    either.runner.end_command()  # type: ignore[attr-defined]  # set by the fixture
    worker.join(HANG_S)
    assert [outcome.ended_by for outcome in done] == ["agent"]
    either.runner.end_command()  # type: ignore[attr-defined]  # nothing runs: nothing happens


# An agent of its own: what it runs, where, in which tier, with which private folder and limit.
AGENT = """
from codingagent.process.select_sandbox import bubblewrap_for
from codingagent.process.runner import Runner, environment
from codingagent.process.bubblewrap import Unconfined
from pathlib import Path
import os, sys
line, folder, tier, own, limit = sys.argv[1:]
sandbox = Unconfined()
if tier == "bwrap":
    sandbox = bubblewrap_for(Path(folder), (), Path(own), has_network=False)
runner = Runner(sandbox, environment(os.environ))
outcome = runner.run(line, folder, float(limit), lambda text: print(text, end="", flush=True))
print("ended", outcome.ended_by, flush=True)
"""


@contextlib.contextmanager
def agent(line: str, tmp_path: Path, tier: str, limit_s: float) -> Iterator["subprocess.Popen[bytes]"]:
    """Runs a shell line in an agent that can be killed."""
    if tier == "bwrap":
        needs_bwrap()
    own = tmp_path / "own"
    own.mkdir()
    folder = tmp_path / "here"
    folder.mkdir()
    with python(AGENT, line, str(folder), tier, str(own), str(limit_s)) as process:
        yield process


@in_each_tier
def test_a_command_that_stops_its_guard_has_the_same_limit(run: Run, tmp_path: Path, tier: str) -> None:
    """Design, what it is: no command outlives its limit, also one that holds up its watcher."""
    marker = new_marker()
    line = f"echo up; kill -STOP $PPID; sleep {marker}"
    with none_left(marker), agent(line, tmp_path, tier, 3) as process:
        ended = threading.Event()
        assert line_from(process) == "up"

        def wait() -> None:
            if line_from(process) == "ended time_limit":
                ended.set()

        guards = descendants(process.pid)
        reader = threading.Thread(target=wait)
        reader.start()
        is_ended = ended.wait(HANG_S)
        process.kill()
        reader.join()
        for pid in guards - processes_with(marker):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # one that is stopped would stay for ever
        assert is_ended
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
        outcome = run(line)
        assert (outcome.output, outcome.ended_by) == ("x\n", "itself")
        assert line_from(process) == "kept"
        assert process.poll() is None


@pytest.mark.one_in(4)
@in_each_tier
@pytest.mark.parametrize(
    "line",
    [
        "echo up; sleep {m}",
        "setsid sleep {m} & setsid -f sleep {m} <&- >&- 2>&-; echo up; sleep {m}",
        "trap '' TERM INT HUP; echo up; while :; do sleep {m}; done",
        "exec 2>&-; echo up; exec >&-; sleep {m}",
        'env -i PATH="$PATH" setsid -f sleep {m}; echo up; kill -STOP $$; sleep {m}',
        "i=0; while [ $i -lt 150 ]; do setsid sleep {m} & i=$((i+1)); done; echo up; wait",
        "{python} -c '{hopper}' {m} 0 & echo up; sleep {m}",
    ],
)
def test_a_killed_agent_leaves_no_command(tmp_path: Path, line: str, tier: str) -> None:
    """Design, commands: interrupting us ends the command, and so does `kill -9`."""
    marker = new_marker()
    # The marker stands in the agent's arguments too; it is gone by then.
    words = line.format(m=marker, python=sys.executable, hopper=HOPPER)
    with none_left(marker), agent(words, tmp_path, tier, 60) as process:
        assert line_from(process) == "up"
        assert processes_with(marker) - {process.pid}
        process.kill()
        process.wait()


@with_and_without_a_sandbox
def test_an_interrupt_ends_the_command_and_goes_on(either: Run) -> None:
    """Design, commands: interrupting us ends the command."""
    marker = new_marker()

    def show(_: str) -> None:
        raise KeyboardInterrupt

    with none_left(marker):
        with pytest.raises(KeyboardInterrupt):
            either(f"for i in $(seq 150); do setsid sleep {marker} & done; echo up; wait", 60, show)
        assert not processes_with(marker)
    assert either("echo on").output == "on\n"


@pytest.mark.deep
@pytest.mark.one_in(2)
@in_each_tier
def test_runners_side_by_side_do_each_their_own(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, tier: str
) -> None:
    """Safety, hostile inputs: 20 commands in parallel from threads: no cross-kill, all reaped."""
    sandbox = sandbox_of(tier, tmp_path, tmp_path_factory.mktemp("own"))
    others = children(os.getpid())
    marker = new_marker()
    ready = threading.Barrier(20)
    found: dict[int, list[Outcome]] = {}

    def work(number: int) -> None:
        with contextlib.closing(Runner(sandbox, environment(os.environ))) as made:
            ready.wait(HANG_S)
            lines = [
                (f"setsid sleep {marker} & sleep {marker} & echo {number}; exit {number}", HANG_S),
                (f"echo {number}; setsid sleep {marker} & sleep {marker}", 3),
                (f"echo {number}; kill -9 0", HANG_S),
                # This one is at work while those of the others are ended.
                (f"echo {number}; sleep 1; exit {number}", HANG_S),
            ]
            found[number] = [made.run(line, str(tmp_path), s, ignore) for line, s in lines]

    with none_left(marker):
        threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not processes_with(marker)
    assert sorted(found) == list(range(20))
    for number, outcomes in found.items():
        assert {outcome.output for outcome in outcomes} == {f"{number}\n"}
        codes = [outcome.exit_code for outcome in outcomes]
        assert codes == [number, -9, after_signal(outcomes[2], 9), number]
        ends = [outcome.ended_by for outcome in outcomes]
        assert ends == ["itself", "time_limit", "itself", "itself"]
        assert outcomes[0].stopped_processes == 2
    assert children(os.getpid()) == others


@pytest.mark.deep
@pytest.mark.parametrize("count", [40, pytest.param(180, marks=pytest.mark.deep)])
@in_each_tier
def test_many_runs_leave_nothing(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, tier: str, count: int
) -> None:
    """Design, commands: no descriptor, no dead process and no memory is kept, however many there were."""
    sandbox = sandbox_of(tier, tmp_path, tmp_path_factory.mktemp("own"))
    others = children(os.getpid())
    with contextlib.closing(Runner(sandbox, environment(os.environ))) as made:

        def run_some(count: int) -> None:
            for number in range(count):
                outcome = made.run(f"sleep 100 & echo {number}", str(tmp_path), HANG_S, ignore)
                assert (outcome.output, outcome.stopped_processes) == (f"{number}\n", 1)

        run_some(20)
        (supervisor,) = children(os.getpid()) - others
        both = (os.getpid(), supervisor)
        wait_until(lambda: len(children(supervisor)) <= 1)  # a guard that waits for a command
        before = [descriptors(pid) for pid in both]
        memory = [resident_bytes(pid) for pid in both]
        run_some(count)
        wait_until(lambda: len(children(supervisor)) <= 1)
        assert [descriptors(pid) for pid in both] == before
        growth = [resident_bytes(pid) - was for pid, was in zip(both, memory, strict=True)]
        assert max(growth) < 2 * 2**20, growth
        assert not [pid for pid in children(os.getpid()) if is_zombie(pid)]
    assert children(os.getpid()) == others


def resident_bytes(pid: int) -> int:
    """Return how much memory a process has in use."""
    pages = int(Path(f"/proc/{pid}/statm").read_text("utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_dead_supervisor_is_replaced(run: Run) -> None:
    """Design, nothing is lost: a command that kills all our helpers costs its own result only."""
    marker = new_marker()
    with none_left(marker):
        parent = "$(cut -d' ' -f4 /proc/$PPID/stat)"
        run(f"kill -9 {parent} $PPID; sleep {marker}", HANG_S)
        for pid in processes_with(marker):
            os.kill(pid, 9)  # no one could have: all who watched were killed first
    assert run("echo on").output == "on\n"
