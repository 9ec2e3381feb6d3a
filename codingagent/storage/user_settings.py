"""The person's own settings: one file for all homes, and one for each workspace that has some.

They are kept with the person, not in the workspace, so that no clone and no answer can set them.
"""

import hashlib
import os
from pathlib import Path

from codingagent.storage.user_folder import user_folder
from codingagent.workspace.real_paths import resolved

_NAME = "settings.toml"


def path_of(workspace: Path | None = None) -> Path:
    """Return the file of a workspace's settings; without one, that of all."""
    if workspace is None:
        return _folder() / _NAME
    name = hashlib.sha256(os.fsencode(resolved(workspace))).hexdigest()[:32]
    return _folder() / "workspaces" / f"{name}.toml"


def is_out_of_reach(workspace: Path) -> bool:
    """Return whether no answer in a workspace can write these files."""
    return resolved(workspace) not in resolved(_folder()).parents


def _folder() -> Path:
    return user_folder("XDG_CONFIG_HOME", "APPDATA", ".config")
