"""What is found in a reply, in which order, and what the screen says of it."""

from codingagent.model.chat_damage import BodyEvidence
from codingagent.model.operations import CreateFile, DeleteFile, Diff, DiffHunk, EditFile, Kind, Replacement
from codingagent.protocols.foreign.parser import read
from codingagent.protocols.tags.reply import Problem, Step

_ALL = """Words.

a.py
```python
<<<<<<< SEARCH
a = 1
=======
a = 2
>>>>>>> REPLACE
<<<<<<< SEARCH
b = 1
=======
b = 2
>>>>>>> REPLACE
```

```diff
--- a/old.py
+++ /dev/null
@@ -1 +0,0 @@
-x
```

### new.py

```python
x = 1
```

```sh
pytest
```

cart.py
```
<<<<<<< SEARCH
a
=======
b
>>>>>>> REPLACE
```
"""


def test_items_stand_in_the_order_of_the_reply_with_their_lines() -> None:
    found = read(_ALL, {"a.py", "old.py", "x/cart.py", "y/cart.py"})
    pairs = (("a = 1\n", "a = 2\n"), ("b = 1\n", "b = 2\n"))
    edit = EditFile("a.py", tuple(Replacement(*pair, is_verbatim=True) for pair in pairs))
    reason = "SEARCH/REPLACE at line 36 was not used: 'cart.py' fits x/cart.py and y/cart.py"
    how = ": write the path from the workspace root"
    assert found.items == (
        Step(edit, 5),
        Step(DeleteFile("old.py", ("x",)), 18),
        Step(CreateFile("new.py", "x = 1\n", overwrite=False, arrival=BodyEvidence(in_code=True)), 26),
        Problem(Kind.SEARCH_REPLACE, reason, 36, subject="cart.py", advice=how),
    )
    assert found.notes == ()
    assert found.asides == (
        "the shell code at line 30 was not executed; to run a command send [RUN_COMMAND]",
    )


def test_a_reply_of_prose_has_nothing_in_it() -> None:
    found = read("I would change `a.py`.\n\n- one\n- two\n\n---\n\nBye.\n", {"a.py"})
    assert (found.items, found.notes) == ((), ())


def test_the_end_of_a_file_that_a_difference_tells_is_in_the_edit() -> None:
    text = "```diff\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n```\n"
    (item,) = read(text, {"a"}).items
    hunk = DiffHunk((("-", "x"), ("+", "y")), 1, 1, is_counted=True, is_verbatim=True, end="ended")
    assert item == Step(EditFile("a", Diff((hunk,))), 2)


def test_a_whole_file_that_exists_is_overwritten_and_one_that_is_not_listed_never() -> None:
    """What the listing leaves out, an ignored file say, is not replaced unseen."""
    text = "### a.py\n```\nx\n```\n### b.py\n```\ny\n```\n"
    assert [item.operation for item in read(text, {"a.py"}).items if isinstance(item, Step)] == [
        CreateFile("a.py", "x\n", arrival=BodyEvidence(in_code=True)),
        CreateFile("b.py", "y\n", overwrite=False, arrival=BodyEvidence(in_code=True)),
    ]


def test_remarks_are_few_however_many_blocks() -> None:
    text = "```sh\nls\n```\n" * 40
    (note,) = read(text, set()).asides
    assert note.startswith("the shell code at lines 1, 4, 7, 10, 13, 16, 19, 22, 25, 28 and 30 more was")


def test_fences_without_number_are_no_answer() -> None:
    """Speed: 250,000 of them took 4 seconds."""
    [problem] = read("\n```" * 250_000, ()).items
    assert isinstance(problem, Problem)
    assert problem.fact == "The answer has 250000 code fences: too many to be intended"
