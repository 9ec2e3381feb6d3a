"""What looks at a long session costs: `show` against a start, a view of the page against the first one."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from codingagent.cli.page.view import SessionView, Story
from codingagent.cli.page.workers import Worker
from codingagent.model.journal_entries import encode_record
from codingagent.storage.homes import Home
from tests.benchmarks.measuring import Figure, milliseconds, ratio
from tests.builders import SESSION_ID
from tests.page.test_long_sessions import records_of

ROUNDS = 9
_OPERATIONS = 9_900


def history() -> Iterator[Figure]:
    """A session of 9,900 operations in 33 turns, looked at again."""
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        (root / "workspace").mkdir()
        home = Home.at(root, create=True)
        (home.sessions.folder / SESSION_ID).mkdir()
        records = records_of(root / "workspace", 33, _OPERATIONS // 33)
        journal = home.sessions.folder / SESSION_ID / "journal.jsonl"
        journal.write_bytes(b"".join(map(encode_record, records)))

        def run(*words: str) -> None:
            command = [sys.executable, "-m", "codingagent", *words]
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)

        name = f"`show` of {_OPERATIONS:,} operations against `--version`"
        shown = ("--home", str(root), "show", SESSION_ID)
        yield ratio(name, lambda: run(*shown), lambda: run("--version"), 5, ROUNDS)
        story, worker = Story(), Worker((), lambda: None)

        def look() -> None:
            SessionView(home, SESSION_ID, worker, story)

        first_ms = milliseconds(look)
        again_ms = min(milliseconds(look) for _ in range(ROUNDS))
    name = f"a view of the page of {_OPERATIONS:,} operations again, against its first"
    yield Figure(name, f"{again_ms:.1f} ms", f"{first_ms:.0f} ms", again_ms / first_ms, 0.1)


ALL = (history,)
