"""The command that shows the documentation: its topics, and one of them."""

import sys
from importlib.resources import files
from typing import Annotated

import typer

from codingagent.cli.command_table import NAMES
from codingagent.cli.commands.options import option
from codingagent.cli.output import suggestion
from codingagent.cli.stdio import is_living
from codingagent.errors import UsageError
from codingagent.model.patterns import sections, table

app = typer.Typer()
# One page of `codingagent/docs` each, in a reader's order. A test compares the names with the files there.
_TOLD = sections(__file__)
TOPICS = table(_TOLD["topics"])
# Topics first: a topic's page says more than the command of the same name.
_WORDS = dict.fromkeys([*TOPICS, *NAMES])


@app.command(epilog="Example: codingagent help troubleshooting", name="help")
def _help(
    context: typer.Context, topic: Annotated[str | None, option("topic", " ".join(_WORDS))] = None
) -> None:
    """Show the documentation: a topic, or the options of a command."""
    if topic is None:
        width = max(map(len, TOPICS))
        lines = "".join(f"  {name:<{width}}  {about}\n" for name, about in TOPICS.items())
        sys.stdout.write(f"Topics:\n{lines}\n{_TOLD['more']}")
    elif topic.lower() in TOPICS:
        path = files("codingagent") / "docs" / f"{topic.lower()}.md"
        # These comments mark generated text, for the writer.
        page = path.read_text("utf-8").splitlines(keepends=True)
        text = "".join(line for line in page if not line.startswith("<!-- "))
        if is_living(sys.stdout):
            from codingagent.cli.terminal import Console

            Console().page(text)
        else:
            sys.stdout.write(text)
    elif topic in NAMES:
        root = context.find_root()
        command = root.command.get_command(root, topic)  # type: ignore[attr-defined]  # the group of them
        command.make_context(topic, ["--help"], parent=root)
    else:
        hint = suggestion(topic.lower(), [*_WORDS], "`codingagent help` lists the topics")
        raise UsageError(f"there is no help on '{topic}'; {hint}")
