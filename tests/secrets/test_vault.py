"""Values are hidden under names wherever they stand, and come back byte for byte."""

import base64
import html
import itertools
import json
import random
import re
import shlex
import string
import unicodedata
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codingagent.secrets import detect
from codingagent.secrets.texts import decoded, mapped
from codingagent.secrets.vault import LITERAL, HiddenValue, Vault, Wishes
from tests.helpers import calls_of, cpu_below, grows_with
from tests.rows import each_row


def token(seed: int = 0) -> str:
    """Return a GitHub token that is none, made here so that no file holds one."""
    letters = random.Random(seed).choices(string.ascii_letters + string.digits, k=36)
    return "ghp_" + "".join(letters)


def vault(*values: str) -> Vault:
    made = Vault(b"k" * 32)
    for value in values:
        made.learn(value, "TEST")
    return made


def test_one_value_has_one_name_and_comes_back() -> None:
    """In any file of the session, on any line; another key gives another name."""
    ours = vault()
    text = f"a = 1\nGITHUB = '{token()}'\n"
    hidden = ours.hide(text, "a.py")
    assert token() not in hidden
    assert hidden.count("\n") == text.count("\n")
    (entry,) = ours.by_name.values()
    assert (entry.places, entry.kind, ours.news) == ({"a.py": 2}, "GITHUB", [entry])
    assert ours.hide(f"see {token()}.") == f"see {entry.name}."
    assert ours.put_back(hidden) == (text, [])
    assert ours.hide(hidden) == hidden
    assert Vault(b"j" * 32).hide(text) != Vault(b"k" * 32).hide(text)
    assert ours.counts(hidden) == {"GITHUB": 1}


_PIECES = st.one_of(
    st.integers(0, 5).map(token),
    st.sampled_from(["hunter22-x", "hunter22-xyz", 'q"uo\\te-1', "SECRET-GITHUB-", "SECRET-AB-7K2Q9D"]),
    st.text(string.ascii_letters + " \n\t\r\"'=:-_\\\x0b\u2028é", max_size=12),
)


@given(st.lists(_PIECES, max_size=12))
def test_every_text_comes_back_byte_for_byte(pieces: list[str]) -> None:
    """Whatever stands beside a value, also another value, or what looks like a name."""
    ours = vault("hunter22-x", "hunter22-xyz", 'q"uo\\te-1')
    text = "".join(pieces)
    hidden = ours.hide(text, "a.txt")
    assert hidden.count("\n") == text.count("\n")
    assert not any(entry.value in hidden for entry in ours.by_name.values() if entry.is_wide)
    back, faults = ours.put_back(hidden)
    assert back == text or faults
    assert ours.hide(hidden) == hidden or faults


def test_a_known_value_is_found_in_other_writings() -> None:
    """In base64 at every alignment and wrapped, in hexadecimal, URLs, JSON, HTML, of shells and of SQL."""
    value = "pa\"ss 'wörd/<x>&9$%"
    raw = value.encode()
    forms = [base64.b64encode(b"x" * n + raw + b"yz").decode() for n in range(4)]
    forms += [base64.urlsafe_b64encode(raw).decode(), raw.hex(), raw.hex().upper(), quote(value)]
    forms += [json.dumps(value), json.dumps([json.dumps({"a": value})]), quote(value).lower()]
    forms += [
        shlex.quote(value),
        re.sub("([^\\w%/])", r"\\\1", value),
        html.escape(value),
        value.replace("'", "''"),
    ]
    forms += [
        json.dumps(value, ensure_ascii=False)
        .replace("&", "\\u0026")
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
    ]
    forms += [value.replace("$", "$$")]
    forms += ["glued-" + base64.b64encode(raw).decode()]
    long = base64.b64encode(b"w" * 50 + raw + b"w" * 50).decode()
    forms += ["\n".join(long[i : i + 76] for i in range(0, len(long), 76))]
    for form in forms:
        ours = vault(value)
        hidden = ours.hide(f"<{form}>")
        assert "SECRET-TEST-" in hidden, form
        assert form not in hidden
        assert ours.put_back(hidden) == (f"<{form}>", [])
    assert vault("password1").hide("the password, assword1") == "the password, assword1"
    as_powershell_does = base64.b64encode(token().encode("utf-16-le")).decode()
    assert "SECRET-TEST-" in vault(token()).hide(as_powershell_does)


@pytest.mark.parametrize("codec", ["utf-8", "cp1252", "utf-16-le"])
def test_a_value_that_is_not_ascii_is_found_as_bytes_and_in_other_encodings(codec: str) -> None:
    """As `cat` and programs print a file of another encoding; it stays the same value."""
    ours = vault()
    value = "Geb\u00e4ude!Stra\u00dfe29x"
    name = ours.hide(f"THING={value}\n", ".env")[6:-1]
    data = value.encode(codec)
    seen = [ascii(value), repr(data), unicodedata.normalize("NFD", value)]
    seen += [data.replace(b"\0", b"").decode("utf-8", "replace")]
    seen += ["".join(chr(byte) if byte < 128 else f"\\{byte:03o}" for byte in data)]
    for text in seen:
        assert "ude!" not in ours.hide(f"is {text}")
        assert ours.known_in(text) == [name]
    assert ours.known_in(value) == [name]


def test_a_key_has_a_name_for_each_line() -> None:
    """So that the numbers of the lines after it stay true; its frame stays readable."""
    body = [base64.b64encode(random.Random(i).randbytes(48)).decode() for i in range(3)]
    ours = Vault(b"k" * 32, [HiddenValue(f"SECRET-KEY-00000{i}", "KEY", v, True) for i, v in enumerate(body)])
    text = "\n".join(["-----BEGIN X-----", *body, "-----END X-----", "after"])
    assert [line[:6] for line in ours.hide(text).split("\n")[1:4]] == ["SECRET"] * 3
    assert ours.put_back(ours.hide(text)) == (text, [])


@each_row(
    "alter",
    [
        str.lower,
        lambda name: name.replace("-", "_"),
        lambda name: name.replace("-", "\u2011"),
        lambda name: name[:-1],
        lambda name: f"{name}X",
        lambda name: name[:-2] + ("A" if name[-2] != "A" else "B") + name[-1],
        lambda name: name.partition("-")[2].partition("-")[2],
        lambda name: name.replace("SECRET-TEST", "SECRET-TSET"),
        lambda name: "".join(chr(ord(each) + 0xFEE0) for each in name),
        lambda name: f"{name[:-3]}\u200b{name[-3:]}",
    ],
)
def test_an_altered_name_is_reported_with_the_true_one(alter: Callable[[str], str]) -> None:
    """And so is one that stands for nothing; text that has no name in it passes."""
    ours = vault("hunter22-x")
    (name,) = ours.by_name
    for text in (f"a {alter(name)}.", f"{name} {alter(name)}"):
        _, (fault,) = ours.put_back(text)
        assert fault.true == name
        assert fault.written == alter(name) or not alter(name).isascii()
    fair = "secret token expires, SECRET_KEY_LENGTH, secrets-manager-client, SECRET_TEST_VALUE"
    assert ours.put_back(fair) == (fair, [])


def test_a_forged_name_comes_back_as_it_was() -> None:
    """A file may hold what looks like a name; it must not become a value, nor be refused."""
    ours, text = vault("hunter22-x"), "see SECRET-AB-7K2Q9D\n"
    assert ours.put_back(text)[1][0].written == "SECRET-AB-7K2Q9D"
    hidden = ours.hide(text, "a.md")
    assert f"SECRET-{LITERAL}-" in hidden
    assert ours.put_back(hidden) == (text, [])


def test_a_secret_file_shows_names_only_and_common_words_stay_elsewhere() -> None:
    """Every value of it is hidden in it, and where its lines are quoted; a short one nowhere else."""
    ours = vault()
    text = "PIN=1\nMODE=production\nKEY=x7!kd92jf0\n"
    hidden = ours.hide(text, ".env")
    assert "1\n" not in hidden
    assert "production" not in hidden
    assert "production" not in ours.hide("2| MODE=production", ".env")
    assert ours.hide("production 1") == "production 1"
    assert "kd92jf0" not in ours.hide("it is x7!kd92jf0")
    assert ours.put_back(hidden) == (text, [])


def test_a_short_value_is_hidden_beside_its_variable() -> None:
    """As outputs and programs write it; words, ports and small numbers of settings stay."""
    ours = vault()
    ours.know("PIN=4917\nexport CODE='q7!zk'\nPORT=8080\nWORD=main\nLEFT=12\n", ".env")
    for text in (
        "PIN=4917",
        ".env:3:export CODE='q7!zk'",
        '{"name": "PIN", "value": "4917"}',
        "PIN%3D4917&x=1",
        "<CODE>q7!zk</CODE>",
        "'PIN=4917\\nMODE=1'",
        "CODE         q7!zk",
    ):
        hidden = ours.hide(text)
        assert "4917" not in hidden and "q7!zk" not in hidden, hidden
        assert ours.put_back(hidden) == (text, [])
    for text in ("PORT=8080 WORD=main LEFT=12", "4917 q7!zk", "PIN=49170", "PIN\n4917"):
        assert ours.hide(text) == text
    ours.obey(Wishes(allow=(".env",)))
    assert ours.hide("PIN=4917") == "PIN=4917"


def test_what_the_person_says_counts() -> None:
    """A file or a name that they allow is shown, everywhere; a text that they name is hidden."""
    ours = vault()
    ours.obey(Wishes(allow=(".env",), hide=("Project Falcon",)))
    text = f"A={token()}\n"
    assert ours.hide(text, ".env") == text
    assert ours.hide(text) == text
    assert "Falcon" not in ours.hide("the Project Falcon")


def test_a_text_that_the_person_names_is_found_encoded_before_it_was_met() -> None:
    ours = vault()
    ours.obey(Wishes(hide=("Project Falcon\nSecond line",)))
    assert "UHJv" not in ours.hide(base64.b64encode(b"Project Falcon").decode())
    assert ours.hide("Second%20line") != "Second%20line"


def test_a_diff_is_hidden_in_its_lines() -> None:
    ours = vault()
    diff = f"@@ -1 +1 @@ {'Kq7z' * 16}\n-A={token(1)}\n+A={token(2)}\n B=1\n"
    hidden = ours.hide_diff(diff, ".env")
    assert hidden.startswith("@@ -1 +1 @@\n")
    assert [line[:1] for line in hidden.split("\n")] == [line[:1] for line in diff.split("\n")]
    assert "ghp_" not in hidden
    assert "B=1" not in hidden


def test_a_text_full_of_secrets_takes_linear_time() -> None:
    """Whatever somebody writes into a file: each line a secret of its own, or one and the same."""

    run = itertools.count(10)

    def work(size: int) -> None:
        ours, new = vault(), next(run)  # what is found in a text is cached
        hidden = ours.hide("".join(f'password = "x7-{n}-{new}kd92jf0"\n' for n in range(size)))
        ours.put_back(hidden)
        ours.hide(f"{new}{'password=' * size}")
        vault("Kd92jf0x7q").hide(f"{new}{'Kd92jf0x7q' * 20 * size}")

    grows_with(250, work)


def test_texts_of_any_value_are_changed_and_the_rest_stays() -> None:
    entry = HiddenValue("a", "b", "c", True, {"d": 1})
    assert mapped((entry, b"\xffa", 1, None), str.upper) == (
        HiddenValue("A", "B", "C", True, {"D": 1}),
        b"\xffA",
        1,
        None,
    )
    same = (entry.name, b"\xff")
    assert mapped(same, str) is same


def test_of_many_values_each_is_found_inside_a_word() -> None:
    """A file of made-up secrets must not turn the search off."""
    ours = vault(*(f"plum{number}&quiet" for number in range(400)))
    assert "plum7&quiet" not in ours.hide("see x-plum7&quiet@host")


@pytest.mark.parametrize("dots", ["…", "..."])
def test_what_dots_leave_of_a_known_value_is_found(dots: str) -> None:
    """Programs, and our own errors, cut long lines."""
    ours = vault(token())
    assert token()[:8] not in ours.hide(f"the line '{token()[:20]}{dots}")
    assert token()[:16] not in ours.hide(f"{token()[:30]}\n{token()[30:]}")
    others = f"{token()[:7]}{dots} {token()[:19]} {token()[:10]}x{dots}"
    assert ours.hide(others) == others


def test_a_large_file_is_searched_once_for_each_version() -> None:
    """17,000 secrets took 11 seconds: a file of 1 MB was searched anew wherever it was shown."""
    plain = "value = 1\n" * 1_000
    text = "".join(f"TOKEN_{n} = '{token(n)}'\n{plain}" for n in range(50))
    made = vault()

    def hide() -> None:
        for _ in range(2):
            assert made.hide(text, "a.py").count("SECRET-") == 50

    assert calls_of(detect._found, hide) == 1  # noqa: SLF001


def test_what_is_hidden_as_it_is_is_not_read_as_digits_of_others() -> None:
    """Each value of a file of settings was decoded from Base64 in four ways: a second for 1 MB."""
    text, made = "".join(f"NAME_{n}={token(n)[4:24]}\n" for n in range(50)), vault()
    assert calls_of(decoded, lambda: made.hide(text, ".env")) == 0
    within = base64.b64encode(token(1)[4:24].encode()).decode()
    assert within not in made.hide(f"{text}{within}\n")


def test_thousands_of_values_are_looked_for_where_one_may_begin() -> None:
    """Each form of each value, and each name of a variable, was searched for by itself."""
    text = "".join(f"KEY_{n}={token(n)}\n" for n in range(1_500))
    made = vault()
    with cpu_below(40):
        assert "ghp_" not in made.hide(text, ".env")
        for n in range(1_500):
            assert token(n) not in made.hide(f"the key {n} is {token(n)}\n")
