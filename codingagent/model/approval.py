"""What may need a yes: the question, and the answers there are to it."""

from dataclasses import dataclass
from typing import Literal

Decision = Literal["yes", "no", "always"]
"""`always` also answers what asks for the same grants, for the rest of the session."""


@dataclass(frozen=True, slots=True)
class Question:
    """An operation waits for a yes.

    `rules` are the policy's, `reasons` are for people, one for each. `shown` is the command, or the
    difference that a change of a file would make. `digest` is of all that would be done: a yes holds
    for exactly that. `grants` say what a yes for always would cover; sessions of version 0.1.0 have none.
    """

    tag: str
    subject: str
    rules: tuple[str, ...]
    reasons: tuple[str, ...]
    shown: str
    digest: str
    grants: tuple[str, ...] = ()


KEEPING = "FILES_CHANGED"
"""The tag of a question after the fact: is what a command changed to be kept, or put back?"""

How = Literal["", "terminal", "command", "--yes", "always", "program"]
"""The way an answer came: typed at the terminal that asked, with `approve` or `deny`, with `--yes` before,
from an earlier `always`, from a program. Sessions from before this was recorded have none."""

_HOW: dict[How, str] = {
    "terminal": "person, typed at the terminal",
    "always": "always, remembered in this session",
    "program": "a program",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What was decided, by whom (`person`, `--yes`, `always`), why, if that was said, and which way."""

    decision: Decision
    by: str = "person"
    reason: str = ""
    how: How = ""

    @property
    def said(self) -> str:
        """The decision in words: by whom, which way, and why."""
        reason = f": {self.reason}" if self.reason else ""
        by = _HOW.get(self.how, self.by)
        if self.how == "command":
            by += f", with `codingagent {'deny' if self.decision == 'no' else 'approve'}`"
        return f"{self.decision}, by {by}{reason}"


def nothing_awaits(session_id: str) -> str:
    """Says that there is nothing to answer in a session, or a run."""
    return f"nothing in {session_id} awaits approval: see `codingagent show {session_id}`"


def operation_id(index: int) -> str:
    """Return what an operation without an id is called: by its place, `op-1` the first."""
    return f"op-{index + 1}"
