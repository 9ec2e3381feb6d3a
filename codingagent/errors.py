"""Exceptions, by who can fix the cause and the exit status.

CodingAgentError            the person or the machine: one line on stderr, an exit status
├── UsageError              wrong arguments, settings or folders: exit status 2
├── WorkError               a file that can't be read or written, a damaged session: exit status 1
│   └── IncompleteError     only a part of it: this process goes on
├── ApprovalError           an operation needs an approval that nobody here can give: exit status 3
│   └── GoneOnError         it was given in another process
└── InterruptError          Ctrl-C; the session can be resumed: exit status 130
OperationError              the model: becomes a result that goes back to the model
"""

import contextlib
from collections.abc import Callable, Iterator

REMEDIES: dict[int, str] = {}
"""By the number of a fault of the system; the program's start knows which system it is."""


class CodingAgentError(Exception):
    """An error that ends the command with one line: what, where, and what to do instead."""

    exit_status = 1


class UsageError(CodingAgentError):
    """The command line, a setting or a named folder is not usable as given."""

    exit_status = 2


class WorkError(CodingAgentError):
    """The work failed midway: input and output, or a damaged file."""

    exit_status = 1


class IncompleteError(WorkError):
    """A part of the work can't be done now; the rest is, and this goes on."""


class ApprovalError(CodingAgentError):
    """An operation waits for approval; the message says how to give it."""

    exit_status = 3


class GoneOnError(ApprovalError):
    """Another process has answered the question that waited here, and has gone on."""


class InterruptError(CodingAgentError):
    """The person interrupted the program; the message says how to continue."""

    exit_status = 130


class OperationError(Exception):
    """An operation that can't be done as asked: the `fact`, in one line, is all that the person is told.

    The model is told the `advice`, what to send instead, too, and the `detail`, the lines of a file, say: a
    text, or what makes it, if it is asked for.
    """

    def __init__(self, fact: str, detail: str | Callable[[], str] = "", *, advice: str = "") -> None:
        super().__init__(fact + advice)
        self.fact = fact
        self._detail = detail
        self.advice = advice

    @property
    def detail(self) -> str:
        return self._detail if isinstance(self._detail, str) else self._detail()

    @property
    def reason(self) -> str:
        """The fact and the advice: the line for the model."""
        return self.fact + self.advice

    def but(self, fact: str | None = None, advice: str = "") -> "OperationError":
        """Return the same with another fact, or with more advice."""
        told = self.fact if fact is None else fact
        return OperationError(told, self._detail, advice=self.advice + advice)


@contextlib.contextmanager
def disk_errors(failure: str, kind: type[CodingAgentError] = WorkError) -> Iterator[None]:
    """Raise an OSError of the block as an error that says what failed, and the system's reason."""
    try:
        yield
    except OSError as fault:
        raise kind(f"{failure}: {system_reason(fault)}") from fault


def system_reason(fault: OSError) -> str:
    """Return the system's reason, and what the person can do about it on this system."""
    return (fault.strerror or str(fault)) + REMEDIES.get(fault.errno or 0, "")
