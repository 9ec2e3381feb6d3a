"""All commands by name, with the module of each: a start imports only what its command needs."""

from typing import NamedTuple

from codingagent.model.patterns import sections


class Entry(NamedTuple):
    """A command: its module, its summary. No Struct: importing msgspec costs `--help` a tenth."""

    module: str
    does: str


# Only the command that is named is imported and built: typer's work on the options of all of them would
# cost every start more than everything else. A test compares the lines of the table with the definitions.
COMMANDS = {
    heading: {
        name: Entry(*rest) for name, *rest in (row.split(None, 2) for row in rows.splitlines())
    }
    for heading, rows in sections(__file__).items()
}
NAMES = tuple(name for group in COMMANDS.values() for name in group)
