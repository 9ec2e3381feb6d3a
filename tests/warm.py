"""A Python that has imported the package already: what it starts is forked, a process all the same.

Starting an interpreter and importing is nearly all that a short command costs. What is started here is
a child of the process that asked, with a folder, an environment, streams and a session of its own, and
it ends as any Python does. It differs in two things: /proc shows the words and the environment of the
one that it was forked from, and variables that an interpreter reads when it starts come too late. Where
these matter, and where there is no such fork, an interpreter is started.
"""

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import inspect
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, AnyStr

_REPOSITORY = Path(__file__).parents[1]

_COMMAND_LINE = "from codingagent.__main__ import main; main()"

# An interpreter reads these when it starts.
_READ_AT_START = ("PYTHONIOENCODING", "PYTHONUTF8", "LC_ALL", "LC_CTYPE", "LANG")

# linux/prctl.h
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37

_ORDER_BYTES = 2**17

_LIBRARY = ctypes.CDLL(None)


class Warm:
    """Starts Python programs that find the package imported."""

    def __init__(self, package: Path) -> None:
        """Start the Python that is forked.

        Args:
            package: the folder that holds the package to import.
        """
        self._turns = threading.Lock()
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            words = [sys.executable, __file__, os.fspath(package), str(theirs.fileno())]
            self._process = subprocess.Popen(
                words, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, cwd=package
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def fork(self, order: dict[str, Any], streams: tuple[int, int, int]) -> int:
        """Have a program started; return the process, a child of this one."""
        with self._turns, _adopting():
            socket.send_fds(self._orders, [json.dumps(order).encode()], streams)
            pid = int(self._orders.recv(100) or -1)
            self._orders.recv(100)
        assert pid > 0, "the Python that was to be forked has ended"
        return pid

    def close(self) -> None:
        self._orders.close()
        self._process.wait()


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    """Become, for a while, the parent of what loses its parent below this process."""
    before = ctypes.c_int()
    _LIBRARY.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    _LIBRARY.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        _LIBRARY.prctl(_PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)


class Program(subprocess.Popen[AnyStr]):
    """`python -c PROGRAM WORDS…`, forked from one that is warm."""

    def __init__(self, warm: Warm, words: list[str], **options: Any) -> None:
        self._warm = warm
        super().__init__([sys.executable, "-c", *words], **options)

    def _execute_child(self, *arguments: Any) -> None:
        form = inspect.signature(super()._execute_child)  # type: ignore[misc]
        asked = form.bind(*arguments).arguments
        theirs = [asked[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        order = {
            "words": asked["args"][2:],
            "folder": os.fspath(asked["cwd"] or Path.cwd()),
            "variables": dict(os.environ if asked["env"] is None else asked["env"]),
            "leads": bool(asked["start_new_session"]),
        }
        streams = tuple(own if given == -1 else given for own, given in enumerate(theirs))
        ends = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        try:
            self.pid = self._warm.fork(order, streams)  # type: ignore[arg-type]  # three they are
        finally:
            self._close_pipe_fds(*(asked[name] for name in ends))  # type: ignore[attr-defined]
        self._child_created = True


@functools.cache
def of_the_package() -> Warm | None:
    """Return the one that programs of the package are forked from, if they can be."""
    if sys.platform != "linux":
        return None
    warm = Warm(_REPOSITORY)
    atexit.register(warm.close)
    return warm


def start(program: str, *words: str, **options: Any) -> "subprocess.Popen[Any]":
    """Start `python -c PROGRAM WORDS…` in the project's folder, with the options of Popen."""
    options = {"cwd": _REPOSITORY, **options}
    variables = options.get("env") or os.environ
    warm = of_the_package()
    if warm and all(variables.get(name) == os.environ.get(name) for name in _READ_AT_START):
        return Program(warm, [program, *words], **options)
    return subprocess.Popen([sys.executable, "-c", program, *words], **options)


def run(
    program: str,
    *words: str,
    input: Any = None,  # noqa: A002  # as subprocess has it
    timeout: float | None = None,
    **options: Any,
) -> "subprocess.CompletedProcess[Any]":
    """Run `python -c PROGRAM WORDS…` to its end, with the options of `subprocess.run`."""
    if options.pop("capture_output", False):
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    options |= {} if input is None else {"stdin": subprocess.PIPE}
    with start(program, *words, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess([program, *words], process.returncode, out, err)


def run_command(*words: str, **options: Any) -> "subprocess.CompletedProcess[Any]":
    """Run `codingagent WORDS…` to its end, with the options of `subprocess.run`."""
    return run(_COMMAND_LINE, *words, **options)


def start_command(*words: str, **options: Any) -> "subprocess.Popen[Any]":
    """Start `codingagent WORDS…` in the project's folder, with the options of Popen."""
    return start(_COMMAND_LINE, *words, **options)


# --- the other side --------------------------------------------------------------------------------


def _import_all(package: str) -> None:
    sys.path[0] = package
    importlib.import_module("pydantic.main")
    name = "codingagent"
    for found in pkgutil.walk_packages([f"{package}/{name}"], f"{name}."):
        if not found.name.endswith("__main__") and ".demo" not in found.name:
            importlib.import_module(found.name)
    importlib.import_module("typer._click.decorators")
    # What is compiled when first used each child would compile anew.
    late = vars(importlib.import_module(f"{name}.model.patterns"))["LazyPattern"]
    for each in gc.get_objects():
        if type(each) is late:
            each.pattern  # noqa: B018


def _next_order(orders: socket.socket) -> dict[str, Any]:
    """Fork for each order; return it in the process that is to fulfil it."""
    while True:
        data, streams, _, _ = socket.recv_fds(orders, _ORDER_BYTES, 3)
        if not data:
            os._exit(0)
        # The one between ends at once: whoever asked becomes the parent.
        between = os.fork()
        if not between:
            own = os.getpid()
            pid = os.fork()
            if pid:
                orders.send(str(pid).encode())
                os._exit(0)
            while os.getppid() == own:
                os.sched_yield()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            os.closerange(3, max(*streams, orders.fileno()) + 1)
            orders.detach()
            order: dict[str, Any] = json.loads(data)
            return order
        os.waitpid(between, 0)
        for stream in streams:
            os.close(stream)
        orders.send(b"it is yours")


def _stream(number: int, name: str) -> IO[str]:
    """Return one of the three streams, made as the interpreter makes it."""
    old: Any = getattr(sys, name)
    mode = "w" if number else "r"
    buffering = 1 if name == "stderr" or (number and os.isatty(number)) else -1
    return open(number, mode, buffering, encoding=old.encoding, errors=old.errors, closefd=False)


def _take_on(order: dict[str, Any]) -> str:
    """Become what was ordered; return the program."""
    if order["leads"]:
        os.setsid()
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["variables"])
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        with contextlib.suppress(OSError):
            setattr(sys, name, _stream(number, name))
            setattr(sys, f"__{name}__", getattr(sys, name))
    program, *words = order["words"]
    sys.argv = ["-c", *words]
    return str(program)


def _fulfil(order: dict[str, Any]) -> None:
    """Run the program; end as Python does, but for the teardown of all that was imported.

    That costs ten times what the fork does. Ends of other kinds are left to the interpreter.
    """
    status = 0
    try:
        exec(_take_on(order), {"__name__": "__main__", "__builtins__": __builtins__})
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        status = end.code or 0
    vars(threading)["_shutdown"]()
    vars(atexit)["_run_exitfuncs"]()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(status)  # which says what the interpreter says of it
    os._exit(status & 0xFF)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that asked ends it
    _import_all(sys.argv[1])
    gc.collect()
    gc.freeze()
    _ORDER = _next_order(socket.socket(fileno=int(sys.argv[2])))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _fulfil(_ORDER)
