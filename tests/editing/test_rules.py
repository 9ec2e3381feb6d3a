"""Each row of the tables by which answers are read has a row in the help page; most have a case here."""

import re
from collections.abc import Iterable
from typing import Any

import pytest

from codingagent.editing import apply, body_repair, body_rules, find, indentation, places, shapes
from codingagent.editing.characters import Ground
from codingagent.errors import OperationError
from codingagent.model.chat_damage import AS_IT_IS, Arrival
from codingagent.model.operations import Replacement
from codingagent.model.rule import Rule
from codingagent.protocols.foreign import parser
from codingagent.protocols.tags import repair, tag_lines
from tests.test_readme import PAGES

CODE = (
    "def total(items):\n    net = 0\n    for each in items:\n        net += each\n    return net\n"
)
TABBED = CODE.replace("    ", "\t")

# Of each rule for a whole file: a body, its file, what is on disk, and how it came.
BODIES: dict[str, tuple[str, str, str, Arrival]] = {
    "code fence": ("```py\nx = 1\n```\n", "a.py", "", AS_IT_IS),
    "line numbers": ("1 | a\n2 | b\n", "a.py", "", AS_IT_IS),
    "marks of a diff": ("+net = 1\n+fee = 2\n", "a.txt", "net = 1\n", AS_IT_IS),
    "indentation of the tags": (
        "  net = 1\n  fee = 2\n",
        "a.txt",
        "",
        Arrival(lead="  ", is_moved=True),
    ),
    "trailing blanks": ("a: 1  \nb: 2  \n", "a.yml", "", AS_IT_IS),
    "spaced answer": ("\na = 1\n\nb = 2\n", "a.py", "", Arrival(is_spaced=True)),
    "blank lines": ("a\n\n\n\nb\n\nc\n\n", "a.md", "", AS_IT_IS),
    "characters": ("if a &lt; b {\n", "a.go", "", AS_IT_IS),
    "indentation": ("    x = 1\n", "a.py", "", AS_IT_IS),
    "broken lines": (
        "a {\n  const one = of(the(first), of(all, the(others))) +\nand.some + more;\n}\n",
        "a.ts",
        "",
        AS_IT_IS,
    ),
    "kind of the file": ("all: x\n    make\n", "Makefile", "", AS_IT_IS),
}
# Of rules that ask again, or whose note depends on the case: what this case says.
SAID = {
    "characters": "HTML entities were undone in the body, where a file of its kind has none",
    "indentation": "it was given back as",
    "broken lines": "a line is broken into two",
    "kind of the file": "recipes begin with blanks, not with a tab",
    "characters of a command": "no-break spaces part its words",
}
COMMANDS = {
    "indented command": "  cat <<END\n  a\n  END\n",
    "characters of a command": "ls\u00a0-l a\n",
}
# Of each rule: the lines that take the place of lines 2 to 5 of the file, and the note.
LINES = {
    "tabs or blanks": (
        "a.txt",
        TABBED,
        CODE.split("\n", 1)[1].replace("net = 0", "net = 1"),
        "the indentation came as blanks",
    ),
    "lost indentation": (
        "a.py",
        CODE,
        "net = 1\nfor each in items:\nnet += each\nreturn net\n",
        "the body has lost its indentation",
    ),
    "deeper by the same": (
        "a.py",
        "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\n",
        "    b = 1\n    c = 3\n",
        "the body was indented",
    ),
}
# Of each rule: a file, SEARCH, REPLACE, and the note.
SEARCHES = {
    "exact": (CODE, "    net = 0\n", "    net = 1\n", ""),
    "trailing blanks": (CODE, "    net = 0 \n", "    net = 1\n", "fitted up to trailing blanks"),
    "shifted": (CODE, "net = 0\n", "net = 1\n", "fitted when indented by 4 blanks more"),
    "tabs": (CODE, "\tnet = 0\n", "\tnet = 1\n", "fitted with blanks for its indentation"),
    "no indentation": (
        CODE,
        "for each in items:\nnet += each\n",
        "for each in items:\nnet += each.n\n",
        "fitted with the indentation of the file",
    ),
    "damage undone": ("a_b = 1\n", "a\\_b = 1\n", "a\\_b = 2\n", "fitted after undoing"),
    "elision": (
        CODE,
        "    net = 0\n# ...\n    return net\n",
        "    net = 1\n# ...\n    return net\n",
        "fitted with 2 lines of the file for '# ...'",
    ),
    "applied already": (
        CODE,
        "    amount = 0\n    for x in y:\n",
        "    net = 0\n    for each in items:\n",
        "was not found, but REPLACE is at line 2 already: nothing was to be done",
    ),
    "code fences in an edit": (
        CODE,
        "```\n    net = 0\n```\n",
        "```\n    net = 1\n```\n",
        "without the code fences in it",
    ),
    "line numbers in an edit": (
        CODE,
        "2 |     net = 0\n",
        "2 |     net = 1\n",
        "without the line numbers copied along",
    ),
    "line numbers, closely": (
        CODE,
        "2|    net = 0\n",
        "2|    net = 1\n",
        "without the line numbers copied along",
    ),
    "marks of a diff in an edit": (
        CODE,
        "-    net = 0\n",
        "+    net = 1\n",
        "without the marks of a diff",
    ),
    "marks of new lines in an edit": (
        CODE,
        "+    net = 0\n",
        "+    net = 1\n",
        "without the + of a diff before each line",
    ),
    "blank lines between the lines of an edit": (
        CODE,
        "    net = 0\n\n    for each in items:\n\n",
        "    net = 1\n\n",
        "without the blank line after each line",
    ),
    "blank lines of an edit in twos": (
        "a = 1\n\nb = 2\n",
        "a = 1\n\n\nb = 2\n",
        "a = 1\n\n\nb = 3\n",
        "without every second blank line",
    ),
}
BODY_RULES = tuple(dict.fromkeys((*body_rules.RULES, *body_rules.COMMAND_RULES)))
MATCHING: tuple[Rule[Any], ...] = (*places.RULES, *find.RULES, *shapes.RULES)


def _named(rules: Iterable[Rule[Any]]) -> list[Any]:
    return [pytest.param(rule, id=rule.name) for rule in rules]


@pytest.mark.parametrize("rule", _named(BODY_RULES))
def test_each_rule_for_bodies_has_a_case(rule: Rule[Any]) -> None:
    """It says what it did, or asks again in these words."""
    try:
        if rule.name in COMMANDS:
            found = body_repair.mend_command(COMMANDS[rule.name], AS_IT_IS)
        else:
            body, path, old, arrival = BODIES[rule.name]
            found = body_repair.mend_file(body, path, arrival, old or None)
        said = "\n".join(found.notes)
    except OperationError as fault:
        said = fault.reason
    assert SAID.get(rule.name, rule.said) in said


@pytest.mark.parametrize("rule", _named(indentation.RULES))
def test_each_rule_for_indentation_has_a_case(rule: Rule[Any]) -> None:
    """What the replaced lines prove is restored, and said."""
    path, old, new, said = LINES[rule.name]
    found = body_repair.mend_lines(new, Ground(path, old.split("\n")[:-1], 1, 5), AS_IT_IS)
    assert said in found.notes[0]
    assert found.text != new


@pytest.mark.parametrize("rule", _named(MATCHING))
def test_each_rule_for_a_search_has_a_case(rule: Rule[Any]) -> None:
    """The edit is applied, and its note is that of the rule."""
    old, search, new, said = SEARCHES[rule.name]
    edited = apply.apply((Replacement(search, new),), old, AS_IT_IS, path="a.py")
    assert said in "\n".join(edited.notes)
    assert bool(edited.notes) is bool(said)
    assert (edited.text == old) is (rule.name == "applied already")


TABLES: tuple[tuple[Rule[Any], ...], ...] = (
    repair.RULES,
    tag_lines.RULES,
    body_rules.RULES,
    body_rules.COMMAND_RULES[-2:],
    indentation.RULES,
    places.RULES,
    find.RULES,
    shapes.RULES,
    parser.PARTS,
    parser.FENCED,
)


@pytest.mark.parametrize("rules", TABLES)
def test_the_help_page_has_each_rule(rules: tuple[Rule[Any], ...]) -> None:
    """Each table is there, in its order and no longer than it is."""
    page = re.sub(r"\n\| rule \|.*", "\n--", PAGES["answers"])
    rows = re.findall(r"^(?:\| (.+?) \| |--)", page, re.MULTILINE)
    names = dict.fromkeys(rule.name.replace("<", "\\<") for rule in rules)
    assert "\n".join(("", *names, "")) in "\n".join([*rows, ""])
