"""What holds for every test."""

import os
import signal
import tempfile

import hypothesis
import pytest

# A shell starts background jobs with Ctrl-C ignored, and every process that a test starts inherits it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What is remembered of homes must not come from, nor go into, the folders of whoever runs the tests.
_STATE = tempfile.TemporaryDirectory(prefix="codingagent-state-")
os.environ["XDG_STATE_HOME"] = _STATE.name

# No property has a limit in seconds, neither for an example (deadline) nor for drawing one (too_slow).
_UNTIMED = hypothesis.settings(
    deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
)
hypothesis.settings.register_profile("plain", _UNTIMED, max_examples=50, derandomize=True)
hypothesis.settings.register_profile("deep", _UNTIMED, max_examples=500)
hypothesis.settings.load_profile("plain")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--deep", action="store_true", help="also run what is marked as deep")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--deep"):
        hypothesis.settings.load_profile("deep")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is deep, unless it is asked for."""
    if config.getoption("--deep"):
        return
    left_out = [item for item in items if item.get_closest_marker("deep")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("deep")]
