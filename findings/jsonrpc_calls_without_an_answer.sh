#!/bin/sh
# ajsonrpc 1.2.0, jsonrpclib-pelix 1.2.0, tinyrpc 1.1.7: calls that JSON-RPC 2.0 allows, and one of its own examples.
#
# Expected: an answer to each (section 4: an id is a string, a number or null; 5: `result` is what the method gives;
# 6: a batch with members that are no requests is answered member by member).
# Seen: ajsonrpc raises a ValueError where a method gives null, as one that only does something; pelix takes an id that
# is an empty string for no id and stays silent, so that the caller waits; tinyrpc raises a TypeError for a batch of a
# good call and a bad one. The same calls with another id or value are answered by all three.
#
# Ends with 0 while that is so, else with 1.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  ajsonrpc==1.2.0 jsonrpclib-pelix==1.2.0 tinyrpc==1.1.7
"$folder/venv/bin/python" - <<'P'
import asyncio
import json
import sys

from ajsonrpc.dispatcher import Dispatcher
from ajsonrpc.manager import AsyncJSONRPCResponseManager
from jsonrpclib.SimpleJSONRPCServer import SimpleJSONRPCDispatcher
from tinyrpc.dispatch import RPCDispatcher
from tinyrpc.protocols.jsonrpc import JSONRPCProtocol


def echo(text):
    return text


def nothing():
    return None


ajson, pelix, tiny = Dispatcher(), SimpleJSONRPCDispatcher(), RPCDispatcher()
for name, method in {"echo": echo, "nothing": nothing}.items():
    ajson.add_function(method, name=name)
    pelix.register_function(method, name)
    tiny.add_method(method, name)


def by_ajsonrpc(text):
    return asyncio.run(AsyncJSONRPCResponseManager(ajson).get_payload_for_payload(text))


def by_tinyrpc(text):
    return tiny.dispatch(JSONRPCProtocol().parse_request(text.encode())).serialize().decode()


READERS = {"ajsonrpc": by_ajsonrpc, "pelix": pelix._marshaled_dispatch, "tinyrpc": by_tinyrpc}
ECHO = {"jsonrpc": "2.0", "method": "echo", "params": ["a"]}
ROWS = [
    ({"jsonrpc": "2.0", "method": "nothing", "id": 1}, {"ajsonrpc": "ValueError"}),
    ({**ECHO, "id": ""}, {"pelix": ""}),
    ([{**ECHO, "id": 1}, {"foo": "boo"}], {"tinyrpc": "TypeError"}),
    ({**ECHO, "id": "1"}, {}),
    ([{**ECHO, "id": 1}, {**ECHO, "id": 2}], {}),
]
right = True
for call, expected in ROWS:
    print(json.dumps(call))
    for name, read in READERS.items():
        try:
            seen = read(json.dumps(call))
        except (ValueError, TypeError) as fault:
            seen = type(fault).__name__
            print(f"  {name} raises {seen}: {fault}")
        else:
            print(f"  {name} answers {seen!r}")
        right &= seen == expected[name] if name in expected else '"result"' in seen
sys.exit(not right)
P
