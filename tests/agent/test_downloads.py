"""Files as an answer: zips and patches as chats and people make them, single files as browsers save them."""

import io
import re
import shutil
import subprocess
import unicodedata
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from codingagent.model.approval import Answer
from codingagent.model.journal_entries import ApprovalAsked, TurnEnded
from codingagent.model.settings import Settings
from tests.helpers import LiveSession, Told, plain_session, watcher

CART = "def total(cart):\n    return sum(cart)\n\n\ndef size(cart):\n    return len(cart)\n"
NEW_CART = CART.replace("len(cart)", "len(set(cart))")
TAX = "RATE = 0.2\n"
BAT = "@echo off\r\necho one\r\n"
NAME = unicodedata.normalize("NFC", "café.md")
FILES = {
    "README.md": b"# Shop\n",
    "run.bat": BAT.encode(),
    "mixed.txt": b"one\r\ntwo\nthree\r\n",
    "mark.cs": b"\xef\xbb\xbfclass A {}\n",
    "old.py": b"OLD = 1\n",
    "index.html": b"<!doctype html>\n<html><p>one</p></html>\n",
    "logo.png": b"\x89PNG\r\n\x1a\n\0",
    "latin.txt": "Grüße aus Köln, schöne Tage\n".encode("latin-1"),
    NAME: b"one\n",
    "shop/__init__.py": b"",
    "shop/cart.py": CART.encode(),
    "tests/__init__.py": b"",
    "tests/test_cart.py": b"from shop.cart import total\n\n\ndef test_total():\n    assert total([1]) == 1\n",
}
SHOWN = ("README.md", "run.bat", "mark.cs", "old.py", "shop/cart.py", NAME)
Came = Mapping[str, bytes]
Made = Callable[[Path], Came]


def git(tree: Path, *words: str) -> bytes:
    named = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "core.autocrlf=false")
    return subprocess.run(("git", *named, *words), cwd=tree, check=True, capture_output=True).stdout


def edited(tree: Path) -> Path:
    """Change a file of the chat's copy, and add one."""
    (tree / "shop/cart.py").write_text(NEW_CART)
    (tree / "shop/tax.py").write_text(TAX)
    return tree


def zipped(*words: str, at: str = ".", before: Callable[[Path], object] = edited) -> Made:
    """Return what packs the chat's copy, or a folder above it, with the program zip."""

    def make(tree: Path) -> Came:
        before(tree)
        subprocess.run(("zip", "-q", "-r", "out.zip", *words), cwd=tree / at, check=True, timeout=60)
        return {"answer.zip": (tree / at / "out.zip").read_bytes()}

    return make


def packed(*entries: tuple[str, str | bytes], modes: Mapping[str, int] = {}) -> Made:
    def make(_: Path) -> Came:
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in entries:
                entry = zipfile.ZipInfo(name)
                entry.filename = name  # with the backslashes, too
                entry.external_attr = modes.get(name, 0o100644) << 16
                archive.NameToInfo.pop(name, None)  # it may come twice
                archive.writestr(entry, data)
        return {"answer.zip": made.getvalue()}

    return make


def unflagged(tree: Path) -> Came:
    """Return an archive with a name in UTF-8 that does not say so, as the Finder of macOS writes it."""
    name = unicodedata.normalize("NFD", NAME)
    (data,) = packed(("x" * len(name.encode()), "two\n"))(tree).values()
    return {"answer.zip": data.replace(b"x" * len(name.encode()), name.encode())}


def saved(**named: str | bytes) -> Made:
    names = {"copy": "cart (1).py", "cart": "cart.py", "index": "index.html", "init": "__init__.py"}
    given = {names.get(name, name.replace("__", ".")): each for name, each in named.items()}
    return lambda _: {name: each.encode() if isinstance(each, str) else each for name, each in given.items()}


def patch(name: str, *words: str, before: Callable[[Path], object] = edited) -> Made:
    def make(tree: Path) -> Came:
        before(tree)
        git(tree, "add", "-N", "shop")
        return {name: git(tree, "diff", *words)}

    return make


def mailed(tree: Path, *, head: bytes = b"") -> Came:
    git(edited(tree), "add", "-A")
    git(tree, "commit", "-qm", "Count each once: größer")
    mail = git(tree, "format-patch", "-1", "--stdout")
    return {"0001-count.patch": head + mail.partition(b"\n")[2] if head else mail}


def series(tree: Path) -> Came:
    edited(tree)
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "One")
    (tree / "shop/cart.py").write_text(NEW_CART.replace("sum(cart)", "sum(cart) + 0"))
    git(tree, "commit", "-qam", "Two")
    git(tree, "format-patch", "-2", "-o", "out")
    return zipped("0001-One.patch", "0002-Two.patch", at="out", before=lambda _: None)(tree)


def recursive(tree: Path) -> Came:
    before = tree.parent / "before"
    shutil.copytree(tree, before)
    edited(tree)
    words = ("diff", "-ruN", "-x", ".git", "before", "tree")
    made = subprocess.run(words, cwd=tree.parent, capture_output=True, check=False)
    return {"changes.diff": made.stdout}


def grown(tree: Path) -> Came:
    """Return the whole project in one folder, as it comes from a site, with what tools left in it."""
    edited(tree)
    for name in ("node_modules/a/b.js", "shop/__pycache__/cart.cpython-313.pyc"):
        (tree / name).parent.mkdir(parents=True)
        (tree / name).write_bytes(b"\0x")
    (tree / "old.py").unlink()
    shutil.make_archive(str(tree.parent / "out"), "zip", tree.parent, "tree")
    return {"tree.zip": (tree.parent / "out.zip").read_bytes()}


def person(changes: str, text: str) -> Callable[[Made], Made]:
    """Return what has the person change a file after the chat was shown it."""

    def of(make: Made) -> Made:
        def made(tree: Path) -> Came:
            came = make(tree)
            (tree.parent / "home/workspace" / changes).write_text(text)
            return came

        return made

    return of


OUR_TEXT = '[DELETE_FILE path="old.py"]\n[MESSAGE]\nhello\n[/MESSAGE]\n'
CHANGED = {"shop/cart.py": NEW_CART, "shop/tax.py": TAX}
ONLY_CART = {"shop/cart.py": NEW_CART}
THEIRS = CART.replace("sum", "max")
ROWS: dict[str, tuple[Made, Mapping[str, str | bytes | None], str, str]] = {
    # what came, what changes, what the model is told, what the person is asked or told
    "changed files": (zipped("shop/cart.py", "shop/tax.py"), CHANGED, "OK", ""),
    "from within": (zipped("."), CHANGED, r"left out, as tools make them: \d+ files \(.git\)", ""),
    "in one folder": (zipped("tree/shop", at=".."), CHANGED, "tree/ of the zip", ""),
    "whole, in a folder": (
        grown,
        CHANGED,
        r"already exactly so: .README.md.*and 8 more.*\(.git, __pycache__, node_modules\)",
        "",
    ),
    "below two folders": (
        packed(("mnt/data/shop/cart.py", NEW_CART), ("mnt/data/shop/tax.py", TAX)),
        CHANGED,
        "mnt/data/ of the zip",
        "",
    ),
    "a folder's name is no proof": (packed(("x/shop/tax.py", TAX)), {"x/shop/tax.py": TAX}, "", ""),
    "one known file, below a new folder": (
        packed(("proj/old.py", "OLD = 2\n"), ("proj/lib/new.py", TAX)),
        {"old.py": "OLD = 2\n", "lib/new.py": TAX},
        "proj/ of the zip",
        "",
    ),
    "a name that many projects have": (
        packed(("web/README.md", "# Web\n"), ("web/new.py", TAX)),
        {},
        "",
        "may be of web/ or of the folder above it",
    ),
    "that of a branch": (
        packed(("p-main/README.md", "# Shops\n"), ("p-main/lib/new.py", TAX)),
        {"README.md": "# Shops\n", "lib/new.py": TAX},
        "p-main/ of the zip",
        "",
    ),
    "a new package": (
        packed(("web/a.py", TAX), ("web/b.py", TAX)),
        {"web/a.py": TAX, "web/b.py": TAX},
        "",
        "",
    ),
    "macOS": (
        packed(("t/.DS_Store", b"\0\xff"), ("__MACOSX/t/._a", b"\0"), ("t/shop/cart.py", NEW_CART)),
        ONLY_CART,
        "OK",
        "",
    ),
    "dots first": (packed(("./shop/cart.py", NEW_CART)), ONLY_CART, "OK", ""),
    "CRLF by the packer": (zipped("-l", "shop/cart.py", "shop/tax.py", "README.md"), CHANGED, "OK", ""),
    "LF over CRLF": (
        packed(("run.bat", "@echo off\necho two\n")),
        {"run.bat": BAT.replace("one", "two")},
        "OK",
        "",
    ),
    "one file's own CRLF": (
        packed(("go.bat", BAT), ("shop/cart.py", NEW_CART)),
        {"go.bat": BAT, **ONLY_CART},
        "OK",
        "",
    ),
    "mixed ends, unchanged": (packed(("mixed.txt", FILES["mixed.txt"])), {}, "OK", ""),
    "mixed ends": (packed(("mixed.txt", "1\r\ntwo\n")), {"mixed.txt": "1\r\ntwo\n"}, "OK", "never shown"),
    "a mark that is new": (packed(("README.md", "\ufeff# Shops\n")), {"README.md": "# Shops\n"}, "OK", ""),
    "a mark that goes": (packed(("mark.cs", "class B {}\n")), {"mark.cs": "\ufeffclass B {}\n"}, "OK", ""),
    "another encoding": (
        packed(("latin.txt", "Grüße aus Köln, schöne Tage!\n")),
        {"latin.txt": "Grüße aus Köln, schöne Tage!\n".encode("latin-1")},
        "OK",
        "never shown",
    ),
    "deleted by a list": (
        packed(("shop/cart.py", NEW_CART), ("DELETED.txt", "# gone\n- old.py\n")),
        {**ONLY_CART, "old.py": None},
        "OK. DELETE_FILE",
        "",
    ),
    "deleted by a list in a folder": (
        packed(("p/shop/cart.py", NEW_CART), ("p/deleted_files.txt", "p/old.py\n")),
        {**ONLY_CART, "old.py": None},
        "OK. DELETE_FILE",
        "",
    ),
    "a list of paths from the root": (
        packed(("p/shop/cart.py", NEW_CART), ("p/DELETED.txt", "old.py\r\n")),
        {**ONLY_CART, "old.py": None},
        "OK. DELETE_FILE",
        "",
    ),
    "documentation with examples": (
        packed(("docs/tags.md", OUR_TEXT)),
        {"docs/tags.md": OUR_TEXT},
        "Created 'docs/tags.md'$",
        "",
    ),
    "a list with a wrong name": (
        packed(("shop/cart.py", NEW_CART), ("DELETED.txt", "older.py\n")),
        ONLY_CART,
        "older.py was not used: no such file",
        "",
    ),
    "an answer beside": (
        packed(("shop/cart.py", NEW_CART), ("answer.txt", OUR_TEXT)),
        {**ONLY_CART, "old.py": None},
        "OK. MESSAGE",
        "",
    ),
    "only an answer": (packed(("answer.txt", OUR_TEXT)), {"old.py": None}, "OK. MESSAGE", ""),
    "a base that is stale": (
        person("shop/cart.py", THEIRS)(zipped("shop/cart.py")),
        {"shop/cart.py": THEIRS},
        "was changed since the chat saw it",
        "",
    ),
    "packed along unchanged": (
        person("README.md", "# Ours\n")(zipped(".", "-x", "*.git/*")),
        {**CHANGED, "README.md": "# Ours\n"},
        "as the chat was shown it",
        "",
    ),
    "never shown": (
        packed(
            ("tests/test_cart.py", "def test_a():\n    assert [1] == [1], 'it is a list of one'\n\n\n#\n")
        ),
        {"tests/test_cart.py": "def test_a():\n    assert [1] == [1], 'it is a list of one'\n\n\n#\n"},
        "OK",
        "was never shown 'tests/test_cart.py'",
    ),
    "shrinks": (packed(("shop/cart.py", "x = 1\n")), {"shop/cart.py": "x = 1\n"}, "OK", "would shrink from"),
    "no text": (
        packed(("new.png", b"\x89PNG\0")),
        {"new.png": b"\x89PNG\0"},
        "OK",
        "new.png' is no text, and has 5 b",
    ),
    "a zip in a zip": (packed(("a.zip", b"PK\3\4\0")), {"a.zip": b"PK\3\4\0"}, "OK", "a.zip' is no text"),
    "names alone": (packed(("cart.py", NEW_CART)), ONLY_CART, "cart.py was taken as shop/cart.py", ""),
    "names alone, two fit": (packed(("__init__.py", "x = 1\n")), {}, "fits shop/__init__.py and tests", ""),
    "backslashes": (packed(("shop\\cart.py", NEW_CART)), ONLY_CART, "OK", ""),
    "outside": (
        packed(("../evil.py", TAX), ("shop/cart.py", NEW_CART)),
        ONLY_CART,
        "evil.py was not used: REJECTED: Path is outside",
        "",
    ),
    "absolute": (packed(("/tmp/evil.py", TAX)), {}, "REJECTED: Path is outside", ""),
    "a link": (
        zipped("-y", "link", "shop/cart.py", before=lambda tree: (edited(tree) / "link").symlink_to("/etc")),
        ONLY_CART,
        "link was not used: it is a symbolic link",
        "",
    ),
    "to be executed": (
        packed(("go.sh", "ls\n"), modes={"go.sh": 0o100755}),
        {"go.sh": "ls\n"},
        "not made executable",
        "",
    ),
    "a name that is not flagged": (unflagged, {NAME: "two\n"}, "OK", ""),
    "protected": (
        packed((".git/hooks/x", "a\n"), ("Makefile", "a:\n")),
        {"Makefile": "a:\n"},
        "",
        "Makefile",
    ),
    "lines left out": (
        packed(("shop/cart.py", "def total(cart):\n    return 1\n\n# ... rest unchanged ...\n")),
        {},
        "would replace lines",
        "",
    ),
    "twice alike": (packed(("shop/cart.py", NEW_CART), ("shop/cart.py", NEW_CART)), ONLY_CART, "OK", ""),
    "twice": (packed(("shop/cart.py", NEW_CART), ("shop/cart.py", CART)), {}, "", "holds a file twice"),
    "nothing in it": (packed(("a/", b"")), {}, "", "no file in the zip"),
    "encrypted": (zipped("-P", "x", "shop/cart.py"), {}, "", "is encrypted, or packed"),
    "half of it": (lambda tree: {"a.zip": zipped("shop")(tree)["answer.zip"][:-30]}, {}, "", "no zip file"),
    "a tar": (lambda _: {"a.txt": b"\x1f\x8b\x08\0"}, {}, "", "a packed file"),
    "a patch in a zip": (lambda tree: packed(("c.patch", patch("a")(tree)["a"]))(tree), CHANGED, "OK", ""),
    "patches in a zip": (
        series,
        {**CHANGED, "shop/cart.py": NEW_CART.replace("sum(cart)", "sum(cart) + 0")},
        "OK",
        "",
    ),
    "a patch beside files": (
        lambda tree: packed(("shop/cart.py", NEW_CART), ("c.diff", patch("a")(tree)["a"]))(tree),
        ONLY_CART,
        "left out, as whole files are beside it: c.diff",
        "",
    ),
    "git diff": (patch("changes.patch"), CHANGED, "OK", "another format"),
    "git diff, CRLF": (
        lambda tree: {"a.diff": patch("a")(tree)["a"].replace(b"\n", b"\r\n")},
        CHANGED,
        "OK",
        "",
    ),
    "git diff, no prefix": (patch("a.patch", "--no-prefix"), CHANGED, "OK", ""),
    "diff -ruN": (recursive, CHANGED, "OK", ""),
    "a mail of git": (mailed, CHANGED, "OK", ""),
    "a mail with its headers": (
        lambda tree: mailed(tree, head=b"Received: from a\nMessage-ID: <a@b>\n"),
        CHANGED,
        "OK",
        "",
    ),
    "a patch that deletes": (
        patch("a.patch", before=lambda tree: (tree / "old.py").unlink()),
        {"old.py": None},
        "OK. DELETE_FILE",
        "",
    ),
    "a patch of another base": (
        person("shop/cart.py", "def total():\n    pass\n")(patch("a.patch", "shop/cart.py")),
        {"shop/cart.py": "def total():\n    pass\n"},
        "FAILED. EDIT_FILE",
        "",
    ),
    "one file": (saved(cart=NEW_CART), ONLY_CART, "OK", ""),
    "a second copy": (saved(copy=NEW_CART), ONLY_CART, "OK", ""),
    "two copies alike": (saved(cart=NEW_CART, copy=NEW_CART), ONLY_CART, "OK", ""),
    "two copies": (saved(cart=NEW_CART, copy=CART), {}, "", "came twice, and differs"),
    "two files": (
        saved(cart=NEW_CART, tax__py=f"# shop/tax.py\n{TAX}"),
        {**ONLY_CART, "shop/tax.py": f"# shop/tax.py\n{TAX}"},
        "OK",
        "",
    ),
    "a document of the workspace": (saved(README__md="# Shops\n"), {"README.md": "# Shops\n"}, "OK", ""),
    "a page of the workspace": (saved(index="<html>2"), {"index.html": "<html>2"}, "OK", "shrink"),
    "a name that nothing has": (saved(other__py=TAX), {}, "", "no file of the workspace is called"),
    "a name that two have": (saved(init="x = 1\n"), {}, "", "fits shop/__init__.py and tests"),
    "an answer under another name": (
        saved(answer__log=f"[REPLY]\n{OUR_TEXT}[END]\n"),
        {"old.py": None},
        "OK",
        "",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_files_are_what_they_mean_or_are_asked_about(name: str, tmp_path: Path) -> None:
    make, changes, says, asks = ROWS[name]
    asked, notices = list[str](), list[Told]()

    def ask(question: ApprovalAsked) -> Answer:
        asked.extend(question.question.reasons)
        return Answer("yes")

    tree = tmp_path / "tree"
    for root in (tree, tmp_path / "home/workspace"):
        for path, data in FILES.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "base")
    with plain_session(tmp_path / "home", settings=Settings(context=0), person=watcher(notices, ask)) as live:
        live.conversation.requests.say("", dict.fromkeys(SHOWN, True))
        live.conversation.write_due()
        came = make(tree)
        before = _files(tmp_path / "home/workspace")
        for each, data in came.items():
            live.drop(data, each)
        live.conversation.take(*came)
        results = live.results() if live.conversation.session.sequence > 1 else ""
        records = live.home.sessions.records(live.session_id)
        told = [path for each in records if isinstance(each, TurnEnded) for path in each.changed]
        kept = [each for each in _inbox(live) if not each.name.endswith(".reason")]
        assert {data for each in kept for data in _unpacked(each)} >= {*came.values()}
    expected = {**FILES, **changes}
    for path in [path for path, data in expected.items() if data is None]:
        del expected[path]
    found = _files(tmp_path / "home/workspace")
    assert sorted(told) == sorted({path for path, _ in {*before.items()} ^ {*found.items()}})
    assert found == {
        path: each.encode() if isinstance(each, str) else each for path, each in expected.items()
    }
    assert re.search(says, results, re.DOTALL), results
    screen = "\n".join([*asked, *map(str, notices)])
    assert asks in screen, screen
    # Nothing is lost in silence: it was done, the model is told, or the person.
    assert changes or "FAILED" in results or "Objection" in screen or live.rejected() or says == "OK"


def _files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def _inbox(live: LiveSession) -> list[Path]:
    return [path for path in live.home.mailbox.inbox.rglob("*") if path.is_file()]


def _unpacked(path: Path) -> list[bytes]:
    found = [path.read_bytes()]
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            found += [archive.read(name) for name in archive.namelist() if b"codingagent" in archive.comment]
    return found
