"""The command that shows which files a request would show for a task; it starts nothing."""

import os
import sys
from pathlib import Path

import typer

from codingagent.cli.commands import options
from codingagent.cli.commands.common import trusted_home
from codingagent.cli.output import fail
from codingagent.cli.plain_output import write_json_line
from codingagent.cli.task_input import read_task

app = typer.Typer()


@app.command(epilog='Example: codingagent context "Add a --verbose option"', name="context")
def _context(  # noqa: PLR0913, PLR0917  # one for each command-line option
    context: typer.Context,
    words: options.TaskWords = None,
    file: options.TaskFile = None,
    workspace: options.WorkspaceFolder = None,
    tokens: options.ContextTokens = None,
    leave_out: options.LeaveOut = None,
    json: options.Json = False,
) -> None:
    """Show which files the first request would show for a task, and how much of each."""
    from codingagent.agent.factory import guessed
    from codingagent.storage import homes

    task = read_task(words or [], file, edit=False)
    root, _ = trusted_home(context)
    given = {"context": tokens, "leave_out": leave_out}
    resolved, folder = homes.settings_for(root, given, os.environ, workspace or Path.cwd())
    guess, conventions = guessed(root, folder, task, resolved.settings)
    for part in guess.chosen if json else ():
        about = {"path": part.file.path, "whole": part.is_whole, "shown_lines": len(part.shown)}
        write_json_line(sys.stdout, {**about, "lines": part.total, "tokens": part.tokens})
    for view in conventions:
        if json:
            write_json_line(sys.stdout, {"path": view.path, "conventions": True})
        else:
            sys.stdout.write(f"{view.path}: the repository's conventions\n")
    for line in () if json else guess.told():
        sys.stdout.write(f"{line}\n")
    if not (guess.chosen or conventions or json):
        fail(f"no file of {folder} is chosen for this task")
