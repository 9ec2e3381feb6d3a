"""Word events, for the model and the person, as specification 003: `[OK] CREATE_FILE: Created 'a.cs'`."""

import signal

from codingagent.model import events, operations, patterns, plain_text
from codingagent.model.events import CommandRan, Event, Hunk, succeeded
from codingagent.model.plain_text import plural

# POSIX, shell command language, 2.8.2: exit status of a command ended by a signal.
_SIGNAL_BASE = 128
# Specification 000, shell on time-out.
_TIMED_OUT = 124
# Signals that no program uses as an exit code for something else: INT, ABRT, FPE, KILL, SEGV, TERM, XFSZ.
_TELLING = frozenset({2, 6, 8, 9, 11, 15, 25})
_ALLOWS_MORE = {"time_limit": '; timeout="SECONDS" allows more', "output_limit": "; print less"}
_WHY_ENDED = {
    "output_limit": "ended after {} of output",
    "process_limit": "ended after starting more than {} at the same time",
    "memory_limit": "ended after using more than {}",
    "layer_limit": "ended after keeping more than {} in caches of tools, which were emptied",
    "agent": "ended: the program that asked for it is gone",
}
# Models copy what they are shown.
_END_TAG = patterns.lazy_pattern(r"\[(/?DONE\b[^\]\n]*)\]")
CUT_OFF = "Cut off inside"
# Of DONE; what the check said follows.
NOT_ACCEPTED = "Not accepted: the user's check fails"
NOT_RUN_AGAIN = "interrupted: it may have run in part; it was not run again"

THERE_ALREADY = "the file already has exactly this content: nothing to do"


def is_refused_by_check(event: Event) -> bool:
    """Return whether it is a DONE that was not accepted because the check fails."""
    return isinstance(event, events.Refused) and event.fact.startswith(NOT_ACCEPTED)


def exit_code_of(event: CommandRan) -> int:
    """Return a command's exit code for JSON: 124 at its limit, 128 plus the number after a signal."""
    if event.ended_by == "time_limit":
        return _TIMED_OUT
    return _SIGNAL_BASE - event.exit_code if event.exit_code < 0 else event.exit_code


def lines_of(event: Event, output_limit: int | None = None, *, is_check: bool = False) -> str:
    """Return a result as the next request shows it: one line, then indented output and notes.

    No line of it can pass for a heading or a result. `output_limit` is in characters; None: all.
    """
    # The limit of a check is the person's setting: no answer can ask for more.
    words, text = result_of(event, is_for_model=not is_check)
    name = operations.Kind.CHECK if is_check else event.kind
    lines = [f"[{'OK' if succeeded(event) else 'FAILED'}] {name}: {without_end_tags(words)}"]
    if text:
        text = text.strip("\n")
        if output_limit is not None:
            text = plain_text.clip_middle(text, output_limit)
        output = [f"    {line}".rstrip() for line in text.split("\n")]
        lines += ["  Output:", *output] if len(output) > 1 else [f"  Output: {text}"]
    lines.extend(f"  Note: {without_end_tags(note)}" for note in event.notes)
    return "\n".join(lines)


def without_end_tags(text: str) -> str:
    """Remove tags that would end the task if the model copied this text of ours."""
    return _END_TAG.sub(r"\1", text)


def words_of(event: Event) -> str:
    """Return what came of an operation, for the person."""
    return result_of(event, is_for_model=False)[0]


def result_of(event: Event, *, is_for_model: bool = True) -> tuple[str, str]:
    """Return the same for the model, with what it can do about it, and what the operation printed."""
    advice = ""
    match event:
        case events.FileCreated():
            return f"{'Replaced' if event.replaced else 'Created'} '{event.path}'", ""
        case events.FileEdited(hunks=hunks):
            where = f"{len(hunks)} places" if len(hunks) > 3 else "; ".join(map(_place_of, hunks))
            return f"Edited '{event.path}' ({where})", event.excerpt
        case events.FileDeleted():
            return f"Deleted '{event.path}'", ""
        case events.FileMoved():
            return f"Moved '{event.path}' to '{event.to}'", ""
        case events.FileRequested():
            is_one = event.paths == (event.asked,)
            what = "" if is_one else f"{len(event.paths)} files for "
            if is_for_model:
                advice = f"; {'its' if is_one else 'their'} text is below"
            return f"Read {what}'{event.asked}'{advice}", ""
        case events.FileFetched():
            size = f"{event.size_bytes} {plural(event.size_bytes, 'byte')}"
            return f"Read '{event.path}' ({size})", ""
        case events.FolderListed():
            return f"Listed '{event.path}' ({len(event.entries)} entries)", ""
        case events.CommandRan():
            if is_for_model:
                advice = _ALLOWS_MORE.get(event.ended_by, "")
            ran = f"Ran '{plain_text.one_line(event.command)}' ({end_of(event)}{advice})"
            return ran, event.output
        case events.Interrupted():
            return f"'{plain_text.one_line(event.subject)}' {NOT_RUN_AGAIN}", ""
        case events.MessageShown():
            return "Message was shown", ""
        case events.Finished():
            return "Task was ended", ""
        case events.Refused():
            return event.reason if is_for_model else event.fact, event.detail
        case events.Denied():
            subject = f" '{plain_text.one_line(event.subject)}'" if event.subject else ""
            return f"DENIED{subject}: {event.reason}", event.suggestion


def _place_of(hunk: Hunk) -> str:
    new = f"replaced by {range_of(hunk.new_start, hunk.new_count)}" if hunk.new_count else "removed"
    return f"{range_of(hunk.old_start, hunk.old_count)} {new}"


def range_of(start: int, count: int) -> str:
    return f"line {start}" if count == 1 else f"lines {start}-{start + count - 1}"


def end_of(event: CommandRan) -> str:
    if why := why_ended(event):
        return why
    if event.ended_by == "time_limit":
        return f"ended at its time limit of {event.limit}"
    if event.exit_code < 0:
        return f"ended by signal {_signal_name(-event.exit_code)}"
    # Shells and sandboxes report a signal this way.
    number = event.exit_code - _SIGNAL_BASE
    meaning = f", as after {_signal_name(number)}" if number in _TELLING else ""
    return f"exit code {event.exit_code}{meaning}"


def why_ended(event: CommandRan) -> str:
    """Return what ended a command, other than itself and its time limit; empty: nothing."""
    return _WHY_ENDED.get(event.ended_by, "").format(event.limit)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
