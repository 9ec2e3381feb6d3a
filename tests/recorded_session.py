"""Play a small session on a real terminal: README's picture, and the screens of `help start`.

`python -m tests.derive_docs` writes them, `tests/test_readme.py` compares. Numbers that differ from one run
to the next are made the same.
"""

import io
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from html import unescape
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.cli.terminals import on_terminal

FILES = {
    "cart.py": """\
class Cart:
    def __init__(self, net, discount=0):
        self.net = net
        self.discount = discount

    def total(self):
        return self.net + self.discount
""",
    "test_cart.py": """\
import unittest

from cart import Cart


class TotalTest(unittest.TestCase):
    def test_a_discount_lowers_it(self):
        self.assertEqual(Cart(100, 10).total(), 90)

    def test_it_is_never_negative(self):
        self.assertGreaterEqual(Cart(100, 120).total(), 0)
""",
}
TASK, CHECK = "The discount is added. Subtract it, but never go below 0.", "python3 -m unittest"
LINE = "        return self.net + self.discount"
EDITED = (
    '[EDIT_FILE path="cart.py"]\n<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n[/EDIT_FILE]\n'
    "[DONE]\n{}\n[/DONE]\n[END]\n"
)
ANSWERS = (
    EDITED.format(LINE, LINE.replace("+", "-"), "total() subtracts the discount."),
    EDITED.format(
        LINE.replace("+", "-"),
        "        return max(0, self.net - self.discount)",
        "total() subtracts the discount, and is never negative.",
    ),
)
_COLUMNS = 80
_ALICE = ("-c", "user.name=Alice", "-c", "user.email=alice@example.com")
_SHOWN = "/home/alice/code/shop"


def picture() -> str:
    """Return the whole session as a picture, which loads nothing from elsewhere."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO())
    console.print(Text(f'$ codingagent new --here "{TASK}"\n    --check "{CHECK}"', style="bold"))
    for line in lines():
        console.print(Text.from_ansi(line))
    drawn = console.export_svg(title="shop")
    return re.sub(r"\n *(?=\n)", "", re.sub(r"@font-face {.*?}", "", drawn, flags=re.DOTALL))


def words(drawn: str) -> list[str]:
    """Return the lines of a picture: another version of rich draws it in another way."""
    rows: dict[str, str] = {}
    for top, text in re.findall(r'<text [^>]*?y="([\d.]+)"[^>]*>(.*?)</text>', drawn):
        rows[top] = rows.get(top, "") + unescape(text).replace("\xa0", " ")
    return [row.rstrip() for row in rows.values()]


def screens() -> list[str]:
    """Return what stands on the terminal before the first answer, and after each."""
    text = Text.from_ansi("\n".join(lines())).plain
    return re.split(r"\n(?=[ ─]+Answer \d)", text.rstrip())


@cache
def lines() -> list[str]:
    """Return the lines that the session left on the terminal, with the codes that colour them."""
    pasted = [f"\x1b[200~{answer}\x1b[201~" for answer in ANSWERS]
    # A paste counts where the line waits, which names /help.
    typed = [("any change", ""), ("/help", pasted[0]), ("your turn", ""), ("/help", pasted[1])]
    return played([*typed, ("/quit ends", ""), ("or /quit", "\x04")])


def played(typed: Iterable[tuple[str, str]], columns: int = _COLUMNS) -> list[str]:
    """Return the lines that a session leaves on the terminal; `typed` as `on_terminal` has it."""
    # As long everywhere: where a line is broken depends on it.
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        project = Path(home) / "shop"
        project.mkdir()
        for name, text in FILES.items():
            (project / name).write_text(text, "utf-8")
        for git in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
            subprocess.run(["git", *_ALICE, *git], cwd=project, check=True)
        variables = {"HOME": home, "XDG_CONFIG_HOME": home, "XDG_STATE_HOME": home}
        words = ["new", "--here", TASK, "--check", CHECK]
        shown = on_terminal(words, columns, variables, typed, project)
        return [same(line, project) for line in rows(shown.raw)]


def same(line: str, project: Path) -> str:
    line = line.replace(str(project), _SHOWN).replace(str(project.resolve()), _SHOWN)
    line = re.sub(r"[0-9a-f]{8}(?=_seq|\b)", "7f3a91c2", line)
    line = re.sub(r"\b\d+\.\d+(?= ?s\b)", "0.1", line)
    # A request says what the machine has: memory, programs.
    line = re.sub(r"~\d{3} tokens", "~500 tokens", re.sub(r"~\d,\d{3} tokens", "~1,700 tokens", line))
    return re.sub(r"(\d,\d)\d\d characters, ~.*? tokens", r"\g<1>00 characters, ~2,200 tokens", line)


def rows(raw: str) -> Iterator[str]:
    """Yield what stands on the screen in the end, line by line; it knows the few codes that come."""
    rows: list[list[tuple[str, str]]] = [[]]
    row = column = 0
    style = ""
    for code, character in _PIECES.findall(raw):
        while len(rows) <= row:
            rows.append([])
        count = int(found[0]) if (found := re.findall(r"\d+", code)) else 1
        match code[-1:] or character:
            case "m" if code:
                style = "" if code == "\x1b[0m" else style + code
            case "A" if code:
                row = max(0, row - count)
            case ("C" | "D") as way if code:
                column = max(0, column + (count if way == "C" else -count))
            case "J" | "K" if code:
                del rows[row][0 if code == "\x1b[2K" else column :]
                del rows[row + 1 :]  # nothing is ever below a line that is cleared
            case "\n":
                row += 1
            case "\r":
                column = 0
            case _ if character:
                rows[row] += [("", " ")] * (column - len(rows[row]))
                rows[row][column : column + 1] = [(style, character)]
                column += 1
            case _:
                pass
    for cells in rows:
        runs = (
            (style, "".join(each for _, each in run)) for style, run in groupby(cells, lambda cell: cell[0])
        )
        yield "".join(f"{style}{text}\x1b[0m" if style else text for style, text in runs)


_PIECES = re.compile(r"(\x1b\[[0-9;?]*[A-Za-z]|\x1b\].*?(?:\x07|\x1b\\)|\x07)|(.)", re.DOTALL)
