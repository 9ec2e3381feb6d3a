#!/bin/sh
# jsonrpcserver 5.0.9, json-rpc 1.15.0: a batch in which one member is no request, as in JSON-RPC 2.0, section 7.
#
# The specification's own example: a good call and {"foo": "boo"} in one batch give one result and one error.
# Expected: an array of both answers.
# Seen: one error for all of it (-32600, id null), not in an array; the good call is not made and never answered.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check jsonrpcserver==5.0.9 json-rpc==1.15.0
"$folder/venv/bin/python" - <<'P'
import json
import sys

from jsonrpc import Dispatcher, JSONRPCResponseManager
from jsonrpcserver import Success, dispatch

BATCH = '[{"jsonrpc": "2.0", "method": "one", "id": "1"}, {"foo": "boo"}]'
calls = []


def one():
    calls.append(1)
    return 1


def one_as_result():
    return Success(one())


dispatcher = Dispatcher()
dispatcher["one"] = one
told = {
    "jsonrpcserver": json.loads(dispatch(BATCH, methods={"one": one_as_result})),
    "json-rpc": JSONRPCResponseManager.handle(BATCH, dispatcher).data,
}
for name, answer in told.items():
    print(f"{name}: {answer}")
refused = all(isinstance(each, dict) and each["error"]["code"] == -32600 for each in told.values())
sys.exit(not (refused and not calls))
P
