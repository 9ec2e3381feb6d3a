"""Replies as models write them, each done for real: right bytes, or nothing changed and said why.

A folder is a case: `reply.txt`, the workspace `before/` and `after/` (the same, if there is none), and in
`problem.txt` a line for each thing that is said: part of a problem, a refusal or a note (`note: `).
A case without that file must have no problem and no refusal. `answer_x_y` finds the workspace of
`answers/x-y`.
"""

from itertools import cycle
from pathlib import Path

from tests.protocols.foreign.doing import do, files_in
from tests.rows import each_row

FOLDER = Path(__file__).parents[2] / "replies" / "formats"
ANSWERS = FOLDER.with_name("answers")
CASES = sorted(path for path in FOLDER.iterdir() if path.is_dir())


def test_the_corpus_is_there() -> None:
    assert len(CASES) >= 60


# Each as it is, and two of three in another way.
ROWS = [(case, "as it is") for case in CASES]
ROWS += zip(CASES, cycle(("CRLF", "no last newline", "as it is")), strict=False)


@each_row(("case", "mangled"), [*dict.fromkeys(ROWS)])
def test_a_reply_gives_right_bytes_or_says_what_to_send(case: Path, mangled: str, tmp_path: Path) -> None:
    reply = (case / "reply.txt").read_bytes().decode()
    if mangled == "CRLF":
        reply = reply.replace("\r\n", "\n").replace("\n", "\r\n")
    elif mangled == "no last newline":
        reply = reply.removesuffix("\n")
    twin = ANSWERS / case.name.removeprefix("answer_").replace("_", "-")
    before = files_in((twin if twin.is_dir() else case) / "before")
    after = files_in(case / "after") if (case / "after").is_dir() else before
    expected = case / "problem.txt"
    wanted = expected.read_text("utf-8").splitlines() if expected.exists() else []
    root = tmp_path / case.name / mangled
    root.mkdir(parents=True)
    done = do(reply, before, root)
    assert done.files == after, done
    for line in wanted:
        if line.startswith("note: "):
            assert any(line.removeprefix("note: ") in note for note in done.notes), done.notes
        else:
            assert any(line in failure for failure in done.failures), done.failures
    is_failing = any(not line.startswith("note: ") for line in wanted)
    assert bool(done.failures) == is_failing, done.failures
