"""What holds for every test."""

import contextlib
import functools
import gc
import importlib
import os
import signal
import sys
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from codingagent.workspace import programs
from tests import warm

# xdist tells its workers how wide the terminal is; what tests start has terminals of its own.
os.environ.pop("COLUMNS", None)

# A shell starts background jobs with Ctrl-C ignored, and every process that a test starts inherits it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# So does nohup with the end of the terminal; what is caught, and not ignored, nobody inherits.
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)

# What is remembered of homes must not come from, nor go into, the folders of whoever runs the tests.
_STATE = tempfile.TemporaryDirectory(prefix="codingagent-state-")
os.environ["XDG_STATE_HOME"] = _STATE.name
os.environ["XDG_CONFIG_HOME"] = f"{_STATE.name}/config"

# The command is started hundreds of times: what is compiled is kept, whatever the environment says of it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What is collected stays: there is no garbage in it (see `pytest_collection_finish`).
gc.disable()

# No property has a limit in seconds, neither for an example (deadline) nor for drawing one (too_slow).
_UNTIMED = hypothesis.settings(
    deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
)
hypothesis.settings.register_profile("plain", _UNTIMED, max_examples=15, derandomize=True)
hypothesis.settings.register_profile("deep", _UNTIMED, max_examples=500)
hypothesis.settings.load_profile("plain")


@pytest.fixture(scope="session", autouse=True)
def _warm() -> None:
    """Begin with the imports of what tests start beside themselves; no test sees it come or go."""
    warm.of_the_package()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Return a folder of the test's own; for tests marked `outside_dev` in /var/tmp."""
    if request.node.get_closest_marker("outside_dev") is None:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="codingagent-test-", dir="/var/tmp") as folder:
        yield Path(folder)


def pytest_runtest_teardown() -> None:
    """Forget whose folders no program is taken from: each look for one compares with thousands else."""
    vars(programs)["_untrusted"].clear()


@functools.cache
def _all_but_git() -> str:
    """Return a folder with the programs of PATH, without git."""
    folder = Path(_STATE.name) / "programs"
    folder.mkdir()
    for place in map(Path, os.environ["PATH"].split(os.pathsep)):
        for program in place.iterdir() if place.is_dir() else ():
            with contextlib.suppress(FileExistsError):
                if not program.name.startswith("git"):
                    (folder / program.name).symlink_to(program)
    return str(folder)


@pytest.fixture
def plain(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have sessions start without git and sandbox: half of their time, for what has to do with neither.

    Tests marked `with_git` have both all the same.
    """
    if sys.platform == "linux" and request.node.get_closest_marker("with_git") is None:
        monkeypatch.setenv("PATH", _all_but_git())
        monkeypatch.setenv("CODINGAGENT_SANDBOX", "off")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--deep", action="store_true", help="also run what is marked as deep")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--deep"):
        hypothesis.settings.load_profile("deep")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Have one worker run all tests of a module that shares what is made once; xdist's groups are no help."""

    @functools.cache
    def is_shared(path: str) -> bool:
        return 'scope="module"' in (config.rootpath / path).read_text("utf-8")

    def together(nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return path if is_shared(path) else nodeid

    scheduler: Any = importlib.import_module("xdist.scheduler").LoadScopeScheduling(config, log)
    vars(scheduler)["_split_scope"] = together
    return scheduler


# Of each table of cases the lines, by what is in them, and their places.
_Tables = dict[str, dict[tuple[int, ...], int]]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is deep, unless it is asked for; begin with what takes long: no worker ends late."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
    if config.getoption("--deep"):
        return
    tables: _Tables = defaultdict(dict)
    left_out = {item for item in items if _is_deep(item, tables)}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


def _is_deep(item: pytest.Item, tables: _Tables) -> bool:
    """Tell whether a test, or this case of it, is for the deep run.

    Of several tables the places in each are added up: so every line of each is touched. So it is with
    fixtures that the mark names; which of their cases comes first, hangs on the test.
    """
    if item.get_closest_marker("deep") is not None:
        return True
    one_in = item.get_closest_marker("one_in")
    callspec = getattr(item, "callspec", None)
    if one_in is None or callspec is None:
        return False
    place = 0
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
        lines = tables[f"{item.nodeid.partition('[')[0]} {names}"]
        line = tuple(id(callspec.params[name.strip()]) for name in names)
        place += lines.setdefault(line, len(lines))
    for fixture in one_in.args[1:]:
        place += callspec.indices.get(fixture, 0) + zlib.crc32(item.name.partition("[")[0].encode())
    return bool(place % one_in.args[0])


def pytest_collection_finish(session: pytest.Session) -> None:
    """Thousands of cases stay until the end: the garbage collector need not look at them, nor so often."""
    if session.config.option.collectonly:
        # check.py begins so: hypothesis lays its table of characters and the constants of all modules on the
        # disk once, not in each worker.
        hypothesis.given(hypothesis.strategies.text())(lambda _: None)()
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20)
