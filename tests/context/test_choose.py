"""What of the files goes into a request: Design, the outbox, context chosen within a token budget."""

from hypothesis import given
from hypothesis import strategies as st

from codingagent.context.choose import FILES_LIMIT, Chosen, choose
from codingagent.context.rank import look, query, rank


def chosen(task: str, texts: dict[str, str], budget: int) -> list[Chosen]:
    asked = query(task)
    ranked = rank(asked, [look(asked, path, text) for path, text in texts.items()])
    return choose(asked, ranked, texts.get, budget)


def functions(*names: str, lines: int = 10) -> str:
    return "\n".join(f"def {name}():\n" + f"    {name} = 1\n" * lines for name in names)


def test_a_small_file_goes_whole() -> None:
    """Whole if at most a quarter of the budget."""
    [part] = chosen("alpha", {"a.py": functions("alpha")}, 2_000)
    assert part.is_whole
    assert part.shown == tuple(range(1, 12))


def test_of_a_large_file_go_its_outline_and_the_best_blocks() -> None:
    """Else the lines that define something and the blocks that the task's words are in."""
    names = [f"name{number}" for number in range(40)]
    text = functions(*names[:20], "wanted", *names[20:])
    lines = text.split("\n")
    texts = {"a.py": text}
    [part] = chosen("wanted", texts, 2_000)
    assert not part.is_whole
    shown = {lines[line - 1] for line in part.shown}
    assert {f"def {name}():" for name in names} <= shown
    start = lines.index("def wanted():") + 1
    assert {*range(start, start + 11)} <= {*part.shown}
    assert part.tokens <= 2_000 * 0.4


def test_what_is_left_upgrades_the_first_files() -> None:
    """A file that is more than a quarter goes whole if nothing else needs the room."""
    [part] = chosen("alpha", {"a.py": functions("alpha", lines=120)}, 800)
    assert part.is_whole
    assert part.tokens > 800 * 0.4


def test_at_most_twelve_files() -> None:
    """More is worse: models lose precision in what they don't need."""
    texts = {f"{number}.py": "wanted = 1\n" for number in range(30)}
    assert len(chosen("wanted", texts, 100_000)) == FILES_LIMIT == 12


def test_no_budget_no_files() -> None:
    """`--context 0` adds nothing; a file that can't be read is passed over."""
    assert chosen("alpha", {"a.py": functions("alpha")}, 0) == []
    asked = query("alpha")
    ranked = rank(asked, [look(asked, "a.py", "alpha"), look(asked, "b.py", "alpha")])
    texts = {"b.py": "alpha\n"}
    assert [part.file.path for part in choose(asked, ranked, texts.get, 1_000)] == ["b.py"]


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
    assert sum(part.tokens for part in parts) <= budget
    for part in parts:
        text = texts[part.file.path]
        assert part.total == text.count("\n") + (not text.endswith("\n"))
        assert list(part.shown) == sorted({*part.shown} & {*range(1, part.total + 1)})


def test_where_the_task_names_a_file_others_share_a_quarter() -> None:
    """The named one goes whole, even if it takes most of the budget."""
    texts = {f"{name}.py": functions("wanted", lines=60) for name in "abcdefgh"}
    texts["named.py"] = functions("wanted", lines=250)
    parts = chosen("Make wanted faster in named.py", texts, 4_000)
    assert (parts[0].file.path, parts[0].is_whole, len(parts) > 1) == ("named.py", True, True)
    assert parts[0].tokens > 1_000
    assert sum(part.tokens for part in parts[1:]) <= 1_000
    assert sum(part.tokens for part in chosen("Make wanted faster", texts, 4_000)) > 3_000
