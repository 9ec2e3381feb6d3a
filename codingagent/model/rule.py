"""A rule by which a damaged answer is read, as a row of a table.

Each module that reads answers has a table of these rows, `RULES`, and one loop over it. What each of them
recognises, its proof and what it does are rows of the help page `answers`, under the same name.
"""

from typing import Generic, TypeVar

from msgspec import Struct

F = TypeVar("F")


class Rule(Struct, Generic[F], frozen=True):
    """One rule: its name on the help page, its function, and the note that the loop over the table shows.

    That loop defines the arguments of `run`. `said` has `{…}` for what differs.
    """

    name: str
    run: F
    said: str = ""
