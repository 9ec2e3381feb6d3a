"""What the model and the person see of a choice: a part is never the file."""

from codingagent.context.choose import Chosen
from codingagent.context.rank import Ranked
from codingagent.context.show import for_model, for_person

TEXT = "".join(f"line {number}\n" for number in range(1, 121))


def part(*shown: int, total: int = 120, **about: object) -> Chosen:
    file = Ranked("shop/cart.py", 1.0, **about)  # type: ignore[arg-type]
    return Chosen(file, shown, total, 1_204)


def shown(part: Chosen, text: str) -> str:
    return for_model([part], {"shop/cart.py": text}).partition("\n\n")[2].removesuffix("\n")


def test_the_model_is_told_of_the_guess() -> None:
    """It says "chosen by a guess", and asks for what is missing before an edit; no files, no words."""
    said = for_model([part(3)], {"shop/cart.py": TEXT})
    assert "by a guess" in said
    assert "Name what is missing" in said
    assert for_model([], {}) == ""


def test_a_part_is_marked_and_its_lines_have_numbers() -> None:
    """Parts and outlines are marked as such with line numbers; what is left out is seen."""
    assert shown(part(3, 4, 100), TEXT) == (
        "--- shop/cart.py (a part: 3 of 120 lines, with their numbers) ---\n"
        "  …\n  3 | line 3\n  4 | line 4\n  …\n100 | line 100\n  …\n--- end shop/cart.py ---\n"
    )


def test_a_whole_file_is_as_it_is() -> None:
    """No numbers: the model copies from it."""
    assert shown(part(1, 2, total=2), "a\n  b\n") == (
        "--- shop/cart.py (2 lines) ---\na\n  b\n--- end shop/cart.py ---\n"
    )


def test_the_person_sees_one_line_a_file() -> None:
    """Each line of the choice is shown to the person, with what speaks for it."""
    words = {"cart": 2, "discount": 9, "a1": 1, "b1": 1}
    day = 24 * 60 * 60
    whole = part(*range(1, 121), words=words, changed_s=10)
    assert [
        *for_person([whole, part(3, is_named=True, changed_s=2 * day), part(3)], 2.5 * day)
    ] == [
        'whole shop/cart.py 1,204 tokens: "discount" ×9, "cart" ×2, "a1" ×1; changed 2 days ago',
        "1 of 120 lines of shop/cart.py 1,204 tokens: named in the task; changed lately",
        "1 of 120 lines of shop/cart.py 1,204 tokens",
    ]
