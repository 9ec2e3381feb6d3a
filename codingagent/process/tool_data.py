"""Find what tools keep of their data in a person's home: narrow parts of it, as tool_data.txt lists them."""

import os
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from pathlib import Path

from msgspec import Struct

from codingagent.model.patterns import lazy_pattern, sections
from codingagent.process.folders import around_homes, is_harmless_part, small_text
from codingagent.process.names import pairs_in
from codingagent.secrets.detect import find_secrets
from codingagent.workspace.dirfd import walk_names

_SECTIONS = sections(__file__)
OFFLINE = dict(each.split("=") for each in _SECTIONS["offline"].split())
ALONE = dict(line.strip().split("=", 1) for line in _SECTIONS["alone"].splitlines())
_PART = lazy_pattern(r"([+!?=]?)(?:(\w+)=)?(.*?)(?://(.*))?")
_BASES = {".cache": "XDG_CACHE_HOME", ".config": "XDG_CONFIG_HOME", ".local/share": "XDG_DATA_HOME"}
# A project file may be in a folder of the workspace's root; of so many entries.
_LOOKED_AT = 200
# A setting of an address with a password, or what a rule for secrets may not know.
_DOUBTFUL = lazy_pattern(r"(?i)token|passw|secret|auth|credential|://[^/\s]*@")


class Part(Struct, frozen=True):
    """A part of a tool's data, as tool_data.txt marks it; without a `real` path outside there is none."""

    tool: str
    kind: str
    target: Path
    real: Path | None


class ToolData(Struct, frozen=True):
    """The parts of the tools that a workspace may use, and the person's variables that lead to some."""

    parts: tuple[Part, ...] = ()
    variables: Mapping[str, str] = {}


def tool_data(path: str, home: Path, workspace: Path, variables: Mapping[str, str]) -> ToolData:
    """Return the parts of each tool that is on `path` or has a project file in the workspace."""
    homes = around_homes(home)
    there = _names_in(workspace)
    folders = [folder for folder in path.split(os.pathsep) if os.path.isabs(folder)]
    parts: dict[Path, Part] = {}
    passed: dict[str, str] = {}
    for words, rest in pairs_in(_SECTIONS["tools"]).items():
        named = words.split()
        if not there.intersection(named) and not any(
            os.path.exists(f"{folder}/{name}") for name in named for folder in folders
        ):
            continue
        for part, used in parts_of(named[0], rest, home, variables):
            passed.update(used)
            if part.target not in parts:
                parts[part.target] = _resolved(part, home, workspace, homes)
    # A part within another one is seen with it.
    shown = [each for each in parts.values() if each.real or each.kind in ("+", "!")]
    outer = {part.target for part in shown}
    return ToolData(tuple(each for each in shown if outer.isdisjoint(each.target.parents)), passed)


def parts_of(
    tool: str, rest: str, home: Path, variables: Mapping[str, str]
) -> Iterator[tuple[Part, dict[str, str]]]:
    """Yield each part of a tool's line as it would be, and the variable by which it was found."""
    for word in rest.split():
        match = _PART.fullmatch(word)
        assert match is not None, word
        kind, name, base, inner = match.groups()
        value, used = variables.get(name or "", ""), {}
        places = [each for each in value.split(os.pathsep) if each]
        if places and all(map(os.path.isabs, places)):
            used[name] = value
        else:
            places = [_usual(base, home, variables, used)] if base else []
        for place in places:
            target = Path(os.path.normpath(os.path.join(place, inner or "")))
            yield Part(tool, kind, target, None), used


def _usual(base: str, home: Path, variables: Mapping[str, str], used: dict[str, str]) -> str:
    for folder, name in _BASES.items():
        value = variables.get(name, "")
        if base.startswith(f"{folder}/") and os.path.isabs(value):
            used[name] = value
            return value + base.removeprefix(folder)
    return os.path.join(home, base)


def _resolved(part: Part, home: Path, workspace: Path, homes: AbstractSet[Path]) -> Part:
    real = part.target.resolve() if os.path.lexists(part.target) else None
    if real is None and home in part.target.parents:
        return part
    if real is None or not is_harmless_part(part.target, real, workspace, homes):
        return Part(part.tool, "", part.target, None)
    if part.kind == "?":
        text = small_text(real)
        is_harmless = text and not _DOUBTFUL.search(text) and not find_secrets(text, str(real))
        real = real if is_harmless else None
    elif not real.is_dir():
        real = None
    return Part(part.tool, part.kind if real else "", part.target, real)


def _names_in(workspace: Path) -> set[str]:
    found: set[str] = set()
    root = os.fspath(workspace)
    for folder, inner, names in islice(walk_names(root), _LOOKED_AT + 1):
        found.update(names if folder == root else names[:_LOOKED_AT])
        if folder != root:
            inner.clear()
    return found
