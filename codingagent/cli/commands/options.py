"""The options of commands, as options.txt words them; those that several commands take have a name here."""

import contextlib
import functools
import inspect
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from msgspec import Struct

from codingagent.errors import UsageError
from codingagent.model.journal_entries import Protocol, is_run_id, is_session_id
from codingagent.model.patterns import sections

if TYPE_CHECKING:
    from codingagent.agent.requests import Requests

_TOLD = {
    key: (spec, meaning)
    for rows in sections(__file__).values()
    for key, spec, meaning in re.findall(r" +(\S.*?)  +(\S.*?)  +(.*)\n", rows)
}


def _sessions(context: typer.Context, incomplete: str) -> list[str]:
    """Return the session ids that complete a word in a shell; none on any error."""
    with contextlib.suppress(Exception):  # shell completion is no place for errors
        from codingagent.storage import homes

        named = context.find_root().params.get("home")
        home = homes.find_home(named and Path(named), Path.cwd(), os.environ)
        # There may be thousands of runs: complete them only when asked for.
        is_run = incomplete.startswith("run")
        folder, fits = ("sessions/runs", is_run_id) if is_run else ("sessions", is_session_id)
        names = {Path(name).stem for name in os.listdir(home / folder)}
        return sorted(name for name in names if fits(name) and name.startswith(incomplete))
    return []


def option(key: str, words: str = "", **more: Any) -> Any:
    """Return the option or argument of this name in options.txt; a shell completes it with these words."""
    spec, meaning = _TOLD[key]

    def complete(incomplete: str) -> list[str]:
        return [word for word in words.split() if word.startswith(incomplete)]

    if words:
        more["autocompletion"] = complete
    if spec[0] != "-":
        return typer.Argument(metavar=spec, help=meaning, **more)
    name, _, metavar = spec.partition(" ")
    return typer.Option(*name.split(","), metavar=metavar or None, help=meaning, **more)


_Text = str | None
_Texts = list[str] | None
_File = Path | None
SessionName = Annotated[_Text, option("session", autocompletion=_sessions)]
UndoneFiles = Annotated[_Texts, option("undone", autocompletion=_sessions)]
WaitingSessionName = Annotated[_Text, option("waiting", autocompletion=_sessions)]
OpenSessionName = Annotated[_Text, option("open", autocompletion=_sessions)]
AwaitingName = Annotated[_Text, option("awaiting", autocompletion=_sessions)]
TaskWords = Annotated[_Texts, option("task")]
WorkspaceFolder = Annotated[_File, option("workspace")]
Here = Annotated[bool, option("here")]
Attach = Annotated[_Texts, option("attach")]
Json = Annotated[bool, option("json")]
# System timers count no further: 2^31 ms, 24 days.
_LONGEST_S = 2_000_000


def _seconds(value: float | None) -> float | None:
    if value is not None and not 0 < value <= _LONGEST_S:
        raise typer.BadParameter(f"{value:g} is not more than 0 and at most {_LONGEST_S} seconds")
    return value


CommandLimit = Annotated[float | None, option("limit", callback=_seconds)]
AnswerLimit = Annotated[float, option("patience", callback=_seconds)]


class SessionOptions(Struct, frozen=True):
    """Options for a session; None: as its settings say. A command takes those that `with_options` names."""

    file: Annotated[_File, option("file")] = None
    edit: Annotated[bool, option("edit")] = False
    prompt: Annotated[_Text, option("prompt")] = None
    workspace: WorkspaceFolder = None
    here: Here = False
    worktree: Annotated[_Text, option("worktree")] = None
    no_wait: Annotated[bool, option("no wait")] = False
    once: Annotated[bool, option("once")] = False
    accept: Annotated[_File, option("accept")] = None
    dry_run: Annotated[_File, option("dry run")] = None
    skip: Annotated[_Text, option("skip")] = None
    unless_done: Annotated[bool, option("unless done")] = False
    attach: Attach = None
    tokens: Annotated[_Text, option("context", "0 8k 12k 16k 32k")] = None
    leave_out: Annotated[_Texts, option("leave out")] = None
    no_conventions: Annotated[bool, option("conventions")] = False
    guide: Annotated[_Text, option("guide", "whole installed")] = None
    check: Annotated[_Text, option("check")] = None
    chats: Annotated[int | None, option("chats", min=0, max=20)] = None
    try_first: Annotated[bool, option("try first")] = False
    auto: Annotated[bool, option("auto")] = False
    clipboard: Annotated[bool, option("clipboard")] = False
    reply_with: Annotated[_Text, option("reply with")] = None
    reply_timeout: Annotated[float | None, option("timeout", min=1, max=86_400, callback=_seconds)] = None
    max_turns: Annotated[int | None, option("max turns", min=1)] = None
    protocol: Annotated[Protocol, option("protocol", show_default=False)] = "tags"
    policy: Annotated[_Text, option("policy", "restrictive standard permissive")] = None
    sandbox: Annotated[_Text, option("sandbox", "auto require off")] = None
    network: Annotated[bool | None, option("network")] = None
    secrets: Annotated[_Text, option("secrets", "mask redact off")] = None
    accept_formats: Annotated[bool, option("formats")] = False
    yes: Annotated[bool, option("yes")] = False
    diff: Annotated[_Text, option("changes", "never short full")] = None

    @property
    def settings(self) -> dict[str, object]:
        """Return those that are settings, which override all others."""
        names = ("check", "policy", "sandbox", "network", "secrets", "diff", "guide")
        found: dict[str, object] = {name: getattr(self, name) for name in names}
        found["conventions"] = False if self.no_conventions else None
        found["workspace"] = None if self.workspace is None else str(self.workspace)
        return found | {"context": self.tokens, "never_choose": self.leave_out}

    def check_reply(self) -> None:
        """Refuse (UsageError) what does not go with --reply-with."""
        limits = {"--reply-timeout": self.reply_timeout, "--max-turns": self.max_turns}
        others = {"--no-wait": self.no_wait, "--once": self.once, "--clipboard": self.clipboard}
        others |= {"--chats": bool(self.chats), "--try": self.try_first}
        has_command = self.reply_with is not None
        for name in (name for name, value in (others if has_command else limits).items() if value):
            what = f"--reply-with and {name} can't be combined; leave one out"
            raise UsageError(what if has_command else f"{name} needs --reply-with")
        if self.reply_with is not None and not self.reply_with.strip():
            example = '--reply-with "llm -m MODEL"'
            raise UsageError(f"--reply-with names no command; for example: {example}")

    def tell(self, requests: "Requests") -> None:
        """Change what the session keeps of these options; --try is --chats 1 --auto."""
        if self.check is not None:
            requests.name_check(self.check)
        if self.try_first or self.auto or self.chats is not None:
            count = int(self.try_first or self.auto) if self.chats is None else self.chats
            requests.name_chats(count, takes_green=self.try_first or self.auto)

    @property
    def arguments(self) -> list[str]:
        """Return those that `resume` takes too, as words of a command line."""
        flags = {"--yes": self.yes, "--accept-formats": self.accept_formats, "--clipboard": self.clipboard}
        flags |= {"--network": self.network is True, "--no-network": self.network is False}
        values = {name: getattr(self, name) for name in ("policy", "sandbox", "secrets", "diff")}
        given = [f"--{name}={value}" for name, value in values.items() if value is not None]
        return [*(name for name, is_on in flags.items() if is_on), *given]


RULES = "policy sandbox network secrets"
TASK = "file edit prompt workspace here"
TRIALS = "chats try_first auto"
CONTEXT = "no_wait attach tokens leave_out no_conventions"
REPLY = "clipboard reply_with reply_timeout max_turns"


def with_options(
    words: str, kind: type[Struct] = SessionOptions
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Have a command take these fields of its parameter of a kind as options, before its last one."""
    names, annotations = words.split(), get_type_hints(kind, include_extras=True)
    by_name = inspect.Parameter.KEYWORD_ONLY
    taken = [
        inspect.Parameter(name, by_name, default=getattr(kind(), name), annotation=annotations[name])
        for name in names
    ]

    def spread(command: Callable[..., Any]) -> Callable[..., Any]:
        own = inspect.signature(command)
        (whole,) = (each.name for each in own.parameters.values() if each.annotation is kind)

        @functools.wraps(command)
        def called(**values: Any) -> Any:
            values[whole] = kind(**{name: values.pop(name) for name in names})
            return command(**values)

        *others, last = [each.replace(kind=by_name) for each in own.parameters.values() if each.name != whole]
        vars(called)["__signature__"] = own.replace(parameters=[*others, *taken, last])
        return called

    return spread
