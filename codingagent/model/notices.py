"""Notices to the person that are no records. Each front end shows them, and the records, in its own way."""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from codingagent.model.events import Tagged


class Waiting(Tagged, frozen=True, tag="waiting"):
    """It is the person's turn: the answer goes into `inbox`."""

    session_id: str
    sequence: int
    outbox: str
    inbox: str
    watched: bool
    """This process stays and watches; `elsewhere`: one in another terminal does."""
    short: str = ""
    elsewhere: bool = False
    asks: bool = False
    """The last answer was only words, which probably expect words in return."""
    answered: bool = False


class OutputCame(Tagged, frozen=True, tag="output_came"):
    text: str


class FileChanged(Tagged, frozen=True, tag="file_changed"):
    """The current operation wrote a file: its bytes before (None if it is new) and after."""

    path: str
    old: bytes | None
    new: bytes


class Remark(Tagged, frozen=True, tag="remark"):
    """A one-line notice to the person."""

    text: str


Notice = Waiting | OutputCame | FileChanged | Remark
Elsewhere: TypeAlias = Callable[[], bool]
"""Return whether a question was answered in another terminal."""


class Changes(Struct, frozen=True):
    """Files of the `workspace` that a session changed since its last commit, but for undone turns."""

    workspace: str = ""
    paths: tuple[str, ...] = ()
    can_undo: bool = False
    can_commit: bool = False
    last: int = 0
    """The turn that an undo would undo."""
