"""Who may talk to the page: the person's own browser, from the page itself, and nobody else.

Other users of the machine and other pages in the same browser can reach a port on 127.0.0.1. So each request
needs a cookie that only a random token gives, a Host of ours (a foreign name may resolve to 127.0.0.1), and,
where a browser says so, an origin of ours. A browser sends a cookie to all ports of a host, so to servers of
others. What tells or does anything needs a second key, too: the tab keeps it, and sends it in a header.

Once the page has ended, the port may be somebody else's. So each document has a secret of its own, which is
never sent nor kept. Before each request, and of each answer, it asks for a proof that the server knows it.
Only one address is ours: what has another one here could pass on what it is asked, and get a true proof.
"""

import asyncio
import hmac
import logging
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

import uvicorn
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from codingagent.errors import UsageError
from codingagent.model.patterns import sections, table

# A form; an answer may be as long as the inbox takes it.
_FORM_BYTES = 4 * 2**20

# More than a browser ever has. Beyond it the one that waits longest for the rest of a request is closed.
CONNECTIONS = 200

_HEADERS = table(sections(__file__)["headers"])

# What a browser may go to by itself, without the tab's key: it gets an empty page, which asks for the rest.
_PAGES = re.compile(r"/(?:s/[^/]+(?:/file)?)?")

_STALE = " ".join(sections(__file__)["stale"].split())


class Walls:
    """Let only requests with both keys and from the page itself through to `app`.

    Args:
        app: what answers them.
        shell: makes the page without its content, of a `nonce` for its scripts and the `keys`: the tab's, or
            none, and what proves that the server is the page.
        port: of the server; it is in its address and in the cookie's name.
        limits: the most bytes of a body by the last part of its path; others take a form.
    """

    def __init__(
        self, app: ASGIApp, shell: Callable[..., Response], port: int, limits: Mapping[str, int]
    ) -> None:
        self._app, self._shell, self._limits = app, shell, limits
        self.token, self._key, self._tab_key, self._secret = (secrets.token_urlsafe(32) for _ in range(4))
        self._cookie, self._host = f"codingagent_{port}", f"127.0.0.1:{port}"
        self.entrance = f"http://{self._host}/?token={self.token}"
        """The address that gives the cookie; it is the person's alone."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        found = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, found)
        nonce = found.get("codingagent-nonce", "")
        proof = _digest(_digest(self._secret, nonce.partition(".")[0]), nonce)
        given = {**_HEADERS, "Codingagent-Proof": proof} if nonce else _HEADERS

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                named = {name for name, _ in message["headers"]}
                new = ((k.lower().encode(), v.encode()) for k, v in given.items())
                message["headers"] = [*message["headers"], *(each for each in new if each[0] not in named)]
            await send(message)

        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
            return
        limit = self._limits.get(scope["path"].rpartition("/")[2], _FORM_BYTES)
        taken = 0

        async def receive_bounded() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > limit:
                raise UsageError(f"that is more than {limit // 2**20} MiB: nothing was done")
            return message

        await self._app(scope, receive_bounded, send_with_headers)

    def _refusal(self, scope: Scope, headers: Mapping[str, str]) -> Response | None:
        """Return the answer to who may not come in; None for who may."""
        if headers.get("host") != self._host:
            return PlainTextResponse(f"no such host here: open http://{self._host}/", 421)
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["method"] == "GET" and scope["path"] == "/" and token:
            if not _is_same(token, self.token):
                return PlainTextResponse(_STALE, 403)
            entered = self._empty(self._tab_key)
            # What another server on this port left in the browser would be shown as ours.
            entered.headers["Clear-Site-Data"] = '"cache", "storage"'
            entered.set_cookie(self._cookie, self._key, httponly=True, samesite="strict", path="/")
            return entered
        site, is_reading = headers.get("sec-fetch-site"), scope["method"] in ("GET", "HEAD")
        origins = (f"http://{self._host}", *[None] * is_reading)
        if site not in (None, "same-origin", "none") or headers.get("origin") not in origins:
            return PlainTextResponse("only the page itself may ask for that", 403)
        # Cookies know no ports: those of other servers here may have any form.
        given = (each.strip().partition("=") for each in headers.get("cookie", "").split(";"))
        key = next((value for name, _, value in given if name == self._cookie), "")
        if not _is_same(key, self._key):
            return PlainTextResponse(_STALE, 403)
        if scope["path"] == "/proof":
            return Response(status_code=204)
        shown = headers.get("codingagent-key")  # a browser by itself shows none
        if scope["path"].startswith("/static/") or _is_same(shown or "", self._tab_key):
            return None
        if shown is None and is_reading and _PAGES.fullmatch(scope["path"]):
            return self._empty()
        return PlainTextResponse(_STALE, 403)

    def _empty(self, key: str = "") -> Response:
        """Return the page without its content; it runs the scripts that it names, and no others."""
        name = secrets.token_urlsafe(16)
        made = self._shell(nonce=name, keys=f"{key} {name}.{_digest(self._secret, name)}")
        policy = _HEADERS["Content-Security-Policy"]
        made.headers["Content-Security-Policy"] = policy.replace("'none'", f"'nonce-{name}'", 1)
        return made


def _digest(secret: str, text: str) -> str:
    return hmac.digest(secret.encode(), text.encode("latin-1"), "sha256").hex()


def _is_same(given: str, own: str) -> bool:
    return hmac.compare_digest(given.encode("latin-1", "replace"), own.encode())


def config_of(app: ASGIApp, *, starts: bool = False) -> uvicorn.Config:
    """Return how an app is served: with few connections, and without a word on the terminal.

    Whether it `starts` and ends something of its own with the server.
    """
    # What goes wrong is said to who asked; a stream that ends with the server is no fault.
    logging.getLogger("uvicorn").disabled = logging.getLogger("uvicorn.error").disabled = True
    return uvicorn.Config(
        app,
        http=BoundedConnection,
        backlog=CONNECTIONS,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        lifespan="on" if starts else "off",
    )


class BoundedConnection(H11Protocol):
    """A connection that ends if it takes too long to say what it wants, and when there are too many such."""

    patience_s = 30.0
    """A request, with its body, is here so soon."""

    _deadline: asyncio.TimerHandle | None = None
    _heard = 0.0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._listen()
        if len(self.connections) > CONNECTIONS:
            waiting = [each for each in self.connections if isinstance(each, BoundedConnection)]
            oldest = min(waiting, key=lambda each: (each._is_answered, each._heard))  # noqa: SLF001
            self.connections.discard(oldest)  # it is told later that it is lost
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._listen()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._deadline is not None:
            self._deadline.cancel()

    @property
    def _is_answered(self) -> bool:
        """Whether a whole request came, and its answer is on the way."""
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        return cycle is not None and not (cycle.more_body or cycle.response_complete)

    def _listen(self) -> None:
        self._heard = self.loop.time()
        if self._is_answered and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        elif self._deadline is None and not self._is_answered:
            self._deadline = self.loop.call_later(self.patience_s, self.transport.abort)
