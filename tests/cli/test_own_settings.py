"""The person's own settings: `config set`, `unset` and `edit`, and what they rank below and above."""

from pathlib import Path

import pytest

from codingagent.storage import homes
from tests.cli.test_cli import run
from tests.helpers import run_here
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("plain")


@pytest.fixture(name="home")
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    home = tmp_path / "home"
    assert run(home, "new", "--no-wait", "a task") == 0
    return home


def row(home: Path, capsys: pytest.CaptureFixture[str], key: str) -> list[str]:
    """The value of a setting and where it comes from, as `config` shows them."""
    capsys.readouterr()
    assert run(home, "config") == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith(key))
    return line.split()[1:]


def test_own_settings_rank_below_the_home_and_those_of_a_workspace_above(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defaults, the person's, the home's, the person's for the workspace, environment."""
    assert run(home, "config", "set", "diff", "full") == 0
    assert row(home, capsys, "diff")[:3] == ["full", "your", "settings"]
    (home / "codingagent.toml").write_text('diff = "never"\n', "utf-8")
    assert row(home, capsys, "diff")[:2] == ["never", "codingagent.toml"]
    assert run(home, "config", "set", "diff", "short", "--here") == 0
    assert row(home, capsys, "diff")[:4] == ["short", "your", "settings", "here"]
    monkeypatch.setenv("CODINGAGENT_DIFF", "full")
    assert row(home, capsys, "diff")[:2] == ["full", "environment"]
    monkeypatch.delenv("CODINGAGENT_DIFF")
    assert run(home, "config", "unset", "diff", "--here") == 0
    assert row(home, capsys, "diff")[:2] == ["never", "codingagent.toml"]
    assert not list((home / "workspace").iterdir())


@pytest.mark.usefixtures("home")
def test_what_is_kept_for_a_folder_counts_in_its_first_session(tmp_path: Path) -> None:
    """`config set … --here` before the first `new --here`, too: it means the current folder."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("shown.py", "other.py"):
        (folder / name).write_text("total = 1\n", "utf-8")
    kept = {"always_attach": "shown.py", "never_choose": "other.py"}
    for key, value in kept.items():
        assert run_here("config", "set", key, value, "--here", folder=folder).returncode == 0
    done = run_here("new", "--here", "--no-wait", "mend total", folder=folder)
    assert done.returncode == 0
    (request,) = (folder / ".codingagent" / "outbox").glob("*.txt")
    text = request.read_text("utf-8")
    assert "The user attaches shown.py" in text
    assert "--- other.py ---" not in text


def test_a_relative_folder_for_settings_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG base directories: what it names would depend on the current folder, here a clone."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("config", "", "."):
        monkeypatch.setenv("XDG_CONFIG_HOME", name)
        assert homes.settings_path() == tmp_path / ".config" / "codingagent" / "settings.toml"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_comments_stay(home: Path, tmp_path: Path, end: str) -> None:
    """A file that the person wrote is theirs, also where a link leads to it."""
    path, kept = homes.settings_path(), tmp_path / "dotfiles.toml"
    path.parent.mkdir(parents=True)
    path.symlink_to(kept)
    path.write_text(f"# mine{end}command_timeout = 40  # slow tests{end}zzz = 1{end}", newline="")
    assert run(home, "config", "unset", "zzz") == 0
    assert run(home, "config", "set", "command_timeout", "50") == 0
    assert run(home, "config", "set", "pass_env", "A", "B") == 0
    lines = ("# mine", "command_timeout = 50  # slow tests", 'pass_env = ["A", "B"]', "")
    assert kept.read_bytes() == end.join(lines).encode()


def test_add_keeps_what_is_set(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A remedy must not undo an earlier one; for one workspace it begins with what counts there."""
    path = homes.settings_path()
    path.parent.mkdir(parents=True)
    path.write_text('show = [\n  "~/a", # mine\n]\n', "utf-8")
    for words in (("show", "~/b,~/c"), ("show", "~/b"), ("pass_env", "A"), ("pass_env", "B", "--here")):
        assert run(home, "config", "add", *words) == 0
    assert "says otherwise" not in capsys.readouterr().err
    assert "".join(row(home, capsys, "show")).startswith("~/a,~/b,~/cyour")
    assert "# mine" in path.read_text("utf-8")
    assert "".join(row(home, capsys, "pass_env")).startswith("A,Byour")
    assert 'pass_env = ["A"]' in path.read_text("utf-8")
    assert run(home, "config", "add", "pass_env", "C") == 0
    assert "but here your settings here says otherwise" in capsys.readouterr().err


@each_row(
    "words",
    [
        ("add", "diff", "full"),
        ("add", "zzz", "1"),
        ("add", "zzz", "1", "--here"),
        ("set", "zzz", "1"),
        ("set", "home", "/tmp"),
        ("set", "command_timeout", "soon"),
        ("set", "command_timeout"),
        ("unset", "zzz"),
        ("show",),
        ("set", "workspace", "/x", "--here"),
    ],
)
def test_what_can_not_be_set_changes_nothing(
    home: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    """One line that says what, where, and what to do instead."""
    capsys.readouterr()
    assert run(home, "config", *words) == 2
    assert capsys.readouterr().err.startswith("codingagent: ")
    assert not homes.settings_path().exists()


def test_a_workspace_that_holds_them_does_not_obey_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An answer there could have written them: `policy`, above all."""
    workspace = tmp_path / "ws"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(workspace / ".config"))
    path = homes.settings_path()
    path.parent.mkdir(parents=True)
    path.write_text('policy = "permissive"\n', "utf-8")
    home = tmp_path / "home"
    assert run(home, "new", "--no-wait", "--workspace", str(workspace), "a task") == 0
    monkeypatch.setenv("CODINGAGENT_WORKSPACE", str(workspace))
    assert row(home, capsys, "policy")[:2] == ["standard", "default"]
    assert run(home, "config", "set", "diff", "full", "--here") == 2


def test_a_workspace_around_or_below_the_settings_can_write_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither settings nor prompts are the person's alone there."""
    from codingagent.storage.homes import is_out_of_reach

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "codingagent" / "prompts").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    reached = {".": False, "codingagent": False, "codingagent/prompts": False, "other": True}
    for name, is_out in reached.items():
        assert is_out_of_reach(tmp_path / name) is is_out, name
