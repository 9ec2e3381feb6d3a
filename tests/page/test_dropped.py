"""Files that are dropped on the page: several are one answer, as in the inbox."""

import io
import zipfile
from pathlib import Path

import pytest

from codingagent.cli.page.queries import PageState, answer_in
from codingagent.errors import UsageError
from codingagent.model.settings import Settings
from tests.helpers import plain_session
from tests.rows import each_row

TEXT = '[REPLY]\n[READ_FILE path="cart.py"]\n[END]\n'


@each_row(
    "files, expected",
    [
        ({"": TEXT}, TEXT.encode()),
        ({"answer.txt": TEXT}, TEXT.encode()),
        ({"cart (1).py": "x = 2\n"}, {"cart.py": b"x = 2\n"}),
        ({"cart.py": "x = 2\n", "tax.py": "# tax.py\n"}, {"cart.py": b"x = 2\n", "tax.py": b"# tax.py\n"}),
        ({"cart.py": "1", "cart (1).py": "2"}, "came twice, and differs"),
        ({"other.py": "1"}, "no file of the workspace is called other.py"),
    ],
)
def test_dropped_files_are_one_answer(
    tmp_path: Path, files: dict[str, str], expected: bytes | str | dict[str, bytes]
) -> None:
    workspace = tmp_path / "home" / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "cart.py").write_text("x = 1\n")
    with plain_session(tmp_path / "home") as live:
        desk = PageState(live.home.root, workspace, Settings())
        body, sizes = "".join(files.values()).encode(), [str(len(each)) for each in files.values()]
        names = [name for name in files if name]
        if isinstance(expected, str):
            with pytest.raises(UsageError, match=expected):
                answer_in(desk, live.conversation.session, body, names, sizes)
            return
        made = answer_in(desk, live.conversation.session, body, names, sizes)
    if isinstance(expected, dict):
        with zipfile.ZipFile(io.BytesIO(made)) as archive:
            assert {name: archive.read(name) for name in archive.namelist()} == expected
    else:
        assert made == expected
