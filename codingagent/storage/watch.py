"""Wake at once when something happens in the inbox; the folder itself stays authoritative."""

import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

from codingagent.model.observations import Hint
from codingagent.workspace.real_paths import resolved


class Watch(FileSystemEventHandler):
    """Watch the inbox while entered, and wake for events in some other folders.

    Subfolders are watched too: watchdog holds every event back for half a second after a file moves to
    an unwatched folder, and answers move to `processed/`.
    """

    def __init__(self, inbox: Path, others: Sequence[Path] = ()) -> None:
        # Its messages about its own threads are nothing a person could act on.
        logging.getLogger("watchdog").addHandler(logging.NullHandler())
        logging.getLogger("watchdog").propagate = False
        self._inbox = inbox
        self._others = tuple(others)
        self._observer: BaseObserver | None = None
        self._condition = threading.Condition()
        self._hints: dict[Path, Hint] = {}
        self.has_heard = False
        """`wait` would return at once."""
        self.fault = ""
        """Why there are no hints, or empty; polling once a second goes on regardless."""

    def __enter__(self) -> Self:
        try:
            self._observer = Observer()
            self._observer.schedule(self, str(self._inbox), recursive=True)
            for folder in self._others:
                self._observer.schedule(self, str(folder))
            self._observer.start()
        except OSError as fault:  # no inotify instance left, or a disk that can't be watched
            self.fault = fault.strerror or str(fault)
        return self

    def __exit__(self, *_: object) -> None:
        if self._observer is not None and self._observer.is_alive():
            self._observer.stop()
            self._observer.join()

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Collect a hint; watchdog's thread calls it."""
        if event.event_type in ("opened", "closed_no_write") or event.is_directory:
            return  # this program itself opens files there to read them
        with self._condition:
            if event.event_type == "closed":
                self._hints[Path(str(event.src_path))] = Hint.CLOSED
            elif event.event_type == "moved":
                self._hints[Path(str(event.dest_path))] = Hint.CLOSED
            elif event.event_type == "created":
                self._hints.setdefault(Path(str(event.src_path)), Hint.APPEARED)
            self.has_heard = True
            self._condition.notify()

    def wait(self, timeout_s: float) -> dict[str, Hint]:
        """Wait for an event or the timeout; return the hints by file name."""
        with self._condition:
            self._condition.wait_for(lambda: self.has_heard, timeout_s)
            self.has_heard = False
            hints, self._hints = self._hints, {}
        # macOS names files by their real paths, in the disk's spelling.
        inboxes = (self._inbox, resolved(self._inbox)) if hints else ()
        return {path.name: hint for path, hint in hints.items() if path.parent in inboxes}
