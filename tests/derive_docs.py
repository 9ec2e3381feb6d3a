"""Write the parts of README and the help pages that repeat what the code says.

`python -m tests.derive_docs` writes them; `tests/test_readme.py` only compares. A part is the text between
the remarks `<!-- NAME: … -->` and `<!-- end of NAME -->`.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import typer
from msgspec.structs import fields

from codingagent.agent.batch import RETURNED_LIMIT
from codingagent.cli import command_table
from codingagent.cli import main as command_line
from codingagent.model.commands import COMMANDS
from codingagent.model.settings import Figure, Settings, meanings
from codingagent.model.settings import chats as known_chats
from codingagent.policy.shell_parser import TEXT_LIMIT_BYTES
from codingagent.process.output import STREAM_LIMIT_BYTES
from codingagent.protocols.json import wire as json_wire
from codingagent.rpc import client
from codingagent.rpc.protocol import BATCH_LIMIT, LINE_LIMIT_BYTES, Code
from tests import recorded_session

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "codingagent" / "docs" / "session.svg"
PAGES = (ROOT / "README.md", *sorted((ROOT / "codingagent" / "docs").glob("*.md")))


def commands() -> str:
    """Return the reference of an answer's commands."""
    lines: list[str] = []
    for each in COMMANDS:
        lines += [f"### {each.kind}", "", each.meaning, "", "```text", each.example, "```", ""]
        if each.attributes:
            rows = ((f'`{a.name}="{a.example}"`', a.meaning) for a in each.attributes)
            lines += [*_table(("attribute", "meaning"), rows), ""]
    return "\n".join(lines)


_GROUPS = {
    "Requests": "chat context context_chars list_entries always_attach never_choose conventions guide",
    "Commands": "check check_timeout command_timeout command_memory pass_env",
    "Safety": "policy sandbox network show secrets",
    "Screen": "diff notify clipboard",
}


def settings() -> str:
    """Return the settings by what they are about; what has no group comes first."""
    found = {each.name: each for each in fields(Settings)}
    grouped = {heading: names.split() for heading, names in _GROUPS.items()}
    rest = [name for name in found if name not in " ".join(_GROUPS.values()).split()]
    lines: list[str] = []
    for heading, names in ({"Folder": rest} | grouped).items():
        rows = []
        for each in (found[name] for name in names):
            # As it is written in the file.
            default = str(each.default).lower() if isinstance(each.default, bool) else each.default
            default = f"`{default}`" if default not in ("", ()) else "(none)"
            rows.append((f"`{each.name}`", default, meanings()[each.name]))
        lines += [f"### {heading}", "", *_table(("setting", "default", "meaning"), rows), ""]
    return "\n".join(lines)


def chats() -> str:
    """Return what each chat takes, and who says so."""

    def said(figure: Figure | None, unit: str) -> str:
        return f"[{figure.value:,}{unit}]({figure.source})" if figure else "unknown"

    names = ("setting", "chat", "pasted, characters", "a longer paste is attached", "files", "each", "keeps")
    rows = []
    for name, each in list(known_chats().items())[1:]:
        figures = said(each.pasted, ""), said(each.folds, ""), said(each.files, "")
        keeps = "unknown" if each.keeps is None else f"[{each.kept_as}]({each.keeps.source})"
        keeps += f", {most:,} characters" if each.keeps and (most := each.keeps.value) else ""
        rows.append((f"`{name}`", each.title, *figures, said(each.megabytes, " MB"), keeps))
    return "\n".join([*_table(names, rows), ""])


def options() -> str:
    """Return each command with its arguments and options, as `--help` has them."""
    group = typer.main.get_command(command_line.app)
    context = typer.Context(group)
    lines: list[str] = []
    for heading, entries in command_table.COMMANDS.items():
        lines += [f"### {heading}", ""]
        for name, (_, does) in entries.items():
            command = group.get_command(context, name)  # type: ignore[attr-defined]  # a group
            rows = []
            for param in command.params:
                record = param.get_help_record(typer.Context(command))
                if record is not None:
                    rows.append((f"`{_words(record[0])}`", _in_words(record[1])))
            lines += [f"**`{name}`**: {does[:1].lower()}{does[1:]}", ""]
            if rows:
                lines += [*_table(("argument", "meaning"), rows), ""]
            lines += [f"{command.epilog.replace('Example: ', 'Example: `')}`", ""]
    return "\n".join(lines)


def limits() -> str:
    """Return what JSON operations may hold."""
    usual = Settings().command_timeout * 1000
    rows = (
        ("`path`, `cwd`", f"{json_wire.PATH_LIMIT} characters"),
        ("`content` of a `message`", f"{json_wire.MESSAGE_LIMIT:,} characters"),
        ("`content` of a file", f"{_size(json_wire.FILE_LIMIT_BYTES)} as a file"),
        ("`command`", f"{json_wire.COMMAND_LIMIT:,} characters"),
        (
            "`timeout`",
            f"{json_wire.TIMEOUT_LOWEST_MS:,} to {json_wire.TIMEOUT_HIGHEST_MS:,} ms, else {usual:,}",
        ),
        ("`stdout`, `stderr`", f"{_size(STREAM_LIMIT_BYTES)} each"),
        ("contents and outputs of a run", f"about {_size(RETURNED_LIMIT)}; later reads fail"),
    )
    return "\n".join([*_table(("what", "limit"), rows), ""])


def codes() -> str:
    """Return the error codes of JSON-RPC and what they are in Python."""
    rows = (
        (f"−{-code}", code.name.lower().replace("_", " "), f"`{client.ERRORS[code].__name__}`")
        for code in Code
    )
    return "\n".join([*_table(("error code", "name", "in Python"), rows), ""])


def wire() -> str:
    """Return what a server takes and gives at most."""
    rows = (
        ("a line", _size(LINE_LIMIT_BYTES)),
        ("a batch", f"{BATCH_LIMIT:,} requests"),
        ("`stdout`, `stderr`", f"{_size(STREAM_LIMIT_BYTES)} each"),
        ("`cmd`, `code`", f"{_size(TEXT_LIMIT_BYTES)}, which is what the policy can judge"),
    )
    return "\n".join([*_table(("what", "limit"), rows), ""])


def _screen(number: int) -> str:
    return f"```text\n{recorded_session.screens()[number - 1]}\n```\n"


PARTS: Mapping[str, Callable[[], str]] = {
    "chats": chats,
    "commands": commands,
    "settings": settings,
    "options": options,
    "limits": limits,
    "codes": codes,
    "wire": wire,
}

# What `help start` shows of the session that is played for README's picture.
SCREENS: Mapping[str, Callable[[], str]] = {
    f"screen_{number}": partial(_screen, number) for number in (1, 2, 3)
}

_PART = re.compile(r"(<!-- (\w+): [^\n]* -->\n).*?(<!-- end of \2 -->\n)", re.DOTALL)


def derived(text: str, parts: Mapping[str, Callable[[], str]] = PARTS) -> str:
    """Return a page with its generated parts as they should be."""

    def written(found: re.Match[str]) -> str:
        make = parts.get(found[2])
        return found[0] if make is None else found[1] + make() + found[3]

    return _PART.sub(written, text)


def main() -> int:
    """Write what has changed, and say so."""
    for page in PAGES:
        text = page.read_text("utf-8")
        if (wanted := derived(text, {**PARTS, **SCREENS})) != text:
            page.write_text(wanted, "utf-8")
            sys.stdout.write(f"{page.relative_to(ROOT)} written\n")
    drawn = recorded_session.picture()
    if recorded_session.words(drawn) != recorded_session.words(PICTURE.read_text("utf-8")):
        PICTURE.write_text(drawn, "utf-8")
        sys.stdout.write(f"{PICTURE.relative_to(ROOT)} written\n")
    return 0


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    heads = tuple(heads)
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def _words(text: str) -> str:
    return " ".join(text.split())


def _in_words(help_text: str) -> str:
    """Return a help text with the parser's ranges, `[1<=x<=9]`, in words."""
    text = re.sub(r"\[(\d+)<=x<=(\d+)\]", r"[\1 to \2]", _words(help_text))
    return re.sub(r"x>=(\d+)\]", r"\1 or more]", text)


def _size(limit_bytes: int) -> str:
    for unit, of_bytes in (("MiB", 2**20), ("KiB", 2**10)):
        if limit_bytes % of_bytes == 0:
            return f"{limit_bytes // of_bytes} {unit}"
    return f"{limit_bytes:,} bytes"


if __name__ == "__main__":
    sys.exit(main())
