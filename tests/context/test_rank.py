"""Files in the order of what a task says: Design, the outbox, context chosen from the task."""

from codingagent.context.rank import TESTS, Ranked, look, named_in, query, rank
from codingagent.model.observations import PastCommit as Commit
from tests.helpers import cpu_below

TEXTS = {
    "shop/cart.py": "class Cart:\n    def total(self): return self.discount\n    discountRate = 1\n",
    "shop/orders.py": "class Order:\n    pass\n",
    "shop/stock.py": "class Stock:\n    pass\n",
    "tests/test_cart.py": "def test_discount(): discount; discount; discount; discount\n",
    "docs/cart.md": "# discount\n\nHow a discount counts: discount.\n",
    "pyproject.toml": "[project]\nname = 'discount'\n",
}


def ranked(task: str, *log: Commit, attached: tuple[str, ...] = ()) -> list[Ranked]:
    asked = query(task)
    return rank(
        asked,
        [look(asked, path, text) for path, text in TEXTS.items()],
        log,
        dict.fromkeys(attached, "attached"),
    )


def order(task: str, *log: Commit, attached: tuple[str, ...] = ()) -> list[str]:
    return [file.path for file in ranked(task, *log, attached=attached)]


def test_one_very_long_word_takes_no_time() -> None:
    with cpu_below(40):
        query("y" * 1_000_000)


def test_the_file_that_holds_the_words_comes_first() -> None:
    """Words of the task in the text and in the path; tests, docs and settings come after."""
    assert order("The discount is wrong")[0] == "shop/cart.py"


def test_tests_and_docs_move_up_if_the_task_asks_for_them() -> None:
    """Less counts against them; but what a task is about comes before the tests that it shall get."""
    assert order("A test of the discount counts twice")[0] == "tests/test_cart.py"
    assert order("Say in the documentation how a discount counts")[0] == "docs/cart.md"
    asked = query("Orders of a cart have a discount, with a test")
    said = {"shop/cart.py": "class Cart: discount, orders\n" * 9, "tests/cart.py": "test cart discount\n"}
    found = rank(asked, [look(asked, path, text) for path, text in said.items()])
    assert [file.path for file in found] == ["shop/cart.py", "tests/cart.py"]


def test_parts_of_compound_names_are_words() -> None:
    """Camel and snake parts, in lower case; common words and numbers are none."""
    words = query("The `parseHTTPBody` of read_all_lines in 12.5 s").words
    assert {"parsehttpbody", "parse", "http", "body", "read_all_lines", "lines", "read"} <= {*words}
    assert not {"the", "of", "in", "12"} & {*words}


def test_words_are_found_inside_longer_ones() -> None:
    """Substring counts: "rate" is in discountRate."""
    [cart] = [file for file in ranked("rate of a cart") if file.path == "shop/cart.py"]
    assert cart.words == {"rate": 1, "cart": 1}


def test_a_word_is_found_without_its_ending() -> None:
    """Who asks for a cleaner means what cleans: in a text, a path, a file's own name; short words stay."""
    rows = {
        "a.py": "tree\n",
        "by_clean_walk.py": "tree\n",
        "cleaner.py": "tree\n",
        "walk.py": "clean(tree)\n",
    }
    for word in ("cleaner", "cleaning", "cleaned", "clean"):
        asked = query(f"The {word} fails")
        found = rank(asked, [look(asked, path, text) for path, text in rows.items()])
        order = [file.path for file in found]
        assert order == ["walk.py", "cleaner.py", "by_clean_walk.py", "a.py"], word
    assert query("The ring of bees").roots == ("ring", "bees")


def test_the_first_line_counts_double() -> None:
    """A title says more than what follows it."""
    asked = query("Fix orders\n\nThe stock is a matter of its own")
    assert asked.words["orders"] == 2.0
    assert order("Fix the Order\n\nand Stock")[0] == "shop/orders.py"


def test_a_long_task_counts_its_first_words() -> None:
    """Time is bounded: thirty words, whatever is pasted into a task."""
    words = query(
        "Fix it\n\n" + " ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(500))
    ).words
    assert len(words) == 30
    assert tuple(words)[:3] == ("fix", "wordaa", "wordba")


def test_a_named_file_comes_before_all_others() -> None:
    """Files named in the task or attached come first, whatever their words."""
    assert order("The discount: see stock.py")[0] == "shop/stock.py"
    assert order("The discount: see shop/orders.py.")[0] == "shop/orders.py"
    assert order("The discount", attached=("shop/stock.py",))[0] == "shop/stock.py"


def test_a_name_that_many_files_share_names_none() -> None:
    """`__init__.py` in a task says little in a tree that has ten of them."""
    paths = [f"part{number}/__init__.py" for number in range(10)]
    assert named_in("Export it in __init__.py", paths) == set()
    assert named_in("Export it in part3/__init__.py", paths) == {"part3/__init__.py"}


def test_history_speaks_for_files() -> None:
    """Lately changed, often changed, and changed by commits whose messages are alike."""
    assert order("nothing of it")[0] != "shop/stock.py"
    assert order("nothing of it", Commit("x", ("shop/stock.py",)))[0] == "shop/stock.py"
    lately, before = Commit("x", ("shop/stock.py",)), Commit("y", ("shop/cart.py",))
    assert order("nothing of it", lately, before)[:2] == ["shop/stock.py", "shop/cart.py"]
    alike = Commit("Refunds of taxes", ("shop/orders.py",))
    other = Commit("Warehouse", ("shop/stock.py",))
    assert order("refunds fail", other, alike)[0] == "shop/orders.py"


def test_a_file_whose_own_name_the_title_says_comes_first() -> None:
    """All of a short name says more than the same word in a long one, and than the rest of the task."""
    asked = query("Fix hyperlinks")
    paths = ("src/big_hyperlink_palette.rs", "src/hyperlink.rs", "src/walk.rs")
    found = rank(asked, [look(asked, path, "") for path in paths])
    assert [file.path for file in found][:2] == ["src/hyperlink.rs", paths[0]]
    asked = query("Something is wrong\n\nhyperlinks")
    assert len({file.score for file in rank(asked, [look(asked, path, "") for path in paths])}) == 1


def test_without_history_a_large_file_comes_first() -> None:
    """Large files are changed more often; with a history that is known, and size says nothing."""
    asked = query("discount")
    rows = [look(asked, "a/discount.py", "x"), look(asked, "large/discount.py", "x" * 9_000)]
    gone = Commit("x", ("gone.py",))
    assert [file.path for file in rank(asked, rows)] == ["large/discount.py", "a/discount.py"]
    assert [file.path for file in rank(asked, rows, [gone])] == ["a/discount.py", "large/discount.py"]
    assert rank(asked, [look(asked, "b.py", "x" * 9_000)])[0].score == 0.0


def test_a_file_is_known_by_what_its_commits_said() -> None:
    """All messages of a file are its text, where no single one says much; but not those of wide commits."""
    asked = query("Refunds of taxes fail abroad")
    rows = [look(asked, path, "") for path in ("a.py", "b.py")]
    before = [Commit("Refunds of taxes abroad", ("a.py", *(f"{n}.py" for n in range(40))))] * 9
    each = [Commit(message, ("b.py",)) for message in ("Refunds", "taxes", "Much else", "abroad")]
    other = [Commit("Much else", ("a.py",))] * 4
    assert [file.path for file in rank(asked, rows, [*other, *each, *before])] == ["b.py", "a.py"]


def test_kinds_are_told_by_the_conventions_of_each_language() -> None:
    """Tests by the capital of their name, project files by their ending: else they crowd out sources."""
    tests = (
        "Shop.Core/CartTests.cs shop/CartTest.php src/commonTest/kotlin/Cart.kt Shop.Specs/a.cs testdata/a"
    )
    sources = "src/Latest.cs src/Contest.kt shop/TestShop.swift src/Attests.java"
    assert [bool(TESTS.search(path)) for path in tests.split()] == [True] * 5
    assert [bool(TESTS.search(path)) for path in sources.split()] == [False] * 4
    settings = (
        "Shop.csproj Directory.Build.props Shop.sln build.gradle.kts gradle.properties gradlew Gemfile"
        " Rakefile shop.gemspec phpstan.neon Shop.xcodeproj/project.pbxproj Build.ps1 CMakeLists.txt"
    )
    for path in settings.split():
        rows = [look(query("cart"), each, "cart" * n) for n, each in enumerate(("src/a.cs", path), 1)]
        assert rank(query("cart"), rows)[0].path == "src/a.cs", path


def test_tests_come_before_docs_and_settings() -> None:
    """What counts against a kind of file, unless the task names it."""
    rows = [look(query("a"), path, "") for path in ("guide.md", "a.toml", "tests/x.c", "x.c")]
    order_of_kinds = [file.path for file in rank(query("a"), rows)]
    assert order_of_kinds == ["x.c", "tests/x.c", "a.toml", "guide.md"]


def test_reasons_say_when_a_file_changed() -> None:
    """One line a file tells the person why: the words, and how long ago."""
    log = (Commit("a", ("shop/stock.py",), 90), Commit("b", ("shop/stock.py", "shop/cart.py"), 50))
    at = {file.path: file.changed_s for file in ranked("discount", *log)}
    assert (at["shop/stock.py"], at["shop/cart.py"], at["shop/orders.py"]) == (90, 50, None)


def test_without_words_or_files_there_is_an_order_still() -> None:
    """A task of common words, an empty workspace: no division by zero."""
    assert len(order("do it")) == len(TEXTS)
    assert rank(query("discount"), [], [Commit("discount", ("gone.py",))]) == []
