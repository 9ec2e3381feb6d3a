"""Find out whether the check could start where commands run, without running it.

One shell line looks for everything the check needs, in the sandbox and with a command's variables.
The outside then works out why something is missing.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from codingagent.model import plain_text
from codingagent.model.paths import shown
from codingagent.policy.check_needs import Need, needs_of
from codingagent.process.toolchains import small_text

_CHECK_CHARACTERS = 80
_NO_MODULE = 9
_HAS_MODULE = (
    "import importlib.util as u, sys;"
    f" sys.exit({_NO_MODULE} if u.find_spec(sys.argv[1]) is None else 0)"
)
_SHOW = "put its folder on your PATH, so that the sandbox shows it, or use --sandbox off"


def complaint_about(
    check: str, root: Path, variables: Mapping[str, str], run: Callable[[str], str]
) -> str:
    """Return why a check can't start in a folder; empty if it can or that is unknown.

    `run` runs a shell line as a command would be run, and returns its output.
    """
    if os.name == "nt":
        return ""  # the trial needs a POSIX shell
    home = variables.get("HOME", "")
    trial = _Trial(root, variables.get("PATH", ""), home)
    for need in needs_of(check):
        trial.add(need)
    lines = [f"({line}) >/dev/null 2>&1 || echo {n}" for n, (line, _) in enumerate(trial.tests)]
    missing = next(iter(run("\n".join(lines)).split()), "") if lines else ""
    if not missing.isdecimal() or int(missing) >= len(trial.tests):
        return ""
    why = trial.tests[int(missing)][1]()
    return f"the check `{plain_text.one_line(check, _CHECK_CHARACTERS)}` can't start: {why}"


class _Trial:
    """The things to look for: a shell line for each, and the message if it fails."""

    def __init__(self, root: Path, path: str, home: str) -> None:
        self._root = root
        self._path = path
        self._home = home
        self.tests: list[tuple[str, Callable[[], str]]] = []

    def add(self, need: Need) -> None:
        folder = self._root / need.folder
        go = f"cd {shlex.quote(os.fspath(folder))} && "
        if need.kind == "module":
            if need.name in sys.stdlib_module_names:
                return  # trying it would take as long as everything else
            program = " ".join(map(shlex.quote, map(self._at_home, need.by)))
            # Errors of Python itself are not a missing module.
            asks = f"{program} -c {shlex.quote(_HAS_MODULE)} {shlex.quote(need.name)}"
            line = f"{go}{{ {asks}; [ $? -ne {_NO_MODULE} ]; }}"
            self.tests.append(
                (line, lambda: f"`{need.by[0]}` has no module `{need.name}` where commands run")
            )
        elif need.kind == "script":
            line = f"{go}[ -e {shlex.quote(need.name)} ]"
            self.tests.append((line, lambda: self._not_there(need.name, folder / need.name)))
        else:
            self._add_program(self._at_home(need.name), folder, go)

    def _at_home(self, word: str) -> str:
        """Return a word with `~` expanded as the shell would."""
        return f"{self._home}{word[1:]}" if word.startswith("~/") and self._home else word

    def _add_program(self, name: str, folder: Path, go: str) -> None:
        quoted = shlex.quote(name)
        if "/" in name:
            host = folder / name
            line = f"{go}[ -f {quoted} ] && [ -x {quoted} ]"
            self.tests.append((line, lambda: self._no_file(name, host)))
        else:
            found = shutil.which(name, path=self._path)
            self.tests.append((f"{go}command -v {quoted}", lambda: self._no_program(name)))
            if found is None:
                return
            host = Path(found)
        self._add_interpreter(name, host)

    def _add_interpreter(self, name: str, host: Path) -> None:
        """Add the interpreter named in a script's first line."""
        first = small_text(host.resolve()).partition("\n")[0]
        words = first.removeprefix("#!").split() if first.startswith("#!") else []
        if words and os.path.basename(words[0]) == "env":
            words = [word for word in words[1:] if not word.startswith("-")][:1]
            if words and "=" not in words[0]:
                program = words[0]
                line = f"command -v {shlex.quote(program)}"
                needs = f"`{shown(name)}` needs `{shown(program)}`, and "
                self.tests.append((line, lambda: f"{needs}{self._no_program(program)}"))
        elif words and os.path.isabs(words[0]):
            program = words[0]
            needs = f"`{shown(name)}` needs `{shown(program)}`, and "
            line = f"[ -x {shlex.quote(program)} ]"
            self.tests.append((line, lambda: f"{needs}{self._no_file(program, Path(program))}"))

    def _no_program(self, name: str) -> str:
        found = shutil.which(name, path=self._path)
        if found is not None:
            return f"the sandbox does not show {shown(found)}: {_SHOW}"
        if name == "source":
            return "`source` is not a command of /bin/sh: use `.` instead"
        return f"there is no program `{shown(name)}` on your PATH"

    def _no_file(self, name: str, host: Path) -> str:
        if host.is_dir():
            return f"`{shown(name)}` is a folder, not a program"
        if host.exists() and not os.access(host, os.X_OK):
            return f"`{shown(name)}` is not executable: make it so (chmod +x)"
        return self._not_there(name, host)

    @staticmethod
    def _not_there(name: str, host: Path) -> str:
        if not host.exists():
            return f"there is no `{shown(name)}`"
        return f"the sandbox does not show {shown(os.fspath(host))}: {_SHOW}"
