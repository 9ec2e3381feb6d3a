"""Files in other encodings than UTF-8, through a session: what is shown is what is written back."""

import base64
import codecs
from pathlib import Path

import pytest

from codingagent import Space
from codingagent.agent.secrecy import Secrecy
from codingagent.editing import diff
from codingagent.model.events import FileFetched
from codingagent.model.observations import Seen
from codingagent.workspace.workspace import Workspace
from tests.helpers import plain_session
from tests.killing import settings_for
from tests.rows import each_row

ZH = "这个函数返回列表中最大的数值。\n如果最后一行是空的，就把它删除。\n默认值由用户在配置文件里设置。\n"
JA = "この関数はリストの中で最大の値を返します。\nデータベースに接続中にエラーが発生しました。\n"
JA += "最後の行が空の場合は削除する処理です。\n"
KO = "이 함수는 목록에서 가장 큰 값을 반환합니다.\n창을 닫은 후에 모든 변경 사항이 저장됩니다.\n"
RU = "Возвращает наибольшее значение из списка чисел.\nОшибка при подключении к базе данных.\n"


def answered(tmp_path: Path, files: dict[str, bytes], reply: str) -> tuple[str, Path, str]:
    """Return the results of an answer, the workspace, and the contents that the next request shows."""
    workspace = tmp_path / "workspace"
    for path, data in files.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_bytes(data)
    with plain_session(tmp_path, settings=settings_for("none")) as live:
        said = live.answer(reply)
        return said, workspace, live.contents()


def edit(path: str, old: str, new: str) -> str:
    return (
        f'[EDIT_FILE path="{path}"]\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n[/EDIT_FILE]\n'
    )


def create(path: str, text: str) -> str:
    return f'[CREATE_FILE path="{path}"]\n{text}[/CREATE_FILE]\n'


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("text", "codec"),
    [
        (ZH, "gbk"),
        (JA, "shift_jis"),
        (JA, "euc_jp"),
        (JA, "iso2022_jp"),
        (KO, "euc_kr"),
        (RU, "cp1251"),
        (RU, "koi8-r"),
        (RU, "utf-16"),
        (RU, "utf-32"),
        (RU, "utf-8-sig"),
    ],
)
def test_what_is_shown_is_what_is_written_back(tmp_path: Path, text: str, codec: str) -> None:
    """READ, EDIT and CREATE keep the encoding, the mark and the line ends."""
    text = text.replace("\n", "\r\n")
    *_, last = text.splitlines()
    files = {name: text.encode(codec) for name in ("read", "edited", "replaced")}
    reply = '[READ_FILE path="read"]\n' + edit("edited", last, f"x = 1  # {last} {last[:4]}")
    said, workspace, shown = answered(tmp_path, files, reply + create("replaced", f"{last}\ny\n"))
    assert "[FAILED]" not in said
    assert text.replace("\r\n", "\n") in shown
    edited = text.replace(last, f"x = 1  # {last} {last[:4]}")
    assert (workspace / "edited").read_bytes() == edited.encode(codec)
    assert (workspace / "replaced").read_bytes() == f"{last}\r\ny\r\n".encode(codec)


def test_an_edit_that_is_not_certain_changes_nothing_and_says_what_to_do(tmp_path: Path) -> None:
    """One line, and no letters to go by."""
    data = b"x = 1  # r\xe9\n"
    reply = edit("a.c", "x = 1  # ré", "x = 2  # 5 €") + create("a.c", "# 5 €\n")
    said, workspace, _ = answered(tmp_path, {"a.c": data}, reply)
    assert (workspace / "a.c").read_bytes() == data
    first, second = said.split("\n[FAILED]")
    assert "'a.c': The file is not UTF-8, and which encoding it has" in first
    assert "ask the user to name it in .editorconfig (charset = ...)" in first
    assert "DELETE_FILE before it makes it UTF-8" in second


@pytest.mark.parametrize(
    ("config", "inner", "is_told"),
    [
        ("[*]\ncharset = koi8-r\n", "", True),
        ("[*.{h,c}]\ncharset=koi8-r\n", "", True),
        ("root = true\n[src/**.c]\nCharset = KOI8-R\r\n[*.py]\ncharset = latin1\n", "", True),
        ("[*]\ncharset = koi8-r\n", "[/a.c]\ncharset = cp1251\n[*.h]\ncharset = koi8-r\n", False),
        ("[*]\ncharset = cp1251\n", "[a.c]\ncharset = koi8-r\n", True),
        ("[*]\ncharset = koi8-r\n", "root = true\n", False),
        ("[*.py]\ncharset = koi8-r\n", "", False),
    ],
)
def test_the_person_names_the_encoding_in_editorconfig(
    tmp_path: Path, config: str, inner: str, is_told: bool
) -> None:
    """The nearest file that says it counts, and in it the last section that fits."""
    data = "x = 1  # ё\n".encode("koi8-r")
    files = {".editorconfig": config.encode(), "src/a.c": data}
    files |= {"src/.editorconfig": inner.encode()} if inner else {}
    reply = edit("src/a.c", "x = 1  # ё", "x = 2  # щ")
    _, workspace, _ = answered(tmp_path, files, reply)
    written = (workspace / "src/a.c").read_bytes()
    assert (written == "x = 2  # щ\n".encode("koi8-r")) is is_told
    assert is_told or written == data


def test_a_character_that_the_encoding_lacks_is_named(tmp_path: Path) -> None:
    """An edit fails; a whole file becomes UTF-8 and says so, unless its own line would lie then."""
    cookie = "# coding: latin-1\n# é\n".encode("latin-1")
    files = {"a.py": cookie, "b.py": cookie, "c.py": cookie, "d.py": cookie}
    reply = (
        edit("a.py", "# é", "# 5 €")
        + create("b.py", "# 5 €\n")
        + create("c.py", "# coding: latin-1\n# 5 €\n")
        + create("d.py", "# coding: utf-8\n# 5 €\n")
    )
    said, workspace, _ = answered(tmp_path, files, reply)
    results = said.split("\n[")
    assert "'a.py': The file is iso8859-1, which has no '\\u20ac' (€): use other" in results[0]
    assert "it is UTF-8 now: it was iso8859-1, which has no €" in results[1]
    assert "'c.py': The file is iso8859-1, which has no '\\u20ac'" in results[2]
    assert "with utf-8 where its text names an encoding" in results[2]  # as d.py does
    assert "it is utf-8 now, as its own text says; it was iso8859-1" in results[3]
    assert [(workspace / path).read_bytes() for path in files] == [
        cookie,
        "# 5 €\n".encode(),
        cookie,
        "# coding: utf-8\n# 5 €\n".encode(),
    ]


def test_the_files_beside_it_tell_the_encoding(tmp_path: Path) -> None:
    """Those of its folder, and those of its ending anywhere."""
    polish = "Zażółć gęślą jaźń, powiedział właściciel łódki.\nSprawdź, czy hasło jest dłuższe.\n"
    data = "// zginęło\n".encode("iso8859-2")
    files = {"src/a.c": data, "lib/b.c": (polish * 2).encode("iso8859-2")}
    said, workspace, _ = answered(tmp_path, files, edit("src/a.c", "// zginęło", "// źródło"))
    assert (workspace / "src/a.c").read_bytes() == "// źródło\n".encode("iso8859-2"), said


def test_output_in_another_encoding_is_shown(tmp_path: Path) -> None:
    """What is no UTF-8 is replaced, never a fault."""
    reply = "[RUN_COMMAND]\nprintf 'a \\326\\320\\316\\304 b'\n[/RUN_COMMAND]\n"
    said, _, _ = answered(tmp_path, {"bom": codecs.BOM_UTF8}, reply)
    assert said.startswith("[OK] RUN_COMMAND")


@pytest.mark.parametrize(("text", "codec"), [(ZH, "gbk"), (JA, "shift_jis"), (RU, "cp1251"), (RU, "utf-16")])
def test_programs_and_the_screen_get_the_same_text(tmp_path: Path, text: str, codec: str) -> None:
    """In the results of the JSON protocol, and in the difference that the person sees."""
    (tmp_path / "workspace").mkdir(parents=True)
    (tmp_path / "workspace" / "a.txt").write_bytes(text.encode(codec))
    with Space(tmp_path / "workspace", sandbox="off") as space:
        run = space.run(operations=[{"type": "readFile", "path": "a.txt"}])
        assert [getattr(event, "content", event) for event in run.events] == [text]
    first, *_ = text.splitlines()
    changed = diff.between(text.encode(codec), f"{text}{first}\n".encode(codec))
    assert changed.lines[-1] == f"+{first}"
    assert (changed.added, changed.removed) == (1, 0)


@each_row("codec", ["gbk", "utf-16", "utf-16-le", "utf-16-be"])
def test_secrets_are_hidden_in_any_encoding(codec: str) -> None:
    secrecy = Secrecy("redact")
    text = f"数据库的密码: tiger4471x\n{ZH}api_token = 'q8Zk2mX7Lp4Rt9Wv3Ns6'\n"
    data = base64.b64encode(text.encode(codec)).decode()
    shown = secrecy.content(FileFetched("a.txt", data, "base64", len(data)))
    kept = base64.b64decode(shown).decode(codec)
    assert ("tiger4471x" in kept, "q8Zk2mX7Lp4Rt9Wv3Ns6" in kept) == (False, False)
    assert ZH in kept


def test_a_path_of_2000_folders_is_not_looked_up_2000_times(tmp_path: Path) -> None:
    """Each look goes through all folders above: their number squared took minutes."""
    asked: list[str] = []

    class Asked(Workspace):
        def read(self, path: str, *, whole: bool = True, to_write: bool = False) -> Seen:
            asked.append(path)
            return super().read(path, whole=whole, to_write=to_write)

    assert Asked(tmp_path).text("a/" * 2000 + "b", b"x") is not None
    assert asked[-1] == ".editorconfig"
    assert len(asked) < 200


CRLF = {".gitattributes": b"*.bat text eol=crlf\n", ".editorconfig": b"[*.cs]\nend_of_line = CRLF\n"}
OF_CS = {f"{name}.cs": b"class A {\r\n}\r\n" for name in "ADE"}


@each_row(
    ("files", "path", "source"),
    [
        (CRLF, "n.bat", ".gitattributes"),
        (CRLF, "tools/win/n.bat", ".gitattributes"),
        (CRLF, "B.cs", ".editorconfig"),
        (CRLF, "n.sh", ""),
        (OF_CS, "B.cs", "other files of .cs"),
        (OF_CS, "new/deep/B.cs", "other files of .cs"),
        (OF_CS, "B.txt", ""),
        (OF_CS | {"B.cs": b""}, "B.cs", "other files of .cs"),
        (OF_CS | {"old.cs": b"x\n"}, "B.cs", ""),
        ({"A.cs": b"a\r\n"}, "B.cs", ""),
        (OF_CS | {".gitattributes": b"* text=auto eol=lf\n"}, "B.cs", ""),
        (CRLF | {"sub/.gitattributes": b"*.bat -text\n"}, "sub/n.bat", ""),
        (CRLF | {"sub/.editorconfig": b"root = true\n"}, "sub/B.cs", ""),
        (OF_CS | {".editorconfig": b"[*]\nend_of_line = lf\n"}, "B.cs", ""),
    ],
)  # fmt: skip
def test_a_new_file_has_the_line_ends_of_its_project(
    tmp_path: Path, files: dict[str, bytes], path: str, source: str
) -> None:
    """What the project says comes before what its files show; what the answer says comes before both."""
    tmp_path /= str(len(list(tmp_path.iterdir())))
    said, workspace, _ = answered(tmp_path, files, create(path, "a\nb\n"))
    assert (workspace / path).read_bytes() == (b"a\r\nb\r\n" if source else b"a\nb\n")
    assert said.endswith(f"Note: its lines end in \\r\\n, as {source}") == bool(source)
    is_named = 'other files of .cs have \\r\\n; eol="crlf" writes that' in said
    assert is_named == (list(files) == ["A.cs"])
    lf = create(path, "a\nb\n").replace('"]', '" eol="lf"]')
    answered(tmp_path, {}, lf)
    assert (workspace / path).read_bytes() == b"a\nb\n"
