"""`copy` and `paste`, with a clipboard that is a program of the test's own."""

import base64
import io
import itertools
import json
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from codingagent.cli.stdio import be_utf8
from tests.cli.terminals import on_terminal
from tests.helpers import run_here
from tests.warm import start_command

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the stand-in is Linux's xclip"),
    pytest.mark.usefixtures("plain"),
]

CLIPBOARD = """#!/bin/sh
case " $* " in *" -o "*) cat "$CLIPBOARD_FILE" ;; *) cat > "$CLIPBOARD_FILE" ;; esac
"""


class LiveSession:
    """A home with one session that waits, and a clipboard."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clipboard = root / "clipboard"
        program = root / "bin" / "xclip"
        program.parent.mkdir()
        program.write_text(CLIPBOARD)
        program.chmod(0o755)
        self.variables = {
            **os.environ,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "DISPLAY": ":99",
            "CLIPBOARD_FILE": str(self.clipboard),
        }
        for name in ("WAYLAND_DISPLAY", "SSH_TTY", "SSH_CONNECTION", "TMUX"):
            self.variables.pop(name, None)
        done = self.run("new", "--no-wait", "a task")
        assert done.returncode == 0, done.stderr
        (self.request,) = (root / "outbox").glob("*.txt")

    def run(self, *words: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """Run the command without a terminal."""
        return run_here(*words, folder=self.root, stdin=stdin.encode())

    def on_terminal(self, *words: str, typed: str = "", **variables: str) -> tuple[int, str]:
        """Runs the command on a terminal; gives its exit status and what stood there."""
        ours, theirs = pty.openpty()
        with start_command(
            *words,
            cwd=self.root,
            env={**self.variables, "TERM": "xterm", **variables},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        ) as process:
            os.close(theirs)
            os.write(ours, typed.encode())
            seen = b""
            while True:
                try:
                    chunk = os.read(ours, 65536)
                except OSError:
                    break
                if not chunk:
                    break
                seen += chunk
        os.close(ours)
        return process.returncode, seen.decode()


@pytest.fixture(name="live")
def _live(tmp_path: Path) -> LiveSession:
    return LiveSession(tmp_path)


def test_copy_puts_the_request_on_the_clipboard(live: LiveSession) -> None:
    """The request that waits, whole, and its size in words."""
    status, seen = live.on_terminal("copy")
    assert status == 0, seen
    assert live.clipboard.read_text() == live.request.read_text()
    assert f"{live.request.name} is on the clipboard" in seen


def test_copy_prints_into_a_pipe(live: LiveSession) -> None:
    """Anyone who has another clipboard pipes the request there."""
    assert live.run("copy").stdout == live.request.read_text()


def test_what_a_program_reads_is_utf8_with_plain_line_ends() -> None:
    """Design, safety: on Windows a pipe has the code page, which lacks most characters."""
    read = io.BytesIO()
    stream = io.TextIOWrapper(read, encoding="cp1252", newline="\r\n")
    be_utf8(stream)
    stream.write("→ ü\n")
    stream.flush()
    assert read.getvalue() == "→ ü\n".encode()


def test_copy_in_parts_waits_between_them(live: LiveSession) -> None:
    """A chat that takes only so much gets one part after the other."""
    status, seen = live.on_terminal("copy", "--split", "4000", typed="\n" * 9)
    assert status == 0, seen
    assert "_part1of" in seen
    assert "this was all" in live.clipboard.read_text()


def test_parts_are_files_too(live: LiveSession) -> None:
    """Where there is no clipboard they are attached, or pasted by hand."""
    names = live.run("copy", "--split", "4000").stdout.split()
    assert len(names) > 1
    assert [Path(name).parent.name for name in names] == ["parts"] * len(names)
    assert "Don't answer yet" in Path(names[0]).read_text()
    assert "this was all" in Path(names[-1]).read_text()


def test_copy_over_ssh_asks_the_terminal(live: LiveSession) -> None:
    """OSC 52: the clipboard is that of the machine at which the person sits."""
    status, seen = live.on_terminal("copy", SSH_TTY="/dev/pts/0")
    assert status == 0, seen
    assert "\x1b]52;c;" in seen
    assert "was sent to your terminal's clipboard" in seen
    assert "if nothing arrives, your terminal does not let programs do this" in seen
    assert "is on the clipboard" not in seen
    assert not live.clipboard.exists()


_servers = itertools.count()


def within_tmux(live: LiveSession, command: str, terminal: str = "xterm-256color", settings: str = "") -> str:
    """Runs a command within tmux, on a terminal of that name; gives what came to the terminal."""
    program = shutil.which("tmux")
    if program is None:
        pytest.skip("there is no tmux here")
    (live.root / "tmux.conf").write_text(settings)
    # Each call has a server of its own: the last one may still be ending.
    server = f"tmux{next(_servers)}"
    tmux = [program, "-S", str(live.root / server), "-f", str(live.root / "tmux.conf")]
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*tmux, "new-session", f"{command}; echo the end; read line"],
        cwd=live.root,
        env={**live.variables, "DISPLAY": "", "SHELL": "/bin/sh", "TERM": terminal},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ):
        os.close(theirs)
        seen = ""
        while "the end" not in seen:
            assert select.select([ours], [], [], 60)[0], seen
            seen += os.read(ours, 65536).decode("utf-8", "replace")
        subprocess.run([*tmux, "kill-server"], check=True)
    os.close(ours)
    return seen


COPY = f"env SSH_TTY=/dev/pts/0 {sys.executable} -m codingagent copy"


@pytest.mark.parametrize("command", [COPY, COPY.partition(" ")[2].partition(" ")[2]])
def test_copy_in_tmux_reaches_the_terminal_around_it(live: LiveSession, command: str) -> None:
    """With tmux as it is by default, which passes on nothing that a program sends itself.

    So it is over ssh, and where there is no other clipboard.
    """
    seen = within_tmux(live, command)
    request = base64.b64encode(live.request.read_bytes()).decode()
    assert re.search(rf"\x1b\]52;c?;{re.escape(request)}", seen)
    assert "was sent to your terminal's clipboard" in seen


@pytest.mark.parametrize(
    ("terminal", "settings"), [("xterm-256color", "set -s set-clipboard off"), ("linux", "")]
)
def test_where_tmux_passes_nothing_on_it_is_said_what_to_set(
    live: LiveSession, terminal: str, settings: str
) -> None:
    """What is said, done to the letter, helps."""
    put = "from codingagent.cli.commands import clipboard; print(*clipboard.put('x'))"
    ours = f"env SSH_TTY=/dev/pts/0 {sys.executable} -c {shlex.quote(put)} > said"
    within_tmux(live, ours, terminal, settings)
    said = " ".join((live.root / "said").read_text().split())
    advice = re.findall(r"`tmux (set [^`]*)`", said)
    seen = within_tmux(live, COPY, terminal, "\n".join([settings, *advice, ""]))
    assert "\x1b]52;" in seen
    assert "was sent to your terminal's clipboard" in seen


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("copy", "--split", "10"), "it must be a whole number, 1000 or more"),
        (("copy", "00000000"), "no session 00000000"),
    ],
)
def test_what_cannot_be_copied_is_said_in_a_line(
    live: LiveSession, words: tuple[str, ...], complaint: str
) -> None:
    """Bad input gets one line: what, where, what to do instead."""
    done = live.run(*words)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_a_clipboard_the_remedy_is_said(live: LiveSession) -> None:
    """No traceback, and a way to do it all the same."""
    bare = {"DISPLAY": "", "PATH": "/usr/bin:/bin"}
    status, seen = live.on_terminal("copy", **bare)  # as in a container: the terminal may have one
    assert (status, "\x1b]52;c;" in seen, "install xclip" in seen) == (0, True, True)
    status, seen = live.on_terminal("copy", **bare, TERM="dumb")
    assert status == 1
    assert "attach the file itself" in seen
    # In the words of doctor, and of no library.
    nothing = {"DISPLAY": "", "TMUX": "", "SSH_TTY": "", "SSH_CONNECTION": "", "WAYLAND_DISPLAY": ""}
    doctor = run_here("doctor", "--json", folder=live.root, variables=nothing)
    found = {entry["name"]: entry for entry in map(json.loads, doctor.stdout.splitlines())}
    detail, remedy = (str(found["clipboard"][name]) for name in ("detail", "remedy"))
    said = " ".join(seen.split())
    assert said == f"codingagent: there is no clipboard: {detail.removeprefix('none: ')}; {remedy}"


def test_a_clipboard_that_takes_nothing_is_no_success(live: LiveSession) -> None:
    """Its program may fail without a word: a display that is gone."""
    (live.root / "bin" / "xclip").write_text("#!/bin/sh\nexit 1\n")
    status, seen = live.on_terminal("copy")
    assert status == 1
    told = "codingagent: xclip did not put the text on the clipboard; attach the file itself"
    assert " ".join(seen.split()).startswith(told)


def test_paste_saves_the_clipboard_in_the_inbox(live: LiveSession) -> None:
    """InboxFile by letter, and finished at once."""
    answer = "[MESSAGE]\nHé, “so”\n[/MESSAGE]\n"
    live.clipboard.write_text(answer)
    status, seen = live.on_terminal("paste")
    assert status == 0, seen
    (saved,) = (live.root / "inbox").glob("*.txt")
    assert saved.read_text() == answer


def test_paste_takes_what_is_piped(live: LiveSession) -> None:
    """Where there is no clipboard a pipe will do; the answer is then executed like any other."""
    done = live.run("paste", stdin='[CREATE_FILE path="a.txt"]\nhi\n[/CREATE_FILE]\n')
    assert done.returncode == 0, done.stderr
    assert live.run("resume", "--once").returncode == 0
    assert (live.root / "workspace" / "a.txt").read_text() == "hi\n"


def test_pasted_bytes_stay_as_they_are(live: LiveSession) -> None:
    """The inbox knows more encodings than one; what is piped is not forced into another."""
    data = '[CREATE_FILE path="a.txt"]\ncafé\n[/CREATE_FILE]\n'.encode("latin-1")
    assert run_here("paste", folder=live.root, stdin=data).returncode == 0
    (saved,) = (live.root / "inbox").glob("*.txt")
    assert saved.read_bytes() == data


def test_two_pastes_are_two_answers(live: LiveSession) -> None:
    """Nothing is overwritten."""
    for text in ("one", "two"):
        assert live.run("paste", stdin=text).returncode == 0
    assert {p.read_text() for p in (live.root / "inbox").glob("*.txt")} == {"one", "two"}


def test_nothing_and_the_request_itself_are_not_pasted(live: LiveSession) -> None:
    """The commonest slips: the copy did not happen, or the wrong text was copied."""
    for text, complaint in ((" \n", "nothing to paste"), (live.request.read_text(), "itself")):
        done = live.run("paste", stdin=text)
        assert done.returncode == 2
        assert complaint in done.stderr
    wide = live.request.read_text().encode("utf-16")  # a file that PowerShell 5.1 wrote
    assert run_here("paste", folder=live.root, stdin=wide).returncode == 2
    assert not list((live.root / "inbox").glob("*.txt"))


@contextmanager
def watching(live: LiveSession) -> Iterator[tuple["subprocess.Popen[str]", IO[str]]]:
    """Runs a `resume --clipboard`; gives it and what it prints."""
    words = ("resume", "--clipboard")
    pipe = subprocess.PIPE
    with start_command(*words, cwd=live.root, env=live.variables, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        yield process, process.stdout


def test_a_watched_clipboard_is_taken_from_only_what_answers_this_request(live: LiveSession) -> None:
    """`--clipboard` takes only text that has a block of ours for this session."""
    session_id = live.request.name[:8]
    with watching(live) as (process, out):
        seen = ""
        while "Waiting for the answer" not in seen:
            seen += out.readline()
        # The request is there by then: a turn is paste, send, copy.
        is_put = live.clipboard.read_text() == live.request.read_text()
        other = '[CREATE_FILE path="other.txt"]\nsomething else\n[/CREATE_FILE]\n'
        live.clipboard.write_text(other)
        live.clipboard.write_text(
            f'[REPLY session="{session_id}" sequence="1"]\n[DONE]\nall of it\n[/DONE]\n[END]\n'
        )
        rest = out.read()
    assert is_put
    assert process.returncode == 0
    assert "Done: all of it" in rest
    assert not (live.root / "workspace" / "other.txt").exists()


@pytest.mark.with_git
def test_a_second_request_has_a_short_one(live: LiveSession) -> None:
    """Design, outbox: complete always; a short companion is in outbox/short/ under the same name."""
    edit = '[EDIT_FILE path="b.txt" start_line="1" end_line="1"]\nx\n[/EDIT_FILE]\n'
    made = f'[CREATE_FILE path="a.txt"]\nhi\n[/CREATE_FILE]\n{edit}'
    live.run("paste", stdin=made)
    done = live.run("resume", "--once")
    assert done.returncode == 0, done.stderr
    (short,) = (live.root / "outbox" / "short").glob("*.txt")
    whole = live.root / "outbox" / short.name
    text = short.read_text()
    assert len(text) < len(whole.read_text()) / 3
    assert "[OK] CREATE_FILE: Created 'a.txt'" in text
    assert "added: a.txt" in text
    assert "Send only these again" in text
    assert "EDIT_FILE: File 'b.txt' not found" in text
    assert live.run("copy").stdout == text
    assert live.run("copy", "--whole").stdout == whole.read_text()
    # Saved into the inbox by mistake it is no more executed than the whole one.
    assert live.run("paste", stdin=f"{text}\n").returncode == 2
    (live.root / "inbox" / "short.txt").write_text(f"{text}\n")
    assert " rejected: " in live.run("resume", "--once").stdout


def test_a_setting_uses_the_clipboard_where_there_is_one(live: LiveSession) -> None:
    """`clipboard = "auto"`, as with the option; over ssh no word of what can't be read there.

    A request from before may have its answer on the clipboard, which is taken.
    """
    (live.root / "codingagent.toml").write_text('clipboard = "auto"\n', "utf-8")
    words = ["--home", str(live.root), "resume", "--sandbox", "off"]
    header = f'[REPLY session="{live.request.name[:8]}" sequence="1"]'
    live.clipboard.write_text(f'{header}\n[CREATE_FILE path="a"]\nx\n[/CREATE_FILE]\n[END]\n')
    # It is watched from the moment that the request is there, so that moment ends the wait.
    shown = on_terminal(words, 200, live.variables, [("same chat: copied", "\x04")])
    assert (live.root / "workspace" / "a").exists()
    assert "Sequence: 2\n" in live.clipboard.read_text()
    remote = {**live.variables, "SSH_TTY": "/dev/pts/9"}
    words = ["--home", str(live.root), "new", "--sandbox", "off", "another task"]
    shown = on_terminal(words, 200, remote, [("in any chat: copied", "\x04")])
    assert "\x1b]52;c;" in shown.raw
    assert "is not watched" not in shown.text


def test_a_terminal_with_a_clipboard_asks_once_whether_to_use_it(live: LiveSession) -> None:
    """The answer is kept among the person's own settings; from then on each request is copied."""
    own = live.root / "own"
    variables = {**live.variables, "XDG_CONFIG_HOME": str(own)}
    words = ["--home", str(live.root), "new", "--sandbox", "off", "another task"]
    asked = [("[y]es, [n]o:", "y\r"), ("in any chat: copied (~", "\x04")]
    assert on_terminal(words, 200, variables, asked).status == 0
    assert 'clipboard = "auto"' in next(own.rglob("*.toml")).read_text("utf-8")
    again = on_terminal(words, 200, variables, [("in any chat: copied (~", "\x04")])
    assert "[y]es" not in again.text


def test_a_request_that_another_terminal_wrote_is_put_there_too(live: LiveSession) -> None:
    with watching(live) as (process, out):
        seen = out.readline()
        while "is on the clipboard" not in seen:
            seen = out.readline()
        assert live.run("say", "one more word").returncode == 0
        for line in out:
            if "is on the clipboard" in line:
                break
        process.kill()
    assert live.clipboard.read_text() == live.request.read_text()
    assert "one more word" in live.clipboard.read_text()
