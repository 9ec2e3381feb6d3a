"""Notebooks are shown as their cells, and an edit of a cell keeps every other byte of the file."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.editing import notebooks
from codingagent.errors import ApprovalError, OperationError
from codingagent.model.settings import Settings
from tests.helpers import grows_with, live_session, plain_session
from tests.rows import each_row

IMAGE = "iVBORw0KGgo" * 50
CELLS = [
    {"cell_type": "markdown", "id": "a1", "metadata": {}, "source": ["# Sums\n", "für alle"]},
    {
        "cell_type": "code",
        "execution_count": 3,
        "id": "b2",
        "metadata": {"tags": ["x"]},
        "outputs": [
            {"name": "stdout", "output_type": "stream", "text": ["3\n", "4\n"]},
            {
                "data": {"image/png": IMAGE, "text/plain": ["<Figure>"]},
                "metadata": {},
                "output_type": "display_data",
            },
        ],
        "source": ["import math\n", "total = 1 + 2\n", "print(total)"],
    },
    {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": "x = 1\ny = 2"},
    {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": []},
]
DOCUMENT = {"cells": CELLS, "metadata": {"b": 1, "a": 2.50}, "nbformat": 4, "nbformat_minor": 5}
# As Jupyter writes it, as others do, and with blanks and a number as no program does.
TEXT = json.dumps(DOCUMENT, indent=1, ensure_ascii=False) + "\n"
ASCII = json.dumps(DOCUMENT, indent=2)
ODD = json.dumps(DOCUMENT, separators=(" ,", ":\t")).replace("2.5", "2.500e0")

SHOWN = """\
# %% notebook: edit the text of its cells as it stands here
# %% cell 1 (markdown)
# Sums
für alle
# %% cell 2 (code)
import math
total = 1 + 2
print(total)
# %% output of cell 2
3
4
<Figure>
(left out: 1 image/png)
# %% cell 3 (code)
x = 1
y = 2
# %% cell 4 (code)

"""


@pytest.mark.parametrize("text", [TEXT, ASCII, TEXT.replace("\n", "\r\n")])
def test_cells_are_shown_and_edited(text: str) -> None:
    """A changed line is one string; all else stays as it is written, escapes too."""
    assert notebooks.shown("a.ipynb", text) == SHOWN
    assert notebooks.shown("a.py", text) == text
    assert notebooks.written(text, SHOWN) == text
    new = notebooks.written(text, SHOWN.replace("1 + 2", "1 - 2"))
    assert new == text.replace("1 + 2", "1 - 2")
    new = notebooks.written(text, SHOWN.replace("x = 1", 'x = "ü"'))
    quoted = "\\u00fc" if text is ASCII else "ü"
    assert new == text.replace("x = 1", f'x = \\"{quoted}\\"')


def test_lines_come_and_go_in_the_way_of_the_file() -> None:
    new = notebooks.written(TEXT, SHOWN.replace("import math\n", "import math\nimport os\n"))
    assert new == TEXT.replace('    "import math\\n",\n', '    "import math\\n",\n    "import os\\n",\n')
    new = notebooks.written(TEXT, SHOWN.replace("(code)\n\n", "(code)\na\nb\n"))
    assert new == TEXT.replace('"source": []', '"source": [\n    "a\\n",\n    "b"\n   ]')
    new = notebooks.written(TEXT, SHOWN.replace("# Sums\nfür alle\n", "\n"))
    assert json.loads(new)["cells"][0]["source"] == []
    assert new.partition("]")[2].partition("cells")[2] == TEXT.partition("]")[2].partition("cells")[2]


@each_row(
    "new",
    [
        SHOWN.replace("3\n4\n", "5\n"),
        SHOWN.replace("# %% cell 3 (code)\n", ""),
        SHOWN + "# %% cell 5 (code)\nz = 3\n",
        SHOWN.replace("as it stands here\n", "as it stands here\nmore\n"),
    ],
)
def test_outputs_and_the_lines_between_cells_stay(new: str) -> None:
    with pytest.raises(OperationError):
        notebooks.written(TEXT, new)


@given(st.lists(st.text(), max_size=4), st.text())
def test_no_text_of_a_cell_is_taken_for_another(sources: list[str], source: str) -> None:
    """Whatever cells hold, lines like ours too; each edit is either exact or refused."""
    cells = [{"cell_type": "raw", "metadata": {}, "source": each} for each in ["# %% x", *sources]]
    text = json.dumps({"cells": cells, "nbformat": 4}, ensure_ascii=False)
    shown = notebooks.shown("a.ipynb", text)
    assert notebooks.written(text, shown) == text
    new = shown.replace("\n# %% x\n", f"\n{source}\n")
    try:
        found = json.loads(notebooks.written(text, new))
    except OperationError:
        return
    assert [each["source"] for each in found["cells"]] == [source, *sources]


def cells_of(*cells: tuple[object, str]) -> str:
    """Returns a notebook of cells with these sources and outputs."""
    made = [
        {"cell_type": "code", "metadata": {}, "outputs": [{"text": printed}], "source": source}
        for source, printed in cells
    ]
    return json.dumps({"cells": made, "nbformat": 4})


@pytest.mark.parametrize("printed", ["# %% cell 1 (code)", "# %% a\n# %%% b", "# %%%% a"])
def test_an_output_may_look_like_the_lines_between_cells(printed: str) -> None:
    text = cells_of(("x = 1", printed), ("# %%%%% y", ""))
    new = notebooks.shown("a.ipynb", text).replace("x = 1", "x = 2\n# %%%%%% z")
    assert notebooks.written(text, new) == text.replace("x = 1", "x = 2\\n# %%%%%% z")


def test_an_empty_cell_needs_no_line() -> None:
    """Chats leave it out where they write the whole file."""
    text = cells_of(("x = 1", ""), ("", ""), ([], ""), ("", ""))
    new = notebooks.shown("a.ipynb", text).replace("x = 1", "x = 2").replace("\n\n", "\n")
    assert notebooks.written(text, new) == text.replace("x = 1", "x = 2")


def test_a_cell_of_equal_lines_costs_no_more_than_another() -> None:
    """Lines in the middle are kept as they are written, whatever comes before and after them."""

    def edit(size: int) -> None:
        text = cells_of((["x = 1\n"] * size, ""))
        lines = notebooks.shown("a.ipynb", text).splitlines(keepends=True)
        for at in (size, size // 2, 3):
            lines.insert(at, "y = 2\n")
        made = json.loads(notebooks.written(text, "".join(lines)))
        assert made["cells"][0]["source"] == lines[2:-1]

    grows_with(1_000, edit)


def test_a_notebook_that_is_written_in_another_way_is_not_edited() -> None:
    """Its other bytes would change."""
    assert notebooks.shown("a.ipynb", ODD) == SHOWN
    with pytest.raises(OperationError, match="not written as Jupyter writes one"):
        notebooks.written(ODD, SHOWN.replace("1 + 2", "1 - 2"))


def test_what_is_no_notebook_is_shown_as_it_is() -> None:
    for text in ("", "{}", "[]", '{"cells": 1, "nbformat": 4}', TEXT.replace('t": 4', 't": 3'), "{" * 9999):
        assert notebooks.shown("a.ipynb", text) == text


def test_a_notebook_of_an_old_format_is_refused_in_plain_words(tmp_path: Path) -> None:
    """Its JSON holds pictures and no cells that could be edited; the program that reads it can convert it."""
    with plain_session(tmp_path) as live:
        old = {"metadata": {}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": CELLS}]}
        (live.workspace / "n.ipynb").write_text(json.dumps(old), "utf-8")
        live.answer('[READ_FILE path="n.ipynb"]')
        assert "File 'n.ipynb' is a notebook of nbformat 3; jupyter nbconvert" in live.request()
        assert IMAGE not in live.request()


def test_a_session_shows_and_edits_a_notebook(tmp_path: Path) -> None:
    """READ_FILE, SEARCH/REPLACE, and a whole file in the form that was shown; no line numbers."""
    with plain_session(tmp_path) as live:
        path = live.workspace / "n.ipynb"
        path.write_bytes(TEXT.encode())
        live.answer('[READ_FILE path="n.ipynb"]')
        assert SHOWN in live.contents()
        assert IMAGE not in live.request()
        edit = "<<<<<<< SEARCH\ntotal = 1 + 2\n=======\ntotal = 3\n>>>>>>> REPLACE\n"
        told = live.answer(f'[EDIT_FILE path="n.ipynb"]\n{edit}[/EDIT_FILE]')
        assert "[OK] EDIT_FILE" in told
        assert path.read_text("utf-8") == TEXT.replace("1 + 2", "3")
        # The chat may mean the lines of the JSON, if it wrote that itself.
        told = live.answer('[EDIT_FILE path="n.ipynb" start_line="3" end_line="3"]\nx\n[/EDIT_FILE]')
        assert "send the edit with SEARCH and REPLACE" in told
        assert path.read_text("utf-8") == TEXT.replace("1 + 2", "3")
        told = live.answer(f'[CREATE_FILE path="n.ipynb"]\n{SHOWN}[/CREATE_FILE]')
        assert path.read_text("utf-8") == TEXT, told
        told = live.answer(f'[CREATE_FILE path="new.ipynb"]\n{SHOWN}[/CREATE_FILE]')
        assert "[FAILED] CREATE_FILE" in told
        other = "<<<<<<< SEARCH\n3\n4\n=======\n7\n>>>>>>> REPLACE\n"
        told = live.answer(f'[EDIT_FILE path="n.ipynb"]\n{other}[/EDIT_FILE]')
        assert "[FAILED] EDIT_FILE" in told
        assert path.read_text("utf-8") == TEXT


def test_an_operation_in_json_may_edit_the_file_as_it_is(tmp_path: Path) -> None:
    """readFile gives it so."""
    with live_session(tmp_path, protocol="json") as live:
        path = live.workspace / "n.ipynb"
        path.write_bytes(TEXT.encode())
        edits = [{"oldContent": '"total = 1 + 2\\n"', "newContent": '"total = 3\\n"'}]
        operation = {"type": "editFile", "path": "n.ipynb", "edits": edits}
        live.answer(json.dumps({"protocolVersion": "1.0", "operations": [operation]}))
        assert path.read_text("utf-8") == TEXT.replace("1 + 2", "3")


@each_row("outputs", [["x"], [None], [{"text": 5}], [{"data": [1]}], [{"traceback": [1]}]])
def test_a_notebook_with_odd_outputs_is_shown_as_it_is(outputs: list[object]) -> None:
    """What another program wrote wrongly ends neither a start nor a turn."""
    cell = {"cell_type": "code", "outputs": outputs, "source": "x"}
    text = json.dumps({"cells": [cell], "nbformat": 4})
    assert notebooks.shown("a.ipynb", text) == text


def test_long_outputs_are_cut_between_lines() -> None:
    """A part of a secret is not found as one."""
    lines = [f"{'word ' * 20}{number}\n" for number in range(20)]
    cell = {"cell_type": "code", "outputs": [{"text": lines}], "source": "x"}
    told = notebooks.shown("a.ipynb", json.dumps({"cells": [cell], "nbformat": 4})).splitlines()
    assert "… 16 lines left out …" in told
    assert {f"{line}\n" for line in told[4:] if "left out" not in line} <= {*lines}
    cell["outputs"] = [{"text": "x" * 10_000}]
    told = notebooks.shown("a.ipynb", json.dumps({"cells": [cell], "nbformat": 4})).splitlines()
    assert told[4:] == ["… 1 line left out …"]


def test_only_a_notebook_has_the_form_in_which_notebooks_are_shown() -> None:
    """Any other file may begin with that line; a notebook that is none is refused in words."""
    assert notebooks.is_shown("a.ipynb", SHOWN)
    assert not notebooks.is_shown("a.py", SHOWN)
    with pytest.raises(OperationError, match="is no notebook"):
        notebooks.replaced("a.ipynb", SHOWN, SHOWN)


def test_a_cell_is_edited_beside_a_secret_that_json_escapes(tmp_path: Path) -> None:
    """The value is compared with what the cell says, not with how JSON writes it."""
    secret = 'Zq"7\\hTb93\\kLm"2pXw'
    source = f"import os\npassword = '{secret}'\nx = 1\n"
    text = TEXT.replace('"source": "x = 1\\ny = 2"', f'"source": {json.dumps(source)}')
    with live_session(tmp_path, settings=Settings(secrets="redact")) as live:
        path = live.workspace / "n.ipynb"
        path.write_text(text, "utf-8")
        live.answer('[READ_FILE path="n.ipynb"]')
        assert secret not in live.request()
        (line,) = (each for each in live.contents().split("\n") if each.startswith("password"))
        assert "SECRET-" in line
        edit = f"<<<<<<< SEARCH\n{line}\nx = 1\n=======\n{line}\nx = 2\n>>>>>>> REPLACE\n"
        told = live.answer(f'[EDIT_FILE path="n.ipynb"]\n{edit}[/EDIT_FILE]')
        assert path.read_text("utf-8") == text.replace("\\nx = 1\\n", "\\nx = 2\\n"), told
        # Nor is it written where it was not, unasked.
        other = live.workspace / "m.ipynb"
        other.write_text(TEXT, "utf-8")
        edit = f"<<<<<<< SEARCH\nimport math\n=======\n{line}\n>>>>>>> REPLACE\n"
        with pytest.raises(ApprovalError):
            live.answer(f'[EDIT_FILE path="m.ipynb"]\n{edit}[/EDIT_FILE]')
        assert other.read_text("utf-8") == TEXT
