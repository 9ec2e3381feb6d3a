"""Options that several commands take, declared once."""

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
WorkspaceFolder = Annotated[
    Path | None, typer.Option(help="The folder to work in. [default: workspace/ in the home]")
]


PolicyName = Annotated[
    str | None,
    typer.Option(
        help="What needs approval or is refused: restrictive, standard, permissive, or a TOML file."
        " [default: standard]"
    ),
]
SandboxUse = Annotated[
    str | None,
    typer.Option(help="auto, require (no work without one) or off. [default: auto]"),
]
Network = Annotated[
    bool | None,
    typer.Option("--network/--no-network", help="Let sandboxed commands use the network."),
]
Clipboard = Annotated[
    bool,
    typer.Option("--clipboard", help="Watch the clipboard too: copy the chat's answer, no more."),
]
AcceptFormats = Annotated[
    bool,
    typer.Option(
        "--accept-formats",
        help="Apply diffs and the like without asking, where the answer has no command of ours.",
    ),
]
Yes = Annotated[
    bool, typer.Option("--yes", help="Approve whatever would be asked; never what is blocked.")
]
