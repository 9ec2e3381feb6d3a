"""Take an answer on the page: read what was pasted or dropped, say what it would do, and leave parts out."""

import io
import zipfile
import zlib
from pathlib import PurePosixPath
from secrets import token_hex

from codingagent.errors import OperationError, UsageError
from codingagent.model import documents, paths
from codingagent.model.encoding import typed_text
from codingagent.model.observations import digest_of
from codingagent.model.session_state import Session
from codingagent.protocols.foreign import parser
from codingagent.protocols.tags import reply, tag_blocks, transcript
from codingagent.protocols.tags.reply import Step
from codingagent.storage.mailbox import REPLY_LIMIT_BYTES

_ENDINGS = (".txt", ".md", ".patch", ".diff", ".json", ".zip")
_ZIP_FILES = 200


def text_in(data: bytes, name: str) -> bytes:
    """Return the answer in what was pasted, or in a file of this name.

    A zip holds one text, or the files of a project: those become an answer of whole files. UsageError says
    what can't be taken.
    """
    ending = PurePosixPath(name.lower()).suffix
    if name and ending not in _ENDINGS:
        raise UsageError(f"{name} is not taken: drop one of {' '.join(_ENDINGS)}")
    if ending == ".zip" or data.startswith(b"PK\x03\x04"):
        data = _unzipped(data, name)
    if (kind := documents.kind_of(data)) is not None:
        raise UsageError(f"that is {kind[0]}, not plain text: {kind[1]}")
    if not typed_text(data, "replace").strip():
        raise UsageError("there is nothing in it: copy the chat's answer first")
    return data


def _unzipped(data: bytes, name: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found = [each for each in archive.infolist() if not each.is_dir()]
            if len(found) > _ZIP_FILES or sum(e.file_size for e in found) > REPLY_LIMIT_BYTES:
                raise UsageError(f"{name} holds too much for an answer")
            texts = {each.filename: archive.read(each) for each in found}
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError) as fault:
        raise UsageError(f"{name} is no zip file that can be read: {fault}") from fault
    if len(texts) == 1:
        return next(iter(texts.values()))
    try:
        parts = [_created(path, content.decode()) for path, content in sorted(texts.items())]
    except UnicodeDecodeError:
        raise UsageError(
            f"a file in {name} is not text in UTF-8: add it to the project by hand"
        ) from None
    return "".join(parts).encode()


def _created(path: str, text: str) -> str:
    """Return the operation that writes a file; its end can stand in no file."""
    end = token_hex(8)
    body = text if text.endswith("\n") or not text else f"{text}\n"
    try:
        path = paths.workspace_path(path.replace("\\", "/")).replace('"', '\\"')
    except OperationError as fault:
        raise UsageError(f"{paths.shown(path)} in the zip: {fault.reason}") from fault
    return f'[CREATE_FILE path="{path}" until="{end}"]\n{body}[/CREATE_FILE {end}]\n'


def check(data: bytes, session: Session) -> None:
    """Refuse (UsageError) an answer to another session or request, and the last one again."""
    header = transcript.last_header(tag_blocks.fold_line_ends(typed_text(data, "replace")))
    if reason := reply.objection(header, session, digest_of(data)):
        raise UsageError(f"{reason}: nothing was done")


def looks_like_answer(data: bytes, session: Session) -> bool:
    """Return whether a text says that it answers the session, or asks for something and names no other."""
    text = tag_blocks.fold_line_ends(typed_text(data, "replace"))
    header = transcript.last_header(text)
    if header is not None:
        return header.session == session.session_id
    found = reply.read(text)
    has_steps = any(isinstance(item, Step) for item in found.items)
    return not found.has_outbox and (has_steps or bool(parser.read(text, ()).items))
