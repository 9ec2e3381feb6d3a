"""Trusted homes, recorded where no answer and no cloned repository can forge one.

A home holds sessions, and a session says which workspace and policy it uses. A cloned repository, or an
answer that writes to its workspace, could contain a forged home. So a home that you did not name is
trusted only if it is the very folder that was registered.
"""

import contextlib
import hashlib
import os
import secrets
from pathlib import Path

from codingagent.storage.settings_file import user_folder
from codingagent.workspace.real_paths import resolved
from codingagent.workspace.sharing import retried

_TOKEN = ".home"  # noqa: S105  # the name of its file


def is_known(home: Path) -> bool:
    """Return whether this folder was registered under this path and is still the same folder."""
    try:
        return retried(lambda: entry_of(home).read_text("utf-8").endswith(_identity(home)))
    except (OSError, ValueError):
        return False


def remember(home: Path) -> None:
    """Register a home. If the registry can't be written, the home must be named each time."""
    with contextlib.suppress(OSError):
        token = home / "sessions" / _TOKEN
        if not token.exists():
            token.write_text(f"{secrets.token_hex(16)}\n", "utf-8")
        entry = entry_of(home)
        entry.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = entry.with_name(f"{entry.name}.{os.getpid()}.tmp")
        temporary.write_text(_identity(home), "utf-8")
        retried(lambda: os.replace(temporary, entry))


def entry_of(home: Path) -> Path:
    name = hashlib.sha256(os.fsencode(resolved(home))).hexdigest()[:32]
    return user_folder("XDG_STATE_HOME", "LOCALAPPDATA", ".local/state") / "homes" / name


def _identity(home: Path) -> str:
    # An inode alone may recur for a new folder in place of a removed one. A disk's own number does not
    # stay: it is another after a restart of macOS, and to Python 3.12 on Windows.
    token = home / "sessions" / _TOKEN
    is_own = token.is_file() and not token.is_symlink()
    secret = token.read_text("utf-8", "replace")[:100] if is_own else ""
    return f":{home.stat().st_ino} {resolved(home)} {secret}\n"
