"""The mailbox: which files are letters, in which order, and that moving one never costs another."""

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from codingagent.errors import WorkError
from codingagent.model.observations import Hint, is_finished
from codingagent.storage import atomic_write
from codingagent.storage.mailbox import REPLY_LIMIT_BYTES, Mailbox
from tests.helpers import descriptors, line_from, python
from tests.rows import each_row

SESSION = "a1b2c3d4"


@pytest.fixture
def mailbox(tmp_path: Path) -> Mailbox:
    made = Mailbox(tmp_path)
    made.outbox.mkdir()
    made.inbox.mkdir()
    return made


def put(mailbox: Mailbox, name: str, data: bytes = b"reply", at_s: float = 1000) -> Path:
    path = mailbox.inbox / name
    path.write_bytes(data)
    os.utime(path, (at_s, at_s))
    return path


def names(mailbox: Mailbox) -> list[str]:
    return [letter.name for letter in mailbox.look()]


# --- looking ---------------------------------------------------------------------------------------


def test_letters_come_oldest_first(mailbox: Mailbox) -> None:
    """Specification 003, inbox file naming: in order of last-write time (oldest first)."""
    for name, at_s in (("a.txt", 3000), ("b.txt", 1000), ("c.md", 2000), ("z.txt", 1000.000001)):
        put(mailbox, name, at_s=at_s)
    assert names(mailbox) == ["b.txt", "z.txt", "c.md", "a.txt"]


def test_letters_of_one_instant_come_by_name(mailbox: Mailbox) -> None:
    """Design, inbox: the order is the same at every look."""
    for name in ("c.txt", "a.txt", "b.txt"):
        put(mailbox, name)
    assert names(mailbox) == ["a.txt", "b.txt", "c.txt"]


@pytest.mark.parametrize(
    "name", ["a.txt", "a.md", "A.TXT", "a.patch", "a.py", "two words.txt", "é.txt", "a.b.txt"]
)
def test_any_text_file_is_a_letter(mailbox: Mailbox, name: str) -> None:
    """Specification 003, inbox file naming: any .txt file; design, inbox: `.md` too."""
    put(mailbox, name)
    assert names(mailbox) == [name]


@each_row(
    "name", [*(".a.txt", "~a.txt", "a.txt.tmp", "a.txt.part", "a.txt.crdownload", "a.pdf", "txt", "a.txt~")]
)
def test_other_files_are_left_alone(mailbox: Mailbox, name: str) -> None:
    """Design, inbox: no document, nothing half written; hidden files belong to anyone who is writing them."""
    path = put(mailbox, name)
    assert names(mailbox) == []
    assert path.exists()


def test_what_is_no_plain_file_is_left_alone(mailbox: Mailbox) -> None:
    """Design, inbox: `.txt` directly in `inbox/`; a FIFO or a link is never opened."""
    (mailbox.inbox / "folder.txt").mkdir()
    (mailbox.inbox / "folder.txt" / "inner.txt").write_text("inner", "utf-8")
    (mailbox.inbox / "processed").mkdir()
    (mailbox.inbox / "processed" / "old.txt").write_text("old", "utf-8")
    os.mkfifo(mailbox.inbox / "fifo.txt")
    (mailbox.inbox / "link.txt").symlink_to("folder.txt/inner.txt")
    (mailbox.inbox / "loop.txt").symlink_to("loop.txt")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(mailbox.inbox / "s.txt"))
    assert names(mailbox) == []
    assert len(list(mailbox.inbox.iterdir())) == 6


WRITER = """
import sys
with open(sys.argv[1], "w") as file:
    file.write("half")
    file.flush()
    print("open", flush=True)
    sys.stdin.readline()
print("closed", flush=True)
sys.stdin.readline()
"""


def test_a_file_open_for_writing_is_known(mailbox: Mailbox) -> None:
    """Design, inbox: a file is taken when it is finished."""
    path = mailbox.inbox / "a.txt"
    with python(WRITER, str(path)) as process:
        assert process.stdin is not None
        assert line_from(process) == "open"
        (letter,) = mailbox.look()
        if letter.is_open is None:
            pytest.skip("this system does not tell who has a file open")
        assert letter.is_open
        assert not is_finished(letter, letter, Hint.APPEARED)
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert line_from(process) == "closed"
        (letter,) = mailbox.look()
        assert letter.is_open is False
        assert is_finished(letter, letter, Hint.APPEARED)


def test_an_empty_file_waits(mailbox: Mailbox) -> None:
    """Design, inbox: empty files wait."""
    put(mailbox, "a.txt", b"")
    (letter,) = mailbox.look()
    assert not is_finished(letter, letter, Hint.CLOSED)


def test_looking_leaves_no_descriptor(mailbox: Mailbox) -> None:
    """Design, inbox: it is looked at once a second, for days."""
    put(mailbox, "a.txt")
    before = descriptors()
    for _ in range(20):
        mailbox.look()
    assert descriptors() == before


# --- moving ----------------------------------------------------------------------------------------


def test_a_taken_letter_is_named_by_session_and_sequence(mailbox: Mailbox) -> None:
    """Design, nothing is lost: every reply is in the inbox or in processed/, bytes unchanged."""
    put(mailbox, "my answer.md", b"\xff\x00bytes")
    assert mailbox.take("my answer.md", SESSION, 7) == "a1b2c3d4_seq0007.md"
    assert mailbox.read_taken("a1b2c3d4_seq0007.md") == b"\xff\x00bytes"
    assert names(mailbox) == []


def test_taking_never_overwrites(mailbox: Mailbox) -> None:
    """Design, nothing is lost: what is in processed/ stays as it is."""
    taken = []
    for number in range(3):
        put(mailbox, "a.txt", f"reply {number}".encode())
        taken.append(mailbox.take("a.txt", SESSION, 1))
    assert len(set(taken)) == 3
    assert [mailbox.read_taken(name) for name in taken] == [b"reply 0", b"reply 1", b"reply 2"]


def test_taking_does_not_write_through_a_link(mailbox: Mailbox, tmp_path: Path) -> None:
    """Design, nothing is lost: a name that is there in any way is passed over."""
    mailbox.processed.mkdir()
    (mailbox.processed / "a1b2c3d4_seq0001.txt").symlink_to(tmp_path / "nothing")
    put(mailbox, "a.txt")
    assert mailbox.take("a.txt", SESSION, 1) == "a1b2c3d4_seq0001_2.txt"


@pytest.mark.parametrize("name", ["a.txt", "a.md", "A.TXT", "a.patch", "a.py", "A.Md"])
def test_a_taken_letter_is_found_again(mailbox: Mailbox, name: str) -> None:
    """Design, nothing is lost: a kill between the move and the journal costs no reply."""
    assert mailbox.find_taken(SESSION, 1) is None
    put(mailbox, name)
    taken = mailbox.take(name, SESSION, 1)
    assert mailbox.find_taken(SESSION, 1) == taken
    assert mailbox.find_taken(SESSION, 2) is None


def test_a_letter_taken_too_early_goes_back(mailbox: Mailbox) -> None:
    """Design, inbox: a file is taken when it is finished; a mistake there is undone."""
    put(mailbox, "a.txt", b"first")
    taken = mailbox.take("a.txt", SESSION, 1)
    put(mailbox, "a.txt", b"second")
    mailbox.put_back(taken, "a.txt")
    assert mailbox.read("a.txt") == b"second"
    assert mailbox.read("a_2.txt") == b"first"


def test_a_rejected_letter_has_its_reason_beside_it(mailbox: Mailbox) -> None:
    """Design, tag blocks: it is set aside in `inbox/rejected/` with the reason."""
    put(mailbox, "a.txt", b"first")
    assert mailbox.set_aside("a.txt", "it is a request") == "a.txt"
    assert (mailbox.rejected / "a.txt.reason").read_text("utf-8") == "it is a request\n"
    put(mailbox, "a.txt", b"second")
    assert mailbox.set_aside("a.txt", "again") == "a_2.txt"
    assert (mailbox.rejected / "a.txt").read_bytes() == b"first"
    assert (mailbox.rejected / "a_2.txt").read_bytes() == b"second"
    assert (mailbox.rejected / "a.txt.reason").read_text("utf-8") == "it is a request\n"


def test_a_rejected_letter_has_a_name_that_each_shell_reads_as_it_is(mailbox: Mailbox) -> None:
    """The command that takes it back names it: in quotes, too, PowerShell reads `$1`, cmd.exe `%PATH%`."""
    put(mailbox, "„a“ $1 `b` %PATH% c's.txt")
    assert mailbox.set_aside("„a“ $1 `b` %PATH% c's.txt", "it is a request") == "_a_ _1 _b_ _PATH_ c's.txt"


def test_a_rejected_letter_can_be_brought_back(mailbox: Mailbox) -> None:
    """Design, nothing is lost: `resume --accept FILE` executes it all the same."""
    put(mailbox, "a.txt", b"first")
    mailbox.set_aside("a.txt", "why")
    put(mailbox, "a.txt", b"other")
    assert mailbox.bring_back(mailbox.rejected / "a.txt") == "a_2.txt"
    assert mailbox.read("a_2.txt") == b"first"
    assert list(mailbox.rejected.iterdir()) == []


def test_an_answer_that_can_not_be_written_leaves_no_part(
    mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design, nothing is lost: a full disk is said; halves would only fill it more."""

    def fail(path: Path, data: bytes) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, f"No space for {len(data)}")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(WorkError, match="No space"):
        mailbox.drop(b"[DONE]", "a1b2c3d4", 1)
    assert list(mailbox.inbox.iterdir()) == []


def test_a_letter_that_is_gone_is_said(mailbox: Mailbox) -> None:
    """Design, command line: a fault is one line with what and where."""
    with pytest.raises(WorkError, match=r"a\.txt can't be read: No such file"):
        mailbox.read("a.txt")
    with pytest.raises(WorkError, match=r"a\.txt can't be moved"):
        mailbox.take("a.txt", SESSION, 1)
    assert mailbox.read_taken("a.txt") is None


def test_a_file_too_large_to_be_a_reply_is_not_read_whole(mailbox: Mailbox) -> None:
    """Design, nothing is lost: a huge file costs bounded memory and is told of."""
    with (mailbox.inbox / "a.txt").open("wb") as file:
        file.truncate(2**40)
    assert mailbox.read("a.txt") is None
    assert REPLY_LIMIT_BYTES < 2**40


# --- the outbox ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sequence", "digits"), [(1, "0001"), (9999, "9999"), (12345, "12345")])
def test_an_outbox_is_named_by_session_and_sequence(mailbox: Mailbox, sequence: int, digits: str) -> None:
    """Specification 003, outbox file naming: {sessionId}_seq{NNNN}.txt."""
    path = mailbox.outbox_path(SESSION, sequence)
    assert path == mailbox.outbox / f"a1b2c3d4_seq{digits}.txt"
    mailbox.write_beside(path, "text é\n")
    assert not path.exists()
    atomic_write.put_in_place(path)
    assert path.read_bytes() == "text é\n".encode()
    assert [entry.name for entry in mailbox.outbox.iterdir()] == [path.name]


def test_an_outbox_that_cannot_be_written_leaves_the_old_one(mailbox: Mailbox) -> None:
    """Specification 003, atomic writes: this prevents partial reads."""
    path = mailbox.outbox_path(SESSION, 1)
    mailbox.write_beside(path, "old")
    atomic_write.put_in_place(path)
    with pytest.raises(WorkError, match="can't be written"):
        atomic_write.put_in_place(path)
    (mailbox.outbox / f"{path.name}.tmp").mkdir()
    with pytest.raises(WorkError, match="can't be written"):
        mailbox.write_beside(path, "new")
    assert path.read_text("utf-8") == "old"


HELD = """
import ctypes, sys
from pathlib import Path
from codingagent.cli.inbox_loop import Inbox
from codingagent.storage.mailbox import Mailbox
class Kernel:
    class CreateFileW:
        def __new__(cls, path, access, shared, *_):
            return -1 if (access & 0x1_0000) and path.endswith("held.txt") else 5
    def CloseHandle(self, handle): pass
ctypes.WinDLL, ctypes.get_last_error = lambda *_, **__: Kernel(), lambda: 32
ctypes.c_void_p = type("Pointer", (), {"__init__": lambda self, n: setattr(self, "value", n)})
sys.platform = "win32"
box = Mailbox(Path(sys.argv[1]))
inbox = Inbox(box)
print([file.name for file in inbox.files()], inbox.complaints())
print(*(inbox.complaints(is_last_look=True) for _ in range(2)))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it imitates what Windows says")
def test_a_file_that_another_program_keeps_open_waits_and_delays_none(mailbox: Mailbox) -> None:
    """Windows lets nobody move it: that ended the wait."""
    for name in ("held.txt", "free.txt"):
        put(mailbox, name, b"x")
    words = [sys.executable, "-c", HELD, str(mailbox.inbox.parent)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    told = "held.txt in the inbox is still open in another program: close it there"
    assert done.stdout == f"['free.txt'] []\n['{told}'] []\n", done.stderr
