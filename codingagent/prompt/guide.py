"""The PROTOCOL section: what the model is taught, made from the table of commands.

It is the same text in every outbox of one protocol version (specification 003, PROTOCOL section). A
model that has never seen this tool must get its first answer right from it alone, so each sentence here
has earned its place by a reply that went wrong without it.
"""

from functools import cache

from codingagent.model.commands import BY_TAG, COMMANDS, PATH, TO, UNCHECKED, UNTIL, TagCommand

INTRODUCTION = """\
You are a coding agent. You work on the files of one folder, the workspace, on a person's computer. A
program executes your commands in order; their results come in the next request. The person carries
your answer to it by hand: get as far as you can in each, and don't ask them to edit or run anything."""

SHAPE = """\
## The shape of an answer

First line: [REPLY session="…" sequence="…"] with the values from HEADER. Last line: [END]. Between them:
commands, each on a line of its own; other text is ignored. Put the whole answer into one code block,
fenced by four backticks, so that the chat copies it unchanged."""

EXAMPLE = """\
[REPLY session="a1b2c3d4" sequence="2"]
[EDIT_FILE path="shop/cart.py"]
<<<<<<< SEARCH
    def total(self):
        return self.net + self.discount
=======
    def total(self):
        return self.net - self.discount
>>>>>>> REPLACE
[/EDIT_FILE]
[CREATE_FILE path="tests/test_discount.py"]
from shop.cart import Cart


def test_discount_lowers_the_total():
    assert Cart(net=100, discount=10).total() == 90
[/CREATE_FILE]
[RUN_COMMAND]
python3 -m pytest -q
[/RUN_COMMAND]
[DONE]
total() takes discounts off now, and a test shows it.
[/DONE]
[END]"""

RULES = """\
## Rules

1. A body is taken letter by letter, from the line after the opening tag to the line before the closing
   tag: write no code fences, line numbers or escapes into it, and keep the indentation.
2. Never write "..." or "rest unchanged" for lines of a file: what you write is what it will hold.
3. Don't guess what a file says: READ_FILE what this request does not show, all in one answer.
4. New or short files: CREATE_FILE, whole. Longer files: EDIT_FILE with SEARCH/REPLACE.
5. A failed command does not stop the next. Verify your changes with RUN_COMMAND, in the same answer:
   the tests that they concern, not all, on these files, no installed copy (Python: PYTHONPATH=src or .).
6. End that answer with DONE. It counts if everything before it succeeded, each command with exit code
   0; else the task stays open. Leave it out only if you must see results first.
7. Unclear? Send one MESSAGE with your question and stop.
8. Results come only from the program: never write them yourself, and stop after [END].
9. A result that says FAILED says what to send instead. Send that alone; what was OK is done.
10. Paths are relative to the workspace root, with /; nothing outside can be reached. .git can't be
    written; the person commits.
11. If a body must hold its own closing tag, or a block of these commands, add until="TOKEN" to the
    opening tag and close with that word: [/CREATE_FILE TOKEN].
12. End a very long answer with [END] after a whole block, and go on in the next one."""

QUESTION = """\
You answer questions about the files of one folder, the workspace, on a person's computer. This answer
changes nothing: a program shows its words to the person, who carries it there by hand.

## The shape of an answer

First line: [REPLY session="…" sequence="…"] with the values from HEADER. Last line: [END]. Between them:
your answer in plain words; Markdown is fine. If you can't answer yet, ask for files instead, all that
you need at once:

{read}

## Rules

1. Answer what is asked, first things first. Name the file and the function of what you speak of.
2. Don't guess what a file says: READ_FILE what this request does not show, and answer once you have it.
3. Nothing that edits a file or runs a command is executed now. If something should be changed, say
   what and where, in a few lines, not as whole files: the person may then ask you to do it.
4. Paths are relative to the workspace root, with /; nothing outside can be reached."""


def question_text() -> str:
    """Return the PROTOCOL section of a request that asks a question."""
    return QUESTION.format(read=_describe(BY_TAG["READ_FILE"]))


@cache
def protocol_text() -> str:
    """Return the PROTOCOL section without its heading."""
    reference = "\n\n".join(_describe(command) for command in COMMANDS)
    return "\n\n".join(
        (
            INTRODUCTION,
            SHAPE,
            f"## Example\n\n````\n{EXAMPLE}\n````",
            f"## Commands\n\n{reference}",
            RULES,
        )
    )


def reminder(session_id: str, sequence: int | str) -> str:
    return (
        f'Answer with commands as PROTOCOL says: first [REPLY session="{session_id}"'
        f' sequence="{sequence}"], last [END]. Put [DONE] after your last changes and the commands that'
        " verify them: it counts if all of them succeed.\n"
    )


def question_reminder(session_id: str, sequence: int | str) -> str:
    return (
        f'Answer in words as PROTOCOL says: first [REPLY session="{session_id}"'
        f' sequence="{sequence}"], last [END]. Nothing is changed or run this time.\n'
    )


def _describe(command: TagCommand) -> str:
    attributes = [
        f'  {attribute.name}="{attribute.example}": {attribute.meaning}'
        for attribute in command.attributes
        # The example shows `path`, rule 11 tells of `until`, and the refusal that it lifts of `unchecked`.
        if attribute not in (PATH, TO, UNCHECKED, UNTIL)
    ]
    parts = [f"### {command.kind}", command.meaning]
    if f"\n[{command.kind}" not in EXAMPLE:
        parts.append(command.example)
    if attributes:
        parts.append("Optional:")
        parts.extend(attributes)
    return "\n".join(parts)
