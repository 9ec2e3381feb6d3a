"""Commands that begin something: a session (new, ask), a run, or the demo: only its answers are recorded."""

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from codingagent.agent import factory
from codingagent.cli import command_table, output, plain_output, task_input
from codingagent.cli.commands import options
from codingagent.cli.commands.common import here_home, opened, trusted_home
from codingagent.cli.commands.options import CONTEXT, REPLY, RULES, TASK, TRIALS, SessionOptions, with_options
from codingagent.errors import UsageError, WorkError
from codingagent.model import observations
from codingagent.model.journal_entries import Attached, Wants
from codingagent.model.paths import shown
from codingagent.model.settings import Settings
from codingagent.process import select_sandbox
from codingagent.storage import homes, own_prompts
from codingagent.workspace import dirfd, programs, real_paths

app = typer.Typer()


@app.command(epilog='Example: codingagent new --here "Add a --verbose option to cli.py"', name="new")
@with_options(
    f"{TASK} worktree {CONTEXT} check {TRIALS} {REPLY} protocol guide {RULES} accept_formats yes diff"
)
def _new(
    context: typer.Context, given: SessionOptions, words: options.TaskWords = None, json: options.Json = False
) -> None:
    """Start a task: write the first request, then wait for the answer."""
    _begin(context, given, words or [], "edits", json=json)


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
    _begin(context, given, words or [], "words", json=json)


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


def _place(
    context: typer.Context, given: SessionOptions, made: contextlib.ExitStack
) -> tuple[Path, bool, Path | None]:
    """Return the home, whether it was searched for, and the workspace if named; `made` undoes a worktree."""
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


def _begin(
    context: typer.Context, given: SessionOptions, words: list[str], wants: Wants, *, json: bool
) -> None:
    given.check_reply()
    what = "question" if wants == "words" else "task"
    task = task_input.read_task(words, given.file, given.edit, what, may_be_empty=given.prompt is not None)
    with output.screen_for(json) as screen, contextlib.ExitStack() as stack:
        with contextlib.ExitStack() as made:
            root, was_found, workspace = _place(context, given, made)
            settings, folder, files = checked(given, root, workspace, screen)
            if given.prompt is not None:
                task = f"{_agreed(given.prompt, folder, screen)}\n\n{task}".strip()
            home = homes.Home.at(root, create=True, was_found=was_found)
            stack.enter_context(home.lock.held(screen.remark))
            session = factory.start_session(home, folder, task, settings, given.protocol, wants)
            made.pop_all()
        _tell_where(given, home, was_found, folder, screen)
        shared = stack.enter_context(opened(home, session, screen, given, settings=settings))
        requests = shared.work.requests
        requests.begin()
        if files:
            requests.say("", files)
        if settings.check and settings.check_first and not session.is_asking:
            shared.check_first(settings.check_first)
        screen.busy("looking through the workspace", count=screen.files_found)
        given.tell(requests)
        requests.write()
        if given.no_wait:
            shared.announce_checked()
            return
        # What waiting takes is imported once the request is out.
        from codingagent.cli.commands.waiting import follow

        follow(shared, home, screen, given)


def _tell_where(
    given: SessionOptions, home: homes.Home, was_found: bool, folder: Path, screen: plain_output.Screen
) -> None:
    """Say what a person could not know of the home and the workspace."""
    if was_found and not homes.is_registered(home.root):
        command_table.HOME.set(home.root)
        screen.remark(
            f"this home can't be remembered, since {homes.registry_entry(home.root).parent} can't be"
            f" written: name it each time, with --home {programs.quoted([str(home.root)])} or as"
            " CODINGAGENT_HOME"
        )
    own = {"workspace", "outbox", "inbox", "sessions"}
    if given.worktree is not None:
        command_table.HOME.set(home.root)
        screen.remark(f"on branch {given.worktree}, in {folder}: type later commands there")
    elif (
        not given.here
        and not any(folder.iterdir())
        and any(n[0] != "." and n not in own for n in os.listdir())
    ):
        screen.remark(
            "the workspace is empty, so the model gets no files; to work in this folder instead:"
            " codingagent new --here"
        )


def checked(
    given: SessionOptions, root: Path, workspace: Path | None, screen: plain_output.Screen
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
    near = real_paths.typed_in(Path.cwd(), pattern, Path.cwd()) if branch and pattern else None
    if near is None:
        return pattern
    found = os.path.join(tree, near)
    if os.path.lexists(near) and not os.path.lexists(found):
        raise UsageError(
            f"--attach '{shown(pattern)}': that is not on branch {branch}, where the task works: commit it"
            " there first, or begin with --here"
        )
    return found


def _agreed(name: str, workspace: Path, screen: plain_output.Screen) -> str:
    """Return the text of a prompt; the person is asked once about one that they may not have written."""
    found = own_prompts.named(name, workspace)
    text = found.text()
    if not (found.is_trusted or homes.is_agreed(text, workspace)):
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
        homes.agree(text)
    return text


@app.command(epilog="Example: codingagent demo", name="demo")
def _demo(json: options.Json = False) -> None:
    """Watch a small real task being solved, with recorded answers."""
    import shutil
    import tempfile
    from importlib.resources import as_file, files

    from codingagent.cli import inbox_loop

    with (
        output.screen_for(json) as screen,
        tempfile.TemporaryDirectory(prefix="ca-demo-", ignore_cleanup_errors=True) as folder,
        as_file(files("codingagent") / "demo") as recorded,
    ):
        home = homes.Home.at(Path(folder), create=True, is_passing=True)
        workspace = homes.workspace_of(home.root, Settings())
        shutil.copytree(recorded / "workspace", workspace, dirs_exist_ok=True)
        if sys.platform != "linux":
            # `python` is else the Store's or Apple's, which runs nothing.
            programs.put_first(str(Path(sys.executable).parent))
        screen.is_passing = True
        said = "The answers are recorded; the edits, commands and tests are real."
        screen.remark(f"A demo in {folder}, which is deleted at the end. {said}")
        task = (recorded / "task.txt").read_text("utf-8").strip()
        screen.remark(f"Task: {task}")
        with home.lock.held():
            session = factory.start_session(home, workspace, task, Settings())
            with opened(home, session, screen, settings=Settings()) as shared:
                shared.go_on()
                replies = iter(sorted((recorded / "replies").glob("*.txt")))
                save = partial(_save_next, replies, home.mailbox.inbox, session.session_id, screen)
                inbox_loop.follow(shared, inbox_loop.Inbox(home.mailbox), save)
        for line in (recorded / "after.txt").read_text("utf-8").splitlines():
            screen.remark(line)


def _save_next(
    replies: Iterator[Path], inbox: Path, session_id: str, screen: plain_output.Screen, _: float
) -> Mapping[str, observations.Hint]:
    """Save the next recorded answer in the inbox: the agent waits."""
    reply = next(replies, None)
    if reply is None:
        raise WorkError(
            "the last recorded answer was not accepted: its tests can't run on this machine (see above);"
            " `codingagent doctor` shows what is missing"
        )
    text = reply.read_text("utf-8").replace("00000000", session_id)  # recorded in its place
    if os.name == "nt":
        text = text.replace("python3 ", "python ")
    screen.remark(f"(saving the recorded answer {reply.stem} in the inbox)")
    # Written under another name and renamed, as browsers do with downloads.
    part = inbox / f"{reply.stem}.part"
    part.write_text(text, "utf-8")
    dirfd.retried(lambda: part.rename(inbox / reply.name))
    return {reply.name: observations.Hint.CLOSED}
