"""Which parts of files go into a request: Design, the outbox, context chosen within a token budget."""

from hypothesis import given
from hypothesis import strategies as st

from codingagent.context.choose import Chosen, choose, imports
from codingagent.context.rank import look, query, rank
from codingagent.model.observations import PastCommit


def chosen(
    task: str, texts: dict[str, str], budget: int, log: tuple[PastCommit, ...] = (), check: str = ""
) -> list[Chosen]:
    asked = query(task, check)
    ranked = rank(asked, [look(asked, path, text) for path, text in texts.items()], log)
    return choose(asked, ranked, texts, budget, log)


def functions(*names: str, lines: int = 10) -> str:
    return "import os\n\n\n" + "\n\n".join(f"def {name}():\n" + f"    {name} = 1\n" * lines for name in names)


def shown(part: Chosen, text: str) -> str:
    lines = text.split("\n")
    return "\n".join(lines[at - 1] for at in part.shown)


def test_a_small_folder_goes_whole() -> None:
    """Files that come to less than the budget go whole, in the order of the choice."""
    texts = {"b.py": functions("beta"), "a.py": functions("alpha"), "c.txt": "unlike\n"}
    parts = chosen("beta", texts, 2_000)
    assert all(part.is_whole for part in parts)
    assert parts[0].file.path == "b.py"
    assert {part.file.path for part in parts} == set(texts)


def test_of_a_large_file_go_the_blocks_that_the_task_is_about() -> None:
    """With its imports; blocks that the task does not speak of only where there is room."""
    names = [f"name{number}" for number in range(60)]
    text = functions(*names[:30], "wanted", *names[30:], lines=20)
    [part] = chosen("Make wanted() faster", {"a.py": text}, 600)
    assert not part.is_whole
    assert part.tokens <= 600
    body = shown(part, text)
    assert "def wanted():\n" + "    wanted = 1\n" * 19 in body
    assert body.startswith("import os\n")


def test_a_gap_that_costs_less_than_its_mark_is_shown() -> None:
    """A line like `… lines 24-26: f` is longer than a short function."""
    wanted = [functions(name, lines=20).removeprefix("import os\n\n\n") for name in ("beta", "beta2")]
    for between, is_shown in (
        ("def f():\n    pass\n\n", True),
        ("def f():\n    return [1, 2, 3, 4, 5, 6]\n\n", False),
    ):
        text = "\n".join((wanted[0], between, wanted[1], functions(*map("x{}".format, range(60)))))
        [part] = chosen("beta and beta2", {"a.py": text}, 300)
        assert ("def f():" in shown(part, text)) is is_shown


def test_the_best_blocks_of_all_files_come_before_the_rest_of_the_best_file() -> None:
    """One order over the blocks of all files."""
    fillers = [f"filler{number}" for number in range(40)]
    texts = {
        "pay.py": functions(*fillers[:20], "pay_invoice", *fillers[20:]),
        "mail.py": functions(*fillers[:20], "send_invoice", *fillers[20:]),
    }
    parts = chosen("pay_invoice must call send_invoice", texts, 700)
    assert {part.file.path for part in parts} == set(texts)
    for part in parts:
        assert "_invoice():" in shown(part, texts[part.file.path])


def test_a_definition_and_an_option_that_the_task_names_come_first() -> None:
    """Whole words and code-like words, wherever they stand: `Cart.total`, --dry-run."""
    fillers = [f"total{number}" for number in range(40)]
    texts = {
        "a.py": functions(*fillers, lines=20),
        "b.py": functions(*[f"x{number}" for number in range(30)], "subtotal", lines=20),
        "c.py": functions(*fillers, lines=20) + "\nadd_option('--dry-run')\n",
    }
    [first, *_] = chosen("The total of a total: `subtotal` is wrong", texts, 900)
    assert "def subtotal():" in shown(first, texts[first.file.path])
    parts = chosen("total: --dry-run does nothing", texts, 900)
    assert any("--dry-run" in shown(part, texts[part.file.path]) for part in parts)


def test_what_a_long_task_writes_as_code_is_shown_with_its_members() -> None:
    """A class is more than its first lines, a call has arguments, and an acronym begins a name."""
    fillers = [f"total{number}" for number in range(60)]
    members = "".join(f"    def part{number}(self):\n" + "        self.a = 1\n" * 9 for number in range(3))
    texts = {
        "a.py": functions(*fillers, lines=20),
        "b.py": functions(*fillers) + f'\nclass JSONReader:\n    """Read."""\n\n{members}',
        "c.py": functions(*fillers, "isoparse", lines=20),
    }
    long = " ".join(f"{name} wants {name[::-1]};" for name in fillers)
    task = f"Mend the total: {long} isoparse('2020') fails, and JSONReader loses file(s)."
    parts = {part.file.path: shown(part, texts[part.file.path]) for part in chosen(task, texts, 1_200)}
    assert members in f"{parts['b.py']}\n"
    assert "def isoparse():\n" + "    isoparse = 1\n" * 19 in parts["c.py"]


def test_a_file_that_is_named_for_another_reason_takes_a_third() -> None:
    """A header that promises, what the check runs; not where the named definition is, nor alone."""
    declared = "".join(f"int box_item_{n}(struct box *b, int value);\n\n" for n in range(400))
    others = "".join(
        f"int box_item_{n}(struct box *b)\n{{\n    return b->v[{n}];\n}}\n\n" for n in range(300)
    )
    body = "".join(f"    if (b->slot[{n}])\n        b->slot[{n}]--;\n" for n in range(60))
    texts = {
        "box.h": f"{declared}int box_release(struct box *b);\n",
        "box.c": f"{others}int box_release(struct box *b)\n{{\n{body}    return 0;\n}}\n",
        "tests/box_test.c": others.replace("box_item", "box_item_test"),
    }

    def tokens(task: str, check: str = "") -> dict[str, int]:
        parts = chosen(task, texts, 6_000, check=check)
        return {part.file.path: part.tokens for part in parts}

    found = tokens("box_release() returns 0, box.h promises 1", "make tests/box_test.c")
    assert 1_500 < found["box.h"] <= 2_000
    assert 1_500 < found["tests/box_test.c"] <= 2_000
    assert tokens("box_release() in box.c returns 0, not 1")["box.c"] > 3_000
    assert tokens("Mend box.h")["box.h"] > 4_000


def test_the_pieces_of_a_named_definition_come_in_their_order() -> None:
    """Of one that is too long the beginning goes."""
    body = "".join(f"    step_{n} = {n}  # {'item ' * (n % 40 == 39)}\n" for n in range(400))
    text = functions(*[f"name{n}" for n in range(30)]) + f"\n\ndef wanted():\n{body}"
    [part] = chosen("Items of wanted()", {"a.py": text}, 1_500)
    first = text[: text.index("def wanted")].count("\n") + 1
    within = [line - first for line in part.shown if line >= first]
    assert within == list(range(len(within)))
    assert len(within) > 80


def test_tests_and_documents_have_a_share() -> None:
    """As often as past commits changed them with sources; more if asked for, less of a small budget."""
    log = tuple(PastCommit("x", ("a.py", "tests/test_a.py")) for _ in range(10))
    texts = {
        "a.py": functions(*[f"wanted{n}" for n in range(200)]),
        "tests/test_a.py": functions(*[f"test_wanted{n}" for n in range(200)]),
    }

    def tokens(task: str, log: tuple[PastCommit, ...], budget: int = 8_000) -> int:
        sizes = {part.file.path: part.tokens for part in chosen(task, texts, budget, log)}
        assert sum(sizes.values()) > 0.9 * budget
        return sizes.get("tests/test_a.py", 0)

    never = tuple(PastCommit("x", ("a.py",)) for _ in range(10))
    assert tokens("wanted", never) == 0
    assert 1_800 < tokens("wanted", log) <= 2_000
    assert 150 < tokens("wanted", log, 4_000) <= 250
    rarely = (*log[:1], *never)
    assert tokens("wanted", rarely) < 400
    assert 1_600 < tokens("wanted, with a test", rarely) <= 1_760


def test_of_a_changelog_that_the_task_names_the_top_goes() -> None:
    """New entries go there, whatever words of the task old releases hold."""
    old = "".join(f"## 1.{n}\n\n" + "- resolve of urls is mended\n" * 9 for n in range(60))
    texts = {
        "CHANGES.md": f"# Changes\n\n## Pending\n\n- new\n\n{old}",
        "url.py": functions("resolve", lines=900),
    }
    parts = chosen("Mend resolve() of urls, and add a line to CHANGES.md", texts, 4_000)
    assert {part.file.path: part.shown[:9] for part in parts}["CHANGES.md"] == tuple(range(1, 10))
    assert all(part.tokens < 1_000 for part in parts if part.file.path == "CHANGES.md")


def test_a_line_between_two_that_are_shown_is_shown_if_its_mark_costs_more() -> None:
    """Also of imports that stand among conditions."""
    heads = "".join(f'#ifdef X{n}\n#include "a{n}.h"\n' for n in range(20))
    text = heads + "".join(f"int f{n}(void)\n{{\n" + "\tg();\n" * 30 + "}\n\n" for n in range(9))
    [part] = chosen("Make f7() faster", {"a.c": text}, 600)
    assert {*range(2, 40)} <= {*part.shown}
    assert not part.is_whole


def test_the_top_of_a_changelog_goes_where_commits_keep_one() -> None:
    """New entries stand there; what a task says of old ones does not count. Its ending may change."""
    old = "".join(f"## 1.{n}\n\n- wanted mended\n\n" for n in range(100))
    texts = {"CHANGES.md": f"# Changes\n\n## Unreleased\n\n- new\n\n{old}"}
    texts["a.py"] = functions(*[f"wanted{n}" for n in range(90)])
    log = tuple(PastCommit("x", ("a.py", "CHANGES.rst")) for _ in range(10))
    # Also where its lines are long, and many are not released yet.
    texts["CHANGES.md"] = texts["CHANGES.md"].replace("- new\n", f"- new {'word ' * 40}\n" * 60)
    for kept, is_shown in ((log, True), ((), False)):
        parts = {part.file.path: part.shown for part in chosen("wanted", texts, 3_000, kept)}
        assert (3 in parts.get("CHANGES.md", ())) is is_shown


def test_imports_are_whole_and_only_those_of_the_file() -> None:
    """Each to its closing bracket; none from inside a function."""
    text = "import a\nfrom b import (\n    c,\n    d,\n)\n" + "x = 1\n" * 40
    lines = (text + "def f():\n    import e\nimport {\n  g\n} from 'h'\n").split("\n")
    assert imports(lines) == {1, 2, 3, 4, 5, 48, 49, 50}


def test_no_budget_no_files() -> None:
    """`--context 0` adds nothing; a file that can't be read is passed over."""
    assert chosen("alpha", {"a.py": functions("alpha")}, 0) == []
    asked = query("alpha")
    ranked = rank(asked, [look(asked, "a.py", "alpha"), look(asked, "b.py", "alpha")])
    parts = choose(asked, ranked, {"b.py": "alpha\n"}, 1_000)
    assert [part.file.path for part in parts] == ["b.py"]


@given(
    st.dictionaries(
        st.sampled_from([f"{name}.{kind}" for name in "abcdefgh" for kind in ("py", "md", "bin")]),
        st.text(st.sampled_from("def f():\n    wanted\n#"), max_size=2_000),
        max_size=14,
    ),
    st.integers(0, 2_000),
)
def test_a_choice_keeps_its_budget(texts: dict[str, str], budget: int) -> None:
    """Never more tokens than asked for, and only lines that exist, in order."""
    parts = chosen("wanted", texts, budget)
    assert sum(part.tokens for part in parts) <= budget + len(parts)
    for part in parts:
        text = texts[part.file.path]
        assert part.total == text.count("\n") + (not text.endswith("\n"))
        assert list(part.shown) == sorted({*part.shown} & {*range(1, part.total + 1)})
