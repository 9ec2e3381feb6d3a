"""How many tokens a text has, about: Design, the outbox, budget."""

from hypothesis import given
from hypothesis import strategies as st

from codingagent.prompt import tokens
from tests.helpers import cpu_below


def test_no_text_has_no_tokens() -> None:
    """Design, the outbox, budget: the size in characters and estimated tokens."""
    assert tokens.estimate("") == 0


def test_prose_has_about_a_token_for_four_characters() -> None:
    """Design, the outbox, budget: an estimate, good enough to choose a chat by."""
    text = "The person only carries the text of your answer to the program, by hand. " * 100
    assert len(text) / 6 < tokens.estimate(text) < len(text) / 3


@given(st.text(st.characters(), max_size=100))
def test_any_text_has_an_estimate(text: str) -> None:
    """Design, the outbox, budget: whatever the text holds; at most about a token for each byte."""
    assert (1 if text else 0) <= tokens.estimate(text) <= 4 * len(text) + 1


def test_a_large_text_is_estimated_in_a_moment() -> None:
    """Design, speed: written once a turn, so measured in one pass."""
    with cpu_below(50):
        assert tokens.estimate("x = 1\n" * 1_000_000) > 0
