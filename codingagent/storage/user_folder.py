"""Where the person's own files are, outside of all homes and workspaces."""

import os
from pathlib import Path


def user_folder(variable: str, on_windows: str, usual: str) -> Path:
    """Return this program's folder of a kind (XDG base directories, which ignore relative paths).

    `variable` names it, or `on_windows` there; else it is `usual` in the person's own.
    """
    names = (variable, on_windows) if os.name == "nt" else (variable,)
    named = (os.environ.get(name, "") for name in names)
    found = next(filter(os.path.isabs, named), None)
    return Path(found or Path("~").expanduser() / usual) / "codingagent"
