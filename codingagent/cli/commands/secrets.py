"""The command that shows which secrets a session hides, and says which may be shown."""

import sys
from typing import Annotated, Literal

import typer
from msgspec.structs import replace

from codingagent.agent.secrecy import vault_file_of
from codingagent.cli import plain_output, stdio, task_input
from codingagent.cli.commands import common, options
from codingagent.errors import UsageError
from codingagent.model.paths import shown
from codingagent.model.plain_text import as_typed
from codingagent.secrets.vault import HiddenValue, Wishes, fits
from codingagent.workspace.real_paths import with_slashes

app = typer.Typer()
_NEXT = "this applies from the next request on; codingagent refresh rewrites the current one"


@app.command(epilog="Example: codingagent secrets allow .env", name="secrets")
def _secrets(
    context: typer.Context,
    action: Annotated[Literal["list", "allow", "hide", "show"], options.option("action")] = "list",
    what: Annotated[str, options.option("what")] = "",
    session: Annotated[str | None, options.option("of secrets")] = None,
    json: options.Json = False,
) -> None:
    """List the secrets that requests replace; allow (send) one, hide a text, or show a value."""
    home = common.home_of(context)
    state = common.latest_of(home) if session is None else home.load(session)
    file = vault_file_of(home.sessions.folder, state)
    held = list(file.load().by_name.values())
    if action == "list":
        _list(held, json=json)
        return
    what = task_input.read_words([what], None, edit=False, may_be_empty=True)
    if not what:
        needed = "text, placeholder" if action == "hide" else "placeholder"
        raise UsageError(f"secrets {action} needs a {needed} or file; `codingagent secrets` lists them")
    if action == "show":
        _show(held, what)
        return
    if any(fits(with_slashes(what), each.name, *each.places) for each in held):
        what = with_slashes(what)
    is_allowed = action == "allow"
    file.keep_wishes(_after(file.wishes(), held, what, is_allowed=is_allowed))
    if is_allowed:
        _list([each for each in held if fits(what, each.name, *each.places)], json=False)
    sys.stdout.write(f"{_NEXT}\n")


def _after(wishes: Wishes, held: list[HiddenValue], what: str, *, is_allowed: bool) -> Wishes:
    """Return the person's wishes with one more."""
    allow = [each for each in wishes.allow if each != what]
    hide = [each for each in wishes.hide if each != what]
    if is_allowed:
        if not any(fits(what, each.name, *each.places) for each in held):
            raise UsageError(f"no hidden secret matches '{shown(what)}'; `codingagent secrets` lists them")
        allow.append(what)
    elif len(allow) == len(wishes.allow):
        hide.append(what)
    return replace(wishes, allow=tuple(allow), hide=tuple(hide))


def _list(held: list[HiddenValue], *, json: bool) -> None:
    if not (held or json):
        sys.stdout.write("no secret was found in this session\n")
    for each in held:
        if json:
            about = {"name": each.name, "kind": each.kind, "allowed": each.is_allowed}
            places = [{"path": path, "line": line} for path, line in each.places.items()]
            plain_output.write_json_line(sys.stdout, {**about, "places": places})
            continue
        where = ", ".join(f"{shown(path)} line {line}" for path, line in each.places.items())
        allowed = "  (allowed)" if each.is_allowed else ""
        sys.stdout.write(f"{each.name}  {where or 'in the conversation'}{allowed}\n")


def _show(held: list[HiddenValue], name: str) -> None:
    """Print a value, on a terminal only, after a yes."""
    found = next((each.value for each in held if each.name == name), None)
    if found is None:
        raise UsageError(f"'{shown(name)}' names no hidden secret; `codingagent secrets` lists them")
    if not (stdio.is_living(sys.stdout) and stdio.is_terminal(sys.stdin)):
        raise UsageError("a value is shown on a terminal only")
    sys.stdout.write(f"show the value of {name} here? [y/N] ")
    sys.stdout.flush()
    if as_typed(sys.stdin.readline()) in ("y", "yes"):
        sys.stdout.write(f"{shown(found)}\n")
