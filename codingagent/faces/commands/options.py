"""Options that several commands take, declared once."""

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
WorkspaceFolder = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Work there. [default: workspace/ in the home]")
]
PolicyName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="restrictive, standard, permissive, or a TOML file."),
]
SandboxUse = Annotated[
    str | None, typer.Option(metavar="HOW", help="auto, require (refuse without one) or off.")
]
Network = Annotated[
    bool | None,
    typer.Option("--network/--no-network", help="Let sandboxed commands use the network."),
]
Clipboard = Annotated[
    bool, typer.Option("--clipboard", help="Take the answer when you copy it, too.")
]
AcceptFormats = Annotated[
    bool, typer.Option("--accept-formats", help="Apply diffs and the like without asking.")
]
Yes = Annotated[
    bool, typer.Option("--yes", help="Approve what would be asked, not what is blocked.")
]
Attach = Annotated[
    list[str] | None,
    typer.Option("--attach", metavar="GLOB", help="Put these files into the request."),
]
CheckCommand = Annotated[
    str | None,
    typer.Option("--check", metavar="COMMAND", help="Run after changes; [DONE] needs its success."),
]
ReplyWith = Annotated[
    str | None,
    typer.Option(
        "--reply-with", metavar="COMMAND", help="Have this answer: request in, reply out."
    ),
]
ReplyTimeout = Annotated[
    float,
    typer.Option(
        "--reply-timeout",
        metavar="SECONDS",
        min=1,
        max=86_400,
        show_default=False,
        help="For each of its answers. [default: 600]",
    ),
]
MaxTurns = Annotated[
    int,
    typer.Option(
        "--max-turns",
        metavar="N",
        min=1,
        show_default=False,
        help="How many it may give. [default: 20]",
    ),
]
