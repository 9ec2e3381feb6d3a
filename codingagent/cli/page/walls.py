"""Who may talk to the page: the person's own browser, from the page itself, and nobody else.

Other users of the machine and other pages in the same browser can reach a port on 127.0.0.1. So each request
needs a cookie that only a random token gives, a Host of ours (a foreign name may resolve to 127.0.0.1), and,
where a browser says so, an origin of ours.
"""

import hmac
import secrets
from collections.abc import Mapping
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from codingagent.errors import UsageError

# A form; an answer may be as long as the inbox takes it.
_FORM_BYTES = 4 * 2**20

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

# A cookie that is SameSite=Strict is not sent along a redirection that began on another site, such as the
# file that opens the page. A page of ours that goes on by itself begins anew.
_ENTER = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>codingagent</title>'
    '<meta http-equiv="refresh" content="0;url=/"><p><a href="/">Go on to the page</a></p></html>'
)


_STALE = (
    "This page is open to who started it only. Open the address that `codingagent page` printed, or start it"
    " again."
)


class TooLargeError(UsageError):
    """The body of a request is larger than its path takes."""


class Walls:
    """Let only requests with the cookie and from the page itself through to `app`.

    Args:
        app: what answers them.
        port: of the server; it is in its address and in the cookie's name.
        limits: the most bytes of a body by the last part of its path; others take a form.
    """

    def __init__(self, app: ASGIApp, port: int, limits: Mapping[str, int]) -> None:
        self._app, self._limits = app, limits
        self.token = secrets.token_urlsafe(32)
        self._key = secrets.token_urlsafe(32)
        self._cookie = f"codingagent_{port}"
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.address = f"http://127.0.0.1:{port}/"

    @property
    def entrance(self) -> str:
        """The address that gives the cookie; it is the person's alone."""
        return f"{self.address}?token={self.token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        found = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        refusal = self._refusal(scope, found)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                named = {name for name, _ in message["headers"]}
                new = ((k.lower().encode(), v.encode()) for k, v in _HEADERS.items())
                message["headers"] = [
                    *message["headers"],
                    *((name, value) for name, value in new if name not in named),
                ]
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
                raise TooLargeError(f"that is more than {limit // 2**20} MiB: nothing was done")
            return message

        await self._app(scope, receive_bounded, send_with_headers)

    def _refusal(self, scope: Scope, headers: Mapping[str, str]) -> Response | None:
        """Return the answer to who may not come in; None for who may."""
        if headers.get("host") not in self._hosts:
            return PlainTextResponse("no such host here", 421)
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["method"] == "GET" and scope["path"] == "/" and token:
            if not hmac.compare_digest(token.encode(), self.token.encode()):
                return PlainTextResponse(_STALE, 403)
            entered = HTMLResponse(_ENTER)
            entered.set_cookie(self._cookie, self._key, httponly=True, samesite="strict", path="/")
            return entered
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return PlainTextResponse("only the page itself may ask for that", 403)
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self._hosts}:
            return PlainTextResponse("only the page itself may ask for that", 403)
        if scope["method"] not in ("GET", "HEAD") and origin is None:
            return PlainTextResponse("only the page itself may ask for that", 403)
        # Cookies know no ports: those of other servers here may have any form.
        given = (each.strip().partition("=") for each in headers.get("cookie", "").split(";"))
        key = next((value for name, _, value in given if name == self._cookie), "")
        if not hmac.compare_digest(key.encode("latin-1"), self._key.encode()):
            return PlainTextResponse(_STALE, 403)
        return None
