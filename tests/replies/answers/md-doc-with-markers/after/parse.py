"""Reads patches; see docs/format.md."""
import re

HEAD = re.compile(r"^<{7} SEARCH$")
DIVIDER = re.compile(r"^={7}$")
TAIL = re.compile(r"^>{7} REPLACE$")


class PatchError(ValueError):
    pass


def blocks(text):
    name, search, replace, state = None, [], [], "name"
    for number, line in enumerate(text.splitlines(), 1):
        if state == "name":
            if HEAD.match(line):
                if not name:
                    raise PatchError(f"line {number}: no file name")
                state = "search"
            elif line.strip():
                name = line.strip()
        elif state == "search":
            if DIVIDER.match(line):
                state = "replace"
            else:
                search.append(line)
        elif TAIL.match(line):
            yield name, search, replace
            search, replace, state = [], [], "name"
        else:
            replace.append(line)
    if state != "name":
        raise PatchError("the last block is open")
