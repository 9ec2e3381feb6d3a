"""All commands by name, with the module of each; and a command as it is printed to be copied."""

import os
import re
import shutil
import sys
from contextvars import ContextVar
from pathlib import Path

from codingagent.model.patterns import lazy_pattern, sections, table
from codingagent.workspace.programs import quoted
from codingagent.workspace.real_paths import from_root

# Only the command that is named is imported and built: typer's work on the options of all of them would
# cost every start more than everything else. A test compares the lines of the table with the definitions.
COMMANDS = {
    heading: {name: row.split(None, 1) for name, row in table(rows).items()}
    for heading, rows in sections(__file__).items()
}
"""Of each command its module and its summary, by heading and name."""

NAMES = tuple(name for group in COMMANDS.values() for name in group)

HOME: ContextVar[Path | None] = ContextVar("home", default=None)
"""The home that the command line named, or that must be named from now on."""

# In our own messages a command stands in backquotes, after a colon, or on a line of its own.
_OURS = lazy_pattern(
    r"(?:(?<=`)|(?<=: )(?<!example: )|(?<=  )|(?<![^\n]))"
    r"codingagent (?=(--)?([a-z]+)( --here| --help)?)"
)
_WITHOUT_HOME = ("call", "demo", "doctor", "help", "schema", "serve")


def runnable(message: str) -> str:
    """Return a message of ours with its commands as they work in the person's shell, here."""
    if "codingagent " not in message:
        return message
    name, option = _program(), ""
    if (named := HOME.get()) is not None:
        from codingagent.storage import homes

        home = named.absolute()
        is_found = homes.find_home(None, Path.cwd(), os.environ) == home
        if not (is_found and homes.is_registered(home)):
            option = f"--home {quoted([str(home)])} "

    def called(found: "re.Match[str]") -> str:
        if not found[1] and found[2] not in NAMES:
            return found[0]  # a sentence that begins with our name
        return f"{name} {'' if found[1] or found[3] or found[2] in _WITHOUT_HOME else option}"

    return _OURS.sub(called, message)


def _program() -> str:
    """Return how this program is called: by its name only where PATH leads to it."""
    called = Path(sys.argv[0] if sys.argv else "").absolute()
    is_module = called.parts[-2:] == ("codingagent", "__main__.py")
    if shutil.which("codingagent") or not (is_module or called.stem == "codingagent"):
        return "codingagent"
    path, *words = [sys.executable, "-m", "codingagent"] if is_module else [os.fspath(called)]
    if os.name == "nt" and quoted([path]) != path:
        # PowerShell takes a quoted path for a text, and cmd.exe knows no other call of it.
        near = from_root(path, Path.cwd())
        path = near if quoted([near]) == near != os.pardir else path
    return quoted([path, *words])
