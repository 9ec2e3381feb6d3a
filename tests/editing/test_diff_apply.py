"""Where hunks of a diff go in a file: one place that is certain, or what to send instead."""

import pytest

from codingagent.editing import apply
from codingagent.errors import OperationError
from codingagent.model.operations import Diff, DiffHunk, FileEnd


def hunk(lines: str, at: int | None = None, section: str = "", **said: object) -> DiffHunk:
    """A hunk from its lines, each with its mark before it; with a number it is counted, too."""
    marked = tuple((line[:1] or " ", line[1:]) for line in lines.split("\n"))
    known = {"is_counted": at is not None, "is_verbatim": True, "new_start": at, **said}
    return DiffHunk(marked, at, sections=(section,) if section else (), **known)  # type: ignore[arg-type]


def after(text: str, *hunks: DiffHunk) -> str:
    return apply.apply(Diff(hunks), text).text


def notes(text: str, *hunks: DiffHunk) -> str:
    return "; ".join(apply.apply(Diff(hunks), text).notes)


def refusal(text: str, *hunks: DiffHunk) -> str:
    with pytest.raises(OperationError) as fault:
        apply.apply(Diff(hunks), text)
    return fault.value.reason


# --- which of several places -----------------------------------------------------------------------

# Three functions with the same body, at lines 1, 4 and 7.
THREE = "def a():\n    x = 1\n\ndef b():\n    x = 1\n\ndef c():\n    x = 1\n\nend\n"
X = "-    x = 1\n+    x = 2"


def changed(*numbers: int) -> str:
    lines = THREE.split("\n")
    for number in numbers:
        lines[number - 1] = "    x = 2"
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("hunks", "expected"),
    [
        ((hunk(X, 5),), (5,)),
        ((hunk(X, 5, is_counted=False),), (5,)),
        ((hunk(X), hunk(X), hunk(X)), (2, 5, 8)),
        ((hunk(" def b():\n" + X), hunk(X)), (5, 8)),
        ((hunk(X), hunk(" def b():\n" + X)), (2, 5)),
        ((hunk(X, section="def b():"),), (5,)),
        ((hunk(X, section="def b"),), (5,)),
        ((hunk(X, 3, section="def c():"),), (8,)),
        # The number of one place, the name of another.
        ((hunk(X, 5, section="def c():"),), (8,)),
        ((hunk(X, 7),), None),
        ((hunk(X),), None),
        ((hunk(X, section="def z():"),), None),
        # Out of order, but each where its number says.
        ((hunk(X, 8), hunk(X, 2)), (2, 8)),
    ],
)
def test_the_number_the_order_or_the_function_names_one_of_several_places(
    hunks: tuple[DiffHunk, ...], expected: tuple[int, ...] | None
) -> None:
    if expected is not None:
        assert after(THREE, *hunks) == changed(*expected)
    else:
        assert "fits 3 places (at lines 2, 5, 8)" in refusal(THREE, *hunks)


def test_a_number_is_moved_as_far_as_the_hunk_before_it() -> None:
    """The person has put three lines above; by its number alone the second hunk would be in b."""
    text = "one\ntwo\nthree\n" + THREE
    hunks = hunk(" def a():\n-    x = 1\n+    x = 2", 1), hunk(X, 5)
    assert after(text, *hunks) == "one\ntwo\nthree\n" + changed(2, 5)


def test_a_number_is_not_believed_where_its_neighbours_are_wrong_too() -> None:
    """Counts wrong, and the only hunk that fits one place is not where its number says."""
    hunks = (
        hunk("-end\n+END", 3, is_counted=False),
        hunk(X, 5, is_counted=False),
    )
    assert "fits 3 places" in refusal("end\n" + THREE.replace("end\n", ""), *hunks)


def test_blank_lines_alone_need_the_right_number() -> None:
    text = "a\n\nb\n"
    assert after(text, hunk(" \n+x", 2, is_counted=False)) == "a\n\nx\nb\n"
    assert "only blank lines" in refusal(text, hunk(" \n+x", 3, is_counted=False))


def test_hunks_may_share_lines_of_context() -> None:
    text = "a\nb\nc\nd\ne\n"
    assert after(text, hunk("-a\n+A\n b\n c"), hunk(" b\n c\n-d\n+D")) == "A\nb\nc\nD\ne\n"


def test_two_hunks_that_change_the_same_lines_are_refused() -> None:
    text = "a\nb\nc\n"
    assert "change the same lines" in refusal(text, hunk("-a\n-b\n+x"), hunk("-b\n+y\n c"))


def test_one_hunk_that_fits_nowhere_costs_the_others_of_its_file() -> None:
    reason = refusal("a\nb\n", hunk("-a\n+x"), hunk("-z\n+y"))
    assert reason.startswith("hunk 2 of 2 was not found")
    assert reason.endswith("none of the 2 was applied: send all of them again")


# --- the ends of the file --------------------------------------------------------------------------


def test_new_lines_without_context_above_go_to_the_top() -> None:
    text = "a\nb\nc\na\nb\n"
    assert after(text, hunk("+x\n a\n b", 1)) == "x\n" + text
    assert "top of the file" in refusal("0\n" + text, hunk("+x\n a\n b\n c", 1))


def test_new_lines_without_context_below_go_to_the_end() -> None:
    text = "a\nb\nc\na\nb\n"
    assert after(text, hunk(" a\n b\n+x", 4)) == text + "x\n"
    assert after(text, hunk(" a\n b\n+x", 1)) == text + "x\n"
    assert "end of the file" in refusal(text + "0\n", hunk(" c\n a\n b\n+x", 3))


def test_a_replaced_line_is_its_own_witness_wherever_it_is() -> None:
    """Only new lines could be put anywhere: what is replaced must be there."""
    assert after("a\nb\nc\nd\n", hunk(" b\n-c\n+x", 2)) == "a\nb\nx\nd\n"
    assert after("a\nb\nc\nd\n", hunk("-b\n+x\n c", 1)) == "a\nx\nc\nd\n"


def test_hunks_with_wrong_counts_need_not_be_at_an_end() -> None:
    assert after("a\nb\nc\n", hunk(" a\n b\n+x")) == "a\nb\nx\nc\n"
    assert after("a\nb\nc\n", hunk("+x\n b", 1, is_counted=False)) == "a\nx\nb\nc\n"


def test_lines_for_an_empty_file_are_for_an_empty_file() -> None:
    new = hunk("+x\n+y", 0)
    assert after("", new) == "x\ny\n"
    assert "the file has text" in refusal("a\n", new)
    assert "the file is empty" in refusal("", hunk("-a\n+b", 1))


@pytest.mark.parametrize(
    ("text", "end", "expected"),
    [
        ("x\na\nx\n", FileEnd.KEPT, "x\na\ny\n"),
        ("x\na\nx", FileEnd.KEPT, "x\na\ny"),
        ("x\na\nx", FileEnd.ENDED, "x\na\ny\n"),
        ("x\na\nx\n", FileEnd.ENDED, "x\na\ny\n"),
        ("x\na\nx\n", FileEnd.OPEN, "x\na\ny"),
        ("x\r\na\r\nx", FileEnd.ENDED, "x\r\na\r\ny\r\n"),
        ("x\r\na\r\nx\r\n", FileEnd.OPEN, "x\r\na\r\ny"),
        ("x", FileEnd.ENDED, "y\n"),
    ],
)
def test_a_place_at_the_end_is_taken_and_ends_as_said(
    text: str, end: FileEnd, expected: str
) -> None:
    assert after(text, hunk("-x\n+y", end=end)) == expected


def test_a_place_at_the_end_must_be_there() -> None:
    assert "belongs at the end of the file" in refusal("x\na\n", hunk("-x\n+y", end=FileEnd.KEPT))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("is_ended", [True, False])
def test_lines_that_are_only_added_get_the_line_end_of_their_file(
    end: str, *, is_ended: bool
) -> None:
    text = end.join("abc") + (end if is_ended else "")
    last = end if is_ended else ""
    assert after(text, hunk(" c\n+x")) == end.join("abcx") + last
    assert after(text, hunk("+x\n a")) == end.join("xabc") + last
    assert after(text, hunk(" a\n+x\n b")) == end.join("axbc") + last
    assert after(text, hunk("-a\n-b\n-c")) == ""


# --- there already ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hunks",
    [
        (hunk(" one = 1\n-two = 1\n+two = 2\n three = 3", 1),),
        (hunk(" one = 1\n-two = 1\n+two = 2\n three = 3"),),
        (hunk("+zero = 0\n one = 1\n two = 2\n three = 3", 1),),
        (hunk("+zero = 0\n one = 1\n two = 2\n three = 3"),),
        (hunk(" two = 2\n three = 3\n+four = 4", 2),),
        (hunk(" two = 2\n three = 3\n+four = 4"),),
        (hunk(" two = 2\n-two = 1\n three = 3", 3),),
        (hunk(" one = 1\n-two = 1\n+two = 2\n three = 3"), hunk(" three = 3\n+four = 4")),
    ],
)
def test_what_is_there_already_is_not_put_there_again(hunks: tuple[DiffHunk, ...]) -> None:
    text = "zero = 0\none = 1\ntwo = 2\nthree = 3\nfour = 4\n"
    assert after(text, *hunks) == text
    assert "already: nothing was to be done" in notes(text, *hunks)


def test_a_block_like_its_neighbour_is_not_put_there_again() -> None:
    """The lines below are the same before and after, so that both sides of the hunk are there."""
    block = "\n@pytest.mark.slow\ndef test_one():\n    pass\n"
    text = "import pytest\n" + block + "\n@pytest.mark.slow\ndef test_two():\n    pass\n"
    before = text.replace(block, "", 1)
    new = hunk(
        " import pytest\n \n+@pytest.mark.slow\n+def test_one():\n+    pass\n+\n @pytest.mark.slow",
        1,
    )
    assert after(before, new) == text
    assert after(text, new) == text


def test_the_hunks_that_are_not_there_yet_are_applied() -> None:
    text = "first line\nsecond line\nthird\nfourth\n"
    there, new = hunk("-line one\n+first line\n second line"), hunk(" third\n-fourth\n+FOURTH")
    assert after(text, there, new) == text.replace("fourth", "FOURTH")
    assert notes(text, there, new) == "hunk 1 of 2 is at line 1 already: nothing was to be done"


def test_a_repeated_line_is_no_proof_that_it_was_put_there() -> None:
    text = "x\nx\nx\nx\nx\nx\nx\n"
    assert after(text, hunk(" x\n x\n x\n+x\n x\n x\n x", 1)) == text + "x\n"


# --- lines that came otherwise ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "lines", "expected", "note"),
    [
        ("a  \nb\nc\n", " a\n-b\n+x\n c", "a  \nx\nc\n", "trailing blanks"),
        ("a\nb\nc\t\nd\n", " a\n-b\n+x\n c\n+y\n d", "a\nx\nc\t\ny\nd\n", "trailing blanks"),
        ("a\nb\nc\n", " a  \n-b  \n+x  \n c  ", "a\nx\nc\n", "trailing blanks"),
        (
            "    a\n      b\n    c\n",
            " a\n-  b\n+  x\n c",
            "    a\n      x\n    c\n",
            "indented by 4 blanks more",
        ),
        (
            "a\n  b\nc\n",
            "   a\n-    b\n+    x\n+  y\n   c",
            "a\n  x\ny\nc\n",
            "indented by 2 blanks less",
        ),
        ("\ta\n\t\tb\n\tc\n", "     a\n-        b\n+        x\n     c", None, ""),
        ("a\n\nb\nc\n", " a\n b\n-c\n+x", None, ""),
        ("a\nb\nc\n", " a\n \n b\n-c\n+x", None, ""),
    ],
)
def test_what_a_chat_does_to_blanks_is_undone_where_one_place_fits(
    text: str, lines: str, expected: str | None, note: str
) -> None:
    if expected is None:
        assert "was not found" in refusal(text, hunk(lines))
    else:
        assert after(text, hunk(lines)) == expected
        assert note in notes(text, hunk(lines))


def test_context_that_lost_its_mark_is_not_taken_for_another_indentation() -> None:
    """Its new lines have their mark, and would be put one blank too deep."""
    text = "def f():\n    x = 1\n    return x\n"
    lost = hunk("    x = 1\n+    y = 2\n    return x")
    assert "was not found" in refusal(text, lost)


def test_one_line_that_fits_with_its_indentation_shows_that_none_is_lost() -> None:
    """What of it is in a line of context of one hunk is believed of all of them."""
    text = "int a() {\n    one();\n}\n\nint b() {\n}\n"
    new = "    one();\n    two();\n"
    other = hunk(" int b() {\n+\tthree();\n }", 5)
    shown = hunk("     one();\n+    two();", 2, is_counted=False)
    expected = text.replace("    one();\n", new).replace("b() {\n", "b() {\n\tthree();\n")
    assert after(text, shown, other) == expected
    assert "indented by blanks and REPLACE by tabs" in refusal(text, other)
    # Not where it was fitted, nor where it came in no code block.
    for lines, is_verbatim in (("   one();\n+  two();", True), ("     one();\n+    two();", False)):
        fitted = hunk(lines, 2, is_counted=False, is_verbatim=is_verbatim)
        assert after(text, fitted) == text.replace("    one();\n", new)
        assert "indented by blanks and REPLACE by tabs" in refusal(text, fitted, other)


def test_a_line_that_says_that_something_was_left_out_is_one_only_where_nothing_was_counted() -> (
    None
):
    text = "a\nb\n"
    for comment in ("# ... rest of the code ...", "# ...but not twice"):
        assert after(text, hunk(f" a\n+{comment}\n b", 1)) == f"a\n{comment}\nb\n"
    assert "left out" in refusal(text, hunk(" a\n+# ... rest of the code ...\n b"))
    assert after("...\n" + text, hunk(" a\n+...\n b")) == "...\na\n...\nb\n"


# --- work ------------------------------------------------------------------------------------------


def test_hunks_that_fit_everywhere_are_refused_before_all_places_are_compared() -> None:
    text = "    x = 1\n" * 7000
    assert "fits too many places" in refusal(text, *[hunk(X)] * 1000)


def test_a_line_that_differs_only_in_blanks_that_were_lost_is_replaced() -> None:
    """The commit took blanks from the end of a line, and the chat took them from the diff."""
    assert after("a\nb  \nc\n", hunk(" a\n-b\n+b\n c", 1)) == "a\nb\nc\n"


# --- characters that a chat makes ------------------------------------------------------------------

PLAIN = "one();\ntwo();\n"


@pytest.mark.parametrize(
    ("path", "added", "damage"),
    [
        ("a.js", "if (a &lt; b) go();", "HTML entities"),
        ("a.js", "x = “y”;", "typographic quotes"),
        ("a.js", "x\u00a0= 1;", "no-break spaces"),
        ("a.js", "x\\_y = 1;", "escaped underscores"),
        ("a.js", "// a &lt; b, so it’s “x”", ""),
        ("a.js", "x = 'it’s “x”';", ""),
        ("a.html", "<p>a &lt; b</p>", ""),
        ("a.html", "<p>“x”</p>", ""),
        ("a.md", "a &lt; b, “x”, it’s", ""),
        ("a.tex", "„zwei“ b\\_c", ""),
        ("notes.txt", "“x” …", ""),
    ],
)
def test_added_lines_are_judged_by_what_their_file_can_hold(
    path: str, added: str, damage: str
) -> None:
    """Design, replies: never wrong bytes. What is meant in prose and markup is damage in code."""
    diff = Diff((hunk(f" one();\n+{added}\n two();", 1),))
    if not damage:
        assert apply.apply(diff, PLAIN, path=path).text == f"one();\n{added}\ntwo();\n"
        return
    with pytest.raises(OperationError) as fault:
        apply.apply(diff, PLAIN, path=path)
    assert f"the hunk looks damaged on its way: it adds {damage}" in fault.value.reason


def test_what_the_file_or_the_context_holds_already_is_meant() -> None:
    added = "x = a &lt; b;"
    for before in ("y = c &lt; d;", "y = c < d;"):
        diff = Diff((hunk(f" {before}\n+{added}", 1),))
        assert apply.apply(diff, f"{before}\n", path="a.js").text == f"{before}\n{added}\n"


def test_many_hunks_are_judged_without_the_whole_file_for_each() -> None:
    """The look at the whole file is costly; behind the first ones each hunk is judged by itself."""
    lines = [f"line_{n}();" for n in range(400)]
    said = {n: f"x = “{n}”;" if n == 398 else f"// “{n}”" for n in range(0, 400, 2)}
    hunks = tuple(
        hunk(f" line_{n}();\n+{added}\n line_{n + 1}();", n + 1) for n, added in said.items()
    )
    with pytest.raises(OperationError) as fault:
        apply.apply(Diff(hunks), "".join(f"{line}\n" for line in lines), path="a.js")
    assert "hunk 200 of 200 looks damaged" in fault.value.reason
