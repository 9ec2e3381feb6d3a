"""All commands by name, with the module of each: a start imports only what its command needs."""

from typing import NamedTuple


class Entry(NamedTuple):
    """A command: its module in `commands`, and a one-line summary.

    Not a Struct: importing msgspec costs `--help` and `--version` a tenth.
    """

    module: str
    does: str


# Only the command that is named is imported and built: typer's work on the options of all of them would
# cost every start more than everything else. A test compares these lines with the definitions.
COMMANDS = {
    "Work on a task": {
        "new": Entry("begin", "Start a task: write the first request, then wait for the answer."),
        "ask": Entry("begin", "Ask about the code: the answer is words, and nothing is changed."),
        "resume": Entry("session", "Continue a session: apply the answer, or wait for one."),
        "say": Entry("amend", "Add your words, or files, to the current request."),
        "copy": Entry("clipboard", "Put the current request on the clipboard."),
        "paste": Entry("clipboard", "Save the chat's answer in the inbox."),
        "approve": Entry("session", "Approve the operation that waits for approval, and continue."),
        "deny": Entry("session", "Deny the operation that waits for approval, and continue."),
    },
    "Look back, undo, commit": {
        "show": Entry("inspect", "Show one session: its turns, results, files."),
        "diff": Entry("inspect", "Show what a session changed."),
        "undo": Entry("session", "Undo the last turns: restore the files that they changed."),
        "commit": Entry("commit", "Commit what a session changed, and nothing else."),
        "list": Entry("inspect", "List the sessions, the latest first."),
        "log": Entry("inspect", "Show everything that happened in a session."),
    },
    "Adjust": {
        "context": Entry("inspect", "Show which files a task's first request would show."),
        "refresh": Entry("amend", "Rewrite the current request from the files as they are now."),
        "secrets": Entry("secrets", "List the secrets that requests replace; allow (send) some."),
        "revoke": Entry("amend", "Withdraw an approval that you gave with --always."),
        "config": Entry("inspect", "Show the settings and where each comes from, or change yours."),
        "rename": Entry("housekeeping", "Name a session."),
        "close": Entry("housekeeping", "End a session whose task is not done."),
        "delete": Entry(
            "housekeeping", "Delete a session, its undo history, requests and answers."
        ),
    },
    "Help": {
        "help": Entry("help", "Show a page of the documentation, or list the pages."),
        "doctor": Entry("inspect", "Check this machine, and say how to get what is missing."),
        "demo": Entry("inspect", "Watch a small real task being solved, with recorded answers."),
    },
    "For programs": {
        "run": Entry("run", "Run a JSON operations message."),
        "schema": Entry("inspect", "Print the JSON Schema of operations, events or settings."),
        "serve": Entry("serve", "Serve a folder or a whole machine over JSON-RPC 2.0."),
        "call": Entry("serve", "Call a method of a JSON-RPC server."),
    },
}

NAMES = tuple(name for group in COMMANDS.values() for name in group)
