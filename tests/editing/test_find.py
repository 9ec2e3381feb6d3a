"""Where a damaged search belongs: Design, replies as chats really give them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.editing import apply, elisions
from codingagent.errors import OperationError
from codingagent.model.chat_damage import Arrival, Channel, Damage
from codingagent.model.operations import Replacement
from tests.helpers import cpu_below

PATH = "a.py"
CODE = 'def load_all(name):\n    path = ROOT["base"] + name\n    if a < b and c > d:\n        return path\n'


def applied(text: str, search: str, replace: str, way: Channel = frozenset()) -> apply.Edited:
    return apply.apply((Replacement(search, replace),), text, Arrival(way), path=PATH)


def refused(text: str, search: str, replace: str, way: Channel = frozenset()) -> OperationError:
    with pytest.raises(OperationError) as caught:
        applied(text, search, replace, way)
    return caught.value


@pytest.mark.parametrize(
    ("search", "replace", "note"),
    [
        (r"    path = ROOT\[\"base\"\] + name", r"    path = ROOT\[\"top\"\] + name", "Markdown escapes"),
        ("    path = ROOT[&quot;base&quot;] + name", "    path = ROOT[&quot;top&quot;] + name", "entities"),
        ("    path = ROOT[“base”] + name", "    path = ROOT[“top”] + name", "typographic quotes"),
        ('    path\u00a0= ROOT["base"] + name', '    path\u00a0= ROOT["top"] + name', "no-break spaces"),
        ('    path = ROOT["base"]\u200b + name', '    path = ROOT["top"]\u200b + name', "zero-width"),
        ('    path = ROOT［"base"］ + name', '    path = ROOT［"top"］ + name', "full-width"),
        ('\tpath = ROOT["base"] + name', '\tpath = ROOT["top"] + name', "blanks for its indentation"),
        ('2 |     path = ROOT["base"] + name', '2 |     path = ROOT["top"] + name', "line numbers"),
        ('-    path = ROOT["base"] + name', '+    path = ROOT["top"] + name', "marks of a diff"),
        ('path = ROOT["base"] + name', 'path = ROOT["top"] + name', "4 blanks more"),
        ('```\n    path = ROOT["base"] + name\n```', '```\n    path = ROOT["top"] + name\n```', "fences"),
        ("    path = ROOT[“base”] + name  ", "    path = ROOT[“top”] + name  ", "typographic quotes"),
        ("    path = ROOT［“base”］ + name", "    path = ROOT［“top”］ + name", "full-width"),
    ],
)  # fmt: skip
def test_what_the_file_proves_is_undone_in_both(search: str, replace: str, note: str) -> None:
    """It matches after exactly that repair and not before; the same way brought REPLACE."""
    edited = applied(CODE, f"{search}\n", f"{replace}\n")
    assert edited.text == CODE.replace('"base"', '"top"')
    assert note in edited.notes[0]


@pytest.mark.parametrize(
    ("text", "search", "replace"),
    [
        ("a_b = 1\nc = r'\\_'\n", r"a\_b = 1", r"a\_b = r'\_'"),
        ("a < b\nx = '&lt;'\n", "a &lt; b", "a &lt; '&lt;'"),
        ('a = "x"\nb = "“"\n', "a = “x”", "a = “y”"),
        ("a_b = 1\n", r"a\_b = 1", r"a\_b = '\.'"),
        ("a b\nc\u00a0d\n", "a\u00a0b", "a\u00a0c"),
    ],
)
def test_a_new_line_that_may_be_meant_changes_nothing(text: str, search: str, replace: str) -> None:
    """Where a repair on REPLACE is ambiguous it is refused, and the true lines are shown."""
    fault = refused(text, f"{search}\n", f"{replace}\n")
    assert "SEARCH was damaged on its way" in fault.reason or "more than one way" in fault.reason
    assert fault.detail


def test_lines_of_the_search_become_those_of_the_file() -> None:
    """What REPLACE keeps of SEARCH is the file's own, whatever it went through."""
    edited = applied("a = “x”\nb = 1\n", 'a = "x"\nb = 1\n', 'a = "x"\nb = 2\n')
    assert edited.text == "a = “x”\nb = 2\n"
    assert refused("a = “x”\nb = 1\n", 'a = "x"\nb = 1\n', 'c = "y"\nb = 1\n').reason


def test_lost_indentation_comes_back_where_it_can_be_derived() -> None:
    """The unique place; a new line gets the indentation of the line that it is in other words."""
    bare = "if a < b and c > d:\nreturn path\n"
    assert applied(CODE, bare, "if a < b and c > d:\nreturn path + x\n").text == CODE.replace(
        "return path", "return path + x"
    )
    fault = refused(CODE, bare, "if a < b and c > d:\nlog(path)\nreturn path\n")
    assert "whose indentation can't be known" in fault.reason
    assert "        return path" in fault.detail


SPACED = "x = 1\n\nif a:\n    b()\nc()\n"


@pytest.mark.parametrize(
    ("search", "replace", "text", "note"),
    [
        (
            "+if a:\n+    b()\n",
            "+if a:\n+    d()\n+\n",
            "x = 1\n\nif a:\n    d()\n\nc()\n",
            "the +",
        ),
        ("+x = 1\n", "", "\nif a:\n    b()\nc()\n", "the +"),
        (
            "x = 1\n\n\n\nif a:\n\n    b()\n\n",
            "x = 2\n\n\n\nif b:\n\n    b()\n\n",
            "x = 2\n\nif b:\n    b()\nc()\n",
            "the blank line after",
        ),
        (
            "\nif a:\n\n    b()\n\nc()\n\n",
            "\nc()\n\n",
            "x = 1\n\nc()\n",
            "the blank line after",
        ),
        ("x = 1\n\n\nif a:\n", "x = 1\n\n\nif b:\n", SPACED.replace("a:", "b:"), "every second"),
    ],
)
def test_what_was_put_between_all_lines_is_taken_out(
    search: str, replace: str, text: str, note: str
) -> None:
    """Only so the lines are in the file, and REPLACE has the like."""
    edited = applied(SPACED, search, replace)
    assert edited.text == text
    assert note in edited.notes[0]


@pytest.mark.parametrize(
    ("search", "replace"),
    [
        ("+if a:\n+    b()\n", "+if a:\n    d()\n"),
        ("if a:\n\n    b()\n\n", "if a:\n    d()\n"),
        ("c()\n\n", "c()\n\nd()\n\n"),
        ("if a:\n\n    b()\n\nd()\n\n", "if b:\n\n"),
        ("x = 1\n\n\nif a:\n", "x = 1\n\nif b:\n"),
        ("if a:\n    b()\n\n\n", "if a:\n    b()\n\n\nd()\n\n\n"),
    ],
)
def test_what_is_not_between_all_lines_changes_nothing(search: str, replace: str) -> None:
    """REPLACE did not come so, one line shows too little, or SEARCH fits neither way."""
    assert "was not found" in refused(SPACED, search, replace).reason


def test_two_blank_lines_before_a_definition_prove_no_damage() -> None:
    """Many write two where the file has one."""
    text = "x = 1\n\ndef f():\n    y()\n"
    assert "not found" in refused(text, "x = 1\n\n\ndef f():\n", "x = 2\n\n\ndef f():\n").reason


def test_a_new_line_of_blanks_stays_one_where_damage_is_undone() -> None:
    """Only the damage is undone: the blanks of such a line may be meant."""
    assert (
        applied("a_b = 1\n", "a\\_b = 1\n", "a\\_b = 2\n    \n\t\n").text == "a_b = 2\n    \n\t\n"
    )


def test_two_places_after_a_repair_change_nothing() -> None:
    """A repair counts only if exactly one place fits after it."""
    assert "fits 2 places" in refused("a_b\nx\na_b\n", "a\\_b\n", "c\n").reason


@pytest.mark.parametrize(
    ("way", "replace"),
    [
        (Damage.ESCAPES, r"y = x\_z"),
        (Damage.ENTITIES, "y = x &lt; z"),
        (Damage.QUOTES, "y = “x”"),
        (Damage.BLANKS, "y =\u00a0x"),
        (Damage.BRACKETS, "y = ［x］"),
        (Damage.ZERO_WIDTH, "y = x\u200b"),
    ],
)
def test_a_search_that_proves_nothing_does_not_vouch_for_new_lines(
    way: Damage, replace: str
) -> None:
    """The tags were damaged so; a search without such characters says nothing of REPLACE."""
    fault = refused("end\n", "end\n", f"{replace}\n", frozenset({way}))
    assert "came with" in fault.reason


def test_a_search_that_was_spared_vouches_for_new_lines() -> None:
    """A plain character that the way would have changed shows that the body went another one."""
    edited = applied("a_b = 1\n", "a_b = 1\n", "a_b = '\\_'\n", frozenset({Damage.ESCAPES}))
    assert edited.text == "a_b = '\\_'\n"


@pytest.mark.parametrize(
    ("text", "replace", "what"),
    [
        ("all:\n\tmake\nend\n", "end\n    echo", "indented by tabs and REPLACE by blanks"),
        ("def f():\n    pass\nend\n", "end\n\tx", "indented by blanks and REPLACE by tabs"),
        ("end\n", "end\n\u00a0\u00a0x", "no-break spaces"),
        ("end\n", "end\n# ... existing code ...", "in place of others"),
        ("end\n", "end\n// rest unchanged", "in place of others"),
        ("end\n", "end\nx = a\\_b\\[0\\]", "holds Markdown escapes"),
        ("end\n", "end\nx &lt; y", "holds HTML entities"),
    ],
)
def test_new_lines_that_can_only_be_damaged_are_refused(text: str, replace: str, what: str) -> None:
    """What is doubtful is a problem that says what to send again."""
    assert what in refused(text, "end\n", f"{replace}\n").reason


@pytest.mark.parametrize(
    "replace",
    ["def f(): ...", "    ...", "# see above", "# the rest of the file is fast", "x = [...]"],
)
def test_dots_and_words_that_are_meant_are_written(replace: str) -> None:
    """Python has dots of its own, and a comment may speak of the rest."""
    assert applied("end\n  x\n", "end\n", f"{replace}\n").text == f"{replace}\n  x\n"


def test_elided_lines_are_filled_in_where_nothing_can_be_lost() -> None:
    """The place is unique and REPLACE keeps each of them; else it is refused."""
    text = "def f():\n    a = 1\n    b = 2\n    c = 3\n    return a\n"
    search = "def f():\n    a = 1\n...\n    return a\n"
    edited = applied(text, search, "def f():\n    a = 9\n...\n    return a\n")
    assert edited.text == text.replace("a = 1", "a = 9")
    assert "fitted with 2 lines of the file for '...'" in edited.notes[0]
    assert "in place of others" in refused(text, search, "def f():\n    a = 9\n").reason
    assert "in place of others" in refused(text * 2, search, search).reason


def test_an_edit_that_was_applied_before_is_known() -> None:
    """SEARCH is nowhere and REPLACE stands once: nothing changes, and that is said."""
    edited = applied(CODE, "def load(name):\n", "def load_all(name):\n")
    assert edited.text == CODE
    assert "REPLACE is at line 1 already" in edited.notes[0]
    assert [(h.old_count, h.new_count) for h in edited.hunks] == [(1, 1)]


@pytest.mark.parametrize(
    ("text", "search", "replace"),
    [
        ("x = 1\nreturn\n", "y = 1\n", "return\n"),
        (CODE, "a completely different line of text\n", "        return path\n"),
        (
            "y = 1\n" + CODE,
            "y = 1\nz = 2\n",
            'def load_all(name):\n    path = ROOT["base"] + name\n',
        ),
        (CODE + CODE, "def load(name):\n", "def load_all(name):\n"),
        (CODE, "def load(name):\n    if a < b and c > d:\n", "def load_all(name):\n"),
    ],
)
def test_a_line_that_stands_there_by_chance_is_no_applied_edit(
    text: str, search: str, replace: str
) -> None:
    """Never silence: an edit that was not made must not pass for one that was."""
    assert refused(text, search, replace).reason.startswith("SEARCH was not found")


@pytest.mark.parametrize(
    ("body", "path", "line"),
    [
        ("import os\n# ... existing code ...\n", "a.py", "# ... existing code ..."),
        ("a\n// rest of the file unchanged\n", "a.js", "// rest of the file unchanged"),
        ("a\n...\n", "a.txt", "..."),
        ("a\n    ...\n", "a.js", "..."),
        ("a\n<!-- ... -->\n", "a.html", "<!-- ... -->"),
        ("def f():\n    ...\n", "a.py", ""),
        ("keep\n", "a.txt", ""),
        ("# old ...\n", "a.txt", ""),
        ("print('...')\n", "a.py", ""),
    ],
)
def test_a_line_that_stands_for_others_is_found_in_a_whole_file(
    body: str, path: str, line: str
) -> None:
    """A part never takes the place of a whole file; a line that stood there before is a line."""
    assert elisions.elision_in(body, "# old ...\n", path) == line
    assert not line or elisions.elision_in(body, f"x\n{line}\n", path) == ""


_LINES = st.lists(
    st.sampled_from(["a_b = 1", "  x < y", "\tz", 'print("x")', "", "}", "c[0]", "it’s", "\\_"]),
    min_size=1,
    max_size=6,
)


@given(_LINES, _LINES, _LINES, st.sets(st.sampled_from(list(Damage))))
def test_a_search_that_fits_is_never_mended(
    before: list[str], search: list[str], replace: list[str], way: set[Damage]
) -> None:
    """A clean edit is never altered: REPLACE arrives letter by letter, or nothing changes."""
    text = "".join(f"{line}\n" for line in (*before, "<here>", *search, "<there>"))
    wanted = ["<here>", *search, "<there>"]
    new = ["<here>", *replace, "<there>"]
    joined = ["".join(f"{line}\n" for line in lines) for lines in (before, wanted, new)]
    try:
        edited = applied(text, joined[1], joined[2], frozenset(way))
    except OperationError:
        return
    assert edited.text == joined[0] + joined[2]


@pytest.mark.parametrize("line", ["a\\_b", "1 | x", "-x", "...", "“x”", "&lt;", "\tx"])
@pytest.mark.one_in(2)
def test_a_damaged_search_in_a_large_file_takes_no_time(line: str) -> None:
    """Design, purpose: the reply is not trusted, nor the file that an earlier one wrote."""
    with cpu_below(50):
        refused("x y\n" * 50_000, f"{line}\n" * 500, "z\n")


@pytest.mark.parametrize(
    ("text", "search", "replace"),
    [
        ("a = 1\nf(*b)\n", "a = 1", "a = 1\nf(\\*c)"),
        ("a = 1\nb = 'c'\n", "a = 1", "a = 1\nd = ‘e’"),
        ("a = 1\n", "a = 1", "a = 1\nb = “c”"),
        ("a = 1\n", "a = 1", "a = 1\nb = c &lt; d"),
        ("def a():\n    b\nx = 1\n", "x = 1", "def c():\nd\nx = 1"),
        ("f {\n  a\n}\nx\n", "x", "g {\nb\n}\nx"),
        ("all: a\n\tb a\n", "b a", "b a\nclean:"),
    ],
)
def test_a_new_line_that_nothing_clears_is_asked_for_again(
    text: str, search: str, replace: str
) -> None:
    """Neither the search nor the file shows whether it came as it was written."""
    refused(text, f"{search}\n", f"{replace}\n")


@pytest.mark.parametrize(
    ("text", "search", "replace"),
    [
        ("f(*b)\n", "f(*b)", "f(\\*c)"),
        ("b = 'c'\n", "b = 'c'", "b = ‘c’"),
        ("x\nsaid “c”\n", "x", "x\nsaid “d”"),
        ("a < b\n", "a < b", "a &lt; b"),
        ("f {\na\n}\nx\n", "x", "g {\nb\n}\nx"),
        ("x\n- one\n", "x", "x\n- one that goes\n  on here"),
    ],
)
def test_a_new_line_that_the_search_or_the_file_clears_is_taken(
    text: str, search: str, replace: str
) -> None:
    """A character as it was written, or one of the kind in the file, shows that nothing was done."""
    after = applied(text, f"{search}\n", f"{replace}\n").text
    assert after == text.replace(search, replace, 1)


def test_what_one_search_proves_holds_for_the_others_of_the_edit() -> None:
    """They all came the same way."""
    change = (
        Replacement("a\\_b = 1\n", "a\\_b = 2\n"),
        Replacement("c = 3\n", "c = 3\nd\\_e = \\*f\n"),
    )
    assert apply.apply(change, "a_b = 1\nc = 3\n").text == "a_b = 2\nc = 3\nd_e = *f\n"
