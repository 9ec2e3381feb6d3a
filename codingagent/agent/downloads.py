"""Files as an answer: a zip of whole files, and files that a browser saved one by one.

`opened` turns an archive into an answer's text and the files beside it, and `items_of` these files into
operations. A file that only its name, or its first line, tells is packed under its path first (`as_answer`),
so that what is in the inbox says all, also after a kill. A patch is text, like any other answer.
"""

import contextlib
import io
import re
import shlex
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from itertools import accumulate
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from codingagent.errors import OperationError, UsageError
from codingagent.model import documents, encoding, paths
from codingagent.model.operations import CreateFile, DeleteFile, FileOperation, Kind
from codingagent.model.patterns import alternatives, lazy_pattern, sections
from codingagent.model.plain_text import Note, some
from codingagent.protocols.foreign.file_names import Files, ambiguous, name_in_comment
from codingagent.protocols.tags import reply, scanner

# An archive may name far more than it holds: its files, and the bytes of all together.
_KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_FILES_LIMIT, _BYTES_LIMIT = 200, 8 * 2**20
_END, _END_OF_LARGE, _ENTRY_BYTES = b"PK\x05\x06", b"PK\x06\x07", 1024
_IS_ENCRYPTED, _IS_UTF8 = 0x1, 0x800  # APPNOTE.TXT 4.4.4
_LINK, _MAY_RUN = 0o120, 0o111  # stat.h, in the upper half of the external attributes
# A zip of ours, whose names are paths of the workspace.
_AS_NAMED = b"codingagent: paths"
_TEXTS, _PATCHES = (".txt", ".md"), (".patch", ".diff")
_NAMES = {name: alternatives(lines, re.IGNORECASE) for name, lines in sections(__file__).items()}
# A line of a list, which may be an item of Markdown.
_LISTED = lazy_pattern(r"[ \t]*(?:[-*+][ \t]+)?`?([^`#\n]*[^`#\s])`?[ \t]*")


class Download(Struct, frozen=True):
    """A file of an answer: its path, or its name alone, and its bytes."""

    path: str
    data: bytes
    is_link: bool = False
    may_run: bool = False
    is_gone: bool = False
    """It is to be deleted, by a list in the archive."""


def as_answer(named: Sequence[tuple[str, bytes]], listed: Callable[[], Collection[str]]) -> bytes:
    """Return the bytes of one answer that came as files of these names, as a browser saved them.

    One that is an answer stays as it is. Others are whole files, and get packed under the paths of the
    workspace that their names or first lines say; UsageError if one says none.
    """
    files = cache(lambda: Files(listed()))
    if len(named) == 1 and _is_answer(*named[0], files):
        return named[0][1]
    found = dict[str, bytes]()
    for name, data in named:
        path = _path_of(name, data, files())
        if found.setdefault(path, data) != data:
            raise UsageError(f"{paths.shown(path)} came twice, and differs: keep the one that is meant")
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.comment = _AS_NAMED
        for path, data in sorted(found.items()):
            archive.writestr(zipfile.ZipInfo(path), data)
    return made.getvalue()


def _is_answer(name: str, data: bytes, files: Callable[[], Files]) -> bool:
    """Return whether a file is an answer itself, and not a file of the workspace."""
    if not name or documents.is_zip(data):
        return True
    ending = PurePosixPath(name.lower()).suffix
    if ending in _TEXTS and not _is_bare(data):
        return True
    is_text = ending in (*_TEXTS, *_PATCHES, ".json") or b"[REPLY" in data
    return is_text and not files().fits(_plain(name, files()))


def _plain(name: str, files: Files) -> str:
    """Return the name of a file without what marks a second copy of it."""
    copy = _NAMES["second copy"].fullmatch(name)
    return name if copy is None or files.fits(name) else copy[1] + copy[2]


def _path_of(name: str, data: bytes, files: Files) -> str:
    """Return the path in the workspace of a file that came under its name alone; UsageError if unclear."""
    name = _plain(name, files)
    first = (_text_of(data[:1_000].partition(b"\n")[0]) or "").strip("\ufeff \t\r")
    said = name_in_comment(first, 0, files)
    if said is not None and said.texts[0].rpartition("/")[2] == name:
        with contextlib.suppress(OperationError):  # a path outside: `/app/shop/cart.py`, say
            return files.plain(said.texts[0])
    if len(fits := files.fits(name)) == 1:
        return fits[0]
    fact = ambiguous(name, fits).fact if fits else f"no file of the workspace is called {paths.shown(name)}"
    raise UsageError(f"{fact}: have its first line say the path, or ask the chat for a zip")


# --- archives --------------------------------------------------------------------------------------
def opened(data: bytes, known: Collection[str], root: str = "") -> tuple[bytes, list[Download], list[str]]:
    """Return an archive's text, whose operations come last, its whole files, and notes on the rest.

    `root` is the name of the workspace's own folder. UsageError if it can't be taken.
    """
    files, notes = Files(known), list[str]()
    found = [each for each in _entries(data) if not _NAMES["noise"].fullmatch(each.path)]
    if made := [mark for each in found if (mark := _NAMES["made by tools"].fullmatch(each.path))]:
        kinds = ", ".join(sorted({mark[1] or mark[2] for mark in made}))
        notes.append(f"left out, as tools make them: {len(made)} files ({kinds})")
        found = [each for each in found if each.path not in {mark[0] for mark in made}]
    new = [each for each in found if not files.fits(each.path)]
    if patches := [each for each in new if each.path.endswith(_PATCHES)]:
        if len(patches) == len(found):
            return b"\n".join(each.data for each in sorted(found, key=lambda each: each.path)), [], []
        names = some([paths.shown(each.path) for each in patches], 3)
        notes.append(f"left out, as whole files are beside it: {names}")
    # Other texts may be documentation, with examples of operations.
    top = _top(found, files)
    named = [(e, e.path.removeprefix(top)) for e in new if not (e.may_run or data.endswith(_AS_NAMED))]
    named = [(each, name) for each, name in named if name not in files]
    texts = [e for e, name in named if _NAMES["text with operations"].fullmatch(name)]
    texts = [each for each in texts if not _is_bare(each.data)]
    if len(texts) > 1:
        raise UsageError("the zip holds several answers: give them one by one")
    lists = [each for each, name in named if _NAMES["list of files to delete"].fullmatch(name)]
    found = [each for each in found if each not in (*patches, *texts, *lists)]
    if not (found or lists or texts):
        raise UsageError("there is no file in the zip")
    lines = "\n".join((_text_of(each.data) or "").removeprefix("\ufeff") for each in lists).splitlines()
    gone = [_normal(listed[1]) for line in lines if (listed := _LISTED.fullmatch(line)) is not None]
    below = [] if data.endswith(_AS_NAMED) else [each.path for each in found] or gone
    if head := _shared(below, files, root):
        notes.append(f"the folder {paths.shown(head)} of the zip is none of the workspace: it was taken off")
    found += [Download(path, b"", is_gone=True) for path in gone]
    whole = [replace(each, path=each.path.removeprefix(head)) for each in found]
    kept = {each.path.casefold() for each in whole if not each.is_gone}
    if both := [each.path for each in whole if each.is_gone and each.path.casefold() in kept]:
        raise UsageError(f"the zip holds a file that it lists to be deleted: {paths.shown(both[0])}")
    return texts[0].data if texts else b"", whole, notes


def _top(found: Sequence[Download], files: Files) -> str:
    """Return the one folder that all entries share, unless it is the workspace's; only there a name says."""
    name = found[0].path.partition("/")[0] if found else ""
    top = f"{name}/"
    if not all(each.path.startswith(top) for each in found):
        return ""
    is_own = files.has_folder(name) and not any(each.path.removeprefix(top) in files for each in found)
    return "" if is_own else top


def _entries(data: bytes) -> Iterable[Download]:
    """Return the entries of an archive, unpacked within the limits; one that comes twice alike, once."""
    # The list at the end would be read whole, as long as the last record says (APPNOTE.TXT 4.3.16).
    is_last = data[-22:-18] == _END and data[-2:] == b"\0\0"
    end = len(data) - 22 if is_last else data.rfind(_END)
    count, size = (int.from_bytes(data[end + at : end + to], "little") for at, to in ((10, 12), (12, 16)))
    is_long = size > _FILES_LIMIT * _ENTRY_BYTES or data[max(end - 20, 0) : end].startswith(_END_OF_LARGE)
    if end >= 0 and (count > _FILES_LIMIT or is_long):
        raise UsageError(f"the zip holds too much for an answer: more than {_FILES_LIMIT} files")
    found = dict[str, Download]()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            sizes = [each.file_size for each in archive.infolist()]
            if len(sizes) > _FILES_LIMIT or sum(sizes) > _BYTES_LIMIT:
                raise UsageError("the zip holds too much for an answer: unpack it, and see what is meant")
            for each in archive.infolist():
                if each.compress_type not in _KINDS or each.flag_bits & _IS_ENCRYPTED:
                    raise UsageError("it is encrypted, or packed in a way that is not taken: pack by deflate")
                # Read to its end it is unpacked whole first, whatever size it claims.
                with archive.open(each) as source:
                    content = source.read(each.file_size)
                path, mode = _name_of(each), each.external_attr >> 16
                new = Download(path, content, mode >> 9 == _LINK, bool(mode & _MAY_RUN))
                old = found.setdefault(path.casefold(), new)
                if (old.path, old.data) != (path, content):
                    raise UsageError(f"the zip holds a file twice, and differs: {paths.shown(path)}")
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, EOFError) as fault:
        raise UsageError(f"that is no zip file that can be read: {fault}") from fault
    return found.values()


def _name_of(entry: zipfile.ZipInfo) -> str:
    r"""Return the path of an entry. Some systems write `\` in it, and UTF-8 without saying so."""
    name = entry.filename
    if not entry.flag_bits & _IS_UTF8:
        name = encoding.decoded(name.encode("cp437", "replace"), "utf-8") or name
    return _normal(name.replace("\\", "/").removeprefix("./"))


def _normal(path: str) -> str:
    """Return a path in normal form, or as it is if it is none of a workspace: that is told later."""
    try:
        return paths.workspace_path(path)
    except OperationError:
        return path


def _shared(named: Sequence[str], files: Files, root: str) -> str:
    """Return the folders that all paths share and the workspace does not have, if something proves it.

    That is a known path with a folder, or two known files, or the name of the workspace's own folder; of one
    folder also a known file, if not each project has one of this name, which is a UsageError.
    """
    folders = named[0].split("/")[:-1] if named else []
    heads = ["", *accumulate(f"{each}/" for each in folders)]
    heads = [head for head in heads if all(path.startswith(head) for path in named)]
    known = {head: [rest for path in named if (rest := path.removeprefix(head)) in files] for head in heads}
    likely = [head for head in heads if (own := known[head]) and (not head or own[1:] or "/" in own[0])]
    if whole := [head for head in likely if len(known[head]) == len(named)]:
        likely = whole[:1]
    is_sure = len(likely) < 2
    if not likely and folders and not files.has_folder(folders[0]):
        name = re.compile(rf"(?:.*/)?{re.escape(root)}(?:-main|-master)?(?: ?\(\d{{1,2}}\))?/", re.IGNORECASE)
        likely = [head for head in heads if root and name.fullmatch(head)][:1]
        if not likely and (likely := [head for head in heads[:2] if known[head]]):
            is_branch = likely[0].endswith(("-main/", "-master/"))
            is_sure = is_branch or not _NAMES["of many projects"].fullmatch(known[likely[0]][0])
    if not is_sure:
        shown = paths.shown(likely[-1])
        how = f"pack what is in it, or {shown} with a known file beside it"
        raise UsageError(f"the zip may be of {shown} or of the folder above it: {how}")
    return likely[0] if likely else ""


# --- operations ------------------------------------------------------------------------------------
def items_of(found: Sequence[Download], paths_known: Collection[str]) -> list[reply.Step | reply.Problem]:
    """Return what the files of an answer ask for: whole files, then deletions. Never raises.

    The request invites them, so only what may be a mistake needs a yes.
    """
    files, kept = Files(paths_known), [each for each in found if not each.is_gone]
    is_flat = not any("/" in each.path for each in kept)
    is_packers = all(_is_crlf(text) for each in kept if "\n" in (text := _text_of(each.data) or ""))
    items = list[reply.Step | reply.Problem]()
    for number, each in enumerate(sorted(found, key=lambda each: (each.is_gone, each.path)), start=1):
        try:
            operation, notes = _operation(each, files, is_flat=is_flat, is_packers=is_packers)
            items.append(reply.Step(operation, number, notes, foreign="accepted"))
        except OperationError as fault:
            path = paths.shown(each.path)
            fact = f"{path} was not used: {fault.fact}"
            items.append(reply.Problem(Kind.FILE, fact, number, subject=path, advice=fault.advice))
    return items


def _operation(
    each: Download, files: Files, *, is_flat: bool, is_packers: bool
) -> tuple[FileOperation, tuple[str, ...]]:
    """Return what a file of an archive asks for, and notes; OperationError if it can't be done."""
    if each.is_link:
        raise OperationError("it is a symbolic link, which only a command can change", advice="; send that")
    path, notes = paths.workspace_path(each.path), tuple[str, ...]()
    if each.is_gone:
        if path not in files:
            raise OperationError("no such file is to be deleted", advice="; send [DELETE_FILE] with its path")
        return DeleteFile(path), ()
    if is_flat and path not in files and (fits := files.fits(path)):
        if len(fits) > 1:
            raise ambiguous(path, fits)
        notes = (f"{paths.shown(path)} was taken as {paths.shown(fits[0])}",)
        path = fits[0]
    is_new, text = path not in files, _text_of(each.data)
    if each.may_run and is_new:
        command = f"[RUN_COMMAND]chmod +x {shlex.quote(path)}[/RUN_COMMAND]"
        notes += (Note("it is not made executable, which only a command can do", f"; send {command}"),)
    if text is None:
        return CreateFile(path, each.data, arrival=None), notes
    # The file has its own mark, and its own line ends, where those here are all alike.
    text = text if is_new else text.removeprefix("\ufeff")
    if not _is_crlf(text):
        return CreateFile(path, text, "lf" if "\r\n" in text else None, arrival=None), notes
    line_end = "crlf" if is_new and not is_packers else None
    return CreateFile(path, text.replace("\r\n", "\n"), line_end, arrival=None), notes


def _text_of(data: bytes) -> str | None:
    return None if b"\0" in data else encoding.decoded(data, "utf-8")


def _is_bare(data: bytes) -> bool:
    return reply.read_again(scanner.fold_line_ends(_text_of(data) or "")).is_bare


def _is_crlf(text: str) -> bool:
    return text.count("\r\n") == text.count("\n") > 0
