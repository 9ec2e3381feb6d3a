#!/bin/sh
# Python's asyncio: a listening socket that was made as the documentation of `socket` shows it,
# `socket.socket(AF_INET, SOCK_STREAM)`, and given to `asyncio.start_server(sock=…)`.
#
# Expected: connections have TCP_NODELAY, as asyncio sets it since Python 3.6 "by default for all TCP connections".
# Seen: only where the protocol of the socket is named (IPPROTO_TCP), as sockets of getaddrinfo have it. Without
# it, it is 0, the accepted connections have 0 too, and asyncio leaves them as they are: a small answer that is
# written in two pieces then takes 40 ms, the receiver's delayed acknowledgement.
#
# Ends with 0 while that is so, else with 1.
set -eu
python3 - <<'P'
import asyncio
import platform
import socket
import sys


async def nodelay(protocol):
    found = asyncio.get_running_loop().create_future()

    async def accepted(reader, writer):
        found.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    async with await asyncio.start_server(accepted, sock=listening):
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        return bool(await found)


without, with_it = (asyncio.run(nodelay(protocol)) for protocol in (0, socket.IPPROTO_TCP))
print(f"Python {platform.python_version()}: TCP_NODELAY without the protocol {without}, with it {with_it}")
sys.exit(not (with_it and not without))
P
