"""The commands of the tag protocol: their names, attributes and meaning.

The guide for the model and docs/answers.md are generated from this table; `decoder` turns what is
written this way into operations.
"""

from msgspec import Struct

from codingagent.model.operations import Kind

# A build may take long, but a forgotten server must not run forever: specification 001 has the same
# hour.
TIMEOUT_LIMIT_S = 3600


class Attribute(Struct, frozen=True):
    """One `name="value"` of an opening tag, with an example of the value."""

    name: str
    example: str
    meaning: str


class TagCommand(Struct, frozen=True):
    """One command: its kind, which is its tag, what it means to the model, and an example."""

    kind: Kind
    meaning: str
    attributes: tuple[Attribute, ...]
    example: str
    has_body: bool = True


PATH = Attribute("path", "relative/path", "relative to the workspace root, with /")
TO = Attribute("to", "new/path", "the new path")
UNTIL = Attribute(
    "until", "TOKEN", "the body then ends only at the closing tag with that word, [/NAME TOKEN]"
)
UNCHECKED = Attribute("unchecked", "true", "even if Python, JSON or TOML no longer parses")

COMMANDS = (
    TagCommand(
        Kind.CREATE_FILE,
        "Creates a file, or replaces a whole one. Missing folders are made.",
        (
            PATH,
            Attribute("overwrite", "false", "fail if it exists"),
            Attribute("eol", "lf", 'or "crlf"; a replaced CRLF file stays CRLF'),
            Attribute("final_newline", "false", "no line end at the end"),
            Attribute("encoding", "base64", "for binary files"),
            UNCHECKED,
            UNTIL,
        ),
        '[CREATE_FILE path="src/greet.py"]\ndef greet(name):\n    return f"Hello, {name}!"\n[/CREATE_FILE]',
    ),
    TagCommand(
        Kind.EDIT_FILE,
        "Changes part of a file. SEARCH holds whole lines exactly as the file has them now, enough to fit"
        " one place only; REPLACE what takes their place. Several such blocks may follow: all are"
        " applied, or none.",
        (
            PATH,
            Attribute(
                "start_line", "3", "without SEARCH/REPLACE, the body replaces the lines from here"
            ),
            Attribute("end_line", "5", "to here; work from the bottom of a file up"),
            UNCHECKED,
            UNTIL,
        ),
        '[EDIT_FILE path="src/greet.py"]\n<<<<<<< SEARCH\n    return f"Hello, {name}!"\n=======\n'
        '    return f"Good day, {name}!"\n>>>>>>> REPLACE\n[/EDIT_FILE]',
    ),
    TagCommand(
        Kind.DELETE_FILE,
        "Deletes one file. One line, no closing tag.",
        (PATH,),
        '[DELETE_FILE path="old.py"]',
        has_body=False,
    ),
    TagCommand(
        Kind.MOVE_FILE,
        "Moves or renames one file. One line.",
        (PATH, TO, Attribute("overwrite", "true", "replace a file")),
        '[MOVE_FILE path="old.py" to="new.py"]',
        has_body=False,
    ),
    TagCommand(
        Kind.READ_FILE,
        "Asks for a text, image or PDF for the next request. One line.",
        (
            Attribute("path", "relative/path", "or a glob with *, ** and ?"),
            Attribute("start_line", "100", "the first line"),
            Attribute("end_line", "160", "the last line"),
        ),
        '[READ_FILE path="main.py"]',
        has_body=False,
    ),
    TagCommand(
        Kind.RUN_COMMAND,
        "Runs shell lines in the workspace. Nothing can be typed into them; what they leave running is"
        " ended. You get the exit code and up to 20,000 characters of output, the middle cut: don't"
        " pipe it into tail or head, which hides a failure.",
        (
            Attribute("timeout", "120", f"seconds allowed, up to {TIMEOUT_LIMIT_S}"),
            Attribute("cwd", "sub/folder", "a folder to run in"),
            UNTIL,
        ),
        "[RUN_COMMAND]\npython3 -m unittest\n[/RUN_COMMAND]",
    ),
    TagCommand(
        Kind.MESSAGE,
        "Shows a text to the person: what you do and why, or a question.",
        (UNTIL,),
        "[MESSAGE]\nShall dates be local or UTC?\n[/MESSAGE]",
    ),
    TagCommand(
        Kind.DONE,
        "Ends the task, with a summary.",
        (UNTIL,),
        "[DONE]\nGreetings are formal now, and tested.\n[/DONE]",
    ),
)

BY_TAG = {str(command.kind): command for command in COMMANDS}
HAS_BODY = {str(command.kind): command.has_body for command in COMMANDS}
