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
    "The loop": {
        "new": Entry("begin", "Start a task: write the first request, then wait for the answer."),
        "ask": Entry("begin", "Ask about the code: the answer is words, and nothing is changed."),
        "context": Entry("inspect", "Show which files a task's first request would show."),
        "resume": Entry("session", "Continue a task: take the answer, or wait for it."),
        "say": Entry("amend", "Add your words, or files, to the waiting request."),
        "refresh": Entry("amend", "Rewrite the waiting request from the files as they are now."),
        "approve": Entry("session", "Approve the operation that awaits approval, and continue."),
        "deny": Entry("session", "Refuse the operation that awaits approval, and continue."),
        "revoke": Entry("amend", "Revoke an approval that you gave with --always."),
        "copy": Entry("clipboard", "Put the waiting request on the clipboard."),
        "paste": Entry("clipboard", "Save the chat's answer in the inbox."),
        "close": Entry("housekeeping", "End a session whose task is not done."),
        "rename": Entry("housekeeping", "Name a session."),
    },
    "What happened": {
        "list": Entry("inspect", "List the sessions, the latest first."),
        "show": Entry("inspect", "Show one session: its turns, results, files."),
        "log": Entry("inspect", "Show everything that happened in a session."),
        "diff": Entry("inspect", "Show what a session changed."),
        "secrets": Entry("secrets", "List the secrets that requests hide, and allow some."),
        "commit": Entry("commit", "Commit what a session changed, and nothing else."),
        "undo": Entry("session", "Undo turns: restore the files as they were before."),
        "delete": Entry("housekeeping", "Delete a session with its checkpoints and requests."),
    },
    "This machine": {
        "help": Entry("help", "Show a documentation topic, or list the topics."),
        "doctor": Entry("inspect", "Check this machine, and say how to get what is missing."),
        "config": Entry("inspect", "Show the settings and where each comes from, or change yours."),
        "demo": Entry("inspect", "Watch a small real task being solved, with recorded answers."),
    },
    "For programs": {
        "run": Entry("run", "Execute a JSON operations message."),
        "schema": Entry("inspect", "Print the JSON Schema of operations, events or settings."),
        "serve": Entry("serve", "Serve a folder or a whole machine over JSON-RPC 2.0."),
        "call": Entry("serve", "Call a method of a JSON-RPC server."),
    },
}

NAMES = tuple(name for group in COMMANDS.values() for name in group)
