"""The whole loop in one terminal on another machine: a real sshd, on this machine's loopback."""

import getpass
import os
import pty
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.test_amend import Terminal, request
from tests.cli.test_cli import DONE, run
from tests.cli.test_waiting_line import MAKE, PROMPT, answer, enter, paste, taken
from tests.helpers import REPOSITORY

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
SSH, KEYGEN = shutil.which("ssh"), shutil.which("ssh-keygen")

pytestmark = pytest.mark.skipif(
    not (SSHD and SSH and KEYGEN), reason="no sshd here: apt install openssh-server"
)


@contextmanager
def served(folder: Path) -> Iterator[list[str]]:
    """Runs an sshd of its own; gives the words of a client that logs in there."""
    assert SSHD and SSH and KEYGEN
    for name in ("host", "user"):
        made = [KEYGEN, "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(made, check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/user.pub\nStrictModes no\nPermitRootLogin yes\n"
    )
    words = [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            said = ""
            while "listening" not in said:
                if not (line := server.stderr.readline()):
                    pytest.skip(f"sshd does not start here: {said.strip()}")
                said += line
            own = ["-F", "none", "-p", str(port), "-i", str(folder / "user"), "-tt"]
            known = ["StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR"]
            options = [word for option in known for word in ("-o", option)]
            yield [SSH, *own, *options, f"{getpass.getuser()}@127.0.0.1"]
        finally:
            server.terminate()


@contextmanager
def terminal(client: list[str], home: Path, *words: str) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    remote = [
        *("env", f"PYTHONPATH={REPOSITORY}", "COLUMNS=200", "TERM=xterm-256color"),
        *(f"XDG_{name}_HOME={os.environ[f'XDG_{name}_HOME']}" for name in ("STATE", "CONFIG")),
        *(sys.executable, "-m", "codingagent", "--home", str(home), *words),
    ]
    with subprocess.Popen(
        [*client, *remote], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        try:
            yield Terminal(process, ours)
        finally:
            process.kill()
            process.wait()
            os.close(ours)


def test_a_whole_session_over_ssh(tmp_path: Path) -> None:
    """Three turns by pasting, words, an undo; each request goes to the terminal's own clipboard."""
    home = tmp_path / "home"
    assert run(home, "new", "--no-wait", "--sandbox", "off", "write notes") == 0
    again = MAKE.replace("notes.txt", "more.txt")
    answers = [answer(home, n, text) for n, text in enumerate((MAKE, again, DONE), start=1)]
    with served(tmp_path) as client, terminal(client, home, "resume", "--clipboard") as asked:
        asked.says(PROMPT)
        asked.says("\x1b]52;c;")
        asked.says("paste this in any chat: copied")
        paste(asked, answers[0])
        asked.says("Request 2")
        asked.says(PROMPT, 2)
        enter(asked, "keep the licence")
        asked.says("Request 2 was rewritten")
        assert "keep the licence" in request(home, 2)
        paste(asked, answers[1])
        asked.says("Request 3")
        asked.says(PROMPT, 3)
        enter(asked, "/undo")
        asked.says("Undid turn 2")
        assert not (home / "workspace" / "more.txt").exists()
        asked.says("Request 3 was rewritten")
        paste(asked, answers[2])
        asked.says("Done: All is well.")
        asked.leaves()
    assert taken(home) == [text.encode() for text in answers]
