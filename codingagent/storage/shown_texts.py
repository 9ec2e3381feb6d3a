"""File texts as the chat last saw them, so that later changes can be shown as a diff.

They are stored by digest beside a session's journal. Nothing depends on them: if one is missing, the
request shows the whole file instead of a diff.
"""

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from codingagent.errors import WorkError
from codingagent.storage import atomic_write


class ShownTexts:
    """The folder of texts of one session, created when first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, digest: str) -> bool:
        return (self._folder / digest).exists()

    def read(self, digest: str) -> str | None:
        try:
            return (self._folder / digest).read_bytes().decode("utf-8", "replace")
        except OSError:
            return None

    def keep(self, texts: Mapping[str, str]) -> None:
        """Store texts by their digests; ignore disk errors."""
        with contextlib.suppress(OSError, WorkError):
            for digest, text in texts.items():
                if not self.has(digest):
                    self._folder.mkdir(parents=True, exist_ok=True)
                    atomic_write.write_beside(self._folder / digest, text, is_synced=False)
                    atomic_write.put_in_place(self._folder / digest)

    def prune(self, digests: Iterable[str]) -> None:
        """Remove all texts but these."""
        wanted = frozenset(digests)
        with contextlib.suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name not in wanted:
                    os.unlink(entry.path)
