"""The server of the Model Context Protocol, by its official SDK; a thread for each session does the work.

It is the SDK's low-level server: `MCPServer` makes tools from functions, with schemas of twice the length,
and reads arguments that look like JSON a second time.
"""

import asyncio
import contextlib
import hmac
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

import codingagent
from codingagent.model.approval import Answer
from codingagent.model.journal_entries import ApprovalAsked
from codingagent.model.operations import Kind
from codingagent.model.plain_text import clip_middle, on_screen, unmasked
from codingagent.protocols import calls

if TYPE_CHECKING:
    from codingagent.mcp.tool_session import ToolSession

_Request = ServerRequestContext[Any, Any]

# How often a call looks whether it was answered elsewhere, or cancelled, and tells of output.
_LOOK_EVERY_S, _TELL_EVERY_S = 0.05, 0.1
_QUESTION_CHARACTERS = 6_000
_TOOLS_LAST = CacheHint(ttl_ms=3_600_000, scope="public")

_FACTS = {"type": "object", "properties": {"session": {"type": "string"}}}


def _described(name: str) -> types.Tool:
    # What a hint says by default is left out.
    is_reading = None if name in (*calls.CHANGING, "undo") else True
    is_open = None if name == "run_command" else False
    hints = types.ToolAnnotations(read_only_hint=is_reading, open_world_hint=is_open)
    form: dict[str, Any] = {"input_schema": calls.TOOLS[name].schema, "output_schema": _FACTS}
    return types.Tool(name=name, description=calls.TOOLS[name].does, annotations=hints, **form)


class ToolServer:
    """Serve tools on one folder, to one client over stdio, or to several over HTTP.

    A call whose question nobody answers waits `patience_s` for an answer from a terminal or the page.
    `opened` returns the session of an id, or a new one, for a client of this name.
    """

    def __init__(self, opened: "Callable[[str, str], ToolSession]", patience_s: float) -> None:
        self._opened, self._patience_s = opened, patience_s
        # What a client sends belongs on no terminal: it is told what was wrong.
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        self._sessions: dict[str, ToolSession] = {}
        self._tools = types.ListToolsResult(tools=[*map(_described, calls.TOOLS)])
        self._server: Server[Any] = Server(
            "codingagent",
            version=codingagent.__version__,
            instructions=calls.INSTRUCTIONS,
            cache_hints={"tools/list": _TOOLS_LAST},
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )

    async def serve_stdio(self) -> None:
        """Serve the client at the other end of stdin and stdout, until it is gone."""
        async with stdio_server() as (read, write):
            await self._server.run(read, write, self._server.create_initialization_options())

    def http_app(self, port: int, token: str) -> ASGIApp:
        """Return what serves clients with a token on 127.0.0.1, at /mcp."""
        hosts = [f"127.0.0.1:{port}", f"localhost:{port}"]
        origins = [f"http://{host}" for host in hosts]
        walls = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)
        app = self._server.streamable_http_app(transport_security=walls)

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            given = dict(scope.get("headers", ())).get(b"authorization", b"")
            is_let_in = scope["type"] == "lifespan" or hmac.compare_digest(given, f"Bearer {token}".encode())
            told = "this server needs the token that `codingagent mcp --http` printed\n"
            refused = PlainTextResponse(told, 401, {"WWW-Authenticate": "Bearer"})
            await (app if is_let_in else refused)(scope, receive, send)

        return guarded

    def close(self) -> None:
        """Close the sessions, once their calls are done."""
        for session in {*self._sessions.values()}:  # one has two names once it has begun
            session.close()

    async def _list_tools(
        self, _: _Request, __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return self._tools

    async def _call_tool(
        self, request: _Request, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        if params.name not in calls.TOOLS:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}")
        try:
            call = calls.decoded(params.name, params.arguments or {})
        except ValueError as fault:
            return types.CallToolResult(content=[types.TextContent(text=str(fault))], is_error=True)
        if call.session not in self._sessions:
            known = request.session.client_params
            client = on_screen(known.client_info.name)[:100] if known else "a client"
            self._sessions[call.session] = self._opened(call.session, f"{client} over MCP")
        session, exchange = self._sessions[call.session], _Exchange(request, params, self._patience_s)
        job = session.begin(call, exchange)
        waiting = asyncio.wrap_future(job)
        try:
            while not (await asyncio.wait({waiting}, timeout=_TELL_EVERY_S))[0]:
                await exchange.tell()
        except asyncio.CancelledError:
            exchange.gone.set()
            with anyio.CancelScope(shield=True):
                while not (job.cancel() or job.done()):
                    session.cancel()  # what it runs, or is about to run
                    await asyncio.sleep(_LOOK_EVERY_S)
            raise
        told = waiting.result()
        if session.is_open:
            self._sessions.setdefault(session.session_id, session)
        else:
            self._sessions = {name: each for name, each in self._sessions.items() if each is not session}
            session.close()
        if told.asked is not None and exchange.asks_again:
            form = types.ElicitRequest(params=_form(told.asked))
            return types.InputRequiredResult(input_requests={told.asked.question.digest: form})
        await exchange.tell()
        text, facts = types.TextContent(text=told.text), {"session": session.session_id}
        return types.CallToolResult(content=[text], structured_content=facts, is_error=told.is_error)


class _Exchange:
    """What passes between a call and its client while it runs; the session's thread uses it."""

    def __init__(self, request: _Request, params: types.CallToolRequestParams, patience_s: float) -> None:
        self._request, self._patience_s = request, patience_s
        self._given = params.input_responses or {}
        self.is_again = bool(self._given)
        self._loop = asyncio.get_running_loop()
        self._output, self._told, self.show = (output := deque[str]()), 0, output.append
        self.gone, self.asks_again = threading.Event(), False
        self.is_gone = self.gone.is_set

    async def tell(self) -> None:
        """Tell what was printed, as progress."""
        if self._output:
            text = "".join(self._output.popleft() for _ in range(len(self._output)))
            self._told += len(text)
            await self._request.session.report_progress(self._told, None, text)

    def ask(self, asked: ApprovalAsked, is_answered: Callable[[], bool]) -> Answer | None:
        """Return the person's answer: from the client, else None once it was given elsewhere, or never.

        A client of 2026-07-28 gives it by making the call again.
        """
        session, given = self._request.session, self._given.get(asked.question.digest)
        answer = _answer_in(given) if isinstance(given, types.ElicitResult) else None
        able = session.client_capabilities and session.client_capabilities.elicitation
        can_ask = bool(given is None and able and (able.form or not able.url))
        self.asks_again = can_ask and not session.can_send_request
        if answer is not None or self.asks_again:
            return answer
        future = asyncio.run_coroutine_threadsafe(self._answered(asked, can_ask=can_ask), self._loop)
        while not (future.done() or is_answered() or self.gone.wait(_LOOK_EVERY_S)):
            pass
        return None if future.cancel() else future.result()

    async def _answered(self, asked: ApprovalAsked, *, can_ask: bool) -> Answer | None:
        """Return the client's answer; without one, None after a while in which it may come from elsewhere."""
        form = _form(asked)
        with contextlib.suppress(Exception):  # whatever a client answers wrongly is no answer of the person
            how = form.message, form.requested_schema, self._request.request_id
            if can_ask and (answer := _answer_in(await self._request.session.elicit_form(*how))):
                return answer
        self.show(f"{asked.name} waits for approval in a terminal or on the page\n")
        await asyncio.sleep(self._patience_s)
        return None


def _answer_in(given: types.ElicitResult) -> Answer | None:
    """Return the person's answer in a client's; None for none: some decline without asking anybody."""
    said = (given.content or {}).get("answer") if given.action == "accept" else None
    return Answer(said, how="client") if said in ("yes", "always", "no") else None  # type: ignore[arg-type]


def _form(asked: ApprovalAsked) -> types.ElicitRequestFormParams:
    question = asked.question
    heads = {Kind.FILES_CHANGED: "Keep these changes?", Kind.RUN_COMMAND: "Run this?"}
    head = heads.get(question.kind) or f"Approve {question.kind} {on_screen(question.subject)}?"
    shown = (unmasked if question.kind is Kind.RUN_COMMAND else on_screen)(question.shown)
    covers = [f'"always" covers: {each}' for each in question.grants]
    lines = [head, clip_middle(shown, _QUESTION_CHARACTERS), *(f"Why: {each}" for each in question.reasons)]
    choices = ["yes", *["always"] * bool(covers), "no"]
    answer = {"type": "string", "title": "Your answer", "enum": choices}
    schema = {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
    return types.ElicitRequestFormParams(message="\n".join((*lines, *covers)), requested_schema=schema)
