"""Endpoints where a server listens and a client connects, as plain values; nothing here opens one."""

import re

from msgspec import Struct

from codingagent.errors import UsageError
from codingagent.model.patterns import lazy_pattern

_HOST_AND_PORT = lazy_pattern(r"(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]*)):([0-9]{1,5})", re.ASCII)

# <linux/vm_sockets.h>: the machine that runs the guest.
HOST_CID = 2


class UnixSocket(Struct, frozen=True):
    """A socket file; with `guest_port`, a client begins with `CONNECT <port>`.

    It is for a hypervisor that maps a guest's vsock to a file (Firecracker).
    """

    path: str
    guest_port: int | None = None

    def __str__(self) -> str:
        return f"socket {self.path}"


class Tcp(Struct, frozen=True):
    """A port of this machine; 0 lets the system choose. A client names the token that the server expects."""

    host: str
    port: int
    token: str | None = None

    def __str__(self) -> str:
        return f"tcp {f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    __repr__ = __str__  # without the token


class Vsock(Struct, frozen=True):
    """A port between a virtual machine and its host; a server accepts calls to any `cid` of its own."""

    port: int
    cid: int = HOST_CID

    def __str__(self) -> str:
        return f"vsock port {self.port}"


class Command(Struct, frozen=True):
    """A program whose standard input and output are the connection: `ssh HOST codingagent serve --stdio`."""

    line: str

    def __str__(self) -> str:
        return f"command {self.line!r}"


Listenable = UnixSocket | Tcp | Vsock
Endpoint = Listenable | Command


def tcp_from(words: str) -> Tcp:
    """Parse `HOST:PORT`; an IPv6 address is in brackets. UsageError if the text has another form."""
    found = _HOST_AND_PORT.fullmatch(words)
    if found is None or int(found[3]) > 0xFFFF:
        raise UsageError(f"{words!r} is not HOST:PORT; write 127.0.0.1:8000, or [::1]:8000")
    return Tcp(found[1] or found[2], int(found[3]))
