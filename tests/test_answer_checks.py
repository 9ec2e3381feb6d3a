"""Answers that would damage a file, in a real workspace: asked for again, and nothing is written."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from codingagent import Space
from tests.helpers import LiveSession, plain_session
from tests.rows import each_row

GOOD = "def f():\n    return {\n        1: 2,\n    }\n"
MARKED = "<<<<<<< original\n        1: 2,\n=======\n        1: 3,\n>>>>>>> updated\n"


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveSession]:
    with plain_session(tmp_path / "home") as made:
        (made.workspace / "a.py").write_text(GOOD)
        yield made


def text_of(live: LiveSession) -> str:
    return (live.workspace / "a.py").read_text()


def create(content: str, more: str = "", path: str = "a.py") -> str:
    return f'[CREATE_FILE path="{path}"{more}]\n{content}[/CREATE_FILE]\n'


def edit(search: str, replacement: str) -> str:
    body = f"<<<<<<< SEARCH\n{search}=======\n{replacement}>>>>>>> REPLACE\n"
    return f'[EDIT_FILE path="a.py"]\n{body}[/EDIT_FILE]\n'


BREAKS = edit("        1: 2,\n", "        1: (2,\n")
MENDS = edit("    }\n", "    )}\n")


def test_a_whole_file_of_edits_changes_nothing(live: LiveSession) -> None:
    """The file is not replaced by markers, and the result says how edits are sent."""
    told = live.answer(create(MARKED))
    assert told.startswith("[FAILED] CREATE_FILE")
    assert "Send [EDIT_FILE] with SEARCH/REPLACE" in told
    assert text_of(live) == GOOD


@pytest.mark.parametrize("change", [create("def f(:\n"), BREAKS, create(GOOD.replace("    ", ""))])
def test_what_would_break_a_file_is_not_written(live: LiveSession, change: str) -> None:
    """Nothing is half applied, and the advice, followed to the letter, leads to an answer that is taken."""
    assert live.answer(change).startswith("[FAILED] ")
    assert text_of(live) == GOOD
    meant = change.replace('path="a.py"', 'path="a.py" unchecked="true"')
    assert live.answer(meant).startswith("[OK] ")
    assert text_of(live) != GOOD


def test_edits_of_one_answer_may_pass_through_what_cannot_be_read(live: LiveSession) -> None:
    """All of them count, with nothing in between that would see it; the result says so."""
    told = live.answer(f"{BREAKS}{MENDS}")
    assert told.count("[OK]") == 2
    assert "until the changes after this one, 'a.py' does not parse" in told
    assert text_of(live) == GOOD.replace("1: 2,", "1: (2,").replace("    }\n", "    )}\n")


def test_a_command_between_edits_would_see_a_broken_file(live: LiveSession) -> None:
    """The first is refused; the second alone would break the file too."""
    told = live.answer(f"{BREAKS}[RUN_COMMAND]\ncat a.py\n[/RUN_COMMAND]\n{MENDS}")
    assert told.count("[FAILED] EDIT_FILE") == 2
    assert text_of(live) == GOOD


def test_a_message_of_operations_goes_the_same_way(tmp_path: Path) -> None:
    """In the loop, JSON is an answer of a chat as well; there is no attribute, but a shell."""
    change = '{"type": "createFile", "path": "a.py", "overwrite": true, "content": "def f(:\\n"}'
    with plain_session(tmp_path / "home") as live:
        (live.workspace / "a.py").write_text(GOOD)
        told = live.answer(f'{{"protocolVersion": "1.0", "operations": [{change}]}}')
        assert "parses now" in told
        assert "write the file with a shell operation" in told
        assert text_of(live) == GOOD


def test_a_program_is_taken_at_its_word(tmp_path: Path) -> None:
    """What a program sends went through no chat."""
    (tmp_path / "a.py").write_text(GOOD)
    operations = [
        {"type": "createFile", "path": "a.py", "overwrite": True, "content": content}
        for content in ("(", MARKED)
    ]
    run = Space(tmp_path).run(operations=operations)
    assert run.status == "completed"
    assert (tmp_path / "a.py").read_text() == MARKED


SAID = """el resto del código sin cambios|(el resto permanece igual)|le reste du code est inchangé
der Rest bleibt gleich|restlicher Code unverändert|o restante do código permanece igual
demais métodos sem alterações|il resto rimane invariato|其余代码不变|后面的代码保持不变|其餘程式碼不變
残りのコードは変更なし|以下同じ|나머지 코드는 그대로|остальное без изменений|остальной код без изменений
reszta kodu bez zmian|kodun geri kalanı aynı|بقية الكود بدون تغيير|ادامه کد بدون تغییر"""
PARTS = [f'def f{n}(x):\n    """Return {n}."""\n    y = x + {n}\n    return y\n' for n in range(6)]
WHOLE = "\n\n".join(PARTS)
FIRST, LAST = PARTS[0].replace("x + 0", "x"), PARTS[5].replace("+ 5", "- 5")


def test_a_lone_comment_in_place_of_lines_is_asked_again_in_any_language(
    live: LiveSession, request: pytest.FixtureRequest
) -> None:
    """Models say in the person's language that the rest stays the same; DONE does not end the task then.

    In one of the places in turn; in the deep run, in each.
    """
    file, is_deep = live.workspace / "a.py", request.config.getoption("--deep")
    for number, said in enumerate(SAID.replace("\n", "|").split("|")):
        file.write_text(WHOLE)
        answers = (
            create(f"{FIRST}\n\n# {said}\n"),
            create(f"# {said}\n\n\n{LAST}"),
            f'[EDIT_FILE path="a.py" start_line="1" end_line="11"]\n{FIRST}\n# {said}\n[/EDIT_FILE]\n',
            edit(f"{PARTS[0]}\n\n{PARTS[1]}", f"def f0(x):\n    # {said}\n"),
        )
        for answer in answers if is_deep else [answers[number % 4]]:
            told = live.answer(f"{answer}[DONE]\nx\n[/DONE]\n")
            assert "would replace lines of 'a.py'" in told, (said, answer, told)
            assert file.read_text() == WHOLE


@each_row(
    ("name", "part", "comment"),
    [
        ("a.js", "function f0(x) {\n  const y = x + 0;\n  return y;\n}\n", "/*\n * {}\n */"),
        ("b.js", "/**\n * Part 0.\n */\nfunction f0(x) {\n  return x + 0;\n}\n", "/**\n * {}\n */"),
        ("a.css", ".c0 {\n  color: red;\n  margin: 0px;\n}\n", "/*\n   {}\n*/"),
        ("a.html", "<div id='d0'>\n  <p>Part 0</p>\n</div>\n", "<!--\n  {}\n-->"),
        ("a.vb", "Sub F0()\n  Print 0\nEnd Sub\n", "' {}"),
        ("a.bas", "Sub F0()\n  Print 0\nEnd Sub\n", "REM {}"),
        ("a.bat", ":part0\necho part 0\ngoto end0\n", ":: {}"),
        ("a.f90", "subroutine f0()\n  print *, 0\nend subroutine f0\n", "! {}"),
        ("a.ml", "let f0 x =\n  let y = x + 0 in\n  y\n", "(* {} *)"),
        ("a.hs", "f0 x =\n  let y = x + 0\n  in y\n", "{{- {} -}}"),
        ("a.ps1", "function F0 {\n  Write-Host 0\n}\n", "<# {} #>"),
        ("a.m", "function f0()\n  x = 0;\nend\n", "% {}"),
        ("a.rst", "S0\n==\n\nText 0.\n\nMore 0.\n", ".. {}"),
        ("a.adoc", "== S0\n\nText 0.\n\nMore 0.\n", "// {}"),
        ("a.properties", "a0=0\nb0=0\nc0=0\n", "! {}"),
        ("a.erb", "<div id='d0'>\n  <p>Part 0</p>\n</div>\n", "<%# {} %>"),
        ("a.hbs", "<div id='d0'>\n  <p>Part 0</p>\n</div>\n", "{{{{!-- {} --}}}}"),
        ("a.blade.php", "<div id='d0'>\n  <p>Part 0</p>\n</div>\n", "{{{{-- {} --}}}}"),
        ("a.cshtml", "<div id='d0'>\n  <p>Part 0</p>\n</div>\n", "@* {} *@"),
        ("a.j2", "<div id='d0'>\n  <p>Part 0</p>\n</div>\n", "{{# {} #}}"),
    ],
)
def test_a_comment_in_place_of_lines_is_one_in_the_marks_of_other_languages(
    live: LiveSession, name: str, part: str, comment: str
) -> None:
    """Also where its marks have lines of their own."""
    whole = "\n".join(part.replace("0", str(n)) for n in range(6))
    (live.workspace / name).write_text(whole)
    new = f"{part.replace('0', '7')}\n{comment.format('el resto sin cambios')}\n"
    told = live.answer(create(new, path=name))
    assert f"'el resto sin cambios' would replace lines of '{name}'" in told
    assert (live.workspace / name).read_text() == whole
    new = f"{part.replace('0', '7')}\n{part.replace('0', '8')}"
    assert live.answer(create(new, path=name)).startswith("[OK] ")


JS = "\n".join(f"function f{n}(x) {{\n  const y = x + {n};\n  return y;\n}}\n" for n in range(6))
YML = "a: 1\nservices:\n  db: x\n  web: y\nlast: 2\n"


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("a.py", WHOLE, FIRST.replace("return y", "return y  # o resto do código…")),
        ("a.py", WHOLE, FIRST.replace("return y", "return 9  # ... rest unchanged")),
        ("a.py", WHOLE, f'{FIRST}\n\n"""le reste est inchangé"""\n'),
        ("a.py", WHOLE, f'{FIRST}\n\n"""\nle reste est inchangé\n"""\n'),
        ("a.py", WHOLE, f'def f0(x):\n    """… reste inchangé"""\n\n\n{LAST}'),
        ("a.js", JS, "function f0(x) {\n  return 9; // el resto sigue igual\n}\n"),
        ("a.js", JS, "function f0(x) {\n  return 9; /* … */\n}\n"),
        ("a.yml", YML, "a: 3\nservices: <…>\nlast: 2\n"),
        ("a.yml", YML, "a: 3\nservices:\n  ‹…›\nlast: 2\n"),
        ("a.ini", "[a]\nx = 1\ny = 2\n\n[b]\nz = 3\n", "[a]\nx = 7\n\n[b]\n⋮\n"),
        ("a.ini", "[a]\nx = 1\n  two\n  three\ny = 1\n", "[a]\nx = …\ny = 2\n"),
    ],
)
def test_a_comment_behind_code_or_a_value_of_dots_in_place_of_lines_is_asked_again(
    live: LiveSession, name: str, old: str, new: str
) -> None:
    """As is a string alone. A file that loses nothing may have such a line."""
    (live.workspace / name).write_text(old)
    assert "would replace lines of" in live.answer(create(new, path=name))
    assert (live.workspace / name).read_text() == old
    more = "# ... rest unchanged ...\nx = 1\n" if name != "a.js" else "// ......\n"
    assert live.answer(create(old + more, path=name)).startswith("[OK] ")


@each_row("dots", ["...", "⋮", "[...]", "・・・", "# · · ·"])
@each_row("name", ["a.js", "a.html", "a.md", "a.csv"])
def test_dots_in_place_of_lines_are_asked_again_in_an_edit_too(
    live: LiveSession, name: str, dots: str
) -> None:
    """They say it without a word, in a row of cells as well."""
    old = "".join(f"row {n},{n}\n" for n in range(9))
    (live.workspace / name).write_text(old)
    new = f"row 9,0\n{dots}\n"
    cells = create(new.replace(dots, f'"{dots}",{dots}'), path=name) if name == "a.csv" else ""
    for answer in filter(None, (create(new, path=name), edit(old, new).replace("a.py", name), cells)):
        assert re.search("would replace lines|instead of the lines", live.answer(answer)), answer
        assert (live.workspace / name).read_text() == old
    assert live.answer(edit(old, f"row 1,1\n{dots}\nrow 2,2\n").replace("a.py", name))


@pytest.mark.parametrize(
    "new",
    [
        FIRST,
        f"def f0(x):\n    if x:  # no sum\n        return 1\n{PARTS[5]}",
        f"{FIRST}\n\ndef rest(x, n):\n    # one for all the others\n    return x + n\n",
        f"# Sums, each of its own.\n{FIRST}\n\n{PARTS[3]}",
        f"{FIRST}\n\n# Sums.\n#\n# Each of its own.\n{PARTS[3]}",
        f"# Sums of numbers.\n# Each of its own.\n\nimport os\n\n\n{PARTS[3]}",
        f"{FIRST}\n\n# def f1(x):\n#     return x\n\n\n{PARTS[2]}",
        f"{PARTS[0]}\n\n{PARTS[1]}\n\n# noqa\n",
    ],
)
def test_a_file_that_is_shorter_on_purpose_is_written(live: LiveSession, new: str) -> None:
    """Parts are gone and nothing is said in their place; a comment speaks of the code behind it."""
    (live.workspace / "a.py").write_text(WHOLE)
    assert live.answer(create(new)).startswith("[OK] ")
    assert text_of(live) == new


def test_a_link_in_brackets_stands_in_place_of_nothing(live: LiveSession) -> None:
    """It may be all that is left of a page on purpose."""
    new = "# Privacy\n\n(See)[https://example.org/privacy]\n"
    (live.workspace / "a.md").write_text("# Privacy\n\n" + "".join(f"Line {n}.\n" for n in range(9)))
    assert live.answer(create(new, path="a.md")).startswith("[OK] ")
    assert (live.workspace / "a.md").read_text() == new


def test_unchecked_means_a_comment_in_place_of_lines(live: LiveSession) -> None:
    """The way out that the problem names is one."""
    (live.workspace / "a.py").write_text(WHOLE)
    new = f"{FIRST}\n\n# das Übrige ist jetzt in b.py\n"
    told = live.answer(create(new))
    assert 'add unchecked="true"' in told
    assert live.answer(create(new, ' unchecked="true"')).startswith("[OK] ")
    assert text_of(live) == new


def test_a_citation_mark_that_can_be_read_as_a_slice_is_asked_about(live: LiveSession) -> None:
    """The way out that the problem names is one."""
    for name in ("b.py", "b.js"):
        (live.workspace / name).write_text("y = x\n")
        sent = edit("y = x\n", "y = x + w[cite: 3]\n").replace("a.py", name)
        assert "citation marks, '[cite: 3]', which might be intended" in live.answer(sent)
        assert (live.workspace / name).read_text() == "y = x\n"
        sent = sent.replace(f'"{name}"', f'"{name}" until="T"').replace("EDIT_FILE]", "EDIT_FILE T]")
        assert live.answer(sent).startswith("[OK] ")
        assert (live.workspace / name).read_text() == "y = x + w[cite: 3]\n"
