"""Say why a command failed in a sandbox, where that is certain: what is hidden, and what helps."""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from urllib.parse import unquote

from codingagent.model.patterns import alternatives, sections, words
from codingagent.process.bubblewrap import Bubblewrap, Unconfined
from codingagent.process.folders import around_homes, is_harmless_part, listed, small_text
from codingagent.secrets.assigned import kind_of
from codingagent.secrets.detect import find_secrets
from codingagent.workspace.dirfd import walk_names

_SECTIONS = sections(__file__)
_NO_NETWORK, _READ_ONLY, _MISSING, _MISSING_VARIABLE = (
    alternatives(_SECTIONS[name]) for name in ("no network", "read only", "missing", "missing variable")
)
_PRIVATE = {*listed("private folders")} - words(_SECTIONS["with caches"])
_PROJECTS = [re.split(r" {2,}", row.strip()) for row in _SECTIONS["projects"].splitlines()]
# As many hidden places are named; a script of the person's leads to some, too.
_NAMED = 2
# So many of their folders are looked through.
_LOOKED_AT = 2_000


def causes(
    sandbox: Bubblewrap, command: str, output: str, variables: Mapping[str, str], given: Mapping[str, str]
) -> Iterator[str]:
    """Yield each cause of a failure in the sandbox; `variables` are the person's, `given` the command's."""
    texts = _leading_to_it(sandbox, command, given.get("PATH", ""))
    hidden = dict.fromkeys(_hidden(sandbox, output, "\n".join(texts)))
    for place in list(hidden)[:_NAMED]:
        real, name = place.resolve(), f"~/{place.relative_to(sandbox.home)}"
        may_be_shown = is_harmless_part(place, real, sandbox.workspace, around_homes(sandbox.home))
        helps = f": codingagent config add show '{name}'" if may_be_shown else ""
        yield f"in the sandbox {name} is hidden{helps}"
    if not sandbox.has_network and _NO_NETWORK.search(output):
        what = "the network is off in the sandbox, also to servers of this machine"
        yield f"{what}: `--network` with `new` or `resume` allows it"
    if _READ_ONLY.search(output):
        where = "the sandbox lets commands write to the workspace (not its .git), /tmp and caches of tools"
        yield f"{where}: codingagent config add show FOLDER:rw adds a folder of yours"
    missed = ("".join(filter(None, found.groups())) for found in _MISSING_VARIABLE.finditer(output))
    for name in dict.fromkeys(missed):
        if name in variables and name not in given:
            helps = f"codingagent config add pass_env {name}"
            if kind_of(name) or find_secrets(f"{name}={variables[name]}", ".env"):
                # Whoever only does what is said would show it to each answer.
                helps = "it looks like a secret, which answers could read then; better make one for tests"
            yield f"commands do not see your variable {name}: {helps}"


def _hidden(sandbox: Bubblewrap, output: str, texts: str) -> Iterator[Path]:
    """Yield what of the home is hidden, and missed in an output: named there, or holding what is missed."""
    lines = output.split("\n")
    near = {n + step for n, line in enumerate(lines) if _MISSING.search(line) for step in (-1, 0, 1)}
    yield from _named_in(sandbox, "\n".join(line for n, line in enumerate(lines) if n in near)).values()
    missed = {_stem(name) for found in _MISSING.finditer(output) for name in found.groups() if name}
    for place, narrow in _named_in(sandbox, texts).items() if missed else ():
        walked = islice(walk_names(os.fspath(place)), _LOOKED_AT)
        names = (name for _, folders, files in walked for name in (*folders, *files))
        if any(_stem(name) in missed for name in (place.name, *names)):
            yield narrow


def _stem(name: str) -> str:
    return name.strip(".").partition(".")[0].replace("-", "_").lower()


def _named_in(sandbox: Bubblewrap, text: str) -> dict[Path, Path]:
    """Return the hidden places of the home that a text names, and of each the narrow one to show."""
    found: dict[Path, Path] = {}
    home = sandbox.home
    named = rf"(?<![\w./-])(?:~|\$HOME|\$\{{HOME\}}|{re.escape(os.fspath(home))})/([\w.@+/-]+)"
    for inner in re.findall(named, text):
        parts = Path(os.path.normpath(inner.rstrip(".").lstrip("/"))).parts
        place = home.joinpath(*parts)
        # An answer must not learn by this which credentials there are.
        if not parts or not _PRIVATE.isdisjoint(parts) or ".." in parts:
            continue
        if os.path.lexists(place):
            found[place] = home.joinpath(*parts[: 3 if parts[0] == ".local" else 2])
    return {each: found[each] for each in sandbox.unseen(found)}


def _leading_to_it(sandbox: Bubblewrap, command: str, path: str) -> Iterator[str]:
    """Yield what leads to places that no output names: the command, its scripts, packages lying elsewhere."""
    yield command
    for word in dict.fromkeys(command.split()):
        place = Path(shutil.which(word, path=path) or "/")
        if sandbox.home in place.parents and (text := small_text(place.resolve())).startswith("#!"):
            yield text
    # PEP 610: where `pip install -e` found it. Below: `npm link`.
    for programs in (sandbox.workspace / ".venv" / "bin", *map(Path, path.split(os.pathsep))):
        for note in programs.parent.glob("lib/python3*/site-packages/*.dist-info/direct_url.json"):
            yield unquote(small_text(note)).replace("file://", " ")
    modules = sandbox.workspace / "node_modules"
    found = (*modules.glob("*"), *modules.glob("@*/*"))
    yield from (os.path.realpath(each) for each in found if each.is_symlink())


def lacking(sandbox: Bubblewrap | Unconfined, workspace: Path, path: str) -> Iterator[tuple[str, str]]:
    """Yield each project file in a workspace's root, and what commands will lack of its tool, if anything."""
    for file, about, programs, needs, places, fetch in _PROJECTS:
        text, lacks, names = small_text(workspace / file), "", programs.split()
        if not re.search(about, text, re.MULTILINE):
            continue
        parts = sandbox.data().parts if isinstance(sandbox, Bubblewrap) else ()
        there = {f"~{part.target.name}" for part in parts if part.real}
        is_there = sandbox.has_network or not re.search(needs, text, re.MULTILINE)
        is_there = is_there or any(each in there or (workspace / each).exists() for each in places.split())
        if not any(shutil.which(name, path=path) or (workspace / name).is_file() for name in names):
            lacks = f"there is no program `{names[0]}` on your PATH"
        elif not is_there:
            lacks = f"commands have no network, and its packages are not there: `{fetch}` first, or --network"
        yield file, lacks
