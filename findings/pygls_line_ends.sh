#!/bin/sh
# pygls 2.1.1, which many language servers in Python are made with: a change of one range (`didChange`) in a document that
# holds a form feed, as old C and Python have, or U+2028, as text that was pasted from a page has.
#
# LSP 3.17 (Text Documents): a line ends at "\n", "\r\n" or "\r", and at nothing else; both sides count so.
# Expected: the client's range is changed.
# Seen: the server counts the other characters as line ends too, so that the change lands further up: "two" stays, and
# what stands behind the form feed is replaced. From then on the server's text is not the editor's, and all that it says
# of lines, or edits by them, is for another file.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check pygls==2.1.1 lsprotocol==2025.0.0
"$folder/venv/bin/python" - <<'P'
import sys

from lsprotocol import types
from pygls.workspace import Workspace

ROWS = [("\f", "a\fTWO\ntwo\n"), ("\u2028", "a\u2028TWO\ntwo\n"), ("\x85", "a\x85TWO\ntwo\n"), ("-", "a-b\nTWO\n")]
right = True
for between, expected in ROWS:
    workspace = Workspace(None, sync_kind=types.TextDocumentSyncKind.Incremental)
    uri = "file:///a.txt"
    text = f"a{between}b\ntwo\n"
    workspace.put_text_document(types.TextDocumentItem(uri=uri, language_id="text", version=1, text=text))
    place = types.Range(types.Position(1, 0), types.Position(1, 3))
    change = types.TextDocumentContentChangePartial(range=place, text="TWO")
    named = types.VersionedTextDocumentIdentifier(uri=uri, version=2)
    workspace.update_text_document(named, change)
    seen = workspace.get_text_document(uri).source
    print(f"{text!r}, line 1 set to TWO: {seen!r}")
    right &= seen == expected
sys.exit(not right)
P
