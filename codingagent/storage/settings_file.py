"""Settings that a person wrote: in a home, and, where no clone can set them, for all and each workspace."""

import hashlib
import os
from pathlib import Path

from codingagent.errors import UsageError
from codingagent.model.encoding import typed_text
from codingagent.workspace.own_code import config_folder
from codingagent.workspace.real_paths import resolved

_NAME = "settings.toml"
_LIMIT_BYTES = 1_000_000


def read_toml(path: Path) -> dict[str, object]:
    """Return the content of a TOML file; empty if it is missing. UsageError if it can't be read."""
    if not path.exists():
        return {}
    import tomllib  # slow to import, and only a home with settings needs it

    if not path.is_file() or path.stat().st_size > _LIMIT_BYTES:
        raise UsageError(f"{path} can't be read: it is not a file, or too large for settings")
    try:
        return tomllib.loads(typed_text(path.read_bytes()))
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text; save it as UTF-8") from None
    except (OSError, ValueError, RecursionError) as fault:
        raise UsageError(f"{path} can't be read: {fault}") from fault


def path_of(workspace: Path | None = None) -> Path:
    """Return the file of a workspace's settings; without one, that of all."""
    if workspace is None:
        return config_folder() / _NAME
    name = hashlib.sha256(os.fsencode(resolved(workspace))).hexdigest()[:32]
    return config_folder() / "workspaces" / f"{name}.toml"


def is_out_of_reach(workspace: Path, of_person: Path | None = None) -> bool:
    """Return whether no answer in a workspace can write a folder of the person's, that of their settings."""
    place, folder = resolved(workspace), resolved(of_person or config_folder())
    return place != folder and place not in folder.parents and folder not in place.parents
