"""A code block under a sentence that names the only attached file is offered as its new text."""

from pathlib import Path

import pytest

from codingagent.model.operations import CreateFile
from codingagent.protocols.tags import prose
from tests.killing import command_line_here
from tests.rows import each_row

OLD = "class Cart:\n    def total(self):\n        return self.net + self.discount\n"
NEW = OLD.replace("+", "-")


@pytest.mark.parametrize(
    "answer",
    [
        f"Here is the corrected `cart.py`:\n\n```python\n{NEW}```\n\nThat fixes it.",
        f"The sign is wrong. I mended it in shop/cart.py.\n```\n{NEW}```",
    ],
)
def test_it_is_the_new_text(answer: str) -> None:
    found = prose.whole_file(answer, "shop/cart.py", OLD)
    assert isinstance(found, CreateFile)
    assert (found.path, found.content, found.overwrite) == ("shop/cart.py", NEW, True)


@each_row(
    "answer",
    [
        pytest.param(f"Here it is:\n```\n{NEW}```", id="no name"),
        pytest.param(f"See cart.py.\n\nThe new text:\n```\n{NEW}```", id="another sentence"),
        pytest.param(f"Beside cart.pyc:\n```\n{NEW}```", id="another name"),
        pytest.param(f"cart.py:\n```\n{NEW}```\n```\nx\n```", id="two blocks"),
        pytest.param(f"cart.py:\n```\n{NEW}", id="cut"),
        pytest.param("cart.py:\n```\n    return self.net - self.discount\n```", id="a piece"),
        pytest.param(f"cart.py:\n```\n{NEW}    # ... rest unchanged\n```", id="left out"),
        pytest.param(NEW, id="no block"),
    ],
)
def test_it_is_only_words(answer: str) -> None:
    assert prose.whole_file(answer, "cart.py", OLD) is None


def test_the_person_is_asked(tmp_path: Path) -> None:
    """Nothing is written before the yes; after it the file is."""
    root, home = tmp_path / "shop", tmp_path / "home"
    root.mkdir()
    (root / "cart.py").write_text(OLD)
    words = ("--no-wait", "--workspace", str(root), "--attach", str(root / "cart.py"), "Mend total")
    assert command_line_here(home, "new", *words)[0] == 0
    (home / "inbox" / "a.txt").write_text(f"Here is `cart.py`, mended:\n```python\n{NEW}```\n")
    status, out, _ = command_line_here(home, "resume", "--once")
    assert (status, (root / "cart.py").read_text()) == (3, OLD)
    assert "-        return self.net + self.discount" in out
    assert command_line_here(home, "approve")[0] == 0
    assert (root / "cart.py").read_text() == NEW
