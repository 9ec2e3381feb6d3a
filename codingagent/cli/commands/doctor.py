"""The command `doctor`: check what this machine offers, one line each, with a remedy for what is missing."""

import contextlib
import itertools
import locale
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from msgspec import to_builtins
from msgspec.structs import replace

from codingagent.cli import command_table, layout, plain_output, tables
from codingagent.cli.commands import clipboard, common
from codingagent.cli.commands.options import Json, option
from codingagent.errors import CodingAgentError, UsageError, system_reason
from codingagent.process import bubblewrap, diagnosis, runner
from codingagent.process.select_sandbox import Finding, bubblewrap_for, findings, seen_folders
from codingagent.storage import homes
from codingagent.workspace import own_code, path_walk, programs

_PROMISES = {True: "enforced", False: "NOT enforced", None: "does not apply"}
_MARKS = {True: ("✓", "ok", "good"), False: ("✗", "MISSING", "bad"), None: ("–", "-", "dim")}


app = typer.Typer()


@app.command(epilog="Example: codingagent doctor", name="doctor")
def _doctor(
    context: typer.Context, verbose: Annotated[bool, option("verbose")] = False, json: Json = False
) -> int:
    """Check this machine, and say how to get what is missing: exit status 1 if it is needed."""
    home = homes.find_home(context.obj, Path.cwd(), os.environ)
    # The test from inside needs an existing folder, and a home may not exist yet.
    outside = next((folder for folder in (home, *home.parents) if folder.is_dir()), home)
    look = layout.look_of(sys.stdout)
    missing: dict[str, bool] = {}
    # Each line is printed as soon as it is known: the sandbox takes a second.
    of_machine = findings(outside, homes.default_workspace(home))
    for finding in itertools.chain(of_machine, _own(home, was_found=common.home_was_found(context))):
        if finding.holds is False:
            missing["sandbox" if finding.is_promise else finding.name] = finding.is_needed
        if json:
            plain_output.write_json_line(sys.stdout, to_builtins(finding))
        elif verbose or not finding.is_promise or finding.holds is False:
            tables.show_lines(_lines(finding, look))
            sys.stdout.flush()
    needed = ", ".join(name for name, is_needed in missing.items() if is_needed)
    others = ", ".join(name for name, is_needed in missing.items() if not is_needed)
    without = f"; not as it could be: {others}" if others else ""
    verdict = f"missing: {needed}{without}" if needed else f"ready{without}"
    if not json:
        tables.show_lines([[(verdict, "bold")]])
    return 1 if needed else 0


def _own(home: Path, *, was_found: bool) -> Iterator[Finding]:
    """Yield findings about the person's setup: clipboard, inbox, terminal, folders, editor."""
    yield _clipboard()
    places = [Path.cwd().resolve()]
    try:
        homes.check_home(home, was_found=was_found)
        resolved, workspace = homes.settings_for(home, {}, os.environ)
        _, layer = seen_folders(resolved.settings, workspace)
    except CodingAgentError as fault:
        yield Finding("home", False, str(fault), is_needed=True)
    else:
        is_there = (home / "sessions").is_dir() and (home / "inbox").is_dir()
        none = Finding("inbox", None, f"none yet in {home}; `codingagent new` creates it")
        yield replace(_watching(home / "inbox") if is_there else none, is_needed=True)
        made = "" if is_there else " (not there yet; `codingagent new` creates it)"
        near = next(each for each in (home / "sessions", home, *home.parents) if each.is_dir())
        is_ours = os.access(near, os.W_OK)
        made = made if is_ours else f": {near} can't be written; name another with --home"
        yield Finding("home", is_ours, f"{home}{made}", is_needed=True)
        origin = resolved.origins["workspace"]
        made = "" if workspace.is_dir() else " (not there yet; `codingagent new` creates it)"
        yield Finding("workspace", True, f"{workspace} (from {origin}){made}")
        yield Finding("layer", None, layer)
        places.append(workspace.resolve())
        is_open = resolved.settings.network or resolved.settings.sandbox == "off"
        yield from itertools.chain(*(_toolchains(each, is_open) for each in dict.fromkeys(places)))
    for code in {own_code.own_code_in(each) for each in places if not path_walk.is_too_much(each)}:
        for holds, said in ((False, code.fault or code.remark), (None, code.shared)):
            if said:
                yield Finding("installation", holds, said)
    yield _encoding()
    editor = runner.editor_of(os.environ)
    try:
        programs.command_line(editor)
        yield Finding("editor", True, f"{editor}, for `new --edit` and `paste --editor`")
    except UsageError as fault:
        remedy = "set EDITOR to use `new --edit` and `paste --editor`"
        yield Finding("editor", False, str(fault), remedy)


def _toolchains(place: Path, has_network: bool) -> Iterator[Finding]:
    """Yield what commands will lack for the project files in a folder."""
    sandbox = bubblewrap_for(place, (), place, has_network) or bubblewrap.Unconfined()
    for file, lacks in diagnosis.lacking(sandbox, place, programs.persons_path()):
        found = lacks or "its tool is on your PATH, and its packages are there or need none"
        yield Finding("toolchain", not lacks, f"{file}: {found}")


def _clipboard() -> Finding:
    name = "clipboard"
    if clipboard.is_the_terminals():
        detail = "`copy` uses your terminal's (OSC 52), which you may have to allow there"
        return Finding(name, True, f"{detail}; pipe an answer into `codingagent paste`")
    if not (program := clipboard.program()):
        return Finding(name, False, f"none: {clipboard.NONE}", clipboard.INSTALL)
    try:
        clipboard.read()
    except CodingAgentError as fault:
        return Finding(name, False, f"{program}: {fault}")
    return Finding(name, True, f"{program}: `copy` and `paste` work")


def _watching(inbox: Path) -> Finding:
    """Check whether the system reports new files in this very folder: not every disk does."""
    from codingagent.storage.watch import Watch

    # Hidden, and not .txt: a waiting session ignores it.
    trial = inbox / f".codingagent-doctor-{os.getpid()}.tmp"
    with Watch(inbox) as watch:
        try:
            with trial.open("xb"):
                pass
            # An event comes within milliseconds, or never.
            heard = {} if watch.fault else watch.wait(1.0)
        except OSError as fault:
            said = f"{inbox} can't be written: {system_reason(fault)}"
            return Finding("inbox", False, said, "fix its permissions")
        finally:
            with contextlib.suppress(OSError):
                trial.unlink()
    if trial.name in heard:
        said = f"{inbox} is watched: an answer is applied as soon as it is saved"
        return Finding("inbox", True, said)
    silent = "no event came for a file written there; a network drive, WSL or a container?"
    is_full = watch.fault and sys.platform == "linux"
    remedy = "raise fs.inotify.max_user_instances to get events" if is_full else ""
    said = f"{inbox} can't be watched ({watch.fault or silent}): it is checked once a second instead"
    return Finding("inbox", None, said, remedy)


def _encoding() -> Finding:
    said = (sys.stdout.encoding or "ascii").lower()
    files = locale.getpreferredencoding(do_setlocale=False)
    detail = f"{said} on the screen"
    if not files.lower().replace("-", "").startswith("utf8"):
        detail += f", {files} for answers that are not UTF-8"
    if said.replace("-", "").startswith("utf8"):
        return Finding("encoding", True, detail)
    remedy = "set PYTHONUTF8=1" if os.name == "nt" else "set LANG=C.UTF-8"
    return Finding("encoding", False, detail, f"{remedy} to see all characters")


def _lines(finding: Finding, look: layout.Look) -> Iterator[layout.Line]:
    detail = command_table.runnable(finding.detail)
    remedy = f"; {command_table.runnable(finding.remedy)}" if finding.remedy else ""
    mark, word, style = _MARKS[finding.holds]
    if finding.holds is False and not finding.is_needed:
        word = "note"
    word = _PROMISES[finding.holds] if finding.is_promise else word
    begin = "    " * finding.is_promise + (f"{mark} " if look.has_marks else f"{word:<14}")
    heading = (f"{finding.name}: ", "" if finding.is_promise else "bold")
    yield from layout.hang([(begin, style), heading, (detail, ""), (remedy, "warn")], look, 4)
