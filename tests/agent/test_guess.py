"""Files are chosen from the task for the first request, by a guess; a part of one is not the file."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codingagent.agent import context, factory, wanted_files
from codingagent.model.approval import Answer, Question
from codingagent.model.journal_entries import ApprovalAsked, decode_record
from codingagent.model.session_fold import fold
from codingagent.model.settings import Settings
from codingagent.storage import homes
from codingagent.storage.homes import Home
from tests.helpers import LiveSession, conversation_in
from tests.killing import command_line_here

pytestmark = pytest.mark.usefixtures("plain")

TASK = "A discount must lower the total"
CART = "class Cart:\n    def total(self):\n        return self.net + self.discount\n"
LONG = "".join(f"def step_{n}(value):\n    return value + {n}\n\n\n" for n in range(900))


@pytest.fixture(name="shop")
def _shop(tmp_path: Path) -> Path:
    """A folder with a file for the task, and others that a guess must not show."""
    root = tmp_path / "shop"
    files = {
        "cart.py": CART,
        "stock.py": "def count():\n    return 1\n",
        ".gitignore": "discount_notes.txt\n",
        "discount_notes.txt": "discount total, ignored\n",
        ".env": "DISCOUNT_TOTAL=hidden\n",
        "credentials.json": '{"discount": "total hidden"}\n',
        "discount.min.js": "discount total hidden\n",
        "made.py": "# @generated: do not edit\ndiscount = total = 1\n",
        "packed.js": f"discount total {'x' * 5_000}\n",
        "large.txt": "discount total hidden\n" * 60_000,
        "docs/discount.md": "The discount lowers the total.\n",
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "discount.bin").write_bytes(b"discount total\0hidden")
    (root / "discount.txt").symlink_to(".env")
    return root


def request(home: Path) -> str:
    (path,) = (home / "outbox").glob("*.txt")
    return path.read_text("utf-8")


def chosen_in(text: str) -> str:
    return text.partition("\n## Chosen Files\n")[2].partition("\n## Environment\n")[0]


def new(shop: Path, *words: str, task: str = TASK) -> tuple[str, str]:
    """Start a session in a home beside the folder; return what was chosen, and what the person saw."""
    home = shop.parent / "home"
    line = ("new", "--no-wait", "--workspace", str(shop), task, *words)
    status, out, err = command_line_here(home, *line)
    assert status == 0, err
    return chosen_in(request(home)), out + err


def test_the_first_request_shows_what_the_task_is_about(shop: Path) -> None:
    """The file goes whole, "chosen by a guess"; the person reads one line about it before pasting."""
    chosen, seen = new(shop)
    assert "guessed" in chosen
    assert f"--- cart.py (3 lines) ---\n{CART}--- end cart.py ---\n" in chosen
    assert "cart.py, whole, " in seen
    assert '"discount" ×1' in seen


def test_nothing_goes_out_that_no_person_would_attach(shop: Path) -> None:
    """No ignored, secret-named, generated, minified, binary file, none over 1 MB; nor through a link."""
    chosen, _ = new(shop)
    assert "hidden" not in chosen
    assert "ignored" not in chosen
    assert "xxx" not in chosen
    assert "@generated" not in chosen


def test_a_person_leaves_out_what_they_like(shop: Path) -> None:
    """`--leave-out` takes globs, and a later request of the session keeps to them."""
    chosen, seen = new(shop, "--leave-out", "docs/**", "--leave-out", "cart.py")
    assert "cart.py" not in chosen
    assert "discount.md" not in chosen + seen
    home = shop.parent / "home"
    assert command_line_here(home, "refresh")[0] == 0
    assert "cart.py" not in chosen_in(request(home))


def test_a_project_keeps_its_own_wishes(shop: Path) -> None:
    """`always_attach` shows files whole, `never_choose` leaves files out; what fits nothing is said."""
    home = shop.parent / "home"
    home.mkdir()
    (home / "codingagent.toml").write_text(
        'always_attach = ["stock.py", "missing/**"]\nnever_choose = ["cart.py"]\n'
    )
    chosen, seen = new(shop)
    assert "cart.py" not in chosen
    assert "## Requested File Contents\n--- stock.py ---\n" in request(home)
    assert "always_attach" in seen
    assert "no file in the workspace matches" in " ".join(seen.split())


def test_what_is_named_and_can_not_go_is_said(shop: Path) -> None:
    """With the reason: secret, binary, ignored, too large, minified; another encoding goes."""
    (shop / "u16.ini").write_text("value = 1\n", "utf-16")
    (shop / "shot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(90))
    named = "shot.png made.py .env discount.bin discount_notes.txt large.txt packed.js u16.ini"
    home = shop.parent / "home"
    line = ("new", "--no-wait", "--workspace", str(shop), f"Mend {named}")
    status, out, err = command_line_here(home, *line)
    assert status == 0
    seen, chosen = " ".join((out + err).split()), chosen_in(request(home))
    for path, why in {
        "discount.bin": "it is not text",
        "shot.png": "it is no text; --attach attaches it",
        "discount_notes.txt": "it is ignored; --attach sends it",
        "large.txt": "it is larger than 1 MB",
        "packed.js": "it is minified",
        ".env": "its name is that of a secret",
    }.items():
        assert f"{path} is named in the task and is not sent: {why}" in seen, path
    assert "--- made.py (" in chosen
    assert "value = 1\n" in chosen
    # What the chat has need not go again.
    session_id = next((home / "outbox").glob("*.txt")).name[:8]
    (home / "inbox" / "a.txt").write_text("[DONE]\nIt is so.\n[/DONE]\n")
    done = command_line_here(home, "resume", "--once")
    assert done[0] == 0, done
    _, out, err = command_line_here(home, "say", session_id, "Mend u16.ini discount_notes.txt")
    assert re.findall(r"(\S+) is named in the task", " ".join((out + err).split())) == ["discount_notes.txt"]


def test_what_the_check_names_counts_as_named(shop: Path) -> None:
    """The files of `--check` go first."""
    (shop / "tests").mkdir()
    (shop / "tests" / "test_stock.py").write_text("def test_count(): ...\n" * 9)
    (shop / "discount.py").write_text(LONG)
    chosen, _ = new(shop, "--check", "python -m pytest tests/test_stock.py::test_count")
    assert "--- tests/test_stock.py (9 lines) ---" in chosen


@pytest.mark.parametrize("words", [("--context", "0"), ("--leave-out", "**")])
def test_none_is_none(shop: Path, words: tuple[str, str]) -> None:
    """`--context 0` sends nothing that nobody asked for."""
    assert new(shop, *words)[0] == ""


def test_what_is_attached_is_not_sent_twice(shop: Path) -> None:
    """An attached file is under its own heading, whole."""
    home = shop.parent / "home"
    chosen, _ = new(shop, "--attach", str(shop / "cart.py"))
    assert "cart.py" not in chosen
    assert request(home).count(CART) == 1


def test_one_looks_without_starting(shop: Path) -> None:
    """`codingagent context "task"` writes nothing, and says what `new` would send."""
    home = shop.parent / "home"
    status, out, _ = command_line_here(home, "context", "--workspace", str(shop), TASK)
    assert status == 0
    assert "  cart.py, whole, " in out
    assert not home.exists()
    words = ("context", "--workspace", str(shop), "--json", "--context", "1k", TASK)
    _, out, _ = command_line_here(home, *words)
    found = {part["path"]: part for part in map(json.loads, out.splitlines())}
    cart = found["cart.py"]
    assert (cart["whole"], cart["lines"], cart["why"]) == (True, 3, '"discount" ×1, "total" ×1')
    (shop / "discount.py").write_text(LONG)
    _, out, _ = command_line_here(home, *words)
    parts = [part for part in map(json.loads, out.splitlines()) if part["path"] == "discount.py"]
    assert parts[0].keys() == {"path", "firstLine", "lastLine", "tokens", "why"}
    assert 0 < parts[0]["firstLine"] < parts[0]["lastLine"]
    status, out, err = command_line_here(home, "context", "--workspace", str(shop), "--context", "x", TASK)
    assert (status, out) == (2, "")
    assert "context is 'x'; it must be a whole number from 0 up" in " ".join(err.split())


def test_one_looks_where_new_would_look(shop: Path) -> None:
    """`codingagent context` and `new` have one default for `--workspace`."""
    home = shop.parent / "home"
    status, _, err = command_line_here(home, "context", TASK)
    assert status == 2
    assert "workspace is not a folder; name another with --workspace" in " ".join(err.split())
    shop.rename(homes.default_workspace(home.parent))
    status, out, _ = command_line_here(home.parent, "context", TASK)
    assert "  cart.py, whole, " in out


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--check", "python -m pytest tests/test_stock.py"),
        ("--attach", "long.py:9-12", "--attach", "stock.py", "--leave-out", "docs/**"),
        ("--no-conventions",),
    ],
)
def test_what_is_shown_is_what_is_sent(
    shop: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """`context`, and `new` with the same options: the same lines, in a small request too."""
    files = {
        "long.py": LONG,
        "tests/test_stock.py": LONG,
        "AGENTS.md": "Lower the total.\n",
        "discount.py": LONG,
    }
    for path, text in files.items():
        (shop / path).parent.mkdir(exist_ok=True)
        (shop / path).write_text(text)
    home = shop.parent / "home"
    home.mkdir()
    (home / "codingagent.toml").write_text("context_chars = 17000\ncheck_first = 0\n")
    monkeypatch.chdir(shop)
    status, told, err = command_line_here(home, "context", "--workspace", str(shop), *words, TASK)
    assert status == 0, err
    _, seen = new(shop, *words)
    lines = [line for line in told.splitlines() if re.match(r" *\d+  ", line)]
    assert lines == [line for line in seen.splitlines() if re.match(r" *\d+  ", line)]
    assert any("discount.py, lines" in line and 'its path has "discount"' in line for line in lines)
    assert ("named in the check" in told) is ("--check" in words)
    assert ("long.py, lines 9-12 of 3600, " in told) is ("--attach" in words)
    assert ("AGENTS.md: the repository's conventions" in told) is ("--no-conventions" not in words)


@pytest.mark.parametrize(("task", "is_unsure"), [(TASK, False), ("Mend stock.py", False), ("Tidy up", True)])
def test_where_no_file_stands_out_both_are_told(shop: Path, task: str, is_unsure: bool) -> None:
    """The model what it may ask for first, the person that they can name files."""
    for n in range(50):
        (shop / f"more_{n}.py").write_text(LONG)
    chosen, seen = new(shop, "--context", "2k", task=task)
    assert ("This choice is unsure" in seen) is is_unsure
    assert ("READ_FILE first, if it lacks what you need: " in chosen) is is_unsure


def test_the_request_keeps_its_limit(shop: Path) -> None:
    """A small `context_chars` leaves less room for a guess, or none."""
    (shop / "long.py").write_text(LONG)
    home = shop.parent / "home"
    home.mkdir()
    (home / "codingagent.toml").write_text("context_chars = 12000\n")
    new(shop, "--context", "32k")
    assert len(request(home)) <= 12_000


@pytest.mark.with_git
def test_past_commits_count_and_no_configuration_is_obeyed(shop: Path) -> None:
    """The file that a like commit changed comes along, though none of the words is in it."""
    git = shutil.which("git") or "git"
    who = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgSign=false")
    for words in (
        ("init", "-q"),
        ("add", "stock.py"),
        (*who, "commit", "-q", "-m", "Discounts lower the total of a stock"),
        ("config", "core.fsmonitor", "touch obeyed"),
        ("config", "log.showSignature", "true"),
        ("config", "gpg.program", "touch obeyed"),
    ):
        subprocess.run((git, "-C", os.fspath(shop), *words), check=True)
    chosen, seen = new(shop)
    assert "--- stock.py (" in chosen
    assert "changed lately" in seen
    assert not (shop / "obeyed").exists()


def test_too_many_files_are_searched_as_far_as_it_says(shop: Path) -> None:
    """Beyond the limit it stops, the likeliest names first, and the person is told how far it looked."""
    (shop / "a").mkdir()
    for number in range(wanted_files.FILES_LIMIT):
        (shop / "a" / f"{number}.py").touch()
    (shop / "z_discount.py").write_text("def lower(): ...\n")
    chosen, seen = new(shop)
    assert "--- z_discount.py (" in chosen
    assert "files for the task were looked for in 4," in seen
    assert "of 5,0" in seen


@contextlib.contextmanager
def working(shop: Path, asked: list[Question], task: str = TASK) -> Iterator[LiveSession]:
    """A session in the folder, whose person approves nothing; what they are asked is kept."""

    def ask(question: ApprovalAsked) -> Answer:
        asked.append(question.question)
        return Answer("no")

    home = Home.at(shop.parent / "home", create=True)
    settings = Settings(sandbox="off", context=3_000)
    session = factory.start_session(home, shop, task, settings)
    person = context.Person(lambda _: None, ask)
    with conversation_in(home, session, settings, person) as conversation:
        conversation.recover()
        yield LiveSession(home, session.session_id, conversation)


def create(path: str, text: str) -> str:
    return f'[CREATE_FILE path="{path}" overwrite="true"]\n{text}[/CREATE_FILE]\n'


def test_a_part_is_not_the_file(shop: Path) -> None:
    """Replacing a file of which only a part was shown is asked for; one shown whole is just replaced."""
    (shop / "discount.py").write_text(LONG)
    asked: list[Question] = []
    with working(shop, asked, f"{TASK}: see cart.py") as live:
        chosen = chosen_in(live.request(1))
        assert "--- discount.py (parts of " in chosen
        assert "--- cart.py (3 lines) ---" in chosen
        live.answer(create("cart.py", "x = 1\n") + create("discount.py", "x = 1\n"))
        assert [each.subject for each in asked] == ["discount.py"]
        assert "saw only a part" in asked[0].reasons[0]
        assert (shop / "discount.py").read_text() == LONG
        assert (shop / "cart.py").read_text() == "x = 1\n"
        # Once the chat has the whole file, it is a file like any other.
        live.answer('[READ_FILE path="discount.py"]\n', "r2.txt")
        live.answer(create("discount.py", "x = 2\n"), "r3.txt")
        assert len(asked) == 1
        assert (shop / "discount.py").read_text() == "x = 2\n"


def test_a_change_of_the_person_to_a_chosen_file_is_kept(shop: Path) -> None:
    """A file that was shown whole is known to the chat: what the person changed since is not overwritten."""
    with working(shop, []) as live:
        (shop / "cart.py").write_text(CART + "# mine\n")
        result = live.answer(create("cart.py", "x = 1\n"))
        assert "'cart.py' was changed since the chat" in result
        assert (shop / "cart.py").read_text() == CART + "# mine\n"


def test_later_requests(shop: Path) -> None:
    """The whole one chooses again, what was changed first; the short one sends no file a second time."""
    with working(shop, []) as live:
        live.answer(create("stock.py", "x = 1\n") + "[RUN_COMMAND]\ntrue\n[/RUN_COMMAND]\n")
        whole = chosen_in(live.request(2))
        assert whole.index("--- stock.py (") < whole.index("--- cart.py (")
        name = f"{live.session_id}_seq0002.txt"
        short = (live.home.mailbox.outbox / "short" / name).read_text("utf-8")
        assert "Chosen Files" not in short
        assert CART not in short


def test_a_session_of_an_earlier_version_chooses_nothing() -> None:
    """Its first record names no tokens."""
    line = b'{"kind":"session_started","session_id":"a1b2c3d4","task":"t","workspace":"/w","at":"x"}'
    session = fold(None, decode_record(line))
    assert (session.terms.context, session.leave_out) == (0, ())


def test_an_empty_folder_costs_no_import(tmp_path: Path) -> None:
    """The start of `new` in an empty folder stays cheap: nothing that chooses is imported."""
    (tmp_path / "shop").mkdir()
    program = (
        "import sys; from codingagent.cli import main;"
        f" main.run(['--home', {str(tmp_path / 'home')!r}, 'new', '--no-wait', '--workspace',"
        f" {str(tmp_path / 'shop')!r}, 'a task']);"
        " late = ('codingagent.context', 'codingagent.agent.wanted_files');"
        " sys.exit(any(name.startswith(late) for name in sys.modules))"
    )
    done = subprocess.run((sys.executable, "-c", program), cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
