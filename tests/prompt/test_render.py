"""The request to the model: specification 003, outbox format, and Design, the outbox."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.model.events import (
    CommandRan,
    Event,
    FileCreated,
    FileRequested,
    Finished,
    MessageShown,
    Refused,
)
from codingagent.model.journal_entries import AnswerTaken, RequestWritten, SessionReopened
from codingagent.model.operations import Kind
from codingagent.model.session_state import Session
from codingagent.model.settings import Settings
from codingagent.prompt import file_contents, guide
from codingagent.prompt import render as outbox
from codingagent.prompt.file_contents import FileView
from codingagent.prompt.file_list import Listing
from codingagent.prompt.render import RESULTS_SHOWN
from codingagent.prompt.tokens import estimate
from codingagent.protocols.tags import reply
from tests.builders import BUDGET, LATER, context_of, listing_of, session_of, turn
from tests.helpers import cpu_below
from tests.rows import each_row

_CONTINUE = (
    "Continue working on the task based on the results above. If the task is complete, send [DONE] with a"
    " summary."
)


def _limits(characters: int, entries: int) -> Settings:
    return Settings(context_chars=characters, list_entries=entries)


def render(
    session: Session, *views: FileView, listing: Listing | None = None, budget: Settings = BUDGET
) -> str:
    return outbox.render(session, context_of(*views, listing=listing), budget)


def section(text: str, name: str) -> str:
    """Return what stands under a section's marker."""
    found = re.search(rf"^=== {name} ===\n(.*?)(?=^=== \w+ ===$|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def whole(path: str, text: str) -> FileView:
    return FileView(path, text, 1, text.count("\n"))


def contents(*views: FileView, budget: Settings = BUDGET) -> str:
    session = session_of(*turn(FileRequested("x", tuple(view.path for view in views))))
    context = render(session, *views, budget=budget).partition("=== CONTEXT ===\n")[2]
    # The file's own lines may be just such headings: ours is the first, and the last.
    return context.partition("## Requested File Contents\n")[2].rpartition("\n## Environment\n")[0]


# --- sections --------------------------------------------------------------------------------------


def test_there_are_four_sections_in_order() -> None:
    """Specification 003, section markers: HEADER, PROTOCOL, CONTEXT, PROMPT."""
    text = render(session_of())
    assert re.findall(r"^=== .* ===$", text, re.MULTILINE) == [
        "=== HEADER ===",
        "=== PROTOCOL ===",
        "=== CONTEXT ===",
        "=== PROMPT ===",
    ]
    assert text.startswith("=== HEADER ===\n")
    assert text.endswith("\n")


def test_the_header_has_three_fields() -> None:
    """Specification 003, HEADER section: session, sequence from 1, and the task."""
    session = session_of(task="Create a calculator app in C#")
    assert section(render(session), "HEADER").strip() == (
        "Session: a1b2c3d4\nSequence: 1\nTask: Create a calculator app in C#"
    )
    assert "Sequence: 2\n" in section(render(session_of(*turn())), "HEADER")
    long = "word " * 30
    # PROMPT of the first request has it; of later ones not.
    for count, turns in ((16, ()), (30, turn())):
        assert section(render(session_of(*turns, task=long)), "HEADER").count("word") == count


def test_the_header_has_the_first_line_of_a_task_of_many() -> None:
    """Design, the outbox: HEADER has its first line, PROMPT all of it."""
    text = render(session_of(task="First line\nSecond line\n=== CONTEXT ===\n"))
    header = section(text, "HEADER")
    assert "Task: First line" in header
    assert "Second line" not in header
    assert "First line\nSecond line\n" in text.rpartition("=== PROMPT ===\n")[2]


@pytest.mark.parametrize("sequence", [1, 2, 3])
def test_the_whole_task_is_in_every_request(sequence: int) -> None:
    """Specification 003, design goals: every outbox is self-contained. HEADER: original task description."""
    for task in ("x" * 150 + " " + "y" * 1_000, "One\nTwo\n\n  Three"):
        session = session_of(*(record for n in range(1, sequence) for record in turn(sequence=n)), task=task)
        assert task in render(session)


def test_a_task_cannot_move_the_terminal_or_add_a_field() -> None:
    """Specification 003, HEADER section: each field is one line."""
    header = section(render(session_of(task="a\x1b[31mb\rSequence: 9\nSequence: 8")), "HEADER")
    assert header.strip().count("\n") == 2
    assert "\x1b" not in header


@pytest.mark.parametrize("task", ["x", "another\ntask"])
def test_the_protocol_is_the_same_in_every_request(task: str) -> None:
    """Specification 003, PROTOCOL section: identical in every outbox file."""
    for session in (session_of(task=task), session_of(*turn(MessageShown("x")), task=task)):
        assert section(render(session), "PROTOCOL").strip() == guide.protocol_text()


def test_a_request_is_known_as_one() -> None:
    """Design, tag blocks: an outbox saved into the inbox is never executed."""
    assert reply.read(render(session_of())).has_outbox
    assert reply.read(f"Here is what you sent:\n{render(session_of(*turn()))}").has_outbox


# --- the prompt ------------------------------------------------------------------------------------


def test_the_first_prompt_is_the_task() -> None:
    """Specification 003, PROMPT section, sequence 1: contains the original user task."""
    prompt = section(render(session_of(task="Create a calculator")), "PROMPT")
    assert prompt.startswith("Create a calculator\n")
    assert _CONTINUE not in prompt


def test_later_prompts_ask_to_continue() -> None:
    """Specification 003, PROMPT section, sequence 2+: the continuation prompt, word for word."""
    assert section(render(session_of(*turn())), "PROMPT").startswith(_CONTINUE)


def test_the_prompt_asks_for_the_frame_of_this_very_turn() -> None:
    """Design, tag blocks: the guide asks the model to begin with REPLY and to end with END."""
    prompt = section(render(session_of(*turn())), "PROMPT")
    assert '[REPLY session="a1b2c3d4" sequence="2"]' in prompt
    assert "[END]" in prompt


# --- the context -----------------------------------------------------------------------------------


def test_the_parts_of_the_context_come_in_order() -> None:
    """Design, the outbox: files, results, contents, environment."""
    session = session_of(*turn(FileRequested("a", ("a",))))
    text = section(render(session, whole("a", "x\n"), listing=listing_of("a")), "CONTEXT")
    assert re.findall(r"^## .*$", text, re.MULTILINE) == [
        "## Workspace Files",
        "## Previous Command Results",
        "## Requested File Contents",
        "## Environment",
    ]


def test_workspace_files_are_listed() -> None:
    """Specification 003, workspace files: the listing, or `(empty workspace)`."""
    listing = Listing({"src/Program.cs": 180, "src/Calculator.cs": 245})
    text = section(render(session_of(), listing=listing), "CONTEXT")
    assert text.startswith(
        "## Workspace Files\n  src/Calculator.cs (245 bytes)\n  src/Program.cs (180 bytes)\n\n"
    )
    assert section(render(session_of()), "CONTEXT").startswith("## Workspace Files\n(empty workspace)\n\n")


def test_the_first_request_has_no_results() -> None:
    """Specification 003, previous command results: included from the second outbox onward."""
    assert "## Previous Command Results" not in render(session_of())


def test_results_are_shown_in_order() -> None:
    """Specification 003, previous command results: the example as it stands there."""
    session = session_of(
        *turn(
            FileCreated("src/Calculator.cs", 245, replaced=False),
            CommandRan("dotnet build", 0, "Build succeeded. 0 Warning(s) 0 Error(s)\n", 1.0),
            Refused(Kind.EDIT_FILE, "File 'src/Missing.cs' not found"),
        )
    )
    assert (
        "## Previous Command Results\n"
        "[OK] CREATE_FILE: Created 'src/Calculator.cs'\n"
        "[OK] RUN_COMMAND: Ran 'dotnet build' (exit code 0)\n"
        "  Output: Build succeeded. 0 Warning(s) 0 Error(s)\n"
        "[FAILED] EDIT_FILE: File 'src/Missing.cs' not found\n"
        "\n## "
    ) in render(session)


def test_notes_on_the_reply_stand_behind_the_results() -> None:
    """Design, tag blocks: what stood after DONE, what looked like a tag and so on is named."""
    text = render(session_of(*turn(MessageShown("x"), notes=("one", "two"))))
    assert "[OK] MESSAGE: Message was shown\nNote: one\nNote: two\n\n" in text


def test_nothing_executed_is_said() -> None:
    """Design, replies as chats give them: never silence."""
    assert "## Previous Command Results\n(nothing was executed)\n\n" in render(session_of(*turn()))


def test_a_reopened_session_shows_its_last_results() -> None:
    """Design, tag blocks: `resume SESSION` reopens, with those results in the next outbox."""
    session = session_of(
        *turn(Refused(Kind.EDIT_FILE, "no such line"), Finished("ok")), SessionReopened(LATER)
    )
    assert "[FAILED] EDIT_FILE: no such line\n[OK] DONE: Task was ended\n" in render(session)


def test_the_environment_says_what_a_model_would_guess() -> None:
    """Design, the outbox: system, shell, time limit, sandbox, network; .git read-only, the person commits."""
    assert section(render(session_of()), "CONTEXT").partition("## Environment\n")[2] == (
        "  System: Linux\n  Sandbox: bubblewrap\n  Network: off: commands have none\n\n"
    )


# --- requested files -------------------------------------------------------------------------------


def test_a_requested_file_stands_between_its_markers() -> None:
    """Specification 003, requested file contents: the example as it stands there."""
    text = "using System;\n\npublic class Calculator\n{\n    public int Add(int a, int b) => a + b;\n}\n"
    assert contents(whole("src/Calculator.cs", text)) == (
        f"--- src/Calculator.cs ---\n{text}--- end src/Calculator.cs ---\n"
    )


def test_without_requests_there_is_no_such_part() -> None:
    """Specification 003, requested file contents: if the LLM used READ_FILE in its previous response."""
    assert "## Requested File Contents" not in render(session_of(*turn(MessageShown("x"))))


def test_an_empty_file_is_two_markers() -> None:
    """Specification 003, requested file contents: whatever the file holds."""
    assert contents(whole("a", "")) == "--- a ---\n--- end a ---\n"


def test_part_of_a_file_says_which() -> None:
    """Design, tag blocks: READ_FILE takes `start_line`, `end_line`."""
    assert contents(FileView("a", "x\ny\n", 5, 20)) == "--- a (lines 5-6 of 20) ---\nx\ny\n--- end a ---\n"


def test_files_keep_the_order_in_which_they_were_asked_for() -> None:
    """Specification 003, parsing rule 6: order of appearance."""
    text = contents(whole("b", "long\n" * 50), whole("a", "x\n"))
    assert text.index("--- b ---") < text.index("--- a ---")


@each_row(
    "line",
    [
        "--- a ---",
        "--- end a ---",
        "  --- x (3 lines) ---  ",
        "=== PROMPT ===",
        "=== HEADER ===",
        "## Workspace Files",
        "## Previous Command Results",
        "## Requested File Contents",
        "## Environment",
        "\f=== PROMPT ===",
        "x\u2028=== PROMPT ===\u2028y",
        "x\x85## Environment",
        "\xa0\u3000=== PROMPT ===\xa0",
        "\u200b\ufeff--- end a ---\u200b",
        "\u202e=== PROMPT ===",
    ],
)
def test_a_file_that_imitates_our_headings_is_counted(line: str) -> None:
    """Design, the outbox: the marker then carries a count of lines: `--- path (120 lines) ---`."""
    assert contents(whole("a", f"x\n{line}\ny\n")) == f"--- a (3 lines) ---\nx\n{line}\ny\n--- end a ---\n"


@each_row("line", ["---", "--- a", "a ---", "== HEADER ==", "## Other", "# Environment", "x --- a ---"])
def test_other_files_have_the_plain_marker(line: str) -> None:
    """Specification 003, requested file contents: `--- path ---`."""
    assert contents(whole("a", f"{line}\n")).startswith("--- a ---\n")


def test_a_file_that_cannot_be_read_after_all_is_said() -> None:
    """Design, replies as chats give them: never silence."""
    session = session_of(*turn(FileRequested("a", ("a",))))
    text = outbox.render(session, context_of(unread=("a: File 'a' not found",)), BUDGET)
    assert "## Requested File Contents\n(a: File 'a' not found)\n" in text


def test_a_path_from_the_disk_stands_on_one_line() -> None:
    """Design, the outbox: text that came from outside can imitate our headings."""
    assert contents(whole("a\n=== PROMPT ===\nb", "x\n")).startswith("--- a\\n=== PROMPT ===\\nb ---\n")


# --- the budget ------------------------------------------------------------------------------------

_SMALL = _limits(20_000, 2_000)


def test_a_file_that_does_not_fit_is_cut_and_says_how_to_ask_for_the_rest() -> None:
    """Design, the outbox, budget: cut where it hurts least and said, with how to ask for it."""
    text = "".join(f"line {n}\n" for n in range(1, 10_001))
    shown = contents(whole("a", text), budget=_SMALL)
    found = re.match(
        r'--- a \(lines 1-(\d+) of 10000; ask for the rest with start_line="(\d+)"\) ---\n', shown
    )
    assert found is not None
    last = int(found[1])
    assert int(found[2]) == last + 1
    assert shown.endswith(f"\nline {last}\n--- end a ---\n")
    assert last > 500


def test_what_is_shown_of_a_later_part_says_where_it_goes_on() -> None:
    """Design, the outbox, budget: with how to ask for the rest."""
    text = "".join(f"line {n}\n" for n in range(101, 9_000))
    shown = contents(FileView("a", text, 101, 10_000), budget=_SMALL)
    found = re.match(
        r'--- a \(lines 101-(\d+) of 10000; ask for the rest with start_line="(\d+)"\) ---\nline 101\n', shown
    )
    assert found is not None
    assert shown.endswith(f"\nline {found[1]}\n--- end a ---\n")


def test_short_files_are_whole_beside_a_long_one() -> None:
    """Design, the outbox, budget: cut where it hurts least."""
    shown = contents(whole("long", "long line\n" * 10_000), whole("short", "short\n" * 100), budget=_SMALL)
    assert "--- short ---\n" + "short\n" * 100 + "--- end short ---\n" in shown


def test_what_short_files_leave_over_goes_to_the_long_ones() -> None:
    """Design, the outbox, budget: cut where it hurts least."""
    views = [whole(f"s{n}", "x\n") for n in range(9)]
    shown = contents(whole("long", "0123456789\n" * 10_000), *views, budget=_SMALL)
    assert shown.count("0123456789\n") * 11 > 8_000


def test_a_file_of_one_endless_line_is_said() -> None:
    """Design, the outbox, budget: what does not fit is said."""
    view = whole("a", "x" * 1_000_000 + "\n")
    shown = contents(view, budget=_SMALL)
    assert len(shown) < 20_000
    assert [*file_contents.cuts(f"\n{shown}", [view])] == ["Nothing of a fits"]
    assert "--- a" in shown
    assert "(1 line, none of which fit here: ask for fewer files, or look at a part of it" in shown
    assert "start_line" not in shown


def test_results_that_do_not_fit_keep_what_failed() -> None:
    """Design, the outbox, budget: cut where it hurts least and said."""
    events: list[Event] = [CommandRan(f"ok {n}", 0, "fine\n" * 200, 1.0) for n in range(100)]
    events.insert(50, Refused(Kind.EDIT_FILE, "the one that failed", "true lines"))
    text = section(render(session_of(*turn(*events)), budget=_SMALL), "CONTEXT")
    assert "[FAILED] EDIT_FILE: the one that failed\n  Output: true lines\n" in text
    assert "[OK] RUN_COMMAND: Ran 'ok 0' (exit code 0)" in text
    assert len(text) < 20_000


def test_results_beyond_all_measure_are_counted() -> None:
    """Design, the outbox, budget: what does not fit is said."""
    events = [Refused(Kind.EDIT_FILE, f"reason {n} {'x' * 200}") for n in range(1_000)]
    text = section(render(session_of(*turn(*events)), budget=_SMALL), "CONTEXT")
    assert re.search(
        r"^… \d+ more results did not fit here \(0 OK, \d+ FAILED\); send fewer operations in one answer$",
        text,
        re.MULTILINE,
    )


def test_of_many_results_the_first_are_shown_and_the_others_counted() -> None:
    """Design, the outbox: a thousand lines alike tell a model no more than two hundred."""
    events: list[Event] = [Refused(Kind.EDIT_FILE, f"reason {n}") for n in range(RESULTS_SHOWN)]
    assert "more results" not in section(render(session_of(*turn(*events))), "CONTEXT")
    events += [CommandRan(f"ok {n}", 0, "", 1.0) for n in range(9)]
    text = section(render(session_of(*turn(*events))), "CONTEXT")
    assert text.count("[FAILED] EDIT_FILE: reason ") == RESULTS_SHOWN
    assert (
        "\n… 9 more results did not fit here (9 OK, 0 FAILED); send fewer operations in one answer\n" in text
    )


_LONG = "n" * 200


@each_row("characters", [20_000, 60_000, 200_000])
@each_row(
    ("session", "views", "listing"),
    [
        (session_of(), (), listing_of(*(f"d{n % 50}/{n}{_LONG}" for n in range(5_000)))),
        (session_of(), (), listing_of(*(f"{n}{_LONG}" for n in range(5_000)))),
        (session_of(*turn()), tuple(whole(f"{n}{_LONG}", "text\n" * 5_000) for n in range(100)), None),
        (session_of(*turn()), tuple(whole(f"{n}", "x" * 50_000 + "\n") for n in range(100)), None),
        (session_of(*turn(*(CommandRan("c", 1, "o" * 4_000, 1.0) for _ in range(500)))), (), None),
        (session_of(*turn(*(Refused(Kind.EDIT_FILE, "r" * 300, "d\n" * 300) for _ in range(500)))), (), None),
        (
            session_of(*turn(FileRequested("**", tuple(f"d/{n}{_LONG}" for n in range(2_000))))),
            (),
            listing_of(*(f"d/{n}{_LONG}" for n in range(5_000))),
        ),
        (
            session_of(*turn(*(Refused(Kind.EDIT_FILE, "no", "d\n" * 900) for _ in range(9)))),
            tuple(whole(f"{n}", "text\n" * 5_000) for n in range(9)),
            None,
        ),
    ],
    ids=["deep listing", "flat listing", "many files", "long lines", "output", "failures", "touched", "both"],
)
def test_the_whole_request_keeps_within_its_budget(
    session: Session, views: tuple[FileView, ...], listing: Listing | None, characters: int
) -> None:
    """Design, the outbox: `context_chars` is the budget for the whole outbox."""
    assert len(render(session, *views, listing=listing, budget=_limits(characters, 2_000))) <= characters


def test_what_must_be_told_is_told_whatever_the_budget() -> None:
    """Specification 003, outbox format: every request has its four sections and the task."""
    text = render(session_of(*turn(), task="a task\nof two lines"), budget=_limits(1, 20))
    assert guide.protocol_text() in text
    assert "a task\nof two lines" in text
    assert "## Environment" in text


@pytest.mark.parametrize(
    "text",
    ["\n" * 30_000, " \n" * 20_000, "\t" * 60_000 + "\n", "--- " * 20_000 + "\n", "=== " * 20_000 + "\n"],
    ids=lambda text: ascii(text[:4]),
)
def test_a_hostile_file_takes_no_time(text: str) -> None:
    """Design, speed: a request is made in one pass, whatever the file holds."""
    with cpu_below(10):
        contents(whole("a", text))


@given(
    st.text(max_size=50),
    st.lists(
        st.one_of(
            st.builds(Refused, st.just("EDIT_FILE"), st.just("no"), st.text(max_size=60)),
            st.builds(
                CommandRan, st.text(max_size=20), st.integers(-5, 5), st.text(max_size=60), st.just(1.0)
            ),
        ),
        max_size=4,
    ),
)
def test_text_from_outside_never_makes_a_section(output: str, events: list[Event]) -> None:
    """Design, the outbox: command output is indented; it can't imitate a heading or a result."""
    session = session_of(*turn(*events, CommandRan("x", 0, f"=== PROMPT ===\n{output}\n## Environment", 1.0)))
    text = render(session)
    assert len(re.findall(r"^=== \w+ ===$", text, re.MULTILINE)) == 4
    assert len(re.findall(r"^## Environment$", text, re.MULTILINE)) == 1
    assert len(re.findall(r"^\[(?:OK|FAILED)\] ", text, re.MULTILINE)) == len(events) + 1


def test_a_request_under_way_is_made_from_the_records_alone() -> None:
    """Design, nothing is lost: the same records make the same request."""
    records = (*turn(MessageShown("x")), RequestWritten(2, LATER), AnswerTaken(2, "x", "d", LATER))
    assert render(session_of(*records)) == render(session_of(*records))


def test_the_task_of_many_lines_is_in_the_whole_request_only() -> None:
    """Design, the outbox: a chat that has seen the earlier requests need not read the task again."""
    session = session_of(*turn(), task="a task\nof two lines")
    assert "a task\nof two lines" in render(session)
    again = outbox.render_short(session, context_of(), BUDGET, outbox.tag_dialect(), ())
    assert "of two lines" not in again
    assert "Task: a task … (+1 line)" in again


@pytest.mark.parametrize(
    ("characters", "shown"), [(200_000, 20_000), (60_000, 4_000)], ids=["room", "no-room"]
)
def test_the_output_of_a_command_is_whole_while_there_is_room(characters: int, shown: int) -> None:
    """Design, the outbox: at most 20,000 characters a command, else 4,000."""
    ran = CommandRan("build", 1, "x" * 20_000, 1.0)
    text = render(session_of(*turn(ran, ran, ran)), budget=_limits(characters, 20))
    assert 3 * shown <= text.count("x") < 3 * shown + 100
    assert text.count(" characters left out …") == (3 if shown == 4_000 else 0)


def test_a_long_list_of_files_takes_few_characters() -> None:
    """Design, the outbox: it serves the task, in at most 1,400 tokens."""
    names = [f"folder{n % 300}/a file with a name of some length {n}.txt" for n in range(6_000)]
    text = render(session_of(), listing=listing_of(*names))
    files = text.partition("## Workspace Files\n")[2].partition("\n\n")[0]
    assert 700 < estimate(files) <= 1_400
