"""What one process asks of another comes back from its bytes; anything else is refused, never a fault."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from codingagent.errors import UsageError
from codingagent.model.approval import Answer
from codingagent.storage import queued_request
from codingagent.storage.queued_request import Errand, Report

_TEXT = st.text(max_size=20)
_PATHS = st.lists(st.from_regex(r"[a-z]{1,9}(/[a-z]{1,9}){0,2}", fullmatch=True), max_size=3)
_ANSWERS = st.builds(Answer, st.sampled_from(["yes", "no", "always"]), st.just("person"), _TEXT)
_ERRANDS = st.builds(
    Errand,
    st.sampled_from(["say", "refresh", "answer"]),
    _TEXT,
    _TEXT,
    _PATHS.map(tuple),
    _TEXT,
    st.none() | _ANSWERS,
    _TEXT,
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)
_FIELDS = st.fixed_dictionaries(
    {"what": st.sampled_from(["say", "refresh", "answer"]) | _JSON},
    optional=dict.fromkeys(
        ("session_id", "text", "attached", "operation_id", "answer", "seen"), _JSON
    ),
)


@given(_ERRANDS)
def test_an_errand_comes_back_from_its_bytes(errand: Errand) -> None:
    """The words that arrive are the words that were said."""
    assert queued_request.decode_errand(queued_request.encode(errand)) == errand


@given(st.builds(Report, _TEXT, st.integers(0, 255)))
def test_a_report_comes_back_from_its_bytes(report: Report) -> None:
    assert queued_request.decode_report(queued_request.encode(report)) == report


@given(
    st.binary(max_size=60)
    | _JSON.map(lambda v: json.dumps(v).encode())
    | _FIELDS.map(lambda v: json.dumps(v).encode())
)
def test_what_is_no_errand_is_refused_in_words(data: bytes) -> None:
    """Anything may be on the live: it must not end the other terminal's work."""
    for decode in (queued_request.decode_errand, queued_request.decode_report):
        try:
            decode(data)
        except UsageError as fault:
            # A path that some version let through is told as any other.
            way_out = "stop it there, then try again"
            assert str(fault).endswith(way_out) or "path" in str(fault).lower(), fault


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a\0b", "", "~/x", "a\\b", "x" * 300, "."])
def test_a_path_that_leads_nowhere_in_the_workspace_is_refused(path: str) -> None:
    data = queued_request.encode(Errand("say", "a1b2c3d4", "x", (path,)))
    with pytest.raises(UsageError):
        queued_request.decode_errand(data)


def test_half_characters_become_question_marks_as_in_the_journal() -> None:
    """Else the session would say something else than its record."""
    data = queued_request.encode(Errand("say", "a1b2c3d4", "half \ud800"))
    assert queued_request.decode_errand(data).text == "half ?"


def test_an_errand_cannot_say_who_gave_its_answer() -> None:
    """Design, policy: the record says how a question was answered; only the process that does it knows."""
    forged = Answer("yes", by="--yes", reason="r", how="terminal")
    data = queued_request.encode(Errand("answer", "a1b2c3d4", operation_id="op-1", answer=forged))
    assert queued_request.decode_errand(data).answer == Answer("yes", reason="r")


def test_what_nests_too_deep_is_refused() -> None:
    with pytest.raises(UsageError):
        queued_request.decode_errand(b"[" * 1_000_000)


def test_what_a_later_version_adds_is_passed_over() -> None:
    errand = Errand("refresh", "a1b2c3d4")
    data = json.loads(queued_request.encode(errand)) | {"colour": "red"}
    assert queued_request.decode_errand(json.dumps(data).encode()) == errand


def test_an_answer_names_what_was_seen() -> None:
    """Design, policy: a yes holds for exactly what was shown."""
    assert queued_request.seen("rm -r build") != queued_request.seen("rm -r src")
    # The journal keeps no half characters, and who answers reads it there.
    assert queued_request.seen("\ud800") == queued_request.seen("?")
    assert replace(Errand("answer", "a"), seen=queued_request.seen("x")).seen
