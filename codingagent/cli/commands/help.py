"""The command that shows the documentation."""

import sys
from typing import Annotated

import typer

app = typer.Typer()


def _commands(context: typer.Context) -> list[str]:
    root = context.find_root()
    names: list[str] = getattr(root.command, "list_commands", lambda _: [])(root)
    return names


def _topics(context: typer.Context, incomplete: str) -> list[str]:
    from codingagent.cli.help_pages import TOPICS

    # Topics first: a topic's page says more than the command of the same name.
    words = dict.fromkeys([*TOPICS, *_commands(context)])
    return [word for word in words if word.startswith(incomplete)]


@app.command(epilog="Example: codingagent help troubleshooting", name="help")
def _help(
    context: typer.Context,
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="[TOPIC]",
            help="A topic, or a command. [default: list the topics]",
            autocompletion=_topics,
        ),
    ] = None,
) -> None:
    """Show the documentation: a topic, or the options of a command."""
    from codingagent.cli import help_pages

    if topic is None:
        sys.stdout.write(help_pages.overview())
    elif topic.lower() in help_pages.TOPICS:
        help_pages.show_page(topic.lower())
    elif topic in _commands(context):
        root = context.find_root()
        command = root.command.get_command(root, topic)  # type: ignore[attr-defined]  # the group of them
        command.make_context(topic, ["--help"], parent=root)
    else:
        raise help_pages.unknown(topic, _commands(context))
