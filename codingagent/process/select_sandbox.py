"""Select the policy and the sandbox that the settings ask for; try it, and prove it for `doctor`."""

import contextlib
import hashlib
import os
import platform
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from codingagent.errors import UsageError, WorkError, disk_errors
from codingagent.model.observations import LAYER_BYTES
from codingagent.model.patterns import lazy_pattern
from codingagent.model.settings import Settings
from codingagent.policy import rules as policies
from codingagent.process import bubblewrap
from codingagent.process.bubblewrap import Bubblewrap, Unconfined, find_bubblewrap
from codingagent.process.folders import Part, ToolData, around_homes, repositories_in, tool_data
from codingagent.process.runner import Runner, environment, run_tool
from codingagent.storage.homes import is_out_of_reach, read_toml
from codingagent.workspace.own_code import config_folder, own_code_in, state_folder
from codingagent.workspace.programs import find_program, persons_path, persons_variables
from codingagent.workspace.real_paths import leads_through, resolved, with_slashes


def policy_of(settings: Settings, workspace: Path) -> policies.Policy:
    """Return the policy that the settings name, a preset or a file outside the workspace; else UsageError."""
    if (name := settings.policy) in policies.PRESETS:
        policy = policies.PRESETS[name]
    else:
        path = Path(name).absolute()
        if not path.is_file():
            known = ", ".join(policies.PRESETS)
            raise UsageError(f"policy '{name}' is neither a preset ({known}) nor a file; name one")
        root = resolved(workspace)
        # Its name leads through no folder of the workspace, and neither do its links.
        named = Path(os.path.abspath(path))  # not beyond links
        if root in named.parents or root in resolved(path).parents:
            raise UsageError(
                f"policy file '{name}' is in the workspace, where an answer could change it; put it elsewhere"
            )
        policy = policies.from_document(read_toml(path), name)
    if sys.platform == "win32":
        files = policy.filesystem
        typed = ("allowed_paths", "blocked_paths", "approval_required")
        plain = {field: tuple(map(with_slashes, getattr(files, field))) for field in typed}
        policy = replace(policy, cmd_check=settings.check, filesystem=replace(files, **plain))
    return policy


def refuse_impossible_check(settings: Settings, policy: policies.Policy, workspace: Path) -> None:
    """Refuse (UsageError) a check that the policy does not allow at all; it needs no approval."""
    if not settings.check:
        return
    # Imported late: a session without a check does not need the shell parser at start.
    from codingagent.policy.evaluate import judge_command

    verdict = judge_command(policy, settings.check, str(workspace))
    if isinstance(verdict, policies.Deny):
        raise UsageError(
            f"the check `{settings.check}` is blocked by the policy: {verdict.reason}; name another with"
            " --check, or another policy"
        )


def possible_policy(settings: Settings, workspace: Path) -> policies.Policy:
    """Return the policy of a session or run to come; UsageError or WorkError if none could do its work."""
    import tempfile

    policy = policy_of(settings, workspace)
    if fault := own_code_in(workspace).fault:
        raise UsageError(fault)
    refuse_impossible_check(settings, policy, workspace)
    if settings.sandbox != "auto" or settings.secrets == "mask":
        with tempfile.TemporaryDirectory() as own:
            choose_sandbox(settings, policy, Path(own), (), Path(own, "tmp"))
    return policy


# Reads the kernel's data on the shell that runs it, without another program.
_TRIAL = (
    "while read -r name value; do case $name in CapEff:|NoNewPrivs:|Seccomp:)"
    " printf '%s%s ' $name $value;; esac; done < /proc/self/status"
)
_TRIAL_S, _PROOF_S = 20, 60
# The first kernel that can make a mount read-only by descriptor (mount_setattr).
_LINUX = (5, 12)
_TRIAL_RESULT = "CapEff:0000000000000000 NoNewPrivs:1 Seccomp:2 "


def choose_sandbox(
    settings: Settings, policy: policies.Policy, workspace: Path, hidden: tuple[Path, ...], temporary: Path
) -> Bubblewrap | Unconfined:
    """Return the sandbox that the settings ask for, after a trial; `Unconfined` if none works.

    UsageError for settings that contradict each other, or if this program itself runs from the workspace;
    WorkError if a required one does not work.
    """
    if fault := own_code_in(workspace).fault:
        raise UsageError(fault)
    masks = settings.secrets == "mask"
    if settings.sandbox == "off":
        if masks:
            raise UsageError(
                "only a sandbox can hide secret files from commands: leave out --sandbox off, or name"
                " --secrets redact"
            )
        return Unconfined("--sandbox off")
    shown = paths_to_show(settings, workspace, hidden)
    has_network = settings.network or policy.network.enabled
    found = bubblewrap_for(workspace, hidden, temporary, has_network, shown, settings.check)
    if found is not None and masks:
        found = replace(found, masks_secrets=True)
    fault = "bubblewrap is not installed" if found is None else try_sandbox(found)
    if found is not None and not fault:
        return found
    if settings.sandbox == "require" or masks:
        why = f"{fault}; see `codingagent doctor`"
        raise WorkError(f"a sandbox is required but does not work: {why}")
    return Unconfined(fault)


# What separates the words of a shell line, roughly: what is no path of a program is passed over.
_APART = lazy_pattern(r"[\s;&|()<>'\"=`]+")


def paths_to_show(settings: Settings, workspace: Path, hidden: tuple[Path, ...] = ()) -> dict[Path, bool]:
    """Return the real paths that the person shows to commands, True where they may write; else UsageError."""
    found: dict[Path, bool] = {}
    own = (config_folder(), state_folder(), Path(sys.prefix), Path(__file__).parents[1])
    # What of a home lies in the workspace is covered there.
    outside = (each for each in map(resolved, hidden) if resolved(workspace) not in each.parents)
    ours = [*map(resolved, own), *outside]
    homes = around_homes(_person_home())
    for each in settings.show:
        name = each.removesuffix(":rw")
        typed = Path(os.path.expanduser(name))
        path = resolved(typed)
        if not typed.is_absolute():
            raise UsageError(f"show: '{name}' is not an absolute path, nor one below ~")
        is_ours = any(path == our or path in our.parents or our in path.parents for our in ours)
        if path in homes or is_ours or path.parent == Path(path.anchor):
            what = "codingagent's own files" if is_ours else "a whole home folder, or more"
            raise UsageError(f"show: '{name}' would show commands {what}; name a folder that does not")
        if path.exists() and not leads_through(typed, [resolved(workspace)]):
            found[path] = each != name
    return found


def layer_of(workspace: Path) -> Path | None:
    """Return the folder for what commands write to tools' data; None if an answer could reach it."""
    folder = state_folder()
    if not is_out_of_reach(workspace, folder):
        return None
    name = hashlib.sha256(os.fsencode(resolved(workspace))).hexdigest()[:32]
    return resolved(folder) / "layers" / name


def _person_home() -> Path:
    return Path(os.environ.get("HOME") or Path("~").expanduser())


def bubblewrap_for(
    workspace: Path,
    hidden: tuple[Path, ...],
    temporary: Path,
    has_network: bool,
    shown: Mapping[Path, bool] = MappingProxyType({}),
    check: str = "",
) -> Bubblewrap | None:
    """Return bubblewrap for a workspace, None where it is not installed; `shown` as `paths_to_show` tells."""
    program = find_bubblewrap() if sys.platform == "linux" else None
    if program is None:
        return None
    home, real, path = _person_home(), workspace.resolve(), persons_path()
    words = (re.sub(r"^(?:~|\$HOME|\$\{HOME\})/", f"{home}/", word) for word in _APART.split(check))
    named = [Path(os.path.normpath(word)) for word in words if os.path.isabs(word)]
    # Most starts run no command: what one sees of tools is looked for when it is asked for.
    prefixes = sys.prefix, sys.base_prefix
    tools = cache(partial(bubblewrap.tools_for, real, path, home, prefixes, named))
    data = cache(partial(tool_data, path, home, real, persons_variables()))
    repositories = repositories_in(real)
    # Links on the way to its /tmp are resolved, but not in the workspace: a command may have made those.
    own = Path(os.path.abspath(temporary))
    around = next((each for each in own.parents if each.resolve() == real), None)
    own = real / own.relative_to(around) if around else own.parent.resolve() / own.name
    others, layer = bubblewrap.homes_in_system(), layer_of(real)
    found = Bubblewrap(program, real, hidden, own, home, has_network, tools, repositories, others)
    return replace(found, data=data, shown=shown, layer=layer)


def try_sandbox(sandbox: Bubblewrap) -> str:
    """Return why a sandbox does not confine, as the kernel inside says; empty if it does."""
    if sys.platform == "linux":
        first, second, *_ = os.uname().release.partition("-")[0].split(".")
        if (int(first), int(second)) < _LINUX:
            return f"Linux {'.'.join(map(str, _LINUX))} or newer is needed"
        if os.geteuid() and os.stat(sandbox.program).st_mode & stat.S_ISUID:
            return f"{sandbox.program} runs as root: remove its setuid bit, or install a newer one"
    try:
        with contextlib.ExitStack() as stack:
            sandbox.make_temporary()
            trial = sandbox.confine_trial(_TRIAL)
            for handle in trial.handles:
                stack.callback(os.close, handle)
            words = [str(trial.handles[word]) if isinstance(word, int) else word for word in trial.argv]
            done = run_tool(words, trial.variables, timeout_s=_TRIAL_S, handles=trial.handles)
    except (OSError, WorkError) as fault:
        return str(fault)
    if done.returncode:
        told = " ".join(done.stderr.decode("utf-8", "replace").split())
        return bubblewrap.advice_on(told or f"{sandbox.program} ended with exit code {done.returncode}")
    said = done.stdout.decode("utf-8", "replace")
    return "" if said == _TRIAL_RESULT else f"inside, the kernel says {said.strip() or 'nothing'}"


def prove_sandbox(outside: Path) -> "dict[str, tuple[bool | None, str]]":
    """Return what `probe` found inside the sandbox, by promise; WorkError without one.

    `outside` is a folder of the person's that must be out of reach.
    """
    import json
    import shlex
    import socket
    import tempfile

    program = Path(__file__).with_name("probe.py").read_text("utf-8")
    with contextlib.ExitStack() as stack:
        with disk_errors("the sandbox can't be tested"):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory())).resolve()
            (workspace := folder / "workspace").mkdir()
            (data := folder / "data").mkdir()
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        # A home folder that can't be read is hidden enough.
        in_home = sorted(Path(os.environ.get("HOME") or "/").glob("*"))
        order = {
            "workspace": os.fspath(workspace),
            "data": os.fspath(data),
            "outside": os.fspath(outside),
            "home_file": next((os.fspath(each) for each in in_home if each.is_file()), ""),
            "agent_pid": os.getpid(),
            "tcp_port": listener.getsockname()[1],
        }
        sandbox = bubblewrap_for(workspace, (), folder / "tmp", has_network=False)
        if sandbox is None:
            raise WorkError("bubblewrap is not installed")
        if sandbox.layer is not None:
            stack.callback(bubblewrap.forget_layer, sandbox.layer)
        tools = ToolData((*sandbox.data().parts, Part("trial", "", data, data)), sandbox.data().variables)
        sandbox = replace(sandbox, data=lambda: tools)
        runner = stack.enter_context(contextlib.closing(Runner(sandbox, environment(os.environ))))
        line = shlex.join([sys.executable, "-I", "-S", "-c", program, json.dumps(order)])
        outcome = runner.run(line, os.fspath(workspace), _PROOF_S, lambda _: None)
        if outcome.failure:
            raise WorkError(bubblewrap.advice_on(" ".join(outcome.failure.split())))
        try:
            return {name: tuple(told) for name, told in json.loads(outcome.output).items()}
        except ValueError as fault:
            raise WorkError("the probe did not report from inside the sandbox") from fault


def forget_layer_of(workspace: Path) -> bool:
    """Remove what commands of a workspace wrote to tools' data; return whether no command has it."""
    layer = layer_of(workspace)
    return layer is None or bubblewrap.forget_layer(layer)


def seen_folders(settings: Settings, workspace: Path) -> tuple[list[tuple[str, str, str]], str]:
    """Return what commands see of tools: tool, how, path; and where the layer is, with its size."""
    shown = paths_to_show(settings, workspace)
    found = bubblewrap_for(workspace, (), workspace, settings.network, shown, settings.check)
    if found is None:
        return [], "none: without a sandbox commands see all that you see, and write there"
    read = "read only"
    parts = [(p.tool, read if p.kind in ("=", "?") else "layer", p.target) for p in found.data().parts]
    parts += [("PATH", read, each) for each in found.tools()]
    parts += [("show", "written" if writes else read, path) for path, writes in shown.items()]
    seen = [(tool, how, os.fspath(path)) for tool, how, path in sorted(parts)]
    told = "none: codingagent's state is in the workspace; what tools write is not kept"
    if sys.platform != "win32" and found.layer is not None:
        from codingagent.process.mounts import size_of

        megabytes = f"{size_of(os.fspath(found.layer)) / 10**6:,.0f} MB of {LAYER_BYTES // 10**6:,}"
        told = f"{found.layer} ({megabytes})"
    return seen, told


# --- what this machine offers --------------------------------------------------------------------
class Finding(Struct, frozen=True):
    """One thing that this machine offers or lacks, with the remedy; None if it does not apply."""

    name: str
    holds: bool | None
    detail: str
    remedy: str = ""
    is_promise: bool = False
    is_needed: bool = False
    """Safety, undo or all work needs it; without others something is less convenient."""


def findings(outside: Path, workspace: Path) -> Iterator[Finding]:
    """Yield what this machine offers, one item at a time; nothing in the workspace is run."""
    version = platform.python_version()
    yield Finding("Python", True, f"{version} on {platform.system()} ({platform.machine()})")
    yield replace(_git(workspace), is_needed=True)
    program = find_bubblewrap()
    if program is None:
        remedy = "use a container or a virtual machine"
        if sys.platform == "linux":
            remedy = "install bubblewrap (`apt install bubblewrap`, `dnf install bubblewrap`)"
        yield Finding("sandbox", False, _UNCONFINED, remedy, is_needed=True)
        return
    try:
        promises = prove_sandbox(outside)
    except WorkError as fault:
        why = f"{program} could not be tested: {fault}"
        yield Finding("sandbox", False, why, is_needed=True)
        return
    # No promise: a project works without.
    lays_over, _ = promises.pop("tools' folders can be written")
    kept, broken = ([holds for holds, _ in promises.values()].count(each) for each in (True, False))
    told = f"{broken} of {kept + broken} protections do not" if broken else f"all {kept} protections"
    said = f"{program}: {told} work, tested from inside (--verbose names them)"
    yield Finding("sandbox", not broken, said, is_needed=True)
    for name, (holds, detail) in promises.items():
        yield Finding(name, holds, detail, is_promise=True, is_needed=True)
    said = "shown without their credentials; what commands write there goes to a layer of the project's"
    said = f"{said}; `codingagent sandbox` lists them and the layer"
    if not lays_over:
        said = "shown to read, without their credentials; caches begin empty for each project"
        said = f"{said}: nothing can be laid over a folder here (overlayfs)"
    yield Finding("tool folders", lays_over or None, said)


def _git(workspace: Path) -> Finding:
    program = find_program("git", workspace)
    if program is None:
        return Finding("git", False, "not found", "install git to get `diff` and `undo`")
    try:
        told = run_tool([program, "--version"], environment(os.environ)).stdout
    except WorkError as fault:
        return Finding("git", False, str(fault), "repair or install git to get `diff` and `undo`")
    said = told.decode("utf-8", "replace").strip()
    return Finding("git", True, f"{said} at {program}: `diff` and `undo` work")


_UNCONFINED = "none: commands run with your full permissions" + {
    "win32": ", so each is asked about, but your check and a few plain ones",
    "darwin": "; the policy asks before those that delete, publish or reach outside",
}.get(sys.platform, "")
