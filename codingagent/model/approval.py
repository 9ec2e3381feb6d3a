"""Approval questions and the answers to them."""

from typing import Literal

from msgspec import Struct, field

from codingagent.model.operations import Kind

Decision = Literal["yes", "no", "always"]
"""`always` also approves later operations that ask for the same grants, until the session ends."""


class Question(Struct, frozen=True):
    """An operation that waits for approval. `rules` are the policy's, `reasons` explain them to the person.

    `shown` is the command, or the diff. `digest` covers all that would be done: a yes holds for exactly
    that. `grants` are what an "always" would cover.
    """

    kind: Kind = field(name="tag")
    subject: str
    rules: tuple[str, ...]
    reasons: tuple[str, ...]
    shown: str
    digest: str
    grants: tuple[str, ...] = ()


How = Literal["", "terminal", "command", "--yes", "always", "program", "client"]
"""How the answer was given: typed at the terminal that asked, with `approve` or `deny`, with `--yes`,
through an earlier `always`, by a program, or in the client that called a tool. Sessions from before this was
recorded have none."""

_HOW: dict[How, str] = {
    "terminal": "you typed",
    "command": "you said",
    "always": 'your earlier "always" said',
    "program": "a program said",
    "client": "you said in the client",
}


NOBODY = "nobody"
"""Who a question that was not answered is put down to, when it is withdrawn."""


class Answer(Struct, frozen=True):
    """A decision: who made it (`person`, `--yes`, `always`, NOBODY), why, if given, and how."""

    decision: Decision
    by: str = "person"
    reason: str = ""
    how: How = ""

    @property
    def said(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        by = _HOW.get(self.how, f"{self.by} said")
        how = f" (`codingagent {'deny' if self.decision == 'no' else 'approve'}`)" * (self.how == "command")
        return f"{by} {self.decision}{how}{reason}"


def is_about_secrets(rule: str) -> bool:
    return rule.startswith("secrets.")


def nothing_awaits(session_id: str) -> str:
    return f"nothing in {session_id} waits for approval: see `codingagent show {session_id}`"


def operation_id(index: int) -> str:
    """Return the name of an operation without an id, from its position: `op-1` is the first."""
    return f"op-{index + 1}"
