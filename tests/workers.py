"""Run the tests in several processes that are forked after one collection: `pytest --workers N`.

Collecting costs as much as a tenth of the tests. Here it happens once, and every worker takes the next
test that nobody has. Where a process can't fork, the tests run one after the other.
"""

import contextlib
import itertools
import multiprocessing
import os
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from multiprocessing.sharedctypes import Synchronized
from typing import Any, TypeAlias

import pytest

_Groups: TypeAlias = list[list[pytest.Item]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", type=int, default=1, help="processes that run the tests")


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run what was collected in workers; leave it to pytest where one process is enough."""
    count = min(session.config.getoption("--workers"), len(session.items))
    if (
        count < 2
        or not hasattr(os, "fork")
        or session.testsfailed
        or session.config.option.collectonly
    ):
        return None
    forks = multiprocessing.get_context("fork")
    following = forks.Value("i", 0)
    groups = _groups(session.items)
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # noqa: SLF001  # one for all
    workers: list[ForkProcess] = []
    ends: list[Connection] = []
    try:
        for number in range(count):
            ours, theirs = forks.Pipe(duplex=False)
            worker = forks.Process(target=_work, args=(session, number, groups, following, theirs))
            worker.start()
            theirs.close()
            workers.append(worker)
            ends.append(ours)
        _collect_reports(session, ends)
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()
    return True


def _collect_reports(session: pytest.Session, ends: list[Connection]) -> None:
    """Pass on what the workers report, until all have ended; a test without its last report failed."""
    hook = session.config.hook
    missing = {item.nodeid: item for item in session.items}
    while ends:
        for end in wait(ends):
            assert isinstance(end, Connection)
            try:
                data = end.recv()
            except EOFError:
                ends.remove(end)
                continue
            report = hook.pytest_report_from_serializable(config=session.config, data=data)
            hook.pytest_runtest_logreport(report=report)
            if report.when == "teardown":
                missing.pop(report.nodeid, None)
                hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
    for item in missing.values():
        report = pytest.TestReport(
            item.nodeid, item.location, {}, "failed", "its worker ended before the test did", "call"
        )
        hook.pytest_runtest_logreport(report=report)


def _groups(items: list[pytest.Item]) -> _Groups:
    """Return what a worker takes at once: a test, or all of a module that share a fixture of it."""

    def shared(numbered: tuple[int, pytest.Item]) -> object:
        number, item = numbered
        info: Any = getattr(item, "_fixtureinfo", None)
        fixtures = info.name2fixturedefs.values() if info else ()
        is_shared = any(each.scope == "module" for named in fixtures for each in named)
        return item.path if is_shared else number

    return [[item for _, item in group] for _, group in itertools.groupby(enumerate(items), shared)]


class _Reporter:
    """Sends each report to the process that collected."""

    def __init__(self, config: pytest.Config, end: Connection) -> None:
        self._config = config
        self._end = end

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self._config.hook
        self._end.send(hook.pytest_report_to_serializable(config=self._config, report=report))


def _work(
    session: pytest.Session,
    number: int,
    groups: _Groups,
    following: "Synchronized[int]",
    end: Connection,
) -> None:
    """Run tests that nobody has taken until none is left; never return into pytest."""
    status = 1
    try:
        _settle(session.config, number, end)
        items = _items(groups, following)
        item = next(items, None)
        while item is not None:
            after = next(items, None)
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            item = after
        status = 0
    finally:
        # What the process that collected ends with (folders, files, reports) is not for its forks.
        os._exit(status)


def _settle(config: pytest.Config, number: int, end: Connection) -> None:
    """Give a worker what it can't share: a place for captured output, a folder, a way to report."""
    plugins: Any = config.pluginmanager
    plugins.unregister(name="terminalreporter")
    capture = plugins.get_plugin("capturemanager")
    with contextlib.suppress(AttributeError):
        capture.stop_global_capturing()
        capture.start_global_capturing()
    factory: Any = config._tmp_path_factory  # type: ignore[attr-defined]  # noqa: SLF001
    factory._basetemp = factory.mktemp(f"worker-{number}", numbered=False)  # noqa: SLF001
    plugins.register(_Reporter(config, end))


def _items(groups: _Groups, following: "Synchronized[int]") -> Iterator[pytest.Item]:
    while True:
        with following.get_lock():
            place = following.value
            following.value += 1
        if place >= len(groups):
            return
        yield from groups[place]
