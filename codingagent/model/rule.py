"""A rule by which a damaged answer is read. The help page `answers` says what each does, and its proof."""

from typing import Generic, TypeVar

from msgspec import Struct

F = TypeVar("F")


class Rule(Struct, Generic[F], frozen=True):
    """A row of a table of rules: its name on the help page, what the result says of it, and its function.

    `said` has `{…}` for what differs, and is empty if nothing is said. The table's loop calls `run`.
    """

    name: str
    said: str
    run: F
