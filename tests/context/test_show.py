"""What the model and the person see of a choice: a part is never the file."""

from codingagent.context.choose import Chosen
from codingagent.context.rank import Ranked
from codingagent.context.show import for_model, for_person, in_frame, part_of
from codingagent.prompt.file_contents import FileView, framed, lines_shown

TEXT = "".join(f"line {number}\n" for number in range(1, 121))


def part(*shown: int, total: int = 120, **about: object) -> Chosen:
    file = Ranked("shop/cart.py", 1.0, **about)  # type: ignore[arg-type]
    return Chosen(file, shown, total, 1_204)


def shown(part: Chosen, text: str) -> str:
    return for_model([view(text, part)]).partition("\n\n")[2].removesuffix("\n")


def view(text: str, part: Chosen) -> FileView:
    return FileView("shop/cart.py", text, 1, text.count("\n"), lines=part.shown)


def test_the_model_is_told_of_the_guess() -> None:
    """It says "by a guess", and asks for what is missing before an edit; no files, no words."""
    said = for_model([view(TEXT, part(3))])
    assert "guessed" in said
    assert "READ_FILE" in said
    assert "stands for lines left out" in said
    assert "stands for lines left out" not in for_model([view(TEXT, part(*range(1, 121)))])
    assert for_model([]) == ""


def test_a_part_is_marked_and_a_gap_says_what_is_in_it() -> None:
    """The lines themselves have no numbers; what is left out has, and up to eight names."""
    text = "".join(f"def f{number}():\n    pass\n    pass\n    pass\n" for number in range(30))
    assert shown(part(9, 10, 11, 12, 120), text) == (
        "--- shop/cart.py (parts of 120 lines) ---\n"
        "… lines 1-8: f0, f1\n"
        "def f2():\n    pass\n    pass\n    pass\n"
        "… lines 13-119: f3, f4, f5, f6, f7, f8, f9, f10, …\n"
        "    pass\n"
        "--- end shop/cart.py ---\n"
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
        *for_person([whole, part(3, named="named in the task", changed_s=2 * day), part(3, 4, 9)], 2.5 * day)
    ] == [
        'shop/cart.py, whole, 1,204 tokens: "discount" ×9, "cart" ×2, "a1" ×1; changed 2 days ago',
        "shop/cart.py, line 3 of 120, 1,204 tokens: named in the task; changed lately",
        "shop/cart.py, lines 3-4, 9 of 120, 1,204 tokens",
    ]


def test_of_a_file_that_an_output_names_the_blocks_are_shown() -> None:
    """The block of the innermost frame, whole, with the imports; a short file is shown whole."""
    functions = [f"def f{n}():\n" + f"    {n}\n" * 20 for n in range(40)]
    text = "import os\n\n" + "\n".join(functions)
    view = FileView("a.py", text, 1, text.count("\n"), digest="x")
    part = part_of(view, (70, 700))
    assert functions[31] in part.text
    assert "\n… lines 4-" in part.text or "… lines 2-" in part.text
    assert part.text.startswith("import os\n")
    assert not part.is_whole
    assert framed(part, 10_000).startswith(f"--- a.py (parts of {view.total_lines} lines) ---\n")
    short = FileView("a.py", "a\nb\n", 1, 2)
    assert part_of(short, (9,)) == short


def test_where_the_frame_does_not_fit_the_lines_asked_for_come_bare() -> None:
    """The record of what went out knows the lines of the frame, where it went."""
    text = "import os\n\n\ndef f():\n" + "    a = 1\n" * 60
    view = in_frame(FileView("a.py", "    a = 1\n" * 10, 20, 64), text)
    shown = f"\n{framed(view, 1_000)}"
    assert "\ndef f():\n… lines 5-19: f\n    a = 1\n" in shown
    assert [*lines_shown(shown, [view])] == [("a.py", 1, 29)]
    bare = f"\n{framed(view, 310)}"
    assert bare == f"\n--- a.py (lines 20-29 of 64) ---\n{view.text}--- end a.py ---\n"
    assert [*lines_shown(bare, [view])] == [("a.py", 20, 29)]


def test_closing_brackets_and_comments_at_the_margin_end_no_function() -> None:
    """What a line is in is told by indentation; a signature of several lines closes at the margin."""
    text = "def f(\n    a,\n) -> None:\n    if a:\n        b = 2\n# note\n        c = 3\n" + "x = 1\n" * 40
    view = in_frame(FileView("a.py", "        c = 3\n", 7, 47), text)
    assert view.around and view.around.text.startswith("def f(\n… lines 2-6: f\n")
