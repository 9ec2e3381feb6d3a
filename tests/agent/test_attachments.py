"""`--attach`: files that the person puts into a request, refused in one line before anything is made."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from codingagent.model.settings import Settings
from tests.helpers import plain_session
from tests.killing import command_line_here
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("plain")

TASK = "mend it"


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with all kinds of things in it, and the current folder."""
    root = tmp_path / "ws"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "a.py").write_text("a = 1\n")
    (root / "src" / "deep" / "b.py").write_text("b = 2\n")
    (root / "top.py").write_text("top = 0\n")
    (root / "na me [x] é.md").write_text("named\n")
    (root / "photo").write_bytes(b"\0\1\2" * 30)
    (root / ".gitignore").write_text("*.log\nmodules/\n")
    (root / "run.log").write_text("logged\n")
    (root / "modules").mkdir()
    (root / "modules" / "m.js").write_text("m\n")
    (root / "empty").mkdir()
    os.mkfifo(root / "pipe")
    (root / "out").symlink_to("/etc/passwd")
    (root / "etc").symlink_to("/etc")
    (root / "inner").symlink_to("src/deep")
    with (root / "huge.txt").open("wb") as file:
        file.truncate(2**30)
    monkeypatch.chdir(root)
    return root


def new(folder: Path, *patterns: str) -> tuple[int, str, str]:
    """Starts a session in a home beside the workspace; gives status, request and what was complained of."""
    home = folder.parent / "home"
    words = [word for pattern in patterns for word in ("--attach", pattern)]
    status, _, err = command_line_here(home, "new", "--no-wait", "--workspace", str(folder), TASK, *words)
    requests = list((home / "outbox").glob("*.txt")) if home.exists() else []
    return status, requests[0].read_text("utf-8") if requests else "", err


@pytest.mark.parametrize(
    ("pattern", "current", "path", "text"),
    [
        ("src/a.py", ".", "src/a.py", "a = 1"),
        ("a.py", "src", "src/a.py", "a = 1"),
        ("../top.py", "src", "top.py", "top = 0"),
        ("../*.py", "src", "top.py", "top = 0"),
        ("top.py", "src", "top.py", "top = 0"),
        ("src", ".", "src/deep/b.py", "b = 2"),
        (".", "src/deep", "src/deep/b.py", "b = 2"),
        ("inner", ".", "src/deep/b.py", "b = 2"),
        ("src/**/*.py", "/", "src/deep/b.py", "b = 2"),
        ("na me [x] é.md", ".", "na me [x] é.md", "named"),
        ("run.log", ".", "run.log", "logged"),
        ("modules/m.js", ".", "modules/m.js", "m"),
    ],
)
@pytest.mark.one_in(3)
def test_files_are_found_from_the_current_folder_or_the_workspace(
    folder: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, current: str, path: str, text: str
) -> None:
    """README, say: a path, a folder or a glob, from where the person stands or from the root."""
    monkeypatch.chdir(folder / current)
    status, request, _ = new(folder, pattern)
    assert status == 0
    assert f"--- {path} ---\n{text}\n--- end {path} ---" in request


@pytest.mark.with_git
@each_row(
    ("pattern", "reason"),
    [
        ("nothing.py", "no file in the workspace matches"),
        ("empty", "no file in the workspace matches"),
        ("modules", "files that git ignores: one by one"),
        ("photo", "is not text (90 bytes)"),
        ("huge.txt", "is larger than 32 MiB"),
        ("/etc/passwd", "it is outside the workspace"),
        ("../nothing", "Path is outside workspace"),
        ("..", "it is outside the workspace"),
        ("~", "it is outside the workspace"),
        ("out", "is a link that leads out"),
        ("etc/passwd", "it is outside the workspace"),
        ("etc/*", "is a link that leads out"),
        ("pipe", "is not a regular file"),
        ("/dev/zero", "it is outside the workspace"),
        ("", "it is empty; name a file"),
        ("top.py:7-9", "has 1 line, and defines no '7-9'"),
        ("top.py::nothing", "has 1 line, and defines no 'nothing'"),
        ("src/*.py:1", "no file in the workspace matches"),
    ],
)
def test_what_can_not_be_attached_is_refused_before_anything_is_made(
    folder: Path, pattern: str, reason: str
) -> None:
    """Design, exit status: wrong usage is 2, in one line; no session is left behind."""
    status, _, err = new(folder, "top.py", pattern)
    assert status == 2
    assert reason in err
    assert err.count("\n") == 1
    assert not (folder.parent / "home").exists()


def test_a_name_that_is_not_utf8_is_refused_or_left_out(folder: Path) -> None:
    """No record can keep it, so its text could never be in a request."""
    try:
        (folder / "bad\udcff.py").write_text("bad\n")
    except (OSError, ValueError):
        pytest.skip("this system has no such names")
    status, _, err = new(folder, "bad\udcff.py")
    assert (status, "has a name that is not UTF-8" in err) == (2, True)
    status, request, _ = new(folder, "*.py")
    assert (status, "The user attaches top.py: see" in request) == (0, True)


def test_too_many_files_are_refused(folder: Path) -> None:
    """More than a hundred files in one request help no model."""
    for number in range(101):
        (folder / "src" / f"{number}.txt").write_text("x\n")
    status, _, err = new(folder, "src")
    assert (status, "103 files fit, more than 100" in err) == (2, True)


def test_what_fits_besides_and_is_no_text_is_named(folder: Path) -> None:
    """A glob may fit an image too: the rest is attached, and it is said."""
    home = folder.parent / "home"
    status, out, _ = command_line_here(
        home, "new", "--no-wait", "--workspace", str(folder), TASK, "--attach", "*"
    )
    assert status == 0
    assert "not attached: File 'photo' is not text (90 bytes)" in out
    assert "not attached: File 'huge.txt' is larger than 32 MiB" in out
    (request,) = (home / "outbox").glob("*.txt")
    assert "--- top.py ---" in request.read_text("utf-8")


def test_the_budget_is_kept_and_the_next_short_request_is_without_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design, the outbox: what does not fit is cut, and the cut says how to ask for the rest."""
    (folder / "long.txt").write_text("".join(f"line {n}\n" for n in range(5_000)))
    monkeypatch.setenv("CODINGAGENT_CONTEXT_CHARS", "12000")
    status, request, _ = new(folder, "long.txt", "top.py")
    assert status == 0
    assert len(request) <= 12_000
    assert "ask for the rest with start_line=" in request
    assert "--- top.py ---" in request
    home = folder.parent / "home"
    (session,) = (path.stem for path in (home / "sessions").glob("*.json"))
    with plain_session(home, settings=Settings(context_chars=12_000), session_id=session) as live:
        live.answer('[READ_FILE path="src/a.py"]\n')
        assert "--- src/a.py ---" in live.contents()
        short = (home / "outbox" / "short" / f"{session}_seq0002.txt").read_text("utf-8")
        assert "top.py" not in short
        assert len(live.request()) <= 12_000
        assert "--- top.py (attached by the user before) ---\n" in live.contents()
        assert "(attached by the user before, and too long for here: long.txt)" in live.contents()


BLOCKING = 'extends = "standard"\n[filesystem]\nblocked_paths = ["src/secret.py"]\n'


def test_what_the_policy_blocks_is_attached_only_by_its_own_name(folder: Path, tmp_path: Path) -> None:
    """A glob is no wish for a secret; a name is."""
    policy = tmp_path / "policy.toml"
    policy.write_text(BLOCKING)
    (folder / "src" / "secret.py").write_text("key = 1\n")
    home = folder.parent / "home"
    words = ("new", "--no-wait", "--workspace", str(folder), "--policy", str(policy), TASK)
    status, out, _ = command_line_here(home, *words, "--attach", "src")
    assert status == 0
    assert "not attached: File 'src/secret.py' is blocked by the policy" in out
    assert "key = 1" not in "".join(p.read_text("utf-8") for p in (home / "outbox").glob("*.txt"))
    assert command_line_here(home, *words, "--attach", "src/secret.py")[0] == 0
    assert "key = 1" in "".join(p.read_text("utf-8") for p in (home / "outbox").glob("*.txt"))


def test_an_output_is_no_way_around_the_policy(folder: Path, tmp_path: Path) -> None:
    """A command of an answer may name any file; what the policy blocks does not go to the chat."""
    policy = tmp_path / "policy.toml"
    policy.write_text(BLOCKING)
    (folder / "src" / "secret.py").write_text("key = 1\n")
    settings = Settings(workspace=str(folder), policy=str(policy), sandbox="off", context=0)
    with plain_session(tmp_path / "other", settings=settings) as live:
        live.answer("[RUN_COMMAND]\necho src/secret.py:1 top.py:1; exit 1\n[/RUN_COMMAND]\n")
        request = live.request(2)
    assert "--- top.py (named in an output above) ---" in request
    assert "key = 1" not in request


PNG = b"\x89PNG\r\n\x1a\n" + bytes(84_000)
# All of it is ASCII: without a look at what it is it would go as text.
PDF = b"%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj\n%%EOF\n"


@pytest.mark.parametrize(
    ("name", "data", "size"), [("shot.png", PNG, "84 kB"), ("paper.pdf", PDF, "51 bytes")]
)
def test_what_chats_read_beside_a_text_is_named_to_both(
    folder: Path, name: str, data: bytes, size: str
) -> None:
    """`--attach`, and READ_FILE of what a command made: the person is told the path, the model the name."""
    home = folder.parent / "home"
    (folder / "docs").mkdir()
    (folder / "docs" / name).write_bytes(data)
    named = ("--attach", f"docs/{name}", "--workspace", str(folder), "--sandbox", "off")
    status, out, _ = command_line_here(home, "new", "--no-wait", *named, TASK)
    assert status == 0
    assert f"also attach: docs/{name}, {size}" in out.replace(f"{folder.resolve()}/", "")
    (first,) = (home / "outbox").glob("*.txt")
    shown = f"\n(attached beside this text as {name}, {size})\n"
    text = first.read_text("utf-8")
    assert f"--- docs/{name} ---{shown}--- end docs/{name} ---\n" in text
    assert "Catalog" not in text
    made = f"shutil.copy('docs/{name}', 'made-{name}')"
    answer = f'[RUN_COMMAND]\n{sys.executable} -c "import shutil; {made}"\n[/RUN_COMMAND]\n'
    answer += f'[READ_FILE path="made-{name}"]\n[READ_FILE path="*"]\n'
    (home / "inbox" / "reply.txt").write_text(answer, "utf-8")
    status, out, err = command_line_here(home, "resume", "--once")
    assert status == 0, err
    assert out.count("also attach: ") == 1
    assert f"made-{name}, {size}" in out
    (short,) = (home / "outbox" / "short").glob("*.txt")
    assert f"attached beside this text as made-{name}, {size}" in short.read_text("utf-8")


def test_a_folder_attaches_no_picture_that_is_not_named(folder: Path) -> None:
    """Its text goes; a glob that names the ending means them."""
    (folder / "src" / "icon.png").write_bytes(PNG)
    _, request, _ = new(folder, "src")
    assert "icon.png, 84 kB" not in request
    (tmp := folder.parent / "other").mkdir()
    words = ("new", "--no-wait", "--workspace", str(folder), TASK, "--attach", "src/*.png")
    status, out, _ = command_line_here(tmp, *words)
    assert (status, "also attach: " in out) == (0, True)


CART = "".join(
    f"class Cart{n}:\n    def total(self):\n        return {n}\n\n    def add(self):\n        pass\n\n\n"
    for n in range(9)
)


@each_row(
    ("patterns", "shown", "hidden"),
    [
        (["cart.py:2-3"], ["return 0"], ["return 1", "def add"]),
        (["cart.py:2"], ["def total"], ["return 0"]),
        (["cart.py::Cart3"], ["class Cart3", "return 3", "def add"], ["return 2", "return 4"]),
        (
            ["cart.py::Cart4.total", "cart.py::Cart6::total()"],
            ["return 4", "return 6"],
            ["return 5", "def add"],
        ),
        (["cart.py:3", "cart.py"], ["return 8", "def add"], ["(lines "]),
    ],
)
def test_parts_of_a_file(folder: Path, patterns: list[str], shown: list[str], hidden: list[str]) -> None:
    """FILE:120-180 and FILE::name; also where the request is rewritten, and in one for a new chat."""
    (folder / "cart.py").write_text(CART)
    home = folder.parent / "home"
    shutil.rmtree(home, ignore_errors=True)
    status, first, err = new(folder, *patterns, "top.py")
    assert (status, err) == (0, "")
    (name,) = (home / "outbox").glob("*.txt")
    session = name.name.removesuffix("_seq0001.txt")
    (home / "inbox" / "1.txt").write_text(
        f'[REPLY session="{session}" sequence="1"]\n[READ_FILE path="top.py"]\n[END]\n'
    )
    assert command_line_here(home, "resume", "--once", session)[0] == 0
    later = (home / "outbox" / f"{session}_seq0002.txt").read_text("utf-8")
    for text in (first, later):
        section = text.partition("## Requested File Contents")[2].partition("## Chosen Files")[0]
        assert all(each in section for each in shown), section
        assert not any(each in section for each in hidden), section
