"""A session's vault on disk, readable by its owner only, and the person's choices about its secrets.

The process at work on a session writes `vault.json`, the command `secrets` writes `secrets.json`: neither
overwrites what the other wrote. What the disk refuses raises WorkError.
"""

from pathlib import Path
from secrets import token_bytes
from typing import TypeVar

from msgspec import DecodeError, Struct, json

from codingagent.errors import WorkError, disk_errors
from codingagent.model.session_state import Session
from codingagent.secrets.files import Copies
from codingagent.secrets.vault import HiddenValue, Vault, Wishes
from codingagent.storage import atomic_write
from codingagent.workspace.dirfd import retried

_T = TypeVar("_T")


class _KeptVault(Struct):
    key: bytes
    values: list[HiddenValue] = []
    lines: list[str] = []
    copies: list[str] = []


def new_vault() -> Vault:
    return Vault(token_bytes(32))


class VaultFile:
    """The vault in the folder of a session; all runs of a home have one, in their folder."""

    def __init__(self, folder: Path) -> None:
        self._vault = folder / "vault.json"
        self._wishes = folder / "secrets.json"

    def load(self) -> Vault:
        """Return the vault; a new one if there is none."""
        kept = self._read(self._vault, _KeptVault) or _KeptVault(token_bytes(32))
        found = Vault(kept.key, kept.values, Copies(kept.lines, kept.copies))
        found.obey(self.wishes())
        return found

    def save(self, vault: Vault) -> None:
        if vault.is_changed:
            copies = map(sorted, (vault.copies.lines, vault.copies.paths))
            kept = _KeptVault(vault.key, [*vault.by_name.values()], *copies)
            atomic_write.write_whole(self._vault, json.encode(kept))
            vault.is_changed = False

    def wishes(self) -> Wishes:
        return self._read(self._wishes, Wishes) or Wishes()

    def keep_wishes(self, wishes: Wishes) -> None:
        atomic_write.write_whole(self._wishes, json.encode(wishes))

    @staticmethod
    def _read(path: Path, kind: type[_T]) -> _T | None:
        if not path.exists():
            return None
        try:
            with disk_errors(f"{path} can't be read"):
                return json.decode(retried(path.read_bytes) if path.is_file() else b"", type=kind)
        except DecodeError as fault:
            raise WorkError(
                f"{path} is damaged: move it away to go on; names in earlier requests then mean nothing"
            ) from fault


def vault_file_of(sessions: Path, session: Session) -> VaultFile:
    """Return the vault of a session or run; `sessions` is the folder of the home's sessions."""
    return VaultFile(sessions / ("runs" if session.is_run else session.session_id))
