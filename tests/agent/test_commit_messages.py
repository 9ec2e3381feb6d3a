"""Design, the command line: a commit's subject is the task's, its body what DONE says; the person signs."""

from codingagent.agent.uncommitted import work_since_commit
from codingagent.model import journal_entries as entries
from codingagent.model.events import Finished
from tests import golden
from tests.rows import each_row

AT = "2026-01-01T00:00:00Z"


def records(case: list[str]) -> list[entries.Record]:
    """Return the records of a session: its task, then what came, each as a word and a text."""
    found: list[entries.Record] = [entries.SessionStarted("0" * 8, case[0], "/w", AT)]
    for sequence, (what, _, text) in enumerate((each.partition(" ") for each in case[1:]), 1):
        match what:
            case "turn" | "done":
                found.append(entries.AnswerTaken(sequence, "r.txt", "", AT))
                if what == "done":
                    found.append(entries.OperationEnded(0, Finished(text), AT))
                found.append(entries.TurnEnded(sequence, (), AT, changed=("a",)))
            case "say" | "do" | "ask":
                wants: dict[str, entries.Wants] = {"do": "edits", "ask": "words"}
                found.append(entries.PersonSaid(text, (), AT, wants.get(what)))
            case "unsay":
                found.append(entries.RefreshAsked(AT, unsays=True))
            case "commit":
                found.append(entries.CommitMade("0" * 40, "main", ("a",), len(found), AT))
            case "undo":
                found.append(entries.UndoEnded("", (), AT))
            case _:
                raise AssertionError(what)
    return found


def show(case: list[str]) -> str:
    return repr(work_since_commit(records(case), bool).message)


TABLES: dict[str, golden.Show] = {"commit_messages.txt": show}


@each_row(("case", "outcome"), golden.cases(__file__, "commit_messages.txt"))
def test_message(case: list[str], outcome: str) -> None:
    assert show(case) == outcome
    assert len(show(case).partition("\\n")[0]) <= 1 + 72
