"""A rule by which a damaged answer is read, as a row of a table.

Each module that reads answers has a table of these rows, `RULES`, and one loop over it. The help page
`answers` shows the rows.
"""

from typing import Generic, TypeVar

from msgspec import Struct

F = TypeVar("F")


class Rule(Struct, Generic[F], frozen=True):
    """One rule: its words for the help page, and its function.

    `recognises`, `proof` and `does` are phrases without a full stop. `said` is the note that the result
    shows, with `{…}` for what differs; it is empty if nothing is said. `run` does the work; the loop
    over the table defines its arguments.
    """

    name: str
    recognises: str
    proof: str
    does: str
    said: str
    run: F
