"""Change the person's own settings; comments in their file stay."""

import re
from collections.abc import Sequence
from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError

from codingagent.errors import UsageError, disk_errors
from codingagent.model import settings
from codingagent.model.encoding import typed_text
from codingagent.process.runner import open_editor
from codingagent.storage import atomic_write
from codingagent.storage.homes import read_toml


def set_value(path: Path, key: str, text: str, kept: Sequence[str] | None = None) -> None:
    """Set a setting to a value, lists with commas; with `kept` add it to the file's list, else to these."""
    source = settings.from_environment({f"{settings.ENVIRONMENT_PREFIX}{key.upper()}": text})
    # Some variables are no settings.
    found = settings.resolve([settings.Source(f"config set {key}", source.values or {key: text})])
    value = getattr(found.settings, key)
    if kept is not None:
        if not isinstance(value, tuple):
            raise UsageError(f"config add {key}: it is no list; use `config set`")
        own = settings.resolve([settings.Source(str(path), {key: read_toml(path).get(key, kept)})])
        value = tuple(dict.fromkeys((*getattr(own.settings, key), *value)))
    _change(path, key, list(value) if isinstance(value, tuple) else value)


def unset(path: Path, key: str) -> bool:
    """Remove a setting; return whether it was there. UsageError if there is no such setting at all."""
    was_there = key in read_toml(path)
    if was_there:
        _change(path, key, None)
    else:
        default = getattr(settings.Settings(), key, "")
        settings.resolve([settings.Source(f"config unset {key}", {key: default})])
    return was_there


def edit(path: Path) -> None:
    """Open the file in the person's editor; UsageError if what they wrote is not valid: it stays."""
    if not path.exists():
        _write(path, "# Settings: codingagent help settings\n")
    open_editor(path)
    settings.resolve([settings.Source(str(path), read_toml(path))])


def _change(path: Path, key: str, value: object) -> None:
    """Set a key of the file; None removes it."""
    read_toml(path)  # refuses folders, devices and large files
    try:
        before = typed_text(path.read_bytes()) if path.exists() else ""
        document = tomlkit.parse(before)
    except (OSError, ValueError, TOMLKitError) as fault:
        raise UsageError(f"{path} can't be read: {fault}") from fault
    old = document.get(key)
    if value is None:
        document.pop(key)
    elif isinstance(value, list) and isinstance(old, list) and value[: len(old)] == old:
        old.extend(value[len(old) :])
    else:
        document[key] = value
    text = tomlkit.dumps(document)
    # The library ends the lines that it adds with LF, whatever the others have.
    _write(path, re.sub(r"\r?\n", "\r\n", text) if "\r\n" in before else text)


def _write(path: Path, text: str) -> None:
    path = path.resolve()  # some keep such files elsewhere, with a link here
    with disk_errors(f"{path} can't be written"):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    atomic_write.write_whole(path, text)
