"""Find out whether the program that a check begins with is there where commands run, without running it."""

import os
import shlex
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from codingagent.model import plain_text
from codingagent.model.paths import shown
from codingagent.policy.shell_parser import read_line

_CHECK_CHARACTERS = 80
_MISSING = "missing"
_SHOW = "put its folder on your PATH, so that the sandbox shows it, or use --sandbox off"


def complaint_about(
    check: str, root: Path, variables: Mapping[str, str], run: Callable[[str], str]
) -> str:
    """Return why a check can't start in a folder; empty if it can or that is unknown.

    `run` runs a shell line as a command would be run, and returns its output.
    """
    # The trial needs a POSIX shell.
    program = "" if os.name == "nt" else first_program(check)
    quoted = shlex.quote(program)
    test = f"[ -x {quoted} ]" if "/" in program else f"command -v {quoted} >/dev/null"
    if not program or run(f"{test} || echo {_MISSING}").strip() != _MISSING:
        return ""
    path = variables.get("PATH", "")
    host = root / program if "/" in program else Path(shutil.which(program, path=path) or "")
    if not host.is_file():
        why = f"there is no program `{shown(program)}`" + (
            "" if "/" in program else " on your PATH"
        )
    elif not os.access(host, os.X_OK):
        why = f"`{shown(program)}` is not executable: make it so (chmod +x)"
    else:
        why = f"the sandbox does not show {shown(os.fspath(host))}: {_SHOW}"
    return f"the check `{plain_text.one_line(check, _CHECK_CHARACTERS)}` can't start: {why}"


def first_program(text: str) -> str:
    """Return the program that a line certainly starts; empty where only the shell knows."""
    line = read_line(text)
    first = line.commands[0] if line.commands and not (line.doubts or line.too_large) else None
    if first is None or not first.words or any(name == "PATH" for name, _ in first.assignments):
        return ""
    word = first.words[0]
    is_plain = word.literal and not word.wild and word.text not in line.functions
    return word.text if is_plain and not word.text.startswith("~") else ""
