"""Commands that begin something: a session (new, ask), or a run."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from codingagent.agent import factory
from codingagent.cli.command_table import HOME
from codingagent.cli.commands import options
from codingagent.cli.commands.common import here_home, opened, trusted_home
from codingagent.cli.commands.options import CONTEXT, REPLY, RULES, TASK, TRIALS, SessionOptions, with_options
from codingagent.cli.output import screen_for
from codingagent.cli.plain_output import Screen
from codingagent.cli.task_input import read_task
from codingagent.errors import UsageError
from codingagent.model.journal_entries import Attached, Wants
from codingagent.model.paths import shown
from codingagent.model.settings import Settings
from codingagent.process import select_sandbox
from codingagent.storage import homes, own_prompts
from codingagent.storage.homes import Home
from codingagent.workspace.programs import quoted
from codingagent.workspace.real_paths import typed_in

if TYPE_CHECKING:
    from codingagent.cli.shared_session import SharedSession

app = typer.Typer()


@app.command(epilog='Example: codingagent new --here "Add a --verbose option to cli.py"', name="new")
@with_options(f"{TASK} worktree {CONTEXT} check {TRIALS} {REPLY} protocol {RULES} accept_formats yes diff")
def _new(
    context: typer.Context, given: SessionOptions, words: options.TaskWords = None, json: options.Json = False
) -> None:
    """Start a task: write the first request, then wait for the answer."""
    given.check_reply()
    may_be_empty = given.prompt is not None
    task = read_task(words or [], given.file, given.edit, may_be_empty=may_be_empty)
    _begin(context, given, task, "edits", json=json)


@app.command(epilog='Example: codingagent ask --here "Where is the discount computed?"', name="ask")
@with_options(f"{TASK} {CONTEXT} {REPLY} policy secrets")
def _ask(
    context: typer.Context,
    given: SessionOptions,
    words: Annotated[list[str] | None, options.option("question")] = None,
    json: options.Json = False,
) -> None:
    """Ask about the code: the answer is words, and nothing is changed.

    Each further question is typed, or comes with `say`; `/do WISH`, or `say --do WISH`, goes on in the same
    chat with edits.
    """
    given.check_reply()
    may_be_empty = given.prompt is not None
    task = read_task(words or [], given.file, given.edit, "question", may_be_empty=may_be_empty)
    _begin(context, given, task, "words", json=json)


@app.command(epilog="Example: codingagent run operations.json --workspace project > events.json", name="run")
@with_options(f"workspace {RULES} yes")
def _run(
    context: typer.Context,
    file: Annotated[str, options.option("operations")],
    given: SessionOptions,
    events_stream: Annotated[bool, options.option("stream")] = False,
) -> int:
    """Run a JSON operations message, and print the events message.

    Exit status: 0 done (a failed operation is an event), 1 a system fault stopped it, 2 not an
    operations message, 3 an operation waits for approval: see `approve`.
    """
    from codingagent.cli import runs  # pydantic with it: not for --help

    root, was_found = trusted_home(context)
    resolved, folder = homes.settings_for(root, given.settings, os.environ)
    data = runs.read_message(file)
    settings = homes.for_program(resolved)
    select_sandbox.possible_policy(settings, folder)
    home = homes.Home.at(root, create=True, was_found=was_found)
    homes.make_workspace(home.root, folder)
    return runs.execute(home, folder, settings, data, approves_all=given.yes, streams=events_stream)


def _begin(context: typer.Context, given: SessionOptions, task: str, wants: Wants, *, json: bool) -> None:
    with screen_for(json) as screen, _begun(context, given, task, wants, screen) as begun:
        home, shared = begun
        given.tell(shared.work.requests)
        if given.no_wait:
            shared.announce_checked()
        else:
            # What waiting takes is imported once the request is out.
            from codingagent.cli.commands.waiting import follow

            follow(shared, home, screen, given)


def _place(
    context: typer.Context, given: SessionOptions, made: contextlib.ExitStack
) -> tuple[Path, bool, Path | None]:
    """Return the home, whether it was searched for, and the workspace, if one is named.

    Nothing is created yet but a working tree, which `made` takes back.
    """
    workspace, named = given.workspace, None
    if given.worktree is not None:
        from codingagent.agent.commit import PersonsRepository

        folder = here_home(context, workspace, "--worktree").parent
        workspace = PersonsRepository(folder).worktree(given.worktree, made)
        named = workspace / homes.HERE_HOME
    elif given.here:
        named = here_home(context, workspace)
        workspace = named.parent
    return *trusted_home(context, named), workspace


@contextlib.contextmanager
def _begun(
    context: typer.Context, given: SessionOptions, task: str, wants: Wants, screen: Screen
) -> "Iterator[tuple[Home, SharedSession]]":
    """Yield the home and a new session at work there, with its first request written."""
    with contextlib.ExitStack() as stack:
        with contextlib.ExitStack() as made:
            root, was_found, workspace = _place(context, given, made)
            settings, folder, files = checked(given, root, workspace, screen)
            if given.prompt is not None:
                task = f"{_agreed(given.prompt, folder, screen)}\n\n{task}".strip()
            home = homes.Home.at(root, create=True, was_found=was_found)
            stack.enter_context(home.lock.held(screen.remark))
            how = (settings, given.protocol, wants)
            session = factory.start_session(home, folder, task, *how)
            made.pop_all()
        if was_found and not homes.is_registered(home.root):
            HOME.set(home.root)
            screen.remark(
                f"this home can't be remembered, since {homes.registry_entry(home.root).parent} can't be"
                f" written: name it each time, with --home {quoted([str(home.root)])} or as"
                " CODINGAGENT_HOME"
            )
        if given.worktree is not None:
            HOME.set(home.root)
            screen.remark(f"on branch {given.worktree}, in {folder}: type later commands there")
        elif not given.here and not any(folder.iterdir()) and _has_files():
            screen.remark(
                "the workspace is empty, so the model gets no files; to work in this folder instead:"
                " codingagent new --here"
            )
        shared = stack.enter_context(opened(home, session, screen, given, settings=settings))
        requests = shared.work.requests
        requests.begin()
        if files:
            requests.say("", files)
        if settings.check and settings.check_first and not session.is_asking:
            shared.check_first(settings.check_first)
        screen.busy("looking through the workspace", count=screen.files_found)
        requests.write()
        yield home, shared


def _has_files() -> bool:
    """Return whether the current folder has more than a home keeps there."""
    own = {"workspace", "outbox", "inbox", "sessions"}
    return any(name not in own and not name.startswith(".") for name in os.listdir())


def checked(
    given: SessionOptions, root: Path, workspace: Path | None, screen: Screen
) -> tuple[Settings, Path, dict[str, Attached]]:
    """Return settings, workspace and files; create nothing: a path may be mistyped."""
    named = None if workspace is None else str(workspace)
    options = {**given.settings, "workspace": named}
    resolved, folder = homes.settings_for(root, options, os.environ)
    settings = resolved.settings
    rules = select_sandbox.possible_policy(settings, folder)
    patterns = [_there(each, folder, given.worktree) for each in given.attach or ()]
    files = factory.attached(root, folder, patterns, rules, screen.show)
    for pattern in settings.always_attach if folder.is_dir() else ():
        try:
            own = [os.path.join(folder, pattern)]
            files = factory.attached(root, folder, own, rules, screen.show) | files
        except UsageError as fault:  # it need not fit each workspace
            screen.remark(f"always_attach {fault}")
    return settings, folder, files


def _there(pattern: str, tree: Path, branch: str | None) -> str:
    """Return what names in a branch's working tree the files that a pattern names in the current folder."""
    near = typed_in(Path.cwd(), pattern, Path.cwd()) if branch and pattern else None
    if near is None:
        return pattern
    found = os.path.join(tree, near)
    if os.path.lexists(near) and not os.path.lexists(found):
        raise UsageError(
            f"--attach '{shown(pattern)}': that is not on branch {branch}, where the task works: commit it"
            " there first, or begin with --here"
        )
    return found


def _agreed(name: str, workspace: Path, screen: Screen) -> str:
    """Return the text of a prompt; the person is asked once about one that they may not have written."""
    found = own_prompts.named(name, workspace)
    text = found.text()
    if not (found.is_trusted or own_prompts.is_agreed(text, workspace)):
        screen.remark(f"the repository's prompt, {found.path}:")
        for line in text.split("\n"):
            screen.remark(f"  {line}")
        choices = ("yes: and don't ask again while they stay so", "no: begin nothing")
        choice = screen.choose("send these words, which are the repository's?", choices)
        if choice is None:
            own = own_prompts.folder_of_own() / found.path.name
            raise UsageError(
                f"{found.path} is the repository's: use it once on a terminal, or copy it to {own}"
            )
        if choice:
            raise UsageError(f"{found.path} was not used, and nothing was begun")
        own_prompts.agree(text)
    return text
