"""The pages of `codingagent help`: list them and show one."""

import sys
from collections.abc import Iterable
from importlib.resources import files

from codingagent.cli.output import suggestion
from codingagent.cli.stdio import is_living
from codingagent.errors import UsageError

# One page of `codingagent/docs` each. A test compares the names with the files there.
TOPICS = {
    "chats": "Which chats work, their limits, how to save an answer.",
    "answers": "What an answer may say, and what is repaired in it.",
    "commands": "Every command and option, and the exit statuses.",
    "settings": "Every setting with its default, and where to set it.",
    "safety": "What an answer can do to your machine, and what not.",
    "troubleshooting": "What to do when something goes wrong.",
    "programs": "Run JSON operations from a program, or from Python.",
    "hosts": "Serve a virtual machine or a folder over JSON-RPC.",
    "changelog": "What changed in each version.",
    "contributing": "Change this program: layout, tests, generated texts.",
}


def overview() -> str:
    """Return the list of topics, and where the options are explained."""
    width = max(map(len, TOPICS))
    lines = [f"  {name:<{width}}  {about}" for name, about in TOPICS.items()]
    return "\n".join(
        [
            "Topics:",
            *lines,
            "",
            "  codingagent help TOPIC     shows one of them",
            "  codingagent help COMMAND   shows a command's options",
            "  codingagent --help         lists the commands",
            "",
        ]
    )


def page(topic: str) -> str:
    """Return the text of a page, as Markdown.

    Raises:
        KeyError: if there is no such topic.
    """
    if topic not in TOPICS:
        raise KeyError(topic)
    text = (files("codingagent") / "docs" / f"{topic}.md").read_text("utf-8")
    # These comments mark generated text, for the writer.
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("<!-- "))


def show_page(topic: str) -> None:
    """Show a page: rendered on a terminal, as Markdown anywhere else."""
    text = page(topic)
    if is_living(sys.stdout):
        from codingagent.cli.terminal import Console

        Console().page(text)
    else:
        sys.stdout.write(text)


def unknown(word: str, commands: Iterable[str]) -> UsageError:
    """Return the error for a word that is neither a topic nor a command, with the closest match."""
    hint = suggestion(word.lower(), [*TOPICS, *commands], "`codingagent help` lists the topics")
    return UsageError(f"there is no help on '{word}'; {hint}")
