"""Prompts that the person keeps: `prompts/NAME.md`, in the settings folder or in a repository.

One of a repository, which an answer or a stranger may have written, is used only once the person has seen its
text and agreed to it.
"""

from pathlib import Path

from msgspec import Struct

from codingagent.errors import UsageError, disk_errors
from codingagent.model.encoding import typed_text
from codingagent.storage.homes import HERE_HOME, is_out_of_reach
from codingagent.workspace.own_code import config_folder

_FOLDER, _LIMIT = "prompts", 100_000


class Prompt(Struct, frozen=True):
    """A prompt by its path; `is_trusted` if nobody but the person can have written it."""

    path: Path
    is_trusted: bool

    def text(self) -> str:
        try:
            failed = f"{self.path} can't be read"
            with disk_errors(failed, UsageError), self.path.open("rb") as file:
                text = typed_text(file.read(4 * _LIMIT + 1)).strip().replace("\r\n", "\n")
        except UnicodeDecodeError:
            text = ""
        if not 0 < len(text) <= _LIMIT:
            how = f"text in UTF-8, of at most {_LIMIT:,} characters"
            raise UsageError(f"{self.path} must hold words for the model: {how}")
        return text


def folder_of_own() -> Path:
    return config_folder() / _FOLDER


def prompts(workspace: Path) -> dict[str, Prompt]:
    """Return the prompts that there are, by name: the repository's, and over them the person's."""
    is_own = is_out_of_reach(workspace)
    folders = {workspace.resolve() / HERE_HOME / _FOLDER: False, folder_of_own(): is_own}
    return {
        path.stem: Prompt(path, is_trusted and workspace.resolve() not in path.resolve().parents)
        for folder, is_trusted in folders.items()
        for path in sorted(folder.glob("*.md"))
        # A repository's link would show, and send, a file of anywhere.
        if path.is_file() and (is_trusted or path.resolve() == path)
    }


def named(name: str, workspace: Path) -> Prompt:
    """Return a prompt; UsageError lists those that there are."""
    found = prompts(workspace)
    if name not in found:
        there = f"there are {', '.join(found)}" if found else f"write it as {folder_of_own() / 'NAME.md'}"
        raise UsageError(f"there is no prompt '{name}'; {there}")
    return found[name]
