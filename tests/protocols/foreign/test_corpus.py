"""Replies as models write them, each done for real: right bytes, or nothing changed and said why.

A folder is a case: `reply.txt`, the workspace `before/` and `after/` (the same, if there is none), and in
`problem.txt` a line for each thing that is said: part of a problem, a refusal or a note (`note: `).
A case without that file must have no problem and no refusal.
"""

from pathlib import Path

import pytest

from tests.protocols.foreign.doing import do, files_in

FOLDER = Path(__file__).parents[2] / "replies" / "formats"
CASES = sorted(path for path in FOLDER.iterdir() if path.is_dir())


def test_the_corpus_is_there() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
@pytest.mark.parametrize("mangled", ["as it is", "CRLF", "no last newline"])
def test_a_reply_gives_right_bytes_or_says_what_to_send(
    case: Path, mangled: str, tmp_path: Path
) -> None:
    reply = (case / "reply.txt").read_bytes().decode()
    if mangled == "CRLF":
        reply = reply.replace("\r\n", "\n").replace("\n", "\r\n")
    elif mangled == "no last newline":
        reply = reply.removesuffix("\n")
    before = files_in(case / "before")
    after = files_in(case / "after") if (case / "after").is_dir() else before
    expected = case / "problem.txt"
    wanted = expected.read_text("utf-8").splitlines() if expected.exists() else []
    done = do(reply, before, tmp_path)
    assert done.files == after, done
    for line in wanted:
        if line.startswith("note: "):
            assert any(line.removeprefix("note: ") in note for note in done.notes), done.notes
        else:
            assert any(line in failure for failure in done.failures), done.failures
    is_failing = any(not line.startswith("note: ") for line in wanted)
    assert bool(done.failures) == is_failing, done.failures
