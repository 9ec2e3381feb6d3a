"""A repository that a command makes or changes: named, asked about, put back, undone."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from codingagent.checkpoints import repository
from codingagent.checkpoints.checkpointer import git_for
from codingagent.model.approval import Answer
from codingagent.model.journal_entries import ProtectedSettled
from codingagent.model.notices import Remark
from codingagent.model.settings import Settings
from codingagent.workspace.git_programs import named_by_git
from tests.checkpoints.test_protected_files import Person, sit_down, take
from tests.helpers import LiveSession
from tests.sandboxes import needs_bwrap

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="the commands are a POSIX shell's"),
    pytest.mark.skipif(shutil.which("git") is None, reason="undo needs git"),
]

GIT = "git -c user.name=a -c user.email=a@b -c init.defaultBranch=main"
# What git runs at the next `git status`, or commit, or checkout.
TRAP = 'printf "#!/bin/sh\\ntouch {mark}\\n"'

# Each leaves a repository in `at`; what it names; where git is asked afterwards.
WAYS = {
    "a new one": ("mkdir -p {at}; {git} init -q {at}", ".git/config"),
    "among tracked files": ("{git} init -q {at}", ".git/config"),
    "without files": ("{git} init -q {at}", ".git/config"),
    "a copy": ("{git} init -q t; {git} clone -q t {at} 2>&1; rm -rf t", ".git/config"),
    "a file that names another": (
        "mkdir -p {at} other; {git} init -q --separate-git-dir=$PWD/other/store {at}",
        ".git",
    ),
    "a link": ("{git} init -q o; mkdir -p {at}; ln -s $PWD/o/.git {at}/.git", ".git"),
    "moved there": ("{git} init -q o; mkdir -p {at}; mv o/.git {at}/.git", ".git/config"),
    "by hand": (
        (
            "mkdir -p {at}/.git/objects {at}/.git/refs; echo ref: refs/heads/m >{at}/.git/HEAD;"
            " printf '[core]\\nbare = false\\n' >{at}/.git/config"
        ),
        ".git/config",
    ),
    "a bare one": ("{git} init -q --bare {at}", "config"),
    "a bare one, each file ignored": (
        "{git} init -q --bare {at}; printf 'HEAD\\nconfig\\nhooks\\n' >{at}/.gitignore",
        "config",
    ),
}
PLACES = {
    "a new one": ("lib", "a/b/c", "node_modules/x", "build/deep/er"),
    "among tracked files": ("src",),
    "without files": ("none",),
    "a bare one": ("store", "src/store.git"),
}


def laid(home: Path, settings: Settings | None = None) -> LiveSession:
    live = sit_down(home, settings or Settings(sandbox="off"))
    for name in ("src", "none", "node_modules/left", "build"):
        (live.workspace / name).mkdir(parents=True)
    (live.workspace / "src" / "a.py").write_text("1\n")
    (live.workspace / "node_modules" / "left" / "p.js").write_text("1\n")
    (live.workspace / ".gitignore").write_text("node_modules/\nbuild/\n")
    return live


def command(line: str) -> str:
    return f'[CREATE_FILE path="w.sh"]\n{line}\n[/CREATE_FILE]\n[RUN_COMMAND]\nsh w.sh\n[/RUN_COMMAND]\n'


def springs(folder: Path, mark: Path) -> bool:
    """Asks git in a folder as the person does; tells whether a trap went off."""
    quiet = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    folder.mkdir(exist_ok=True)  # what held nothing else is gone
    for words in (("status",), ("checkout", "-q", "-b", "x"), ("alias",)):
        subprocess.run(["git", *words], cwd=folder, env=quiet, capture_output=True, check=False)
    return mark.exists()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("tier", ["off", "require"])
@pytest.mark.parametrize(("way", "at"), [(way, at) for way in WAYS for at in PLACES.get(way, ("lib",))])
def test_a_repository_that_a_command_makes_is_asked_about(
    tmp_path: Path, way: str, at: str, tier: str
) -> None:
    """Safety: it is named with what it runs, kept or put back; after a no, git runs nothing there."""
    if tier == "require":
        needs_bwrap()
    settings = Settings(sandbox=tier)  # type: ignore[arg-type]
    live = laid(tmp_path, settings)
    mark = tmp_path / "mark"
    line, named = WAYS[way]
    trap = f"{TRAP.format(mark=mark)} >$PWD/trap; chmod +x $PWD/trap"
    git_dir = f'g="$({GIT} -C {at} rev-parse --absolute-git-dir)"'
    values = 'config core.fsmonitor "$PWD/trap"', 'config alias.alias "!$PWD/trap"'
    set_ = "; ".join(f'git --git-dir="$g" {value}' for value in values) + '; mkdir -p "$g/hooks"'
    hook = 'cp -p trap "$g/hooks/post-checkout"; cp -p trap "$g/hooks/reference-transaction"'
    script = "\n".join((line.format(at=at, git=GIT), trap, git_dir, set_, hook))
    before = sorted(live.workspace.rglob("*"))
    person = Person(Answer("no"))
    after = take(live, command(script), person, settings=settings)
    assert len(person.asked) == 1, after.request()
    assert f"{at}/{named}" in person.asked[0].shown, person.asked[0].shown
    assert not springs(live.workspace / at, mark)
    assert set(before) <= set(live.workspace.rglob("*"))


def test_what_is_kept_is_named_and_undone(tmp_path: Path) -> None:
    """Safety: with a yes it stays and is told; undo takes it back like any change."""
    live = laid(tmp_path)
    mark = tmp_path / "mark"
    script = f"{GIT} init -q lib; git -C lib config core.fsmonitor 'touch {mark};false'"
    after = take(live, command(script), Person(Answer("yes")))
    assert "lib/.git/config" in after.request()
    assert any("lib/.git/config" in n.kept for n in after.notices if isinstance(n, ProtectedSettled))
    assert springs(live.workspace / "lib", mark)
    mark.unlink()
    with_undo(live)
    assert not (live.workspace / "lib" / ".git").exists()
    assert not springs(live.workspace / "lib", mark)


def with_undo(live: LiveSession) -> None:
    from tests.helpers import command_line

    done = command_line(live.home.root, "undo", live.session_id)
    assert done.returncode == 0, done.stderr


def test_a_change_of_one_that_was_there_is_put_back_to_the_byte(tmp_path: Path) -> None:
    """Safety: without a sandbox, the repository of the workspace is held against what it was, too."""
    live = laid(tmp_path)
    for at in (".", "src"):
        subprocess.run(["git", "init", "-q", live.workspace / at], check=True)
        (live.workspace / at / ".git" / "hooks" / "pre-push").write_text("mine\n")
    kept = {p: p.read_bytes() for p in live.workspace.rglob(".git/**/*") if p.is_file()}
    script = (
        "for d in . src; do git -C $d config core.fsmonitor x; rm $d/.git/hooks/pre-push;"
        " echo evil >$d/.git/hooks/post-merge; echo /tmp >$d/.git/commondir; done"
    )
    person = Person(Answer("no"))
    take(live, command(script), person)
    for name in (".git/config", "src/.git/hooks/pre-push", "src/.git/commondir"):
        assert name in person.asked[0].shown
    assert {p: p.read_bytes() for p in live.workspace.rglob(".git/**/*") if p.is_file()} == kept


def test_what_a_commit_changes_is_not_asked_about(tmp_path: Path) -> None:
    """No false alarm: objects, branches and the index run nothing."""
    live = laid(tmp_path)
    subprocess.run(["git", "init", "-q", live.workspace], check=True)
    person = Person()
    after = take(live, command(f"{GIT} add -A; {GIT} commit -qm x; {GIT} branch y; {GIT} gc -q"), person)
    assert person.asked == []
    assert ".git" not in after.results()


def test_the_look_into_what_is_ignored_is_bounded_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A huge ignored folder costs no more than the limit, and is named once a command has run."""
    monkeypatch.setattr(repository, "LOOK_LIMIT_FOLDERS", 20)
    live = laid(tmp_path)
    for number in range(50):
        (live.workspace / "node_modules" / f"d{number:02}").mkdir()
    after = take(live, command("true"), Person())
    said = " ".join(n.text for n in after.notices if isinstance(n, Remark))
    assert "node_modules/" in said
    assert "repositor" in said


def test_the_rights_of_an_owner_are_asked_about(tmp_path: Path) -> None:
    """Safety: a setuid or setgid bit that a command sets is named and taken back, sandbox or not."""
    live = laid(tmp_path)
    modes = ("4755", "2755", "6711")
    for mode in modes:
        (live.workspace / f"tool{mode}").write_text("x\n")
    person = Person(*[Answer("no")] * 6)
    lines = (f"chmod {m} tool{m}; cp -p tool{m} new{m}; chmod {m} new{m}" for m in modes)
    take(live, command("; ".join(lines)), person)
    told = " ".join(f"{each.shown} {each.reasons}" for each in person.asked)
    assert "its owner's rights" in told
    for mode in modes:
        assert f"tool{mode}" in told
        assert not (live.workspace / f"tool{mode}").stat().st_mode & 0o6000
        assert not (live.workspace / f"new{mode}").exists()


BARE = {"lib/HEAD": "ref: refs/heads/m", "lib/objects/x": "x", "lib/config": "x", "lib/refs/x": "x"}


@pytest.mark.parametrize("last", BARE)
def test_operations_that_make_a_repository_are_asked_about(tmp_path: Path, last: str) -> None:
    """Whatever file comes last; so is a later change of what it runs."""
    live = laid(tmp_path)
    person = Person(Answer("no"))
    names = [*(name for name in BARE if name != last), last]
    made = [f'[CREATE_FILE path="{name}"]\n{BARE[name]}\n[/CREATE_FILE]\n' for name in names]
    take(live, "".join(made), person)
    completes = last if last != "lib/config" else "lib/refs/x"
    assert person.asked[0].subject == completes
    assert not (live.workspace / completes).exists()


NAMED = {
    "core.hooksPath tools/hooks": "tools/hooks/pre-commit",
    "include.path ../own.cfg": "own.cfg",
    "core.fsmonitor ./tools/watch": "tools/watch",
    "filter.x.clean 'tools/clean --all'": "tools/clean",
    "diff.x.textconv 'sh tools/conv.sh'": "tools/conv.sh",
    "core.attributesFile tools/attributes": "tools/attributes",
    # As `git config --comment` writes it.
    'core.hooksPath "tools/hooks" # ours': "tools/hooks/pre-commit",
    "include.path ../tools/team": "tools/watch",  # the file that it includes names this one
    "a link among the hooks": "tools/check",
}


def configured(root: Path, setting: str) -> str:
    """Have the repository's configuration, or a link among its hooks, name a file; return its path."""
    (root / "tools").mkdir()
    (root / "tools" / "other").write_text("1\n")
    path = NAMED[setting]
    if "hooks" not in setting:
        (root / path).write_text("# 1\n")
    (root / "tools" / "team").write_text("[core]\nfsmonitor = tools/watch\n")
    key, _, value = setting.partition(" ")
    section, _, name = key.rpartition(".")
    with (root / ".git" / "config").open("a") as config:
        config.write('[branch "m"]\nremote = tools/other\n')
        config.write(f"[{section}]\n{name} = {value}\n" if section else "")
    if not section:
        (root / ".git" / "hooks" / "pre-push").symlink_to(f"../../{path}")
    return path


@pytest.mark.parametrize("setting", NAMED)
def test_what_the_configuration_of_a_repository_names_is_found(tmp_path: Path, setting: str) -> None:
    for name in ("objects", "refs", "hooks"):
        (tmp_path / ".git" / name).mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/m\n")
    path = configured(tmp_path, setting)
    named = {name.removeprefix("./") for name in named_by_git(tmp_path, git_for(tmp_path))}
    assert named & {path, str(Path(path).parent)}
    assert "tools/other" not in named


# What git starts, as a file of its settings has it; and a file that is run then, of "tools" and "clean".
RUN = {
    # Words as a shell reads them.
    '[filter "x"]\nclean = "\\"tools/my clean\\" %f"': "tools/my clean",
    '[filter "x"]\nclean = \\"$(git rev-parse --show-toplevel)/tools/clean\\" %f': "tools/clean",
    '[filter "x"]\nsmudge = "sh -c \'cd tools && ./clean\'"': "tools/clean",
    '[filter "x"]\nclean = sh \\\n  tools/clean': "tools/clean",
    '[filter "X"]\nclean = sh clean': "clean",
    '[filter "x"]\nprocess = python3 -m tools.new': "tools/new.py",
    '[filter "x"]\nclean = make -s clean': "Makefile",
    "[gpg]\nprogram = ./tools/clean": "tools/clean",
    "[core]\neditor = tools/clean --wait": "tools/clean",
    "[alias]\nst = !sh tools/clean": "tools/clean",
    '[diff "x"]\ntextconv = sh later': "later",
    "[trailer]\nx = later.sh": "later.sh",
    '[credential "https://x"]\nhelper = "!./tools/clean"': "tools/clean",
    '[includeIf "onbranch:x"]\npath = ../new.cfg': "new.cfg",
}
HOOKS = {
    "./tools/clean": "tools/clean",
    'ROOT=$(git rev-parse --show-toplevel)\n"$ROOT"/tools/clean || exit 1': "tools/clean",
    'cd "$(dirname "$0")/../.." && sh tools/clean': "tools/clean",
    "PATH=$PWD/tools:$PATH\nclean": "tools/clean",
    "[ -x tools/local ] && exec tools/local": "tools/local",
    "sh tools/chain.sh": "tools/clean",
    "python3 tools/script.py": "tools/helper.py",
    "exec pre-commit hook-impl --config=.pre-commit-config.yaml": "tools/clean",
    "npm test": "package.json",
    "node tools/main.js": "tools/part.js",
    "python3 tools": "tools/__main__.py",
    "test -x ./clean.sh || (cd tools && true)": "clean.sh",
    "node tools/lib.mjs": "lib/new.mjs",
    "python3 -c 'import os, new'": "new.py",
    "python3 <<X\nfrom tools import (\n new)\nX": "tools/new.py",
    "python3 -m json.tool": "json.py",
    "python3 tools/runs.py": "tools/clean",
    "perl tools/runs.pl": "tools/clean",
    "make check": "tools/rules.mk",
    "make -C tools check": "tools/Makefile",
    "npm run lint": "tools/clean",
    "pytest -q": "tests/conftest.py",
    "for each in a b; do ./tools/$each.sh; done": "tools/*.sh",
    "for each in tools/*.sh; do sh $each; done": "tools/chain.sh",
    "grep -q $(sh tools/clean) x": "tools/clean",
    "sed -i 's/a/b/;s/c/d/' x; tools/clean": "tools/clean",
    'grep x tools/clean && sed -i "s/ *$//;s/1/2/" tools/clean\ngit add tools/clean': "",
    "find tools -type f -exec {} \\;": "tools/clean",
    'find . -name "*.x" -execdir bash -e {} +': "**/*.x",
    "find tools -name 'c*' -print0 | xargs -0 -n 1 sh": "tools/clean",
    "run-parts --exit-on-error tools": "tools/**/*",
    'for f in "$ROOT"/tools/*; do [ -x "$f" ] && "$f" "$@"; done': "tools/clean",
    "for f in $(ls tools); do sh tools/$f; done": "tools/clean",
    'env -S "sh tools/clean"': "tools/clean",
    'exec "$(dirname "$0")/../../tools/clean" "$@"': "tools/clean",
    "tools/shebang": "tools/clean",
    "linked": "tools/clean",
    "wrapper --fix": "tools/clean",
    "lefthook run pre-commit": ".lefthook/pre-commit/new",
    # A name that is not there yet, and has no folder.
    "sh later": "later",
    'eval "$(cat later.txt)"': "later.txt",
    ". later <tools/list": "later",
    "make -f later.mk": "later.mk",
    "cd tools && ./later": "tools/later",
    "D=tools; $D/later": "tools/later",
    "${MAKE:-make} check": "Makefile",
    "python3 - <<X\nimport sys\nsys.path.insert(0, 'tools')\nimport later\nX": "tools/later.py",
    # All files of a list.
    'find tools -type f | while read -r f; do sh "$f"; done': "tools/clean",
    "git ls-files '*.x' | while read f; do . ./$f; done": "**/*.x",
    "while read f; do sh $f; done < <(ls tools/*)": "tools/clean",
    "git ls-files -co '*.x' | xargs -n1 sh": "**/*.x",
    "ls tools | xargs -I% sh tools/%": "tools/clean",
    "find tools -exec bash -c '. {}' \\;": "tools/clean",
    "for f in tools/*.x; do . $f; done": "tools/*.x",
    "cd tools; for f in *; do sh ./$f; done": "tools/clean",
    "make -f later check": "later",
    "for f in tools/*; do grep x $f; done": "",
    "find tools -name '*.py' -exec grep x {} +": "",
    "find tools -type f | xargs grep -l x": "",
    "ls tools | while read f; do grep x tools/$f; done": "",
    "# ./tools/clean\ntrue": "",
    "ruff check tools": "",
}


def laid_out(top: Path, folder: str = "") -> Path:
    """Make a repository, and files in a folder of it, which is returned."""
    subprocess.run(["git", "init", "-q", top], check=True)
    root = top / folder
    (root / "tools").mkdir(parents=True)
    for name, text in (
        ("clean", "1\n"),
        ("tools/clean", "1\n"),
        ("tools/my clean", "1\n"),
        ("tools/chain.sh", '. "$(dirname "$0")/clean"\n'),
        ("tools/script.py", "import helper\n"),
        ("tools/main.js", "const part = require('./part')\n"),
        ("tools/part.js", ""),
        ("tools/lib.mjs", "import x from '../lib/new.mjs'\n"),
        ("tools/runs.py", "import subprocess\nsubprocess.run(['sh', 'tools/clean'])\n"),
        ("tools/runs.pl", "do './tools/clean';\n"),
        ("Makefile", "include tools/rules.mk\n"),
        ("package.json", '{"scripts": {"lint": "sh tools/clean"}}\n'),
        ("tools/clean.sh", ""),
        ("tools/shebang", "#!/usr/bin/env -S perl tools/clean\n"),
        (".lefthook/pre-commit/new", "1\n"),
        (".pre-commit-config.yaml", "repos:\n- hooks:\n  - entry: tools/clean\n"),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def run_by_git(root: Path) -> set[str]:
    return {name.removeprefix("./") for name in named_by_git(root, git_for(root))}


@pytest.mark.parametrize("setting", RUN)
def test_what_git_starts_is_found(tmp_path: Path, setting: str) -> None:
    root = laid_out(tmp_path)
    before = run_by_git(root)
    with (root / ".git" / "config").open("a") as config:
        config.write(f"{setting}\n[init]\ndefaultBranch = clean\n")
    assert RUN[setting] in run_by_git(root) - before


@pytest.mark.parametrize("hook", HOOKS)
def test_what_a_hook_starts_is_found(tmp_path: Path, hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is there or not; of a script that it starts, and by PATH, too. Not what it is about."""
    root, programs = laid_out(tmp_path / "r"), tmp_path / "bin"
    programs.mkdir()
    (programs / "linked").symlink_to(root / "tools" / "clean")
    (programs / "wrapper").write_text(f"#!/bin/sh\nexec {root}/tools/clean\n")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    before = run_by_git(root)
    place = root / ".git" / "hooks" / "pre-commit"
    place.write_text(f"#!/bin/sh\n{hook}\n")
    assert run_by_git(root) == before
    place.chmod(0o755)
    found = run_by_git(root) - before
    assert found >= {HOOKS[hook]} if HOOKS[hook] else "tools/clean" not in found


def test_what_the_hooks_of_husky_start_is_found(tmp_path: Path) -> None:
    """Git runs those in `_`, which git ignores; they run what the person wrote above."""
    root = laid_out(tmp_path)
    (root / ".husky" / "_").mkdir(parents=True)
    (root / ".husky" / "_" / "pre-commit").write_text('#!/usr/bin/env sh\n. "$(dirname "$0")/h"\n')
    (root / ".husky" / "_" / "pre-commit").chmod(0o755)
    (root / ".husky" / "pre-commit").write_text("tools/clean\n")
    subprocess.run(["git", "config", "core.hooksPath", ".husky/_"], cwd=root, check=True)
    assert run_by_git(root) >= {".husky/_/h", ".husky/pre-commit", "tools/clean"}


@pytest.mark.parametrize("place", ["includeIf", "global", "variables", "worktree", "EDITOR", "XDG"])
def test_wherever_git_is_told_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """The workspace is a folder of the repository: paths count from the top."""
    top = tmp_path / "top"
    root = laid_out(top, "sub")
    assert not run_by_git(root) & {"tools", "tools/clean"}
    text = "[core]\nhooksPath = sub/tools\n"
    (tmp_path / "outside.cfg").write_text(text)
    with (top / ".git" / "config").open("a") as config:
        if place == "includeIf":
            config.write(f'[includeIf "gitdir:{top}/"]\npath = {tmp_path}/outside.cfg\n')
        elif place == "worktree":
            config.write("[extensions]\nworktreeConfig = true\n")
            (top / ".git" / "config.worktree").write_text(text)
    if place == "global":
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "outside.cfg"))
    elif place == "variables":
        for name, value in (("KEY", "core.hooksPath"), ("VALUE", "sub/tools")):
            monkeypatch.setenv(f"GIT_CONFIG_{name}_0", value)
        monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    elif place == "EDITOR":
        monkeypatch.setenv("EDITOR", "sub/tools/clean --wait")
    elif place == "XDG":
        monkeypatch.setenv("XDG_CONFIG_HOME", str(root / "tools"))
    assert run_by_git(root) & {"tools", "tools/clean", "tools/git/config"}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("setting", NAMED)
def test_what_the_configuration_of_a_repository_names_is_protected(tmp_path: Path, setting: str) -> None:
    """Safety: git runs it, whatever its name; by an operation and by a command, kept or put back."""
    live = laid(tmp_path)
    root = live.workspace
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    path = configured(root, setting)
    person = Person(Answer("no"), Answer("no"))
    body = f'[CREATE_FILE path="{path}" overwrite="true"]\nx\n[/CREATE_FILE]\n'
    take(live, body, person)
    assert "as the repository's configuration says" in " ".join(person.asked[0].reasons)
    take(live, command(f"mkdir -p tools/hooks; echo x >{path}; echo x >tools/other"), person)
    assert [asked.subject for asked in person.asked] == [path, path]
    assert not (root / path).exists() or (root / path).read_text() == "# 1\n"
