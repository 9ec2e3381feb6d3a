"""Keep house: name, end and delete sessions; show what chats do not see, and what commands see."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer
from msgspec.structs import replace

from codingagent.agent.secrecy import vault_file_of
from codingagent.agent.tried import folder_of
from codingagent.cli import output, plain_output, stdio, tables, task_input
from codingagent.cli.commands.common import home_of, latest_of, trusted_home
from codingagent.cli.commands.options import Json, option
from codingagent.errors import CodingAgentError, UsageError, WorkError, disk_errors
from codingagent.model import plain_text, session_state
from codingagent.model.journal_entries import SessionClosed, SessionRenamed, is_session_id
from codingagent.model.paths import shown
from codingagent.process.select_sandbox import forget_layer_of, seen_folders
from codingagent.secrets.vault import HiddenValue, Wishes, fits
from codingagent.storage import atomic_write, clock, homes, journal, lock
from codingagent.storage.mailbox import Mailbox
from codingagent.workspace.dirfd import retried
from codingagent.workspace.real_paths import with_slashes

app = typer.Typer()
_Named = Annotated[str, option("named")]
_Open = Annotated[str | None, option("only open")]


@app.command(epilog="Example: codingagent close a1b2c3d4", name="close")
def _close(context: typer.Context, session: _Open = None, json: Json = False) -> None:
    """End a session whose task is not done: its answers are no longer applied. `say` reopens it."""
    home = home_of(context)
    if not session:
        found = [each for each in homes.all_sessions(home, output.fail) if not each.is_complete]
        if len(found) != 1:
            named = f"{len(found)} are open; name one of: {', '.join(map(homes.told_as, found))}"
            raise UsageError(named if found else "no session is open: nothing was closed")
        session = found[0].session_id
    with output.screen_for(json) as screen, home.lock.held(screen.remark):
        state = home.sessions.load(session)
        if state.is_complete:
            raise UsageError(f"session {homes.told_as(state)} is done already")
        if state.phase not in (session_state.Phase.AWAITING_ANSWER, session_state.Phase.REQUEST_DUE):
            waits = state.phase is session_state.Phase.AWAITING_APPROVAL
            way = "answer it with approve or deny" if waits else f"`codingagent resume {session}`"
            raise UsageError(f"session {homes.told_as(state)} is in the middle of a turn: first {way}")
        _record(home, state, SessionClosed(clock.now()))
        atomic_write.remove_folder(folder_of(home, session))
        screen.remark(
            f"closed {homes.told_as(state)}; `codingagent say {session} TEXT` reopens it, `codingagent"
            f" delete {session}` deletes it"
        )


def _record(home: homes.Home, state: session_state.Session, record: SessionClosed | SessionRenamed) -> None:
    with contextlib.closing(journal.SessionLog(home.sessions.open(state.session_id), state)) as log:
        log.record(record)
        log.sync()
        home.sessions.write_document(log.session)


@app.command(epilog='Example: codingagent rename a1b2c3d4 "verbose option"', name="rename")
def _rename(
    context: typer.Context, session: _Named, name: Annotated[str, option("name")], json: Json = False
) -> None:
    """Name a session: lists show the name in place of the task."""
    home = home_of(context)
    name = plain_text.one_line(" ".join(name.split()), 60)
    with output.screen_for(json) as screen, home.lock.held(screen.remark):
        state = home.sessions.load(session)
        _record(home, state, SessionRenamed(name, clock.now()))
        screen.remark(f"session {session} is called {name}" if name else f"{session} has no name")


@app.command(epilog="Example: codingagent delete a1b2c3d4 --yes", name="delete")
def _delete(
    context: typer.Context,
    session: _Named,
    yes: Annotated[bool, option("delete")] = False,
    json: Json = False,
) -> None:
    """Delete a session with its undo history, secrets, requests and answers. The workspace stays."""
    home = home_of(context)
    with output.screen_for(json) as screen, home.lock.held(screen.remark):
        # A damaged journal can be deleted too, and what an interrupted deletion left.
        if not (is_session_id(session) and (home.sessions.folder / session).is_dir()):
            home.sessions.journal_path(session)  # says what is wrong
        if not yes:
            if not (stdio.is_terminal(sys.stdin) and stdio.is_terminal(sys.stdout)):
                raise UsageError("there is no terminal to ask on; add --yes")
            asked = f"delete session {session} with its undo history and requests? It stays deleted"
            with home.lock.set_aside(screen.remark):
                chosen = screen.choose(asked, ("yes: delete it", "no: keep it"))
            if chosen != 0:
                screen.remark("nothing was deleted")
                return
        if lock.is_held(home.waiting_path(session)):  # Windows keeps the files that it has open
            raise UsageError(
                f"another terminal waits for session {session}: end it there, with Ctrl-C, or by `codingagent"
                f" close {session}`; then delete the session"
            )
        with contextlib.suppress(CodingAgentError):  # its journal may be damaged
            terms = home.sessions.load(session).terms
            _remove(homes.agreed_path(homes.terms_text(home.root, terms)))
            forget_layer_of(Path(terms.workspace))
        for path in _parts(home, session):
            _remove(path)
        screen.remark(f"deleted session {session}; the workspace is as it was")


def _parts(home: homes.Home, session_id: str) -> Iterator[Path]:
    """Yield what belongs to a session, its own folder last: until then it can be deleted again."""
    mailbox = home.mailbox
    short, parts = mailbox.outbox / "short", mailbox.outbox / "parts"
    for folder in (mailbox.outbox, short, parts, mailbox.processed):
        with contextlib.suppress(FileNotFoundError), os.scandir(folder) as found:
            named = [(each.path, Mailbox.named(each.name)) for each in found]
            yield from (Path(path) for path, name in named if name and name[0] == session_id)
    yield home.sessions.folder / f"{session_id}.json"
    yield home.sessions.folder / session_id


def _remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it; a link is removed, not followed."""
    with disk_errors(f"{path} can't be deleted"):
        if path.is_symlink() or not path.is_dir():
            retried(lambda: path.unlink(missing_ok=True))
        else:
            atomic_write.remove_folder(path)
            if path.exists():
                path.rmdir()  # says why not


@app.command(epilog="Example: codingagent sandbox --forget", name="sandbox")
def _sandbox(
    context: typer.Context, forget: Annotated[bool, option("forget")] = False, json: Json = False
) -> None:
    """Show what commands see of your tools and where they write; forget that."""
    home, _ = trusted_home(context)
    resolved, workspace = homes.settings_for(home, {}, os.environ)
    if forget:
        if not forget_layer_of(workspace):
            raise WorkError("a command uses the layer; end it, and try again")
        tables.show_lines([[("forgotten: the next command begins with your tools' folders as they are", "")]])
        return
    seen, layer = seen_folders(resolved.settings, workspace)
    for tool, how, path in seen:
        if json:
            plain_output.write_json_line(sys.stdout, {"tool": tool, "access": how, "path": path})
        else:
            tables.show_lines([[(f"{tool}  ", "bold"), (f"{path}  ", ""), (how, "dim")]])
    if not json:
        tables.show_lines([[(f"the layer: {layer}", "")]])


@app.command(epilog="Example: codingagent secrets allow .env", name="secrets")
def _secrets(
    context: typer.Context,
    action: Annotated[Literal["list", "allow", "hide", "show"], option("action")] = "list",
    what: Annotated[str, option("what")] = "",
    session: Annotated[str | None, option("of secrets")] = None,
    json: Json = False,
) -> None:
    """List the secrets that requests replace; allow (send) one, hide a text, or show a value."""
    home = home_of(context)
    state = latest_of(home) if session is None else home.load(session)
    file = vault_file_of(home.sessions.folder, state)
    held = list(file.load().by_name.values())
    if action == "list":
        _list_secrets(held, json=json)
        return
    what = task_input.read_words([what], None, edit=False, may_be_empty=True)
    if not what:
        needed = "text, placeholder" if action == "hide" else "placeholder"
        raise UsageError(f"secrets {action} needs a {needed} or file; `codingagent secrets` lists them")
    if action == "show":
        _show_value(held, what)
        return
    if any(fits(with_slashes(what), each.name, *each.places) for each in held):
        what = with_slashes(what)
    is_allowed = action == "allow"
    file.keep_wishes(_wishes_after(file.wishes(), held, what, is_allowed=is_allowed))
    if is_allowed:
        _list_secrets([each for each in held if fits(what, each.name, *each.places)], json=False)
    applies = "this applies from the next request on; codingagent refresh rewrites the current one"
    sys.stdout.write(f"{applies}\n")


def _wishes_after(wishes: Wishes, held: list[HiddenValue], what: str, *, is_allowed: bool) -> Wishes:
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


def _list_secrets(held: list[HiddenValue], *, json: bool) -> None:
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


def _show_value(held: list[HiddenValue], name: str) -> None:
    """Print a value, on a terminal only, after a yes."""
    found = next((each.value for each in held if each.name == name), None)
    if found is None:
        raise UsageError(f"'{shown(name)}' names no hidden secret; `codingagent secrets` lists them")
    if not (stdio.is_living(sys.stdout) and stdio.is_terminal(sys.stdin)):
        raise UsageError("a value is shown on a terminal only")
    sys.stdout.write(f"show the value of {name} here? [y/N] ")
    sys.stdout.flush()
    if plain_text.as_typed(sys.stdin.readline()) in ("y", "yes"):
        sys.stdout.write(f"{shown(found)}\n")
