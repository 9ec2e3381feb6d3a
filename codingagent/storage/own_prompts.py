"""Prompts that the person keeps: `prompts/NAME.md`, in the settings folder or in a repository.

One of a repository, which an answer or a stranger may have written, is used only once the person has seen its
text and agreed to it; agreed texts are recorded by digest, out of reach of answers.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from codingagent.errors import UsageError, disk_errors
from codingagent.storage import settings_file
from codingagent.storage.homes import HERE_HOME
from codingagent.storage.settings_file import user_folder

_FOLDER, _END = "prompts", ".md"
_LIMIT_BYTES = 100_000


class Prompt(Struct, frozen=True):
    """A prompt by its path; `is_trusted` if nobody but the person can have written it."""

    path: Path
    is_trusted: bool

    def text(self) -> str:
        with disk_errors(f"{self.path} can't be read", UsageError):
            data = self.path.read_bytes()[: _LIMIT_BYTES + 1]
        try:
            text = data.decode("utf-8-sig").strip()
        except UnicodeDecodeError:
            raise UsageError(f"{self.path} is not UTF-8 text; save it as UTF-8") from None
        if not text or len(data) > _LIMIT_BYTES:
            how = f"longer than {_LIMIT_BYTES:,} bytes" if text else "empty"
            raise UsageError(f"{self.path} is {how}; write the words for the model into it")
        return text


def folder_of_own() -> Path:
    return settings_file.path_of().with_name(_FOLDER)


def prompts(workspace: Path) -> dict[str, Prompt]:
    """Return the prompts that there are, by name: the repository's, and over them the person's."""
    is_own = settings_file.is_out_of_reach(workspace)
    found = dict(_in(workspace.resolve() / HERE_HOME / _FOLDER, is_trusted=False))
    return {**found, **dict(_in(folder_of_own(), is_trusted=is_own))}


def _in(folder: Path, *, is_trusted: bool) -> Iterator[tuple[str, Prompt]]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        path = folder / name
        # A repository's link would show, and send, a file of anywhere.
        is_there = path.is_file() and (is_trusted or path.resolve() == path)
        if name.endswith(_END) and is_there:
            yield name.removesuffix(_END), Prompt(path, is_trusted)


def named(name: str, workspace: Path) -> Prompt:
    """Return a prompt; UsageError lists those that there are."""
    found = prompts(workspace)
    if name in found:
        return found[name]
    how = f"write it as {folder_of_own() / f'NAME{_END}'}"
    there = f"there are {', '.join(found)}" if found else f"there is none yet; {how}"
    raise UsageError(f"there is no prompt '{name}'; {there}")


def is_agreed(text: str) -> bool:
    """Return whether the person agreed to this very text."""
    return _record_of(text).exists()


def agree(text: str) -> None:
    """Record that they did; if that can't be written, they are asked again."""
    with contextlib.suppress(OSError):
        _record_of(text).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _record_of(text).touch()


def _record_of(text: str) -> Path:
    state = user_folder("XDG_STATE_HOME", "LOCALAPPDATA", ".local/state")
    return state / _FOLDER / hashlib.sha256(text.encode()).hexdigest()
