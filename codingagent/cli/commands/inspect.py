"""Read-only commands: show sessions, settings and this machine."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer
from msgspec import to_builtins
from msgspec.structs import replace

from codingagent.agent.secrecy import Secrecy, secrecy_of
from codingagent.checkpoints.history import HistoryStep
from codingagent.cli import command_table, record_words, stdio, tables, task_input
from codingagent.cli.commands import options
from codingagent.cli.commands.common import home_of, latest_of, trusted_home
from codingagent.cli.commands.options import Json, SessionName, option
from codingagent.cli.output import fail, screen_for
from codingagent.cli.plain_output import write_json_line
from codingagent.errors import CodingAgentError, UsageError, WorkError
from codingagent.model import events, plain_text
from codingagent.model.session_state import Session
from codingagent.storage import homes, journal

app = typer.Typer()

# More of them tell nobody anything; their turns tell how many there were.
_LINES = 600


@app.command(epilog="Example: codingagent list verbose", name="list")
def _list(
    context: typer.Context,
    words: Annotated[list[str] | None, option("words")] = None,
    runs: Annotated[bool, option("runs")] = False,
    all_: Annotated[bool, option("all")] = False,
    json: Json = False,
) -> None:
    """List the sessions, the latest first."""
    home = home_of(context)
    newest = None if all_ or words else homes.NEWEST
    found = homes.all_sessions(home, fail, runs=runs, newest=newest)
    count = len((home.runs if runs else home.sessions).ids())
    if newest and count > newest:
        fail(f"these are the latest {newest} of {count}: --all lists the others, too")
    shown = [each for each in found if all_ or words or not each.is_closed]
    if len(shown) < len(found):
        fail(f"closed sessions are left out ({len(found) - len(shown)}): --all lists them, too")
    readable = _readable(home, shown)
    sessions = [secrecy.hide_all(each) if json else _listed(each, secrecy) for each, secrecy in readable]
    wanted = [word.casefold() for word in words or ()]
    sessions = [each for each in sessions if all(word in _told(each) for word in wanted)]
    if wanted and not sessions:
        fail(f"no session has {' and '.join(words or ())} in its task or its summary")
    elif sessions or not count:
        tables.show_sessions(sessions, runs=0 if runs else len(home.runs.ids()), json=json)


def _listed(session: Session, secrecy: Secrecy) -> Session:
    """Return a session without the secrets in what a list tells of it; it may have thousands of results."""
    ends = tuple(each for each in session.results if isinstance(each, events.Finished))
    told = {"name": session.name, "task": session.task, "results": ends}
    return replace(session, **secrecy.hide_all(told))


def _told(session: Session) -> str:
    """Return the words by which a session is found."""
    ends = (event.summary for event in session.results if isinstance(event, events.Finished))
    return "\n".join((session.name, session.task, *ends)).casefold()


@app.command(epilog="Example: codingagent show a1b2c3d4", name="show")
def _show(
    context: typer.Context,
    session: SessionName = None,
    markdown: Annotated[bool, option("markdown")] = False,
    output: Annotated[bool, option("output")] = False,
    turn: Annotated[int | None, option("turn of output", min=0)] = None,
    json: Json = False,
) -> None:
    """Show one session: turns, results, changed files, and what to do next."""
    home = home_of(context)
    ids = home.sessions.ids()  # the only one need not be read to be chosen
    name = session or (ids[0] if len(ids) == 1 else latest_of(home, or_run=True).session_id)
    told, early = home.outcomes(name, None if markdown else _LINES)
    state = told[-1][1]
    request = home.mailbox.outbox_path(state.session_id, state.sequence)
    if state.is_awaiting_answer and not (state.is_of_tools or request.exists()):
        fail(f"{request} is missing: `codingagent refresh {state.session_id}` writes it again")
    secrecy = secrecy_of(home.sessions.folder, state)
    hide_all = secrecy.hide_all
    if output or turn is not None:
        ran = record_words.outputs(map(hide_all, home.records(state.session_id)), turn)
        tables.show_lines(([(line, "")] for line in ran.split("\n")), may_page=True)
        return
    if json:
        state, every = home.load(state.session_id), home.records(state.session_id)
        shown, records = hide_all(state), map(hide_all, every)
        more = {"said": list(map(to_builtins, shown.said)), "granted": sorted(shown.granted)}
        more["records"] = list(map(to_builtins, records))
        write_json_line(sys.stdout, {**journal.document(shown), **more})
        return
    names = {each: hide_all(getattr(state, each)) for each in ("name", "task", "granted")}
    hidden = (secrecy.record(*each) for each in told if not isinstance(each[0], tables.UNTOLD))
    if markdown:
        tables.show_as_markdown(replace(state, **names), hidden)
    else:
        tables.show_session(replace(state, **names), hidden, home.mailbox, early)


def _readable(home: homes.Home, states: list[Session]) -> Iterator[tuple[Session, Secrecy]]:
    """Yield sessions with what hides their secrets; name those whose vault is damaged."""
    for state in states:
        try:
            secrecy = secrecy_of(home.sessions.folder, state)
        except WorkError as fault:
            fail(f"{state.session_id} is not shown: {fault}")
        else:
            yield state, secrecy


@app.command(epilog="Example: codingagent log a1b2c3d4", name="log")
def _log(
    context: typer.Context,
    session: SessionName = None,
    egress: Annotated[bool, option("egress")] = False,
    json: Json = False,
) -> None:
    """Show everything that was asked, tried, blocked and done, with its time."""
    home = home_of(context)
    if egress:
        chosen = [home.load(session)] if session else homes.all_sessions(home, fail, newest=None)
        by_age = sorted(chosen, key=lambda each: each.created_at)
        for state, secrecy in _readable(home, by_age):
            records = map(secrecy.hide_all, home.records(state.session_id))
            tables.show_egress(state.session_id, records, json=json)
        return
    state = latest_of(home, or_run=True) if session is None else home.load(session)
    hide_all = secrecy_of(home.sessions.folder, state).hide_all
    records = map(hide_all, home.records(state.session_id))
    if not json:
        tables.show_lines(tables.timed(records, home.mailbox), may_page=True)
    for record in records if json else ():
        write_json_line(sys.stdout, to_builtins(record))


@app.command(epilog="Example: codingagent diff --turn 2", name="diff")
def _diff(  # noqa: PLR0913, PLR0917  # one for each command-line option
    context: typer.Context,
    session: SessionName = None,
    turn: Annotated[int | None, option("turn", min=1)] = None,
    stat: Annotated[bool, option("stat")] = False,
    name_only: Annotated[bool, option("name only")] = False,
    whole: Annotated[bool, option("whole session")] = False,
    json: Json = False,
) -> None:
    """Show what a session changed since its last commit, by file operations and by commands."""
    from codingagent.checkpoints import undo

    home = home_of(context)
    state = latest_of(home, or_run=True) if session is None else home.load(session)
    with undo.history_of(home, state) as (checkpoints, steps):
        hide = secrecy_of(home.sessions.folder, state).hide_diffs
        how: tables.DiffForm = "name-only" if name_only else "stat" if stat else "lines"
        is_all = whole or turn is not None
        chosen, since = (steps, "") if is_all else _since_commit(home, state)
        if since and not json:
            what = f"{'what' if chosen else 'nothing'} came since commit {since[:10]}"
            told = command_table.runnable(f"{what}; `codingagent diff --all` shows all of the session\n")
            # Names may be for a program.
            (sys.stderr if name_only else sys.stdout).write(told)
        if chosen or not since:
            tables.show_diff(checkpoints, chosen, turn, hide, how, json=json)
        elif json and how == "lines":
            write_json_line(sys.stdout, {"turns": [], "diff": "", "left_out": []})


def _since_commit(home: homes.Home, state: Session) -> tuple[tuple[HistoryStep, ...], str]:
    """Return what a session did since its last commit, and that commit; all, if HEAD holds none."""
    from codingagent.agent.commit import PersonsRepository
    from codingagent.agent.uncommitted import work_since_commit

    def holds(commit: str) -> bool:
        with contextlib.suppress(CodingAgentError):  # the repository may be gone
            return PersonsRepository(Path(state.workspace)).holds(commit)
        return False

    work = work_since_commit(home.records(state.session_id), holds)
    return work.steps, work.since


@app.command(epilog='Example: codingagent context "Add a --verbose option"', name="context")
@options.with_options("file workspace attach tokens leave_out no_conventions check secrets")
def _context(
    context: typer.Context, given: options.SessionOptions, words: options.TaskWords = None, json: Json = False
) -> None:
    """Show which parts of files the first request would show for a task."""
    from codingagent.agent.factory import drafted, secrecy_for
    from codingagent.cli.commands.begin import checked
    from codingagent.context import show

    task, workspace = task_input.read_task(words or [], given.file, edit=False), given.workspace
    root, was_found = trusted_home(context)
    if was_found and not (root / "sessions").is_dir():
        # As `new --here` would, which was not run yet.
        root, workspace = Path.cwd() / homes.HERE_HOME, workspace or Path.cwd()
    with screen_for(json) as screen:
        settings, folder, files = checked(given, root, workspace, screen)
    material, guess = drafted(root, folder, task, settings, files)
    hide = secrecy_for(settings).hide
    attached = [show.as_chosen(view, "attached") for view in material.views]
    stdio.be_utf8(sys.stdout)
    if json:
        chosen = show.for_programs(guess.chosen if guess else (), time.time())
        conventions = ({"path": view.path, "conventions": True} for view in material.conventions)
        for part in (*show.for_programs(attached, 0), *chosen, *conventions):
            write_json_line(sys.stdout, {**part, "path": hide(part["path"])})
        return
    conventions_told = (f"{view.path}: the repository's conventions" for view in material.conventions)
    told = (*show.for_person(attached, 0), *conventions_told, *(guess.told() if guess else ()))
    for line in told:
        sys.stdout.write(f"{plain_text.on_screen(hide(line))}\n")
    if not told:
        fail(f"no file of {folder} is chosen for this task")


@app.command(epilog="Example: codingagent config set clipboard auto", name="config")
def _config(  # one for each command-line option
    context: typer.Context,
    words: Annotated[list[str] | None, option("config")] = None,
    here: Annotated[bool, option("config here")] = False,
    json: Json = False,
) -> None:
    """Show the settings and where each comes from, or change yours."""
    from codingagent.policy.rules import describe
    from codingagent.process.select_sandbox import policy_of

    root, was_found = trusted_home(context)
    if here and was_found and not (root / "sessions").is_dir():
        root = Path.cwd() / homes.HERE_HOME  # as `new --here` would, which was not run yet
    if words and words != ["policy"]:
        _change_settings(root, words, here=here)
        return
    resolved, workspace = homes.settings_for(root, {}, os.environ)
    if not words:
        tables.show_settings(root, workspace, resolved, json=json)
        return
    policy = policy_of(resolved.settings, workspace)
    granted: dict[str, list[str]] = {}
    if (root / "sessions").is_dir():
        found = homes.all_sessions(home_of(context), fail)
        granted = {each.session_id: sorted(each.granted) for each in found if each.granted}
    tables.show_policy(policy, describe(policy), granted, json=json)


def _change_settings(root: Path, words: list[str], *, here: bool) -> None:
    """Change the person's settings: for all workspaces, or for that of a home."""
    from codingagent.cli import edit_settings

    workspace, found = None, None
    if here:
        found, workspace = homes.settings_for(root, {}, os.environ)
        if not homes.is_out_of_reach(workspace):
            raise UsageError(f"your settings are in {workspace}, where an answer can write them")
    path = homes.settings_path(workspace)
    match words:
        case ["set", "workspace", _] if here:
            raise UsageError("the settings of a workspace can't name another; leave out --here")
        case ["set" | "add" as how, key, *value] if value:
            kept = getattr(found and found.settings, key, ()) if how == "add" else None
            edit_settings.set_value(path, key, ",".join(value), kept)
            now, _ = homes.settings_for(root, {}, os.environ)
            is_lower = now.origins[key] != ("your settings here" if here else "your settings")
            fail(f"{key} is set in {path}" + f"; but here {now.origins[key]} says otherwise" * is_lower)
        case ["unset", key]:
            was_there = edit_settings.unset(path, key)
            fail(f"{key} is {'no longer' if was_there else 'not'} set in {path}")
        case ["edit"]:
            edit_settings.edit(path)
        case _:
            raise UsageError(
                "use `config set KEY VALUE`, `config add KEY VALUE`, `config unset KEY`, `config edit` or"
                " `config policy`"
            )


@app.command(epilog="Example: codingagent schema operations > operations.schema.json", name="schema")
def _schema(of: Annotated[Literal["operations", "events", "settings"], option("schema")]) -> None:
    """Print the JSON Schema (draft 2020-12) of JSON operations, of events, or of the settings."""
    import json

    if of == "settings":
        from codingagent.model import settings

        found = settings.schema()
    else:
        from codingagent.protocols.json import wire

        form = wire.OperationsMessage if of == "operations" else wire.EventsMessage
        found = wire.schema_of(form)
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
