"""Put the secrets of a session back in its answers, and refuse what must not hold them."""

import contextlib
import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from codingagent.agent.context import Context
from codingagent.editing import notebooks
from codingagent.errors import OperationError
from codingagent.model import encoding, operations, plain_text
from codingagent.model.paths import shown
from codingagent.model.patterns import sections, table
from codingagent.policy.rules import Ask, together
from codingagent.protocols.tags.reply import Problem, Step
from codingagent.secrets import assigned, values
from codingagent.secrets.files import variables_in
from codingagent.secrets.texts import mapped
from codingagent.secrets.vault import Vault, WrongName
from codingagent.workspace.workspace import Workspace

# Of the secrets in one question.
_LISTED = 8
_TOLD = table(sections(__file__)["told"])


def restored(vault: Vault, items: Iterable[Step | Problem]) -> tuple[Step | Problem, ...]:
    """Return the parts of an answer with values for their names; one with a wrong name is a problem."""
    if not vault.hides:
        return tuple(items)
    return tuple(_restored(vault, each) for each in items)


def _restored(vault: Vault, step: Step | Problem) -> Step | Problem:
    names: dict[str, None] = {}
    faults: list[WrongName] = []

    def put_back(text: str) -> str:
        names.update(dict.fromkeys(sorted(vault.names_in(text))))
        made, wrong = vault.put_back(text)
        faults.extend(wrong)
        return made

    if isinstance(step, Problem) or isinstance(step.operation, operations.ShowMessage | operations.Finish):
        return step
    operation = mapped(step.operation, put_back)
    if isinstance(step.operation, operations.RunCommand):
        written = [*names, *(fault.written for fault in faults)]
        how = _TOLD["from-file"]
        told = [(_TOLD["command"].format(w), how + _where(vault, w)) for w in written[:1]]
    else:
        in_paths = "\n".join(getattr(step.operation, field, "") for field in ("path", "to"))
        short = (name for name in vault.names_in(in_paths) if not vault.by_name[name].is_wide)
        kinds = ("altered" if fault.true else "unknown" for fault in faults)
        pairs = zip(kinds, faults, strict=True)
        told = [(_TOLD[k].format(f.written, f.true), _TOLD[f"send-{k}"]) for k, f in pairs]
        told += [(_TOLD["path"].format(name), _TOLD["send-path"]) for name in short]
    if told:
        (fact, advice), *others = told
        advice += "".join(f"; {what}{how}" for what, how in others)
        return Problem(step.kind, fact, step.line, "", step.notes, step.id, advice=advice)
    return replace(step, operation=operation, names=tuple(names)) if names else step


class Texts(Struct, frozen=True):
    """A file's text before and after a change; None: there is no file."""

    path: str
    old: str | None
    new: str | None

    def holds(self, vault: Vault, name: str, *, before: bool = False) -> bool:
        """Return whether the file, or its path, has the value of a name."""
        text = self.old if before else self.new
        return text is not None and vault.holds(f"{self.path}\n{text}", name)


def text_of(path: str, data: bytes | None) -> str | None:
    """Return what is searched for values in a file's bytes: of a notebook, as it is shown and as it is."""
    if data is None:
        return None
    found = encoding.decode_file(data, neighbours=tuple)
    text = found.text if found else data.decode("latin-1")
    cells = notebooks.shown(path, text)
    return text if cells == text else f"{cells}{text}"


def reader(workspace: Workspace, apart: Callable[[], Container[str]] = tuple) -> Callable[[str], str | None]:
    """Return a function that returns the text of a file, of none whose resolved path is in `apart`."""

    @cache
    def read(path: str) -> str | None:
        with contextlib.suppress(OperationError):
            if workspace.resolved(path) not in apart():
                return text_of(path, workspace.read(path, whole=False).data)
        return None

    return read


def _asks_to_write(vault: Vault, names: Iterable[str], file: Texts) -> Iterator[Ask]:
    """Yield what to ask before values are written to a file that does not hold them on disk."""
    new = [each for each in names if file.holds(vault, each)]
    if new := [each for each in new if not file.holds(vault, each, before=True)]:
        path = shown(vault.hide(file.path))
        them = _listed("secret", [f"{name}{_where(vault, name)}" for name in new])
        it = "it" if len(new) == 1 else "them"
        reason = f"it writes the {them} into '{path}', which does not hold {it}"
        grants = tuple(f"{name} may be in '{path}'" for name in new)
        yield Ask(("secrets.elsewhere",), (reason,), grants)


def leaks(context: Context, names: tuple[str, ...], *files: Texts) -> tuple[tuple[Ask, ...], tuple[str, ...]]:
    """Return what to ask before hidden values go elsewhere or get lost, and notes that name the lost ones.

    It depends only on what is on disk. The last file is the one that is written, with the values of `names`;
    the one before it is moved there.
    """
    vault, file, source = context.secrecy.vault, files[-1], files[0]
    if not vault.hides:
        return (), ()
    asked: tuple[Ask, ...] = ()
    written = names
    if file is not source:
        if vault.is_secret_file(source.path, source.old):
            to = shown(file.path)
            reason = f"it moves '{shown(source.path)}', which holds secrets, to '{to}'"
            asked = (Ask(("secrets.moved",), (reason,), (f"{reason[3:]}",)),)
        else:
            written += tuple(vault.hidden_in(source.old or "", source.path))
    if not asked:
        asked = tuple(_asks_to_write(vault, dict.fromkeys(written), file))
    if file.new is not None:
        # Whoever reads a name that was made of pieces, say, takes it for the value.
        if made := vault.names_in(file.new) - vault.names_in(file.old or ""):
            advice = "; write such a placeholder whole, in one change, where the value belongs"
            raise OperationError(f"The pieces would make {min(made)} in the file", advice=advice)
        # A short value is hidden only where it was found: elsewhere the chat would see it.
        held = [vault.by_name[name] for name in names]
        short = [each for each in held if not (each.is_wide or each.is_allowed)]
        texts = [each or "" for each in (file.old, file.new)]
        before, after = (vault.preview(each, file.path) if short else "" for each in texts)
        path = shown(file.path)
        for each in short:
            if after.count(each.value) > before.count(each.value):
                reason = f"it writes {each.name} into '{path}' where the chat would see the value"
                grant = f"{each.name} may be seen in '{path}'"
                asked += (Ask(("secrets.shown",), (reason,), (grant,)),)
    if not any(each.old for each in files):
        return asked, ()
    read = reader(context.workspace, cache(lambda: {real(context, each.path) for each in files}))
    gone, lost = _lost(vault, files, read)
    return (*asked, *lost), tuple(map(_TOLD["lost"].format, gone))


def real(context: Context, path: str) -> str:
    """Return a path without its links; empty for a link that leads out or in a circle: it may be deleted."""
    try:
        return context.workspace.resolved(path)
    except OperationError:
        return ""


def _lost(
    vault: Vault, files: Sequence[Texts], read: Callable[[str], str | None]
) -> tuple[dict[str, str], tuple[Ask, ...]]:
    """Return the values that no file would hold any more, with their places, and what to ask."""
    gone: dict[str, str] = {}
    for file in files:
        old = file.old or ""
        names = vault.hidden_in(old, file.path)
        variables = variables_in(old) if names else ()  # nearly all files hide none
        settings = {old[start:end] for name, start, end in variables if assigned.is_setting(name)}
        for name in names:
            held = vault.by_name[name]
            if held.kind == "VALUE" and (held.value in settings or values.is_plain(held.value)):
                continue  # PORT=3000, DEBUG=true: changed often, no loss
            others = (Texts(path, None, read(path)) for path in held.places)
            if not any(each.holds(vault, name) for each in itertools.chain(files, others)):
                line = held.places.get(file.path, 1)
                gone[name] = f"{name} ({shown(vault.hide(file.path))} line {line})"
    if not gone:
        return gone, ()
    them = "it" if len(gone) == 1 else "them"
    listed = _listed("secret", [*gone.values()])
    reason = f"no file would hold the {listed} any more: undo brings {them} back"
    return gone, (Ask(("secrets.lost",), (reason,), tuple(f"{name} may go" for name in gone)),)


def moved(context: Context, changed: Iterable[tuple[str, bytes | None, bytes | None]]) -> dict[str, Ask]:
    """Return what to ask, by path, of files before and after commands: values moved or lost."""
    vault, read = context.secrecy.vault, reader(context.workspace)
    if not vault.by_name:
        return {}
    files = {path: Texts(path, text_of(path, old), text_of(path, new)) for path, old, new in changed}

    def at(path: str) -> Texts:
        return files.get(path) or Texts(path, text := read(path), text)

    def stood(name: str) -> bool:
        places = vault.by_name[name].places
        return any(at(place).holds(vault, name, before=True) for place in places)

    asks = {
        path: ask
        for path, file in files.items()
        for ask in _asks_to_write(vault, filter(stood, vault.known_in(file.new or "")), file)
    }
    elsewhere = {*asks}  # what a no takes away
    for path, file in files.items():
        # Commands change the short values of settings; a file that is gone has lost all of them.
        has_less = {*vault.known_in(file.old or "")}.difference(vault.known_in(file.new or ""))
        if has_less or file.new is None:
            gone = _lost(vault, [file], lambda other: None if other in elsewhere else at(other).new)
            for ask in gone[1]:
                asks[path] = together(asks[path], ask) if path in asks else ask
    return asks


def _listed(what: str, words: list[str]) -> str:
    return f"{plain_text.plural(len(words), what)} {plain_text.some(words, _LISTED)}"


def check_cuts(vault: Vault, text: str, operation: operations.EditFile) -> None:
    """Refuse an edit that replaces a part of a hidden value; other edits replace whole lines."""
    if not (vault.hides and isinstance(operation.change, operations.Substitutions)):
        return
    spans = [(each.start, each.end) for each in vault.spans(text, operation.path)]
    for edit in operation.change.edits:
        start = text.find(edit.old)
        end, longer = start + len(edit.old), len(edit.new) - len(edit.old)
        outside = [(a, b) for a, b in spans if not start <= a < b <= end]
        if any(a < end and start < b for a, b in outside):
            fact = "the text to replace begins or ends in the middle of a value that is hidden"
            advice = "; give lines that contain all of it, as the request shows them"
            raise OperationError(f"'{operation.path}': {fact}", advice=advice)
        text = f"{text[:start]}{edit.new}{text[end:]}"
        spans = [(a + longer, b + longer) if a >= end else (a, b) for a, b in outside]


def check_values(
    vault: Vault, operation: operations.FileOperation, names: tuple[str, ...], new: str | None
) -> None:
    """Refuse what would write another value, which the new file does not have, than a name stands for."""
    if new is None:
        return
    for name in names:
        value = vault.by_name[name].value
        if any(value in text for text in operation.written) and value not in new:
            fact = f"The value of {name} would be written otherwise: it looks like damage by the chat"
            advice = "; send this block again in a code block, without that line if it need not change"
            raise OperationError(fact, advice=advice)


def _where(vault: Vault, name: str) -> str:
    held = vault.by_name.get(name)
    places = {} if held is None else held.places
    return next((f" ({shown(path)} line {line})" for path, line in places.items() if line), "")
