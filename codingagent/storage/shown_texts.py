"""Texts of files as the chat knows them, so that what someone changed in them since can be shown.

They are kept by digest beside a session's journal, and nothing depends on them: without one, the file
itself is shown and no difference.
"""

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from codingagent.errors import WorkError
from codingagent.storage import atomic_write


class ShownTexts:
    """The folder of one session; it is made when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def has(self, digest: str) -> bool:
        return (self._folder / digest).exists()

    def read(self, digest: str) -> str | None:
        """Return a text; None if it is not kept."""
        try:
            return (self._folder / digest).read_bytes().decode("utf-8", "replace")
        except OSError:
            return None

    def keep(self, texts: Mapping[str, str]) -> None:
        """Keep texts by their digests, as far as the disk lets it."""
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
