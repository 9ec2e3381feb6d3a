"""Each row of the tables by which bodies and searches are read has a case, and a row in the help page."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from codingagent.editing import apply, body_rules, indentation, match
from codingagent.editing.characters import ReplacedLines
from codingagent.editing.file_lines import FileLines
from codingagent.errors import OperationError
from codingagent.model.chat_damage import AS_IT_IS, BodyEvidence, Rule
from codingagent.model.operations import Replacement
from codingagent.protocols.tags import block_repair, repair
from tests.rows import each_row

REPAIRS = Path(__file__).parents[2] / "codingagent" / "docs" / "repairs.md"
CODE = "def total(items):\n    net = 0\n    for each in items:\n        net += each\n    return net\n"
TABBED = CODE.replace("    ", "\t")

# Of each rule: a body, its file, what is on disk, and how it came.
BODIES: dict[str, tuple[str, str, str, BodyEvidence]] = {
    "code fence": ("```py\nx = 1\n```\n", "a.py", "", AS_IT_IS),
    "line numbers": ("1 | a = 1\n2 | b = 3\n", "a.py", "a = 1\nb = 2\n", AS_IT_IS),
    "marks of a diff": ("+net = 1\n+fee = 2\n", "a.txt", "net = 1\n", AS_IT_IS),
    "indentation of the tags": (
        "  net = 1\n  fee = 2\n",
        "a.txt",
        "",
        BodyEvidence(lead="  ", is_moved=True),
    ),
    "trailing blanks": ("a: 1  \nb: 2  \n", "a.yml", "", AS_IT_IS),
    "hard breaks": ("a\nc\n", "a.md", "a  \nb\n", AS_IT_IS),
    "blanks in blank lines": ("a = 1\n \nb = 2\n", "a.py", "x = 1\n\ny = 2\n", AS_IT_IS),
    "blank lines": ("a\n\n\n\nb\n\n\n\nd\n", "a.md", "a\n\nb\n\nc\n", AS_IT_IS),
    "characters": ("if a &lt; b {\n\tc()\n}\n", "a.go", "if a < b {\n\td()\n}\n", AS_IT_IS),
    "indentation": ("f {\n    x = 2\n    y = 4\n}\n", "a.go", "f {\n\tx = 2\n\ty = 3\n}\n", AS_IT_IS),
    "kind of the file": ("all: x\n    make\n", "Makefile", "", AS_IT_IS),
    "a script's here-documents": ("cat <<-END\n    a\n    END\n", "a.sh", "", AS_IT_IS),
}
COMMANDS = {
    "here-documents": "cat > a <<'EOF' #!/bin/sh exit 0 EOF\n",
    "characters of a command": "ls\u00a0-l a\n",
}
# Of each rule: the lines that take the place of lines 2 to 5 of the file.
LINES = {
    "tabs or blanks": ("a.txt", TABBED, CODE.split("\n", 1)[1].replace("net = 0", "net = 1")),
    "lost indentation": ("a.py", CODE, "net = 1\nfor each in items:\nnet += each\nreturn net\n"),
    "deeper by the same": ("a.py", "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\n", "    b = 1\n    c = 3\n"),
}
# Of each rule: a file, SEARCH and REPLACE.
SEARCHES = {
    "exact": (CODE, "    net = 0\n", "    net = 1\n"),
    "trailing blanks": (CODE, "    net = 0 \n", "    net = 1\n"),
    "shifted": (CODE, "net = 0\n", "net = 1\n"),
    "tabs": (CODE, "\tnet = 0\n", "\tnet = 1\n"),
}
BODY_RULES = tuple(dict.fromkeys((*body_rules.RULES, *body_rules.COMMAND_RULES)))
MATCHING: tuple[Rule[Any], ...] = match.RULES


def _fixed(said: str) -> str:
    """Return what a note has in all cases."""
    return max(said.replace("}", "{").split("{")[::2], key=len).strip()


def _named(rules: Iterable[Rule[Any]]) -> list[Any]:
    return [pytest.param(rule, id=rule.name) for rule in rules]


@each_row("rule", _named(BODY_RULES))
def test_each_rule_for_bodies_has_a_case(rule: Rule[Any]) -> None:
    """It says what it did, or asks again in these words."""
    try:
        if rule.name in COMMANDS:
            found = body_rules.mend_command(COMMANDS[rule.name], AS_IT_IS)
        else:
            body, path, old, arrival = BODIES[rule.name]
            found = body_rules.mend_file(body, path, arrival, old or None)
        said = "\n".join(found.notes)
    except OperationError as fault:
        said = fault.reason
    assert _fixed(rule.said) in said


@pytest.mark.parametrize("rule", _named(indentation.RULES))
def test_each_rule_for_indentation_has_a_case(rule: Rule[Any]) -> None:
    """What the replaced lines prove is restored, and said, or asked for again in these words."""
    path, old, new = LINES[rule.name]
    try:
        found = body_rules.mend_lines(
            new, ReplacedLines(path, FileLines(old.split("\n")[:-1]), 1, 5), AS_IT_IS
        )
    except OperationError as fault:
        assert _fixed(rule.said) in fault.reason
    else:
        assert _fixed(rule.said) in found.notes[0]
        assert found.text != new


@each_row("rule", _named(MATCHING))
def test_each_rule_for_a_search_has_a_case(rule: Rule[Any]) -> None:
    """The edit is applied, and its note is that of the rule."""
    old, search, new = SEARCHES[rule.name]
    edited = apply.apply((Replacement(search, new),), old, AS_IT_IS, path="a.py")
    assert _fixed(rule.said) in "\n".join(edited.notes)
    assert bool(edited.notes) is bool(rule.said)
    assert edited.text != old


def test_the_help_page_has_each_rule() -> None:
    """And no name means two rules in one table."""
    page = REPAIRS.read_text("utf-8")
    tables: list[Iterable[Rule[Any]]] = [BODY_RULES, indentation.RULES, MATCHING]
    tables += [repair.RULES, block_repair.RULES]
    for rules in tables:
        names = [rule.name for rule in dict.fromkeys(rules)]
        assert [name for name in names if f"\n| {name} |" not in page.replace("\\<", "<")] == []
        assert len(set(names)) == len(names)


def test_each_repair_says_what_it_was_seen_in() -> None:
    """Damage that nobody has seen is asked for again, not mended."""
    page = REPAIRS.read_text("utf-8")
    tables: list[Iterable[Rule[Any]]] = [repair.RULES, block_repair.RULES, BODY_RULES, indentation.RULES]
    for rules in tables:
        for rule in dict.fromkeys(rules):
            row = page.replace("\\<", "<").partition(f"\n| {rule.name} |")[2].partition("\n")[0]
            cells = [cell.strip() for cell in row.replace("\\|", "").strip(" |").split(" | ")]
            assert len(cells) == 4, rule.name
            assert "asks" in cells[2] or not cells[3].startswith("nowhere"), rule.name
