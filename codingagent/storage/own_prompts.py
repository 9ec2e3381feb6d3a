"""Prompts that the person keeps: `prompts/NAME.md` in the folder of their settings."""

from pathlib import Path

from codingagent.errors import UsageError, disk_errors
from codingagent.model.encoding import typed_text
from codingagent.storage import settings_file
from codingagent.workspace.own_code import config_folder

_LIMIT = 100_000


def folder_of_own() -> Path:
    return config_folder() / "prompts"


def prompts(workspace: Path) -> dict[str, Path]:
    """Return the prompts that there are, by name; none where an answer could have written them."""
    paths = folder_of_own().glob("*.md") if settings_file.is_out_of_reach(workspace) else ()
    root = workspace.resolve()
    return {
        path.stem: path for path in sorted(paths) if path.is_file() and root not in path.resolve().parents
    }


def text_of(name: str, workspace: Path) -> str:
    """Return the words of a prompt; UsageError lists those that there are."""
    found = prompts(workspace)
    if name not in found:
        there = f"there are {', '.join(found)}" if found else f"write it as {folder_of_own() / 'NAME.md'}"
        raise UsageError(f"there is no prompt '{name}' of yours; {there}, or name a file with --file")
    path = found[name]
    try:
        with disk_errors(f"{path} can't be read", UsageError), path.open("rb") as file:
            text = typed_text(file.read(4 * _LIMIT + 1)).strip().replace("\r\n", "\n")
    except UnicodeDecodeError:
        text = ""
    if not 0 < len(text) <= _LIMIT:
        how = f"text in UTF-8, of at most {_LIMIT:,} characters"
        raise UsageError(f"{path} must hold words for the model: {how}")
    return text
