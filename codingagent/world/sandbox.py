"""What confines a command besides its limits. For now nothing does, and everyone is told so."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unconfined:
    """Commands run with the rights of the person who started the agent."""

    remark: str = (
        "commands in answers run unconfined here, with your own rights; only file operations are held"
        " in the workspace"
    )
    """For the person, once a session."""
    description: str = "none; commands run with the person's own rights, so be careful with them"
    network: str = "as the person has it"

    def wrap(self, argv: Sequence[str]) -> Sequence[str]:
        """Gives the command line that runs `argv` confined: here, as it is."""
        return argv
