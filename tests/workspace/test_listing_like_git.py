"""The listing of a workspace against `git ls-files -co --exclude-standard`, on real trees.

Wanted differences, each with its own test: what is in a repository inside the workspace is listed (git
names the repository as one folder), and so is what is tracked and was removed from disk not. Links are
listed where they lead to a file inside, under the rules for links.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.process.runner import run_tool
from codingagent.prompt.file_list import Listing
from codingagent.workspace.git_files import Git
from codingagent.workspace.workspace import Workspace

GIT = shutil.which("git")
pytestmark = pytest.mark.skipif(GIT is None or os.name == "nt", reason="there is no git")

Files = dict[str, str]


class Tree:
    """A work tree made for a test, with a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.root = folder / "tree"
        self.home.mkdir()
        self.root.mkdir()
        self.variables = {
            "HOME": os.fspath(self.home),
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }

    def git(self, *words: str, at: Path | None = None) -> bytes:
        assert GIT is not None
        argv = [GIT, "-C", os.fspath(at or self.root), *words]
        return subprocess.run(argv, env=self.variables, capture_output=True, check=True).stdout

    def write(self, *paths: str, **texts: str) -> None:
        for path in paths:
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_bytes(texts.get(path, "12345").encode())

    def rules(self, text: str | bytes, folder: str = "", name: str = ".gitignore") -> None:
        (self.root / folder).mkdir(parents=True, exist_ok=True)
        data = text if isinstance(text, bytes) else text.encode()
        (self.root / folder / name).write_bytes(data)

    def listing(self, root: Path | None = None) -> Listing:
        assert GIT is not None
        git = Git(GIT, run_tool, self.variables)
        with contextlib.closing(Workspace(root or self.root, git=lambda: git)) as workspace:
            return workspace.listing()

    def ours(self, root: Path | None = None) -> list[str]:
        return sorted(self.listing(root).files)

    def gits(self, root: Path | None = None) -> list[str]:
        where = root or self.root
        found = self.git("ls-files", "-co", "--exclude-standard", "-z", at=where)
        names = {os.fsdecode(name) for name in found.split(b"\0") if name}
        return sorted(name for name in names if (where / name).exists())

    def check(self, root: Path | None = None) -> list[str]:
        ours = self.ours(root)
        assert ours == self.gits(root)
        return ours


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path)
    made.git("init", "-q")
    return made


# Each: the ignore file, and the paths that lie there.
_HARD = {
    "negation below an ignored folder": ("d/\n!d/keep\n", "d/keep d/x e/d/keep"),
    "negation below ignored content": ("d/*\n!d/keep\n", "d/keep d/x"),
    "negation of what lies in a folder": ("a/**\n!a/keep\n", "a/keep a/x a/b/keep"),
    "negation down a path": ("/*\n!/a\n/a/*\n!/a/b\n", "x a/x a/b/y a/c"),
    "a folder is not what is in it": ("*\n!d/\n", "x d/x"),
    "a folder by its name, not a file": ("build/\n", "build d/build/x"),
    "blanks at the end": ("a  \nb\\ \nc\\  \nd \\ \ne\t\n", "a|b |c |d  |e|e\t|b|c|d"),
    "blanks at the start": (" a\n", " a|a"),
    "hashes and exclamation marks": ("\\#a\n#b\n\\!c\n!d\n", "#a #b !c c d"),
    "any folder": ("**/x\n**/d/y\n", "x a/x a/b/x d/y e/d/y y"),
    "any folder between": ("a/**/b\n", "a/b a/x/b a/x/y/b c/a/b ab"),
    "any folder twice": ("a/**/b/**/c\n**/q/**/r/**\n", "a/b/c a/x/b/y/z/c a/c z/q/r/s q/x/r/y q/r"),
    "all below": ("a/**\n**/z/**\n", "a/x a/b/c z/x y/z/w b"),
    "all": ("**\n!b\n", "a b c/b"),
    "stars behind a name": ("foo**/bar\n/q**\na/w**x\n", "foobar foox/bar foo/x/bar q1 q/x a/wx a/w/x"),
    "three stars": ("***/x\na/***/b\n***.o\n", "x y/x a/b a/c/d/b q.o"),
    "a star is no folder": ("a*b/c\n", "ab/c axb/c a/b/c"),
    "classes": ("[a-c]1\n[!a-c]2\n[^a-c]3\n[]]4\n[a\\]]5\n[\\\\]6\n", "a1 d1 a2 d2 a3 d3 ]4 ]5 a5 \\6 \\5"),
    "classes of names": ("[[:digit:]]x\n[![:alpha:]]y\n[[:foo:]]z\n[[:x]w\n", "1x ax 1y ay 1z xw [w :w"),
    "classes with hyphens": ("[a-]1\n[-a]2\n[a--]3\n[--0]4\n[+--]5\n", "-1 a1 -2 a2 a3 -3 -4 .4 04 -5 ,5"),
    "classes of Python's": ("[a&&b]1\n[a||b]2\n[a~~b]3\n[[a]4\n[a\\-z]5\n", "&1 a1 b1 |2 ~3 [4 a4 b5 -5 z5"),
    "a class that never ends": ("[a\nb[\n[]\n[!]\n", "a [a b[ b [] ["),
    "a slash in a class": ("a[/]b\n[a/b]c\n", "a/b a/x ac bc"),
    "not a class of slashes": ("a[!x]b\na?b\n", "a/b ayb axb"),
    "backslashes": ("\\a\n\\\\b\nc\\\n\\*\nx\\/y\n\\/z\n", "a b \\b c *  c\\ x/y z"),
    "escaped slashes behind stars": ("**\\/x\na/**\\/b\nc*\\/d\n", "x y/x a/b a/c/b cc/d a/b/b"),
    "double slashes": ("a//b\nc//\n//d\n/\n//\n", "a/b c/x d"),
    "unicode": ("ä?\nö*\n[ü]\n?x\n??x\n", "äb äé ö öl ü üx yx"),
    "case": ("Readme\n*.TXT\n", "readme Readme a.txt a.TXT"),
    "lines of Windows": ("a\r\n*.o\r\nb/\r\n", "a x.o b/x c"),
    "a mark of byte order": ("\ufeffa\n", "a b"),
    "the last line without an end": ("a\nb\r", "a b b\r"),
    "a NUL": ("a\0b\nc\n", "a ab c"),
    "newlines in names": ("a*b\n?c\nx/y*\n", "a\nb|\nc|x/y\nz"),
    "names that start with dots": ("*\n!.gitignore\n!*.py\n", ".a b .c.py"),
    "suffixes and names": ("*.py[cod]\n*.log\n!keep.log\n.env\n*~\n", "a.pyc a.py x.log keep.log .env b~"),
    "other blanks": ("a\u00a0\nb\x0b\nc\x0c\n", "a\u00a0|a|b\x0b|b|c"),
    "many stars": ("*a*b*\nx/*a*/*b*\n", "ab xaxbx x/a/b x/ya/b x/b/a"),
    "one wildcard for all": ("*\n", "a b/c"),
    "one wildcard for all folders": ("*/\n", "a b/c"),
    "any folder only": ("**/\n!b/\n", "a b/c d/e"),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("text", "paths"), _HARD.values(), ids=_HARD)
def test_hard_rules_are_gits(tree: Tree, text: str, paths: str) -> None:
    """Design, the outbox, listing: what `.gitignore` excludes is left out."""
    _lay(tree, paths.split("|") if "|" in paths else paths.split())
    tree.rules(text)
    tree.check()


def _lay(tree: Tree, paths: list[str]) -> None:
    for path in paths:
        with contextlib.suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
            tree.write(path)


_NAMES = st.sampled_from(
    ["a", "b", "c", "ab", "abc", "a.b", "é", "aé", "[", "]", "-", "\\", "!", "#a", "a ", "*", "A", "\n"]
)
_PATHS = st.lists(st.lists(_NAMES, min_size=1, max_size=4).map("/".join), min_size=1, max_size=9)
_TOKENS = st.sampled_from(
    [
        *("a", "b", "c", "ab", ".", "é", "/", "/", "*", "**", "**/", "/**", "/**/", "?", " ", "\\", "\\ "),
        *("[ab]", "[!a]", "[^b]", "[a-c]", "[]]", "[[:alpha:]]", "[![:lower:]]", "[", "]", "-", "!", "#"),
        *("[\\]]", "[a\\-c]", "[/]", "[!/]", "[é]", "[:alpha:]", "[[:alpha]", "\t", "\r"),
    ]
)
_LINE = st.lists(_TOKENS, min_size=1, max_size=5).map("".join)
_RULES = st.lists(
    st.one_of(_LINE, _LINE.map("!{}".format), _LINE.map("{}/".format), _LINE.map("/{}".format)), max_size=6
).map(lambda lines: "\n".join([*lines, ""]).replace("**//", "**/"))
# `a**//` leaves out a folder `a` in git, by an accident of how it compares beginnings; here it says nothing.


@pytest.fixture(scope="module")
def again() -> Iterator[Tree]:
    """One repository for many trees: each is laid where the one before has gone."""
    with tempfile.TemporaryDirectory() as name:
        made = Tree(Path(name))
        made.git("init", "-q")
        yield made


@given(
    paths=_PATHS,
    tracked=st.lists(st.integers(0, 8), max_size=3),
    rules=st.lists(_RULES, min_size=1, max_size=3),
    excluded=_RULES,
)
def test_random_rules_are_gits(
    again: Tree, paths: list[str], tracked: list[int], rules: list[str], excluded: str
) -> None:
    """Design, the outbox, listing: whatever the patterns, as git reads them, tracked files among them."""
    for path in again.root.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    (again.root / ".git" / "index").unlink(missing_ok=True)
    (again.root / ".git" / "info" / "exclude").write_text(excluded, "utf-8")
    _lay(again, paths)
    folders = sorted(path.rpartition("/")[0] for path in paths)
    for number, text in enumerate(rules):
        folder = folders[number * len(folders) // len(rules)] if number else ""
        if (again.root / folder).is_dir():
            again.rules(text, folder)
    kept = [paths[number] for number in tracked if number < len(paths)]
    if kept := [path for path in kept if (again.root / path).is_file()]:
        again.git("--literal-pathspecs", "add", "-f", "--", *kept)
    again.check()


def test_tracked_files_are_listed_whatever_is_ignored(tree: Tree) -> None:
    """Design, the outbox, listing: a file that git tracks is no leftover, wherever it lies."""
    tree.write("build/in/kept.o", "build/in/x.o", "build/x.o", "a.log", "b.log", "d/c.log")
    tree.git("add", "build/in/kept.o", "a.log")
    tree.rules("build/\n*.log\n")
    assert tree.check() == [".gitignore", "a.log", "build/in/kept.o"]
    assert tree.listing().ignored.files == 4


def test_what_is_left_out_of_an_untracked_folder_is_known(tree: Tree) -> None:
    """Design, secrets: the values of an ignored file are hidden, though git tracks nothing beside it."""
    tree.write("app/main.py", "app/.env", "app/deep/x.py", "app/deep/.env", "only/.env")
    tree.rules(".env\n")
    assert tree.check() == [".gitignore", "app/deep/x.py", "app/main.py"]
    found = tree.listing().ignored
    assert sorted(found.names) == ["app/.env", "app/deep/.env", "only/.env"]


def test_a_rule_in_a_left_out_folder_says_nothing(tree: Tree) -> None:
    """Design, the outbox, listing: as in git, what is left out has no say."""
    tree.write("out/.gitignore", "out/kept", "out/x")
    tree.rules("!x\n", "out")
    tree.git("add", "out/kept")
    tree.rules("out/\n")
    assert tree.check() == [".gitignore", "out/kept"]


def test_our_own_ignore_file_is_for_tracked_files_too(tree: Tree) -> None:
    """Design, the outbox, listing: what `.codingagentignore` excludes is left out, tracked or not."""
    tree.write("a.log", "out/a", "out/b", "deep/out/c.txt", "deep/out/d.txt", "new.log", "data/x")
    tree.git("add", ".")
    tree.rules("out/\n*.log\n")
    tree.rules("a.log\n/out/b\n/data/\n!new.log\n", name=".codingagentignore")
    tree.rules("d.txt\n", "deep/out", name=".codingagentignore")
    listed = tree.ours()
    assert listed == [*(".codingagentignore", ".gitignore", "deep/out/c.txt", "new.log", "out/a")]


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_every_kind_of_index_is_read(tree: Tree, version: str, kind: str) -> None:
    """Design, the outbox, listing: a file that git tracks is listed, whatever git writes its index like."""
    root = tree.root / "r"
    tree.git("init", "-q", f"--object-format={kind}", os.fspath(root))
    for number in range(30):
        tree.write(f"r/out/{'x' * number * 8}/f{number}", f"r/out/new/{number}")
    tree.write(f"r/{'long/' * 20}{'n' * 200}{'/n' * 9}{'m' * 200}")
    tree.rules("out/\nlong/\n", "r")
    tree.git("add", "-f", ".", at=root)
    tree.git("rm", "-rq", "--cached", "out/new", at=root)
    tree.git("add", "-fN", "out/new/7", at=root)
    tree.git("update-index", f"--index-version={version}", at=root)
    if version == "3":
        tree.git("update-index", "--skip-worktree", "out/xxxxxxxx/f1", at=root)
    assert len(tree.check(root)) == 33


@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_an_index_in_two_parts_is_read_and_said_where_one_is_missing(tree: Tree, kind: str) -> None:
    """Where it is not read, the rules alone say what belongs."""
    root = tree.root / "r"
    tree.git("init", "-q", f"--object-format={kind}", os.fspath(root))
    tree.rules("out/\n", "r")
    tree.write("r/out/1", "r/out/2", "r/out/3", "r/a")
    tree.git("add", "-f", "out/1", "out/2", at=root)
    tree.git("update-index", "--split-index", at=root)
    tree.git("add", "-f", "out/3", at=root)
    tree.git("rm", "-q", "--cached", "out/1", at=root)
    assert {*tree.check(root)} >= {"out/2", "out/3"}
    for shared in (root / ".git").glob("sharedindex.*"):
        shared.unlink()
    found = tree.listing(root)
    assert [*found.files] == [".gitignore", "a"]
    assert found.unread[0].startswith(".git/index: it is in two parts, or not as git writes it")


@pytest.mark.parametrize("data", [b"", b"DIRC", b"DIRC" + b"\0\0\0\2" + b"\xff" * 90, b"x" * 200])
def test_an_index_that_is_none_tracks_nothing(tree: Tree, data: bytes) -> None:
    """Design, purpose: nothing in the workspace may stop the agent."""
    tree.write("out/x")
    tree.rules("out/\n")
    (tree.root / ".git" / "index").write_bytes(data)
    assert tree.ours() == [".gitignore"]


def test_the_repositorys_own_excludes_count(tree: Tree) -> None:
    """Design, the outbox, listing: git's rules are in more places than `.gitignore`; that one wins."""
    tree.write("a.o", "b.o", "d/c.o", "top", "d/top")
    (tree.root / ".git" / "info" / "exclude").write_text("*.o\n/top\n")
    tree.rules("!b.o\n")
    assert tree.check() == [".gitignore", "b.o", "d/top"]


@pytest.mark.parametrize("place", ["default", "xdg", "configured", "included", "home", "none", "missing"])
def test_the_users_own_excludes_count(tree: Tree, place: str) -> None:
    """Design, the outbox, listing: what the user leaves out everywhere is left out here."""
    tree.write("a.o", "b.o", "c.x")
    tree.rules("!b.o\n")
    (tree.home / ".config" / "git").mkdir(parents=True)
    (tree.home / ".config" / "git" / "ignore").write_text("*.o\n" if place == "default" else "*.x\n")
    (tree.home / "mine").write_text("*.o\n")
    configured = {
        "configured": f"[core]\nexcludesFile = {tree.home}/mine\n",
        "home": "[core]\n\texcludesfile = ~/mine\n",
        "included": "[include]\npath = more\n",
        "none": "[core]\nexcludesFile =\n",
        "missing": "[core]\nexcludesFile = /nowhere/at/all\n",
    }
    (tree.home / ".gitconfig").write_text(configured.get(place, ""))
    (tree.home / "more").write_text("[CORE]\nexcludesfile = ~/mine\n")
    if place == "xdg":
        tree.variables["XDG_CONFIG_HOME"] = os.fspath(tree.home / "xdg")
        (tree.home / "xdg" / "git").mkdir(parents=True)
        (tree.home / "xdg" / "git" / "ignore").write_text("*.o\n")
    none = [".gitignore", "a.o", "b.o", "c.x"]
    assert tree.check() == (none if place in {"none", "missing"} else [".gitignore", "b.o", "c.x"])


def test_a_repositorys_configuration_is_not_read(tree: Tree, tmp_path: Path) -> None:
    """Design, workspace: it names programs to run, and anyone who sent the repository wrote it."""
    tree.write("a.o")
    (tree.home / "mine").write_text("*.o\n")
    tree.git("config", "core.excludesFile", os.fspath(tree.home / "mine"))
    tree.git("config", "core.fsmonitor", f"touch {tmp_path}/ran;:")
    with contextlib.chdir(tree.root):
        assert tree.ours() == ["a.o"]
    assert not (tmp_path / "ran").exists()


def test_a_workspace_in_a_repository_has_the_rules_above_it(tree: Tree) -> None:
    """Design, the outbox, listing: git's rules, from the root of the repository on."""
    tree.write("pkg/web/a.log", "pkg/web/b.o", "pkg/web/c.x", "pkg/web/d/c.x", "pkg/web/d/e.y")
    tree.write("pkg/web/out/kept", "pkg/web/out/x", "pkg/web/one", "pkg/web/d/one", "pkg/out/x")
    tree.git("add", "pkg/web/out/kept")
    tree.rules("*.log\n/pkg/web/one\n**/d/*.y\nout/\n")
    tree.rules("*.o\n!*.log\n/web/c.x\n", "pkg")
    (tree.root / ".git" / "info" / "exclude").write_text("/pkg/web/d/one\n")
    assert tree.check(tree.root / "pkg" / "web") == ["a.log", "d/c.x", "out/kept"]


def test_a_workspace_that_its_repository_leaves_out_is_listed(tree: Tree) -> None:
    """Design, the outbox, listing: anyone who works in such a folder wants to see it; git lists nothing."""
    tree.write("out/space/a", "out/space/b.log")
    tree.rules("out/\n*.log\n")
    tree.rules("*.log\n", "out/space")
    space = tree.root / "out" / "space"
    assert tree.gits(space) == []
    assert tree.ours(space) == [".gitignore", "a"]


def test_repositories_inside_are_listed_by_their_own_rules(tree: Tree) -> None:
    """Design, the outbox, listing: the model works in them too; git names each as one folder."""
    tree.write("in/a.o", "in/b.log", "in/sub/c.o", "in/sub/d", "x.o", "gone/in/x")
    tree.rules("*.log\ngone/\n")
    for name in ("in", "gone/in"):
        tree.git("init", "-q", at=tree.root / name)
    tree.rules("*.o\n", "in")
    tree.write("in/kept.o")
    tree.git("add", "-f", "kept.o", at=tree.root / "in")
    assert tree.check(tree.root / "in") == [".gitignore", "b.log", "kept.o", "sub/d"]
    inner = ["in/.gitignore", "in/b.log", "in/kept.o", "in/sub/d"]
    assert tree.ours() == [".gitignore", *inner, "x.o"]
    assert [path for path in tree.gits() if not path.startswith("in/")] == [".gitignore", "x.o"]


def test_a_folder_called_git_makes_no_repository(tree: Tree) -> None:
    """Design, the outbox, listing: git's rules go on below what is only called so."""
    tree.write("in/.git/x", "in/a.o", "in/b", "f/.git", "f/a.o", "f/b")
    tree.rules("*.o\n")
    assert tree.check() == [".gitignore", "f/b", "in/b"]


def test_submodules_and_work_trees_have_their_own_index(tree: Tree, tmp_path: Path) -> None:
    """Design, the outbox, listing: there `.git` is a file that names where it all lies."""
    tree.write("a.o", "b.o", "c")
    tree.rules("*.o\n")
    tree.git("add", "-f", "a.o", "c", ".gitignore")
    tree.git("commit", "-qm", "x")
    tree.git("worktree", "add", "-q", os.fspath(tmp_path / "other"))
    (tree.root / ".git" / "info" / "exclude").write_text("*.q\n")
    for name in ("new.o", "new.q", "new"):
        (tmp_path / "other" / name).write_text("x")
    assert tree.check(tmp_path / "other") == [".gitignore", "a.o", "c", "new"]
    main = Tree.__new__(Tree)
    main.home, main.root, main.variables = tree.home, tmp_path / "main", tree.variables
    tree.git("init", "-q", os.fspath(main.root))
    allowed = ("-c", "protocol.file.allow=always")
    main.git(*allowed, "submodule", "--quiet", "add", os.fspath(tree.root), "sub")
    main.write("sub/new.o", "sub/new")
    assert main.check(main.root / "sub") == [".gitignore", "a.o", "c", "new"]
    inner = ["sub/.gitignore", "sub/a.o", "sub/c", "sub/new"]
    assert main.ours() == [".gitmodules", *inner]


def test_what_is_tracked_and_gone_is_not_listed(tree: Tree) -> None:
    """Design, the outbox, listing: a listing is of what is there; git's index knows of more."""
    tree.write("a", "b")
    tree.git("add", ".")
    (tree.root / "a").unlink()
    assert tree.check() == ["b"]


def test_names_that_are_no_text_are_matched_byte_by_byte(tree: Tree) -> None:
    """Design, workspace: any name that a disk can hold is listed, by git's rules."""
    for name in (b"\xff.o", b"a\xfe", b"\xe4", b"\xc3\xa4", b"x\xffy"):
        (tree.root / os.fsdecode(name)).write_text("x")
    tree.rules(b"*.o\na?\n?\nx\xff*\n")
    assert tree.check() == sorted([".gitignore", "ä"])


def test_ignore_files_that_are_traps_are_passed_over(tree: Tree) -> None:
    """Design, workspace: nothing is waited for, no device is read, and no link in the tree is followed."""
    tree.write("a.o", "d/a.o", "e/a.o")
    (tree.home / "rules").write_text("*.o\n")
    (tree.root / ".gitignore").symlink_to(tree.home / "rules")
    os.mkfifo(tree.root / "d" / ".gitignore")
    (tree.root / "e" / ".gitignore").mkdir()
    exclude = tree.root / ".git" / "info" / "exclude"
    exclude.unlink()
    os.mkfifo(exclude)
    os.mkfifo(tree.root / ".git" / "index")
    (tree.home / ".config" / "git").mkdir(parents=True)
    (tree.home / ".config" / "git" / "ignore").symlink_to("/dev/zero")
    assert tree.ours() == ["a.o", "d/a.o", "e/a.o"]


def test_an_ignore_file_that_is_a_hole_is_not_read(tree: Tree) -> None:
    """Five gigabytes of nothing cost nothing; the listing is by plain rules, and says so."""
    tree.write("a.o", "b.log", "x", "d/.gitignore", "d/a.o")
    tree.rules("*.o\n")
    with (tree.root / "d" / ".gitignore").open("r+b") as file:
        file.truncate(5 * 2**30)
    found = tree.listing()
    assert set(found.files) == {".gitignore", "b.log", "d/.gitignore", "x"}
    assert found.unread[0].startswith("git's ignore rules, only plain ones: git can't list")
