"""The command line: parse arguments, run a command, return its exit status. Only this package uses typer."""

import errno
import io
import os
import re
import sys
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup
from typer.main import get_command_from_info

from codingagent import __version__
from codingagent.cli.command_table import COMMANDS, HOME, NAMES
from codingagent.cli.output import LeaveError, fail, suggestion
from codingagent.cli.stdio import be_plainer, has_no_reader, is_stuck, is_terminal, silence
from codingagent.errors import REMEDIES, CodingAgentError, UsageError, system_reason
from codingagent.model.patterns import lazy_pattern
from codingagent.workspace.programs import distrust_later, own_programs, quoted

if TYPE_CHECKING:
    from typer._click.core import Command, Context
    from typer._click.formatting import HelpFormatter

if sys.platform == "darwin":
    REMEDIES[errno.EPERM] = (
        "; allow your terminal this folder in System Settings > Privacy & Security > Files and"
        " Folders, or Full Disk Access"
    )
# What people type for a command of another name.
_OTHER_NAMES = {"sessions": "list", "ls": "list", "status": "show", "continue": "resume"}
_BEFORE_COMMANDS = ("--home", "--version", "-V", "--install-completion", "--show-completion")
_EXTRA = lazy_pattern(r"Got unexpected extra argument\S* \((.*)\)", re.DOTALL)
# The parser's words about a value; the messages of our own checks stay as they are.
_UNFIT = lazy_pattern(r"(.*) is not (?:a valid|in the range|one of) .*", re.DOTALL)


class _Commands(TyperGroup):
    """All commands by name; each is built on first use."""

    def list_commands(self, _ctx: "Context") -> list[str]:
        return [*NAMES]

    def get_command(self, _ctx: "Context", cmd_name: str) -> "Command | None":
        module = next((group[cmd_name][0] for group in COMMANDS.values() if cmd_name in group), None)
        if module is None:
            return None
        found = import_module(f"codingagent.cli.commands.{module}").app
        info = next(each for each in found.registered_commands if each.name == cmd_name)
        if cmd_name not in self.commands:  # it is asked for twice
            self.commands[cmd_name] = get_command_from_info(
                info, pretty_exceptions_short=False, rich_markup_mode=None
            )
        return self.commands[cmd_name]

    def resolve_command(
        self, ctx: "Context", args: list[str]
    ) -> "tuple[str | None, Command | None, list[str]]":
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            meant, known = _OTHER_NAMES.get(name, name), self.list_commands(ctx)
            how = suggestion(meant, known, "`codingagent --help` lists them")
            if " " in name.strip():  # no name, but a task
                here = ["--here"] * os.path.exists(".git")
                how = f"to begin a task: {quoted(['codingagent', 'new', *here, *args])}"
            raise UsageError(f"there is no command '{name}'; {how}")
        found, command, rest = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:  # otherwise a shell completes
            _check_values(command, rest)
        return found, command, rest

    def format_commands(self, _ctx: "Context", formatter: "HelpFormatter") -> None:
        for heading, group in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(8), does) for name, (_, does) in group.items()])


def _check_values(command: "Command", arguments: list[str]) -> None:
    """Refuse an option whose value is missing: the parser would take the next option for it."""
    options = {name: each for each in command.params for name in (*each.opts, *each.secondary_opts)}
    for name, value in zip_longest(arguments, arguments[1:]):
        if name == "--":
            return
        option = options.get(name)
        takes = option is not None and name.startswith("-") and not getattr(option, "is_flag", True)
        if takes and (value is None or (value.startswith("-") and value in options)):
            like = f": {name} {option.metavar}" if option is not None and option.metavar else ""
            raise UsageError(
                f"{name} needs a value{like}; `codingagent {command.name} --help` shows how it is used"
            )


app = typer.Typer(
    name="codingagent",
    cls=_Commands,
    help="A coding agent through any web chat: you carry requests and answers.",
    epilog='Example: codingagent new --here "Add a --verbose option to cli.py"',
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # rich costs a tenth of a second at every --help
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line and leave with its exit status (0, 1, 2, 3 or 130)."""
    # The caller has closed it: then nobody reads the output.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    # Not a real file: that would get handle 0 and be taken for the person's input.
    sys.stdin = sys.stdin or io.TextIOWrapper(io.BytesIO())
    for stream in (sys.stdout, sys.stderr):
        # A terminal that can't show a character shows another one instead of failing.
        be_plainer(stream)
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    try:
        with own_programs():
            words = arguments or _bare()
            status = app(words, standalone_mode=False, prog_name="codingagent")
        sys.stdout.flush()
    except CodingAgentError as fault:
        return fail(str(fault), fault.exit_status)
    except LeaveError as leaving:
        status = run(leaving.arguments) if leaving.arguments else 0
        return run(leaving.otherwise) if status == UsageError.exit_status else status
    except typer.TyperException as fault:
        return fail(_usage(fault, arguments), 2)
    except (KeyboardInterrupt, typer.Abort):
        return fail("stopped", 130)
    except RuntimeError as fault:
        # What pathlib raises, before Python 3.13, for a link to itself and for a user without a home.
        if not str(fault).startswith(("Symlink loop", "Could not determine home")):
            raise
        return fail(f"{fault}; name another folder, or set HOME", 2)
    except OSError as fault:
        # Errors with no better message below: a folder without permission, a deleted current folder.
        reason = f"{fault.filename}: " * bool(fault.filename) + system_reason(fault)
        if not fault.filename and is_stuck(sys.stdout):
            remedy = "give it a disk with room, or the screen"
            reason = f"standard output can't be written: {reason}; {remedy}"
        silence(sys.stdout)
        return 0 if has_no_reader(fault) else fail(reason, 1)
    return status if isinstance(status, int) else 0


def _bare() -> list[str]:
    """Return the words that none stand for: on a terminal, where a session waits, it goes on."""
    from codingagent.storage import homes

    place = homes.find_home(None, Path.cwd(), os.environ)
    if is_terminal(sys.stdin) and is_terminal(sys.stdout) and (place / "sessions").is_dir():
        home = homes.Home.at(place, create=False, was_found=True)
        if not all(each.is_complete or each.is_closed for each in homes.all_sessions(home, str)):
            return ["resume"]
    return ["--help"]


def _usage(fault: typer.TyperException, arguments: list[str]) -> str:
    """Return what is wrong with a command line, and what was probably meant."""
    context = getattr(fault, "ctx", None)
    command = "" if context is None or context.parent is None else f" {context.info_name}"
    see = f"`codingagent{command} --help` shows how it is used"
    option, param = getattr(fault, "option_name", None), getattr(fault, "param", None)
    message = str(getattr(fault, "message", fault)).rstrip(".")
    if hasattr(fault, "possibilities"):
        if command and option in _BEFORE_COMMANDS:
            where = f"it goes before the command, codingagent {option} …{command} …"
            return f"there is no option {option} after{command}: {where}"
        if not command and not set(NAMES).isdisjoint(arguments):
            where = "it goes after, see `codingagent COMMAND --help`"
            return f"there is no option {option} before the command; {where}"
        close = getattr(fault, "possibilities", None) or ()
        meant = f"; did you mean {' or '.join(close)}?" if close else ";"
        return f"there is no option {option}{meant} `codingagent{command} --help` lists all"
    if option is not None:
        lacks = "requires an argument" in message
        return f"{option} {'needs a value' if lacks else 'takes no value'}; {see}"
    if param is None:
        message = _EXTRA.sub(r"unexpected argument: \1", message)
        return f"{message[:1].lower()}{message[1:]}; {see}"
    name = param.opts[0] if param.opts[0].startswith("-") else param.metavar or param.name.upper()
    if hasattr(fault, "param_type"):
        example = str(context.command.epilog).removeprefix("Example: ") if context else ""
        return f"{name} is missing; for example: {example}"
    unfit = _UNFIT.fullmatch(message)
    if unfit is None:
        return f"{name}: {message}"
    return f"{name} is {unfit[1]}; it must be {_must_be(param.type)}"


def _must_be(kind: object) -> str:
    if choices := getattr(kind, "choices", ()):
        return f"one of {', '.join(choices)}"
    name = str(getattr(kind, "name", "")).partition(" ")[0]
    said = {"int": "a whole number", "float": "a number"}.get(name, f"a {name}")
    least, most = getattr(kind, "min", None), getattr(kind, "max", None)
    if least is not None:
        said += f" from {least} to {most}" if most is not None else f", {least} or more"
    return said


def _show_version(value: bool) -> None:
    if value:
        sys.stdout.write(f"codingagent {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    home: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The folder with inbox/, outbox/ and sessions/."
            " [default: the nearest .codingagent above, else here]",
        ),
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    context.obj = home
    HOME.set(home)
    if any(name.startswith("CODINGAGENT_") for name in os.environ):
        from codingagent.model.settings import strays

        if found := strays(os.environ):
            fail(f"ignored, as no setting is named so: {', '.join(found)}")

    def workspaces() -> list[Path]:
        from codingagent.storage import homes

        return homes.workspaces_of(homes.find_home(home, Path.cwd(), os.environ))

    distrust_later(workspaces)
