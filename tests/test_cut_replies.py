"""Answers that were cut short, in a real session; and what a short request tells of the turns between."""

from pathlib import Path

import pytest

from codingagent.protocols.tags import continuation, scanner
from codingagent.protocols.tags.scanner import Block
from tests.helpers import LiveSession, live_session, plain_session

BODY = "".join(f"line number {n}\n" for n in range(40))


def reply(live: LiveSession, text: str, sequence: int) -> str:
    return f'[REPLY session="{live.session_id}" sequence="{sequence}"]\n{text}'


def test_a_file_arrives_in_three_parts(tmp_path: Path) -> None:
    """Design, truncation: what arrived is kept until it is gone on with, also over another turn."""
    with plain_session(tmp_path) as live:
        first = live.answer(reply(live, f'[CREATE_FILE path="a.txt"]\n{BODY[:200]}', 1))
        assert "Cut off inside CREATE_FILE" in first
        assert not (live.workspace / "a.txt").exists()
        live.answer(reply(live, "[MESSAGE]\nI go on.\n[/MESSAGE]\n[END]\n", 2))
        start = BODY[:180].rindex("\n") + 1
        second = live.answer(reply(live, BODY[start:400], 3))
        assert "Cut off inside CREATE_FILE" in second
        start = BODY[:370].rindex("\n") + 1
        done = live.answer(reply(live, f"{BODY[start:]}[/CREATE_FILE]\n[END]\n", 4))
        assert "[OK] CREATE_FILE: Created 'a.txt'" in done
        assert "lines that had arrived before" in done
        assert (live.workspace / "a.txt").read_text() == BODY


def test_what_does_not_go_on_leaves_the_file_alone(tmp_path: Path) -> None:
    """A cut reply never overwrites a whole file with a part."""
    with plain_session(tmp_path) as live:
        (live.workspace / "a.txt").write_text("old\n")
        live.answer(reply(live, f'[CREATE_FILE path="a.txt"]\n{BODY[:200]}', 1))
        text = live.answer(reply(live, f"{BODY[300:]}[/CREATE_FILE]\n[END]\n", 2))
        assert "send CREATE_FILE 'a.txt' again from its start" in text
        assert (live.workspace / "a.txt").read_text() == "old\n"


def test_a_short_request_tells_what_the_person_changed_while_it_only_read(tmp_path: Path) -> None:
    """Design, outbox: what changed in the workspace since, the person's own edits too."""
    with live_session(tmp_path) as live:
        (live.workspace / "mine.txt").write_text("one\n")
        live.answer('[CREATE_FILE path="a.txt"]\nx\n[/CREATE_FILE]\n')
        (live.workspace / "mine.txt").write_text("two\n")
        live.answer('[READ_FILE path="a.txt"]\n', "second.txt")
        short = live.home.mailbox.short_path(live.session_id, 3).read_text("utf-8")
        assert "modified: mine.txt" in short


# --- half an answer, and then the other half --------------------------------------------------------


def whole(live: LiveSession, *, fenced: bool) -> str:
    """Return an answer of which the first commands leave a trace each time that they are executed."""
    text = reply(
        live,
        "[RUN_COMMAND]\necho first >>ran\n[/RUN_COMMAND]\n"
        f'[CREATE_FILE path="a.txt"]\n{BODY}[/CREATE_FILE]\n'
        "[RUN_COMMAND]\ngrep -c number a.txt >>ran\n[/RUN_COMMAND]\n[END]\n",
        1,
    )
    return f"Here it is:\n\n````\n{text}````\n" if fenced else text


def ran(live: LiveSession) -> list[str]:
    return (live.workspace / "ran").read_text().split()


@pytest.mark.parametrize("end", ["", "\n", "\n````\n"])
@pytest.mark.parametrize("fenced", [False, True])
@pytest.mark.one_in(2)
def test_commands_behind_a_missing_block_wait_for_it(tmp_path: Path, end: str, *, fenced: bool) -> None:
    """Design, truncation: the second half alone executes nothing that may need the first."""
    with plain_session(tmp_path) as live:
        answer = whole(live, fenced=fenced)
        at = answer.index("number 25")
        first = live.answer(answer[:at] + (end if fenced or not end.strip() else ""))
        assert "[FAILED] CREATE_FILE: " in first
        assert "CREATE_FILE 'a.txt'" in first
        second = live.answer(answer[at:])
        assert "not executed: RUN_COMMAND at line" in second
        assert "send CREATE_FILE 'a.txt' again" in second
        # Nothing false is said of fences and closing tags.
        assert "Note: " not in second
        assert "fence" not in first + second
        assert ran(live) == ["first"]
        # The model does what the request asks for.
        block = f'[CREATE_FILE path="a.txt"]\n{BODY}[/CREATE_FILE]\n'
        behind = "[RUN_COMMAND]\ngrep -c number a.txt >>ran\n[/RUN_COMMAND]\n"
        done = live.answer(reply(live, f"{block}{behind}[END]\n", 3))
        assert "FAILED" not in done
        assert ran(live) == ["first", "40"]


@pytest.mark.parametrize("fenced", [False, True])
@pytest.mark.parametrize("halves", [1, 2])
@pytest.mark.one_in(2)
def test_the_whole_answer_again_is_gone_on_with(tmp_path: Path, halves: int, *, fenced: bool) -> None:
    """Design, nothing runs twice: of the whole only what had not arrived before is executed."""
    with plain_session(tmp_path) as live:
        answer = whole(live, fenced=fenced)
        at = answer.index("number 25")
        live.answer(answer[:at])
        if halves == 2:
            live.answer(answer[at:])
        done = live.answer(answer)
        assert "FAILED" not in done
        assert "the answer that was cut off, now complete" in done
        assert ran(live) == ["first", "40"]
        # It is the answer to the first request still: a second time nothing comes of it.
        live.answer(answer, "again.txt")
        assert live.rejected() == ["again.txt", "again.txt.reason"]
        assert ran(live) == ["first", "40"]


def test_another_answer_to_the_same_request_is_not_the_whole_one(tmp_path: Path) -> None:
    """Design, tag blocks: an older sequence is not executed, unless all that arrived stands in it."""
    with plain_session(tmp_path) as live:
        answer = whole(live, fenced=False)
        live.answer(answer[: answer.index("number 25")])
        live.answer(answer.replace("echo first", "echo other"), "other.txt")
        assert live.rejected() == ["other.txt", "other.txt.reason"]
        assert ran(live) == ["first"]


# --- the second half is said, fenced, or goes on within a line ----------------------------------------

PROGRAM = "".join(f"def area_{n}(r):\n    return {n} * r ** 2\n\n\n" for n in range(9)).rstrip() + "\n"
GO = "".join(f"func area{n}(r float64) float64 {{\n\treturn {n} * r * r\n}}\n\n" for n in range(9))
SAID = [
    "Sure, here's the rest:\n\n",
    "Natürlich, hier ist der Rest:\n\n",
    "好的，以下是剩余部分：\n\n",
    "بالتأكيد، إليك الباقي:\n\n",
    "Continuing from where I stopped…\n",
    "**Here is the rest.**\n\nIt goes on within the function:\n\n",
]
BEHIND = '[CREATE_FILE path="b.txt"]\nb\n[/CREATE_FILE]\n[END]\n'


@pytest.mark.parametrize("said", ["", *SAID])
@pytest.mark.parametrize("form", ["{0}{1}", "{0}```python\n{1}```\n", "{0}{2}\n{1}"])
@pytest.mark.parametrize(("name", "text"), [("a.py", PROGRAM), ("a.go", GO)])
@pytest.mark.parametrize("at", [0.4, 0.5, 0.63])
@pytest.mark.one_in(8)
def test_a_sentence_before_the_second_half_costs_nothing(
    tmp_path: Path, said: str, form: str, name: str, text: str, at: float
) -> None:
    """Design, truncation: joined where it is certain, in any language; what is behind it is done."""
    cut = int(len(text) * at)
    opening = f'[CREATE_FILE path="{name}"]'
    with plain_session(tmp_path) as live:
        live.answer(reply(live, f"{opening}\n{text[:cut]}", 1))
        asked = continuation.refusal(f"{opening}\n{text[:cut]}".rstrip("\n"), block_of(live)).detail
        rest = text[text.index(asked) :]
        second = form.format(said, rest, opening)
        done = live.answer(reply(live, f"{second}[/CREATE_FILE]\n{BEHIND}", 2))
        assert "FAILED" not in done
        assert (live.workspace / name).read_text() == text
        assert (live.workspace / "b.txt").exists()


def block_of(live: LiveSession) -> Block:
    (block,) = scanner.scan_lines(f"{live.conversation.session.cut}\n").blocks
    return block


@pytest.mark.parametrize("said", ["", *SAID[:2]])
def test_a_program_that_goes_on_within_a_line_is_asked_for_again(tmp_path: Path, said: str) -> None:
    """Nothing shows where the two parts meet; what is behind it may need it."""
    with plain_session(tmp_path) as live:
        live.answer(reply(live, '[CREATE_FILE path="a.py"]\nx = 12', 1))
        done = live.answer(reply(live, f"{said}34\n[/CREATE_FILE]\n{BEHIND}", 2))
        assert "send CREATE_FILE 'a.py' again" in done
        assert not (live.workspace / "a.py").exists()
        assert not (live.workspace / "b.txt").exists()


@pytest.mark.parametrize(
    "second",
    [
        # The line is there a second time, behind lines that had not arrived.
        "def b():\n    return total\n",
        "}\n\nfunction b() {\n    return total\n",
        "\n\ndef b():\n    x = 1\n    return total\n",
    ],
)
def test_lines_of_the_file_are_not_taken_for_a_sentence(tmp_path: Path, second: str) -> None:
    with plain_session(tmp_path) as live:
        live.answer(reply(live, '[CREATE_FILE path="a.js"]\ndef a():\n    return total', 1))
        done = live.answer(reply(live, f"{second}[/CREATE_FILE]\n[END]\n", 2))
        assert "again" in done
        assert not (live.workspace / "a.js").exists()


def test_both_halves_pasted_are_answers(tmp_path: Path) -> None:
    """They are not asked about: the first names the request, the second goes on with what was cut."""
    with plain_session(tmp_path) as live:
        first = reply(live, f'[CREATE_FILE path="a.py"]\n{PROGRAM[:200]}', 1)
        assert live.conversation.is_answer(first, is_handed=True)
        live.answer(first)
        start = PROGRAM[:200].rindex("\n") + 1
        start = PROGRAM.rindex("\n", 0, start - 1) + 1
        for said in SAID:
            second = f"{said}{PROGRAM[start:]}[/CREATE_FILE]\n{BEHIND}"
            assert live.conversation.is_answer(second, is_handed=True)
        assert not live.conversation.is_answer("What is this?", is_handed=True)


def test_the_tag_once_more_before_the_second_half_makes_no_file_of_it(tmp_path: Path) -> None:
    """Nothing of its start is what had arrived; a file that starts in another way now says so."""
    with plain_session(tmp_path) as live:
        live.answer(reply(live, f'[CREATE_FILE path="a.txt"]\n{BODY[:200]}', 1))
        at = BODY[:200].rindex("\n") + 1
        half = f'[CREATE_FILE path="a.txt"]\n{BODY[at:]}[/CREATE_FILE]\n'
        told = live.answer(reply(live, f'{half}[CREATE_FILE path="b.txt"]\nb\n[/CREATE_FILE]\n', 2))
        assert "opens it again at line 2 without going on" in told
        assert not (live.workspace / "a.txt").exists()
        assert not (live.workspace / "b.txt").exists()
        other = half.replace("txt", 'txt" overwrite="true', 1)
        assert "[OK] CREATE_FILE: Created 'a.txt'" in live.answer(reply(live, other, 3))
        assert (live.workspace / "a.txt").read_text() == BODY[at:]


@pytest.mark.parametrize("repeated", [2, 4])
def test_a_sentence_before_several_lines_once_more_costs_nothing(tmp_path: Path, repeated: int) -> None:
    """Models send more of the end than the one line that they are asked for."""
    lines = [f"line{n} = {n}\n" for n in range(30)]
    with plain_session(tmp_path) as live:
        live.answer(reply(live, f'[CREATE_FILE path="a.py"]\n{"".join(lines[:20])}'.rstrip(), 1))
        rest = f"Voici la suite :\n\n{''.join(lines[20 - repeated :])}[/CREATE_FILE]\n[END]\n"
        assert "[OK] CREATE_FILE: Created 'a.py'" in live.answer(reply(live, rest, 2))
        assert (live.workspace / "a.py").read_text() == "".join(lines)
