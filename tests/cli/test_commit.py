"""Design, the command line: `commit` commits exactly what the session changed, and never pushes."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_cli import drop
from tests.helpers import run_here

GIT = shutil.which("git")
pytestmark = pytest.mark.skipif(GIT is None or os.name == "nt", reason="there is no git")

LINES = "".join(f"{letter}\n" for letter in "abcdefghij")
EDIT = '[EDIT_FILE path="{}"]\n<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n[/EDIT_FILE]\n'
DONE = "[DONE]\ng is G now\n\n# Why\nIt was asked for.\n[/DONE]\n"


class Repository:
    """Somebody's repository, with a session in a folder of it."""

    def __init__(self, top: Path, folder: str = "") -> None:
        self.top, self.root = top, top / folder
        top.mkdir()
        self.git("init", "-q", "-b", "main")
        self.write("cart.py", LINES)
        self.write("gone.txt", "gone\n")

    def git(self, *words: str, ok: int = 0) -> str:
        assert GIT is not None
        done = subprocess.run([GIT, *words], cwd=self.top, capture_output=True, text=True, check=False)
        assert done.returncode == ok, done.stderr
        return done.stdout

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", newline="")

    def first(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "first")

    def begin(self, *options: str) -> None:
        done = run_here("new", "--here", "--no-wait", *options, "Change g to G", folder=self.root)
        assert done.returncode == 0, done.stderr

    def turn(self, reply: str, *options: str) -> str:
        drop(self.root / ".codingagent", reply)
        return run_here("resume", "--once", *options, folder=self.root).stdout

    def commit(self, *options: str, ok: int = 0) -> str:
        done = run_here("commit", *options, folder=self.root)
        assert done.returncode == ok, done.stderr
        return done.stdout + done.stderr

    def diff(self, *options: str, name_only: bool = True) -> str:
        how = () if options[:1] in (("--stat",), ("--turn",)) or not name_only else ("--name-only",)
        return run_here("diff", *how, *options, folder=self.root).stdout

    def committed(self) -> set[str]:
        return set(self.git("show", "--format=", "--name-status").splitlines())

    @property
    def status(self) -> list[str]:
        return self.git("status", "--porcelain").splitlines()


@pytest.fixture(autouse=True)
def _person(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "A")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "a@example.org")
    monkeypatch.setenv("CODINGAGENT_SANDBOX", "off")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    found = Repository(tmp_path / "r")
    found.first()
    return found


def test_exactly_what_the_session_changed(repository: Repository) -> None:
    """New and deleted files too; what the person changed in the same file and staged stays theirs."""
    repository.write("cart.py", "MINE\n" + LINES)
    repository.write("staged.txt", "staged\n")
    repository.git("add", "staged.txt")
    repository.begin()
    repository.turn(
        "[MESSAGE]\nOnly g changes.\n[/MESSAGE]\n"
        "[MESSAGE]\nShall h change, too?\n[/MESSAGE]\n"
        + EDIT.format("cart.py", "g", "G")
        + '[CREATE_FILE path="neu/ä b.txt"]\nhello\n[/CREATE_FILE]\n[DELETE_FILE path="gone.txt"]\n'
        + "[RUN_COMMAND]\nln -s cart.py link; printf x >run.sh; chmod +x run.sh\n[/RUN_COMMAND]\n"
        + DONE
    )
    said = repository.commit()
    assert "committed 5 files on main" in said
    assert "your own changes stay uncommitted in: cart.py" in said
    assert repository.git("show", "HEAD:cart.py") == LINES.replace("g", "G")
    raw = repository.git("-c", "core.quotePath=false", "show", "--format=", "--raw", "--abbrev=4")
    assert [line.split()[1] for line in raw.splitlines()] == [
        "100644",
        "000000",
        "120000",
        "100644",
        "100755",
    ]
    assert "A\tneu/ä b.txt" in raw
    told = "Change g to G\n\ng is G now\n\n# Why\nIt was asked for.\n"
    assert repository.git("show", "-s", "--format=%B").strip() == told.strip()
    assert repository.status == [" M cart.py", "A  staged.txt"]
    assert repository.git("diff").count("\n+") == 2  # a heading, and the person's line
    assert "committed on main" in run_here("log", folder=repository.root).stdout


def test_again_after_another_turn_and_after_an_undo(repository: Repository) -> None:
    repository.begin()
    repository.turn(EDIT.format("cart.py", "g", "G"))
    repository.turn('[CREATE_FILE path="old"]\nx\n[/CREATE_FILE]\n')
    assert "nothing" not in repository.commit()
    edits = EDIT.format("cart.py", "G", "H") + EDIT.format("cart.py", "a", "A")
    assert "\nChanged: cart.py\n" in repository.turn(edits + DONE)
    for redo in ("--force", "--redo"):  # what no commit has
        assert "stays" not in run_here("undo", redo, folder=repository.root).stdout
    # Since the commit, it is told of all others.
    assert repository.diff() == "cart.py\n"
    assert "what came since commit" in repository.diff("--stat")
    assert "\n+H\n" in repository.diff("--turn", "3")
    assert "1 file" in repository.commit("-m", "second", "-m", "why")
    assert "has changed nothing since" in repository.commit(ok=2)
    assert repository.git("log", "-1", "--format=%B").strip() == "second\n\nwhy"
    assert repository.diff("--stat").startswith("nothing came since commit")
    assert json.loads(repository.diff("--json", name_only=False))["turns"] == []
    assert repository.diff("--all") == "cart.py\nold\n"
    undone = run_here("undo", folder=repository.root).stdout
    assert "stays" in undone
    repository.commit()
    assert repository.git("show", "HEAD:cart.py") == LINES.replace("g", "G")
    assert repository.git("log", "-1", "--format=%s").strip() == "Undo: Change g to G"
    repository.git("reset", "-q", "--soft", "HEAD~3")
    repository.git("restore", "--staged", ".")
    repository.commit()
    assert repository.committed() == {"M\tcart.py", "A\told"}, "a commit that is gone holds nothing"


def test_what_the_person_committed_or_staged_meanwhile(repository: Repository) -> None:
    """It is not committed again, and a new file as the session left it; what no checkpoint holds is said."""
    new = '[CREATE_FILE path="x.txt"]\n{}\n[/CREATE_FILE]\n'
    command = "[RUN_COMMAND]\nhead -c 6000000 /dev/zero >big.bin\n[/RUN_COMMAND]\n"
    repository.begin()
    repository.turn(EDIT.format("cart.py", "g", "G"))
    repository.git("commit", "-qam", "mine")
    repository.turn(EDIT.format("cart.py", "j", "J") + new.format(1))
    repository.git("add", "x.txt")
    repository.turn(new.format(2) + command + DONE)
    assert "not looked into: big.bin" in repository.commit()
    assert repository.git("show", "HEAD:cart.py") == LINES.replace("g", "G").replace("j", "J")
    assert repository.git("show", "HEAD:x.txt") == "2\n"
    assert repository.status == ["?? big.bin"]


def test_changes_of_the_persons_in_the_same_lines_or_file(repository: Repository) -> None:
    repository.write("cart.py", LINES.replace("g", "gg"))
    repository.write("mine.txt", "one\ntwo\n")
    repository.begin()
    repository.turn(EDIT.format("cart.py", "gg", "G") + EDIT.format("mine.txt", "two", "three") + DONE)
    assert "mine.txt: you have not committed it yet" in repository.commit(ok=2)
    repository.git("add", "mine.txt")
    repository.git("commit", "-q", "-m", "mine", "mine.txt")
    before = repository.git("rev-parse", "HEAD")
    said = repository.commit(ok=2)
    assert "cart.py: changes of your own are in the same lines" in said
    assert "--whole" in said
    assert (repository.git("rev-parse", "HEAD"), repository.status) == (before, [" M cart.py"])
    repository.commit("--whole")
    assert (repository.committed(), repository.status) == ({"M\tcart.py"}, [])


def test_an_object_that_is_missing_is_named(repository: Repository) -> None:
    repository.write("cart.py", LINES.replace("a", "aa"))
    repository.begin()
    repository.turn(EDIT.format("cart.py", "g", "G") + DONE)
    blob = repository.git("rev-parse", "HEAD:cart.py").strip()
    (repository.top / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    said = repository.commit(ok=1)
    assert f"the objects of your repository are damaged: {blob} is missing" in said


@pytest.mark.parametrize(("mine", "status"), [("a", "MM cart.py"), ("g", " M")])
def test_what_is_staged_of_the_same_file(repository: Repository, mine: str, status: str) -> None:
    """It stays staged, apart from the commit; in the same lines it is refused."""
    repository.begin()
    repository.turn(EDIT.format("cart.py", "g", "G") + DONE)
    on_disk = (repository.root / "cart.py").read_text("utf-8")
    repository.write("cart.py", LINES.replace(mine, "STAGED"))
    repository.git("add", "cart.py")
    repository.write("cart.py", on_disk)
    if mine == "g":
        assert "what you have staged of cart.py is in the same lines" in repository.commit(ok=2)
        assert len(repository.git("log", "--format=%h").split()) == 1
        return
    repository.commit()
    assert repository.git("show", "HEAD:cart.py") == LINES.replace("g", "G")
    assert repository.git("show", ":cart.py") == LINES.replace("g", "G").replace("a", "STAGED")
    assert repository.status == [status]


@pytest.mark.parametrize("state", ["merge", "rebase", "cherry-pick", "revert", "lock", "detached"])
@pytest.mark.one_in(3)
def test_in_the_middle_of_something_else_it_refuses(repository: Repository, state: str) -> None:
    repository.write("other.txt", "1\n")
    repository.first()
    repository.git("switch", "-q", "-c", "side", "HEAD~1")
    repository.write("other.txt", "2\n")
    repository.first()
    repository.begin()
    repository.turn(EDIT.format("cart.py", "g", "G") + DONE)
    begin = {
        "merge": ("merge", "main"),
        "rebase": ("rebase", "--autostash", "main"),
        "cherry-pick": ("cherry-pick", "main"),
        "revert": ("revert", "--no-commit", "HEAD"),
        "detached": ("switch", "-q", "--detach"),
    }
    if state == "lock":
        (repository.top / ".git" / "index.lock").touch()
    else:
        repository.git(*begin[state], ok=0 if state in ("revert", "detached") else 1)
    log = repository.git("log", "--format=%h")
    said = repository.commit(ok=2)
    words = {"lock": "another git works here", "detached": "add --branch NAME"}
    assert words.get(state, f"a {state} is in progress") in said
    assert repository.git("log", "--format=%h") == log
    if state == "detached":
        repository.commit("--branch", "mine")
        assert repository.git("branch", "--show-current").strip() == "mine"


def test_a_branch(repository: Repository) -> None:
    repository.begin()
    repository.turn(EDIT.format("cart.py", "g", "G") + DONE)
    assert "there is a branch main already" in repository.commit("--branch", "main", ok=2)
    assert "can't name a branch" in repository.commit("--branch", "a..b", ok=2)
    hook = repository.top / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n", "ascii")
    hook.chmod(0o755)
    assert "git made no commit" in repository.commit("--branch", "new", ok=1)
    assert repository.git("branch").split() == ["*", "main"]
    assert repository.status == [" M cart.py"]
    hook.unlink()
    assert "on new" in repository.commit("--branch", "new")
    assert repository.git("log", "--format=%s", "main").split() == ["first"]


def test_hooks_run_and_see_only_what_is_committed(repository: Repository) -> None:
    """As the person's git has them: one refuses, one adds to the commit, one changes the message."""
    hooks = repository.top / ".git" / "hooks"
    for name, text in (
        ("pre-commit", "git diff --cached --name-only >seen; echo 1 >version; git add version"),
        ("commit-msg", 'echo "Ticket: 1" >>"$1"'),
    ):
        (hooks / name).write_text(f"#!/bin/sh\n{text}\n", "ascii")
        (hooks / name).chmod(0o755)
    repository.write("staged.txt", "staged\n")
    repository.git("add", "staged.txt")
    repository.begin()
    repository.turn(EDIT.format("cart.py", "g", "G") + DONE)
    repository.commit()
    assert (repository.top / "seen").read_text("ascii") == "cart.py\n"
    assert repository.committed() == {"M\tcart.py", "A\tversion"}
    assert "Ticket: 1" in repository.git("show", "-s", "--format=%B")
    assert repository.status == ["A  staged.txt", "?? seen"]


def hook(repository: Repository, name: str, text: str) -> None:
    place = repository.top / ".git" / "hooks" / name
    place.write_text(f"#!/bin/sh\n{text}\n", "ascii")
    place.chmod(0o755)


PLANTED = '[RUN_COMMAND]\nprintf "#!/bin/sh\\ntouch {}/ran; cat" >{}; chmod +x {}\n[/RUN_COMMAND]\n'


@pytest.mark.parametrize(
    ("started", "told"),
    [
        ("hook", "hook pre-commit"),
        ("filter", "filter x"),
        ("core.editor", ""),
        pytest.param("gpg.program", "", marks=pytest.mark.deep),
        ("PYTHONPATH", "hook pre-commit"),
    ],
)
def test_programs_that_an_answer_put_on_path_do_not_run(
    repository: Repository, started: str, told: str
) -> None:
    """What git ignores in the workspace, no one sees: it runs where the person says so, and only there."""
    place = ".venv/bin/planted"
    (repository.root / place).parent.mkdir(parents=True)
    repository.write(".gitignore", ".venv\n")
    if started in ("hook", "PYTHONPATH"):
        hook(repository, "pre-commit", "planted\npython3 -c 1")
    elif started == "filter":
        repository.git("config", "filter.x.clean", "planted")
    else:
        repository.git("config", started, "planted")
        repository.git("config", "commit.gpgsign", str(started == "gpg.program"))
    repository.begin()
    if started == "PYTHONPATH":
        run = f"echo \"open('{repository.root}/ran', 'w')\" >.venv/bin/sitecustomize.py"
        planted = f"[RUN_COMMAND]\n{run}\n[/RUN_COMMAND]\n"
    else:
        planted = PLANTED.format(repository.root, place, place)
    attributes = '[CREATE_FILE path=".gitattributes"]\n*.py filter=x\n[/CREATE_FILE]\n'
    repository.turn(planted + attributes + EDIT.format("cart.py", "g", "G"), "--yes")
    (repository.root / "ran").unlink(missing_ok=True)
    folder = f"{repository.root}/.venv/bin"
    variables = {"PATH": f"{folder}:.venv/bin:{os.environ['PATH']}"}
    variables |= {"PYTHONPATH": folder} if started == "PYTHONPATH" else {}
    options = ["commit", "--edit" if started == "core.editor" else "--no-edit"]
    done = run_here(*options, folder=repository.root, variables=variables)
    assert not (repository.root / "ran").exists()
    if told:
        said = f"your git runs with your rights, on what answers wrote: {told}; not from .venv/bin, "
        assert (done.stdout + done.stderr).count(said) == 1
    repository.turn(EDIT.format("cart.py", "a", "A"))
    more = ("--whole", "--trust-ignored")
    run_here(*options, *more, folder=repository.root, variables=variables)
    assert (repository.root / "ran").exists()


def test_files_of_the_workspace_that_hooks_run_are_told_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, with the hooks of a commit; of those that git ignores nobody saw what commands changed."""
    repository = Repository(tmp_path / "r", "sub")
    repository.write(".gitignore", "local/\n")
    for name in ("check.sh", "local/check.sh"):
        repository.write(name, "#!/bin/sh\n")
        (repository.root / name).chmod(0o755)
    repository.first()
    hook(repository, "pre-commit", "./sub/check.sh && echo hook")
    hook(repository, "pre-push", "./sub/local/check.sh")
    repository.begin()
    repository.turn(EDIT.format("cart.py", "g", "G"))
    told = "your git runs with your rights, on what answers wrote: hook pre-commit"
    assert f"{told}; of the workspace: check.sh\n" in repository.commit()
    hook(repository, "pre-commit", "true")
    repository.git("config", "core.editor", "sub/check.sh")
    repository.turn(EDIT.format("cart.py", "b", "B"))
    both = told.replace("hook", "core.editor, hook")
    assert f"{both}; of the workspace: check.sh\n" in repository.commit()
    hook(repository, "pre-commit", "./sub/check.sh && echo hook")
    repository.git("config", "--unset", "core.editor")
    hook(repository, "commit-msg", "sub/local/check.sh")
    repository.turn(EDIT.format("cart.py", "a", "A"))
    said = repository.commit(ok=2)
    assert "your hooks or filters use local/check.sh, which git ignores" in said
    assert "add --trust-ignored" in said
    both = told.replace("hook pre", "hook commit-msg, hook pre")
    said = repository.commit("--trust-ignored")
    assert f"{both}; of the workspace: check.sh, local/check.sh\n" in said
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "lint").symlink_to(repository.root / "local" / "check.sh")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    repository.git("config", "alias.check", "!sh sub/local/check.sh")
    for words, letter in (
        ("lint", "c"),
        ("find sub/local -name '*.sh' -exec sh {} +", "d"),
        ("git check", "e"),
    ):
        hook(repository, "commit-msg", words)
        repository.turn(EDIT.format("cart.py", letter, letter.upper()))
        assert "local/check.sh, which git ignores" in repository.commit(ok=2)


# It puts blanks around = in what is committed, as formatters do, and says in `changed` whether it had to.
FORMATTER = """#!/bin/sh
changed=0
format() {
  for name in $(git diff --cached --name-only --diff-filter=d); do
    sed 's/\\([a-zA-Z]\\)=\\([0-9]\\)/\\1 = \\2/' "$name" >formatted
    cmp -s "$name" formatted || { cat formatted >"$name"; changed=1; }
  done
  rm formatted
}
add() { git diff --cached --name-only -z | xargs -0 git add; }
"""
FORMATTERS = {
    "fails": "format; exit $changed",
    "passes": "format",
    "adds": "format; add",
    "adds and fails": "format; add; exit $changed",
    # As pre-commit, lint-staged and their like do, for the files of the person.
    "stashes": "git diff --binary >.git/own; git checkout -q -- .; format; git apply .git/own; exit $changed",
    "stashes and adds": "git diff --binary >.git/own; git checkout -q -- .; format; add; git apply .git/own",
}


@pytest.mark.parametrize("how", FORMATTERS)
@pytest.mark.one_in(3)
def test_what_a_formatting_hook_made_of_the_files_is_committed(repository: Repository, how: str) -> None:
    """At once if the hook adds it, else at the second try; the person's own stays theirs, an undo holds."""
    own = "" if how.startswith("add") else "MINE\n"
    repository.write("other.txt", "o\n")
    repository.first()
    hook = repository.top / ".git" / "hooks" / "pre-commit"
    hook.write_text(FORMATTER + FORMATTERS[how], "ascii")
    hook.chmod(0o755)
    repository.write("cart.py", own + LINES)
    for name in ("other.txt", "staged.txt"):
        repository.write(name, "z=1\n")
    repository.git("add", "staged.txt")
    repository.begin()
    new = '[CREATE_FILE path="new.py"]\nn=1\n[/CREATE_FILE]\n'
    repository.turn(EDIT.format("cart.py", "g", "G=1") + new + DONE)
    fails = how.endswith(("fails", "stashes"))
    said = repository.commit(ok=int(fails))
    assert "a hook changed cart.py, new.py" in said
    assert ("git made no commit" in said) == fails
    assert "as they were" not in said
    if how in ("adds", "stashes and adds"):
        assert "the commit has it so" in said
    else:
        assert "\n+G = 1\n" in repository.diff(name_only=False)
        assert "a hook" not in repository.commit()
        assert repository.git("log", "-1", "--format=%s") == f"{'' if fails else 'Format: '}Change g to G\n"
    assert "has changed nothing since" in repository.commit(ok=2)
    formatted = LINES.replace("g", "G = 1")
    assert repository.git("show", "HEAD:cart.py") == formatted
    assert repository.git("show", "HEAD:new.py") == "n = 1\n"
    assert (repository.root / "cart.py").read_text() == own + formatted
    assert [repository.git("show", f":{name}") for name in ("other.txt", "staged.txt")] == ["o\n", "z=1\n"]
    theirs = [" M other.txt", "A  staged.txt"]
    assert repository.status == [" M cart.py"] * bool(own) + theirs
    undone = run_here("undo", folder=repository.root).stdout
    assert "Undid turn 1: restored cart.py, removed new.py\n" in undone
    assert (repository.root / "cart.py").read_text() == own + LINES
    assert repository.git("log", "--format=%s").count("\n") == (4 if how == "passes" else 3)


def test_the_index_follows_a_hook_that_added_all_of_a_file(repository: Repository) -> None:
    """What the person had staged of it is in the commit, too: it would take the rest back."""
    repository.begin()
    repository.turn(EDIT.format("cart.py", "g", "G=1") + DONE)
    for more in ("S\n", "S\nW\n"):
        repository.git(*(("add", "cart.py") if "W" in more else ("status",)))
        repository.write("cart.py", LINES.replace("g", "G=1") + more)
    hook(repository, "pre-commit", f"{FORMATTER}format; add")
    repository.commit()
    assert repository.git("show", "HEAD:cart.py") == LINES.replace("g", "G = 1") + "S\nW\n"
    assert repository.status == []


def test_a_file_outside_of_a_sparse_checkout_is_committed(repository: Repository) -> None:
    for name in ("in/a", "out/b"):
        repository.write(name, "1\n")
    repository.first()
    repository.git("sparse-checkout", "set", "in")
    repository.begin()
    repository.turn('[CREATE_FILE path="out/b"]\n2\n[/CREATE_FILE]\n' + DONE)
    assert "--whole" in repository.commit(ok=2)
    repository.commit("--whole")
    assert (repository.committed(), repository.status) == ({"M\tout/b"}, [])


CREATE = '[CREATE_FILE path="cart.py"]\nG\n[/CREATE_FILE]\n'
MOVE = "[RUN_COMMAND]\nmv shop.py new.py\n[/RUN_COMMAND]\n"
NEW = '[CREATE_FILE path="new.py"]\nG\n[/CREATE_FILE]\n'
UNCOMMITTED = "you have not committed it yet"
STAGED = "you have staged that cart.py is deleted or renamed"
BACK = "cart.py: you have taken the changes back, or stashed them (git stash pop)"
MOVED = "[RUN_COMMAND]\nmv cart.py new.py\n[/RUN_COMMAND]\n"
PARTED = "newer.py: you have renamed what the session moved"
# What the person does before and after an answer; what is said then, and what `--whole` commits.
RENAMES = {
    "git mv": (
        "mv cart.py shop.py",
        EDIT.format("shop.py", "g", "G"),
        "",
        UNCOMMITTED,
        "R\tcart.py\tshop.py",
    ),
    "git mv, moved on": ("mv cart.py shop.py", MOVE, "", UNCOMMITTED, "R\tcart.py\tnew.py"),
    "git mv later": (
        "",
        EDIT.format("cart.py", "g", "G"),
        "mv cart.py shop.py",
        STAGED,
        "R\tcart.py\tshop.py",
    ),
    "git rm later": ("", EDIT.format("cart.py", "g", "G"), "rm -qf cart.py", STAGED, "D\tcart.py"),
    "git rm, made anew": ("rm -q cart.py", CREATE, "", "changes of your own", "M\tcart.py"),
    "another case": (
        "mv cart.py Cart.py",
        EDIT.format("Cart.py", "g", "G"),
        "",
        UNCOMMITTED,
        "R\tcart.py\tCart.py",
    ),
    "a folder": ("mv a b", EDIT.format("b/x", "g", "G"), "", UNCOMMITTED, "R\ta/x\tb/x"),
    "no git": (
        "!mv cart.py shop.py",
        EDIT.format("shop.py", "g", "G"),
        "",
        UNCOMMITTED,
        "R\tcart.py\tshop.py",
    ),
    "intent to add": (
        "!cp cart.py new.py; git add -N new.py",
        EDIT.format("new.py", "g", "G"),
        "",
        UNCOMMITTED,
        "A\tnew.py",
    ),
    "rm --cached": ("", EDIT.format("cart.py", "g", "G"), "rm -q --cached cart.py", STAGED, ""),
    "case is ignored": (
        "!git config core.ignoreCase true; git mv cart.py Cart.py",
        EDIT.format("Cart.py", "g", "G"),
        "",
        UNCOMMITTED,
        "",
    ),
    "committed": (
        "",
        EDIT.format("cart.py", "g", "G"),
        "!git mv cart.py shop.py; git commit -qm mine",
        "you have deleted or renamed it",
        "",
    ),
    "git mv of what was moved": (
        "",
        MOVED,
        "!git add -A; git mv new.py newer.py",
        PARTED,
        "R\tcart.py\tnewer.py",
    ),
    "mv of what was moved": ("", MOVED, "!mv new.py newer.py", PARTED, "R\tcart.py\tnewer.py"),
    "git mv of it, and back": ("", MOVED, "!git add -A; git mv new.py cart.py", BACK, ""),
    "stashed": ("", EDIT.format("cart.py", "g", "G"), "stash -q", BACK, ""),
    "of a new file": (
        "",
        NEW,
        "!git add new.py; git mv new.py newer.py",
        "you have deleted or renamed it",
        "",
    ),
    "a folder in its place": (
        "",
        NEW,
        "!rm new.py; mkdir new.py; cp gone.txt new.py; git add new.py",
        "you have deleted or renamed it",
        "",
    ),
}


@pytest.mark.parametrize("case", RENAMES)
@pytest.mark.one_in(4)
def test_what_the_person_renamed_or_deleted(repository: Repository, case: str) -> None:
    """It is refused with what helps; HEAD, index and disk agree after that and after `--whole`."""
    before, reply, after, why, whole = RENAMES[case]

    def do(words: str) -> None:
        if words:
            shell = words.removeprefix("!") if words[0] == "!" else f"git {words}"
            subprocess.run(["sh", "-ec", shell], cwd=repository.top, check=True)

    for name in ("a/x", "a/y"):
        repository.write(name, f"{name}\n{LINES}")
    repository.first()
    do(before)
    repository.begin()
    repository.turn(reply + DONE)
    do(after)
    status = repository.status
    said = repository.commit(ok=2)
    assert why in said
    assert "ignored by git" not in said
    assert repository.status == status
    if whole:
        assert "--whole" in said
        repository.commit("--whole")
        assert {re.sub(r"R\d+", "R", line) for line in repository.committed()} == {whole}
        assert repository.status == (["R  a/y -> b/y"] if case == "a folder" else [])
    else:
        said = repository.commit("--whole", ok=2)
        assert re.search(r"\(git commit\)|with git|git stash pop", said)


def test_what_the_person_took_back_is_not_committed(repository: Repository) -> None:
    """All of it, or what came after a state that is there again; the rest is."""
    repository.begin()
    repository.turn(EDIT.format("cart.py", "g", "G") + MOVED.replace("cart.py", "gone.txt"))
    repository.git("add", "cart.py")
    repository.turn(EDIT.format("cart.py", "a", "A") + DONE)
    repository.git("restore", "cart.py", "gone.txt")
    said = repository.commit()
    assert "not in it: gone.txt: you have taken the changes back" in said
    assert repository.committed() == {"M\tcart.py", "A\tnew.py"}
    assert repository.git("show", "HEAD:cart.py") == LINES.replace("g", "G")
    assert repository.status == []


def test_a_rename_after_an_undo_is_the_persons(repository: Repository) -> None:
    """The session's own deletion of the file was undone before: it is not committed again."""
    repository.begin()
    repository.turn(MOVED + DONE)
    assert run_here("undo", folder=repository.root).returncode == 0
    repository.git("mv", "cart.py", "newer.py")
    assert "there is nothing to commit" in repository.commit(ok=2)
    assert repository.status == ["R  cart.py -> newer.py"]


def test_the_message_is_edited(repository: Repository) -> None:
    """It has all that was done since the last commit; an emptied one makes no commit.

    What is written meanwhile is the person's, not a hook's.
    """
    repository.begin()
    repository.turn(EDIT.format("cart.py", "g", "G") + DONE)
    assert run_here("say", "and a file", folder=repository.root).returncode == 0
    made = '[CREATE_FILE path="new"]\nx\n[/CREATE_FILE]\n'
    repository.turn(f"{made}[DONE]\nnew is there\n[/DONE]\n")
    name = repository.root / "cart.py"
    (repository.root / "started").touch()
    write = f"until echo mine >>{name}; [ {name} -nt {repository.root / 'started'} ]; do :; done"
    write = f"touch {repository.root / 'started'}; {write}; "
    for editor, status in (("truncate -s0", 1), (f"{write} sed -i 1s/G/H/", 0)):
        variables = {"GIT_EDITOR": editor}
        done = run_here("commit", "--edit", folder=repository.root, variables=variables)
        assert done.returncode == status, done.stderr
        started = "?? started"
        own = [" M cart.py", "?? new", started] if status else [" M cart.py", started]
        assert repository.status == own
    assert "your own changes stay uncommitted in: cart.py" in done.stdout
    assert "a hook" not in done.stdout
    assert repository.git("show", "-s", "--format=%B").startswith(
        "Change g to H\n\ng is G now\n\n# Why\nIt was asked for.\n\nnew is there\n"
    )


def test_a_file_stays_as_git_was_told_of_it(repository: Repository) -> None:
    """Line ends as its filters make them, or CRLF as committed; modes where it heeds none; unwatched ones."""
    dos = LINES.replace("\n", "\r\n")
    for name in ("run.sh", "gone.sh", "old.bat", "unwatched.py"):
        repository.write(name, LINES)
    repository.write("dos.txt", dos)
    (repository.root / "a.bin").write_bytes(bytes(range(256)))
    (repository.root / "link").symlink_to("cart.py")
    repository.git("add", "-A")
    repository.git("update-index", "--chmod=+x", "run.sh", "gone.sh")
    repository.git("update-index", "--assume-unchanged", "unwatched.py")
    repository.git("commit", "-q", "-m", "first")
    repository.git("config", "core.autocrlf", "true")
    for name in ("fileMode", "symlinks"):  # as on Windows, where the disk has none
        repository.git("config", f"core.{name}", "false")
    (repository.root / "link").unlink()
    repository.write("link", "cart.py")
    (repository.root / "old.bat").chmod(0o755)
    for name in ("cart.py", "dos.txt"):
        repository.write(name, f"MINE\r\n{dos}")
    repository.begin()
    edited = ("cart.py", "dos.txt", "run.sh", "unwatched.py")
    deleted = ("gone.sh", "old.bat", "link")
    command = "python3 -c \"open('a.bin','ab').write(bytes(9))\"; rm gone.txt"
    repository.turn(
        "".join(EDIT.format(name, "g", "G") for name in edited)
        + "".join(f'[DELETE_FILE path="{name}"]\n' for name in deleted)
        + f"[RUN_COMMAND]\n{command}\n[/RUN_COMMAND]\n{DONE}"
    )
    repository.commit("--no-edit")
    kinds = {"M": (*edited, "a.bin"), "D": (*deleted, "gone.txt")}
    assert repository.committed() == {f"{k}\t{name}" for k in kinds for name in kinds[k]}
    blobs = {name: repository.git("cat-file", "blob", f"HEAD:{name}") for name in edited}
    assert blobs["cart.py"] == LINES.replace("g", "G")
    assert b"G\r\n" in (repository.root / "cart.py").read_bytes()
    assert int(repository.git("cat-file", "-s", "HEAD:dos.txt")) == len(dos)
    assert repository.git("ls-tree", "HEAD", "run.sh").startswith("100755")
    assert "h unwatched.py" in repository.git("ls-files", "-v")
    assert repository.status == [" M cart.py", " M dos.txt"]


@pytest.mark.deep
def test_very_many_files(repository: Repository) -> None:
    """Their names are more than a command line of Windows holds."""
    repository.begin()
    name = "a" * 240
    command = f"mkdir new; cd new; for n in $(seq 140); do echo >{name}-$n; done"
    repository.turn(f"[RUN_COMMAND]\n{command}\n[/RUN_COMMAND]\n" + DONE)
    assert "committed 140 files" in repository.commit()


def test_the_first_commit_of_a_repository(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "r")
    repository.begin()
    repository.turn('[CREATE_FILE path="new.txt"]\nnew\n[/CREATE_FILE]\n' + DONE)
    repository.commit()
    assert repository.committed() == {"A\tnew.txt"}
    assert repository.status == ["?? cart.py", "?? gone.txt"]


@pytest.mark.deep
def test_an_undo_while_the_editor_is_open_is_in_the_next_commit(repository: Repository) -> None:
    repository.begin()
    repository.turn(EDIT.format("cart.py", "g", "G") + DONE)
    program = "import sys; from codingagent.cli import main; sys.exit(main.run(sys.argv[1:]))"
    undo = f"cd {repository.root} && {sys.executable} -c '{program}' undo >/dev/null && true"
    done = run_here("commit", "--edit", folder=repository.root, variables={"GIT_EDITOR": undo})
    assert done.returncode == 0, done.stderr
    repository.commit()
    assert repository.git("show", "HEAD:cart.py") == LINES


@pytest.mark.deep
@pytest.mark.parametrize("options", [(), ("--branch", "new")])
def test_a_hook_that_fails_after_the_commit_takes_nothing_back(
    repository: Repository, options: tuple[str, ...]
) -> None:
    hook = repository.top / ".git" / "hooks" / "post-commit"
    hook.write_text("#!/bin/sh\nkill $PPID\n", "ascii")
    hook.chmod(0o755)
    repository.begin()
    repository.turn(EDIT.format("cart.py", "g", "G") + DONE)
    repository.commit(*options)
    assert repository.git("show", "HEAD:cart.py") == LINES.replace("g", "G")
    assert repository.status == []


def test_a_folder_of_a_repository_and_what_git_ignores(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "r", "sub")
    repository.write(".gitignore", "*.log\n")
    repository.first()
    repository.begin()
    repository.turn(
        EDIT.format("cart.py", "g", "G") + '[CREATE_FILE path="a.log"]\nx\n[/CREATE_FILE]\n' + DONE
    )
    said = repository.commit("--json")
    told = json.loads(said.splitlines()[-1])
    assert told["files"] == ["sub/cart.py"]
    assert told["left"] == ["a.log: ignored by git, or of another repository"]
    assert told["uncommitted"] == []
    assert told["commit"] == repository.git("rev-parse", "HEAD").strip()


def test_a_repository_that_git_does_not_know(repository: Repository) -> None:
    repository.begin()
    repository.turn(EDIT.format("cart.py", "g", "G") + DONE)
    repository.git("config", "core.repositoryFormatVersion", "1")
    repository.git("config", "extensions.ofTomorrow", "true")
    assert "extension found: oftomorrow" in repository.commit(ok=2)


def test_a_linked_worktree(repository: Repository, tmp_path: Path) -> None:
    repository.git("worktree", "add", "-q", str(tmp_path / "w"), "-b", "side")
    repository.top = repository.root = tmp_path / "w"
    repository.begin()
    repository.turn(EDIT.format("cart.py", "g", "G") + DONE)
    assert "on side" in repository.commit()
    assert repository.status == []


def test_without_a_repository_it_says_so(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "r")
    shutil.rmtree(repository.top / ".git")
    repository.begin()
    repository.turn(EDIT.format("cart.py", "g", "G") + DONE)
    assert "the workspace is in no git repository" in repository.commit(ok=2)


def test_in_the_middle_of_a_turn_it_refuses(repository: Repository) -> None:
    off = ("--sandbox", "off")
    repository.begin(*off)
    assert "has changed nothing" in repository.commit(ok=2)
    repository.turn(EDIT.format("cart.py", "g", "G") + "[RUN_COMMAND]\ngit push\n[/RUN_COMMAND]\n", *off)
    assert "in the middle of a turn" in repository.commit(ok=2)


def test_a_hidden_variable_of_git_leads_nowhere_else(repository: Repository, tmp_path: Path) -> None:
    """As in a hook, or a shell that was left in one."""
    other = Repository(tmp_path / "other")
    other.first()
    repository.begin()
    repository.turn(EDIT.format("cart.py", "g", "G") + DONE)
    variables = {"GIT_DIR": str(other.top / ".git"), "GIT_INDEX_FILE": str(tmp_path / "none")}
    done = run_here("commit", folder=repository.root, variables=variables)
    assert done.returncode == 0, done.stderr
    assert len(repository.git("log", "--format=%h").split()) == 2
    assert len(other.git("log", "--format=%h").split()) == 1


def test_where_git_knows_nobody_it_says_what_to_type(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Before anybody writes a message: none is lost. Then the same command commits."""
    repository.begin()
    repository.turn(EDIT.format("cart.py", "g", "G") + DONE)
    for role, what in itertools.product(("AUTHOR", "COMMITTER"), ("NAME", "EMAIL")):
        monkeypatch.delenv(f"GIT_{role}_{what}")
    config = tmp_path / "config"
    config.write_text("[user]\n\tuseConfigOnly = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    said = repository.commit("--message", "Mine", ok=2)
    assert said.count("\n") == 1, said
    assert "Omit" not in said
    unread = tmp_path / "message"
    unread.write_text("Piped\n")
    with unread.open() as piped, monkeypatch.context() as typing:
        typing.setattr(sys, "stdin", piped)
        assert repository.commit("--message", "-", ok=2) == said
        assert piped.read() == "Piped\n"
    assert repository.git("log", "--format=%s") == "first\n"
    for line in re.findall(r"git config --global [^;`]+", said):
        subprocess.run(line, shell=True, check=True)
    assert "committed 1 file" in repository.commit("--message", "Mine")
    assert repository.git("log", "-1", "--format=%s %an %ae") == "Mine YOUR NAME YOU@EXAMPLE.ORG\n"


def test_a_working_tree_has_the_files_that_are_named_here(repository: Repository, tmp_path: Path) -> None:
    """Relative to the current folder, by a glob, or absolute, also by a link: always those of the branch."""
    repository.write("sub/docs/guide.md", "guide\n")
    repository.write("sub/docs/more.md", "more\n")
    repository.git("add", "-A")
    repository.git("commit", "-qm", "docs")
    repository.write("sub/docs/guide.md", "not committed\n")
    repository.write("sub/docs/new.md", "new\n")
    (tmp_path / "way").symlink_to(repository.top)
    task = tmp_path / "task.txt"
    task.write_text("Change g to G\n")

    def begin(branch: str, attached: str) -> "subprocess.CompletedProcess[str]":
        words = ("new", "--worktree", branch, f"--attach={attached}", "--file=../../task.txt")
        return run_here(*words, "--no-wait", folder=repository.root / "sub")

    names = ("docs/guide.md", "docs/../docs/guide.md", "docs/**", "docs", str(tmp_path / "way/sub/docs"))
    absolute = (repository.top / "sub/docs/guide.md", tmp_path / "r-b0" / "sub/docs/guide.md")
    for number, name in enumerate([*names, *map(str, absolute)]):
        branch = "b0" if "r-b0" in name else f"b{number}"
        done = begin(branch, name)
        assert done.returncode == 0, (name, done.stderr)
        home = tmp_path / f"r-{branch}" / "sub" / ".codingagent"
        texts = [each.read_text("utf-8") for each in (home / "outbox").glob("*.txt")]
        for text in texts:
            assert "--- docs/guide.md" in text, name
            assert "not committed" not in text, name
    before = sorted(tmp_path.iterdir())
    refused = {
        "docs/new.md": "that is not on branch other, where the task works: commit it there first",
        str(repository.top / "sub/docs/new.md"): "that is not on branch other",
        "docs/none.md": "no file in the workspace matches",
        "../cart.py": "outside the workspace",
        "/etc/passwd": "outside the workspace",
        "": "it is empty",
    }
    for name, why in refused.items():
        done = begin("other", name)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), (name, done.stderr)
        assert why in done.stderr, name
        assert sorted(tmp_path.iterdir()) == before


def test_two_tasks_at_once_in_working_trees_of_their_own(repository: Repository) -> None:
    """A second one of the same branch takes the tree that is there; commands that are printed find it."""
    tmp = repository.top.parent
    repository.write("cart.py", "MINE\n" + LINES)

    def begin(*options: str, folder: Path = repository.root) -> tuple[int, str]:
        words = ("new", "--worktree", *options, "--no-wait", "Change g to G")
        done = run_here(*words, folder=folder)
        return done.returncode, done.stdout + done.stderr

    tree = repository.top.parent / "r-fix-one"
    for _ in range(2):
        status, told = begin("fix/one")
        assert (status, f"on branch fix/one, in {tree}" in told) == (0, True), told
        assert f"--home {tree / '.codingagent'} resume" in told
    (session, _) = sorted(path.stem for path in (tree / ".codingagent" / "sessions").glob("*.json"))
    head = f'[REPLY session="{session}" sequence="1"]\n'
    drop(tree / ".codingagent", head + EDIT.format("cart.py", "g", "G") + DONE + "[END]\n")
    done = run_here("resume", session, "--once", folder=tree)
    assert "1 file changed" in done.stdout, done.stdout + done.stderr
    assert run_here("commit", session, "--no-edit", folder=tree).returncode == 0
    assert repository.git("diff", "--name-only", "main", "fix/one") == "cart.py\n"
    assert (repository.root / "cart.py").read_text() == "MINE\n" + LINES
    assert "'main' is already checked out" in begin("main")[1]
    assert "can't name a branch" in begin("a b")[1]
    (repository.top.parent / "r-taken").mkdir()
    assert "is no working tree of taken" in begin("taken")[1]
    assert "in no git repository" in begin("x", folder=repository.top.parent)[1]
    # Only a commit runs the person's hooks.
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        hook(repository, name, f"touch {tmp}/ran")
    repository.git("config", "core.fsmonitor", f"touch {tmp}/ran;")
    (tmp / "ran").unlink(missing_ok=True)
    assert begin("fix/two")[0] == 0
    assert not (tmp / "ran").exists()
    repository.write("local", "cat")
    repository.write(".gitignore", "/local\n")
    repository.git("config", "filter.x.smudge", f"sh {repository.root}/local")
    assert "use local, which git ignores" in begin("fix/three")[1]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "options",
    [
        ("--prompt", "NONE"),
        ("--attach", "none.py"),
        ("--policy", "restrictive", "--check", "ls"),
        ("--sandbox", "off", "--secrets", "mask"),
        ("--diff", "none"),
    ],
    ids=" ".join,
)
def test_a_task_that_is_refused_leaves_nothing(repository: Repository, options: tuple[str, ...]) -> None:
    """Neither a working tree nor a branch, nor a home with a session that can't go on."""
    before = sorted(repository.top.parent.iterdir())
    for place in (("--worktree", "fix"), ("--here",)):
        done = run_here("new", *place, "--no-wait", *options, "a task", folder=repository.root)
        assert done.returncode == 2, done.stderr
        assert sorted(repository.top.parent.iterdir()) == before
        assert repository.git("branch", "--format=%(refname:short)").split() == ["main"]
        assert repository.git("worktree", "list").count("\n") == 1
        assert not (repository.root / ".codingagent").exists()
    repository.git("branch", "fix")
    run_here("new", "--worktree", "fix", "--no-wait", *options, "a task", folder=repository.root)
    assert repository.git("branch", "--list", "fix")
    assert sorted(repository.top.parent.iterdir()) == before
