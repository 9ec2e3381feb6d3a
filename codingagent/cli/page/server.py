"""The page's server: its views, and what a click does. All work is a command of codingagent's own."""

import asyncio
import contextlib
import socket
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import jinja2
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from codingagent.agent.answers import save_answer
from codingagent.cli.page import access, queries
from codingagent.cli.page.queries import PageState
from codingagent.cli.page.view import SessionView, Story, files_of, markdown, rows, when
from codingagent.cli.page.workers import Done, Worker, run, words_of
from codingagent.errors import CodingAgentError, UsageError
from codingagent.model import journal_entries, observations, plain_text, settings
from codingagent.model.session_state import Session
from codingagent.storage import clock, lock, mailbox
from codingagent.storage.homes import Home

_HERE = Path(__file__).parent

# What another process does is looked for so often; what one of ours does is known at once.
_LOOK_S = 0.4
# Records that come together are shown together.
_GATHER_S = 0.01

_WAITS = "that waits until the command that runs now has ended"

Form = dict[str, str]


class Page:
    """The views of one home, and the processes that work for it."""

    def __init__(self, desk: PageState) -> None:
        self.desk = desk
        self.is_closing = False
        self._workers: dict[str, Worker] = {}
        self._stories = defaultdict[str, Story](Story)
        self._listeners: dict[str, set[asyncio.Event]] = {}
        self._choosing: asyncio.Task[Done] | None = None
        self._trying: asyncio.Task[dict[str, object]] | None = None
        self._reviewed: dict[str, tuple[int, bytes, str]] = {}
        """By session: the request whose answer is reviewed, that answer, and what was shown of it."""
        loader = jinja2.FileSystemLoader(_HERE / "templates")
        self._templates = jinja2.Environment(
            loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_shown
        )
        self._templates.filters.update(when=when, markdown=markdown)
        for name in ("shell.html", "begin.html", "session.html", "view.html"):
            self._templates.get_template(name)  # compiled before anybody waits
        chats = queries.chat_links(desk.settings)
        self._templates.globals.update(desk=desk, chats=chats, chat=settings.chats()[desk.settings.chat])

    def routes(self) -> list[Route | Mount]:
        get, post = partial(Route, methods=["GET"]), partial(Route, methods=["POST"])
        one = "/s/{id}"
        return [
            get("/", self._overview),
            post("/begin", self._begin),
            post("/choice", self._choice),
            post("/try", self._try),
            get("/try", self._tried),
            post("/find", self._find),
            get("/files", self._files),
            get(one, self._session),
            get(f"{one}/events", self._events),
            get(f"{one}/request", self._request_text),
            get(f"{one}/turn/{{turn:int}}", self._turn),
            get(f"{one}/file", self._file),
            get(f"{one}/beside", self._beside),
            post(f"{one}/answer", self._answer),
            post(f"{one}/review", self._review),
            post(f"{one}/{{action}}", self._act),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ]

    async def close(self) -> None:
        self.is_closing = True
        for listeners in self._listeners.values():
            for each in listeners:
                each.set()
        await asyncio.gather(*(worker.end() for worker in self._workers.values()))

    # --- views ---------------------------------------------------------------------------------

    def html(self, template: str, status: int = 200, /, **values: object) -> HTMLResponse:
        text = self._templates.get_template(template).render(values)
        return HTMLResponse(text, status_code=status)

    def said(self, *lines: str, fault: str = "") -> HTMLResponse:
        """Return what is shown of an action: remarks, or why it failed."""
        return self.html("said.html", 422 if fault else 200, lines=lines, fault=fault)

    def _overview(self, _: Request) -> Response:
        said = [self.desk.fault] if self.desk.fault else []
        home = self.desk.home()
        found = [] if home is None else rows(home, said.append)
        check = self.desk.settings.check or queries.proposed_check(self.desk)
        return self.html("begin.html", 200, sessions=found, said=said, check=check)

    async def _choice(self, request: Request) -> Response:
        """Show what the first request would show for the task as it is typed."""
        form = await _form(request)
        task = form.get("task", "").strip()
        if self._choosing is not None:
            self._choosing.cancel()  # a newer text took its place
        if not task:
            return HTMLResponse("")
        words = [*self.desk.words, "context", f"--workspace={self.desk.workspace}", "--json", "-"]
        self._choosing = asyncio.create_task(run([*words, *self._given(form)], task.encode()))
        try:
            done = await self._choosing
        except asyncio.CancelledError:
            return Response(status_code=204)
        if done.fault:
            return self.said(fault=done.fault)
        parts: dict[str, dict[str, Any]] = {}
        for each in (each for each in done.objects if "path" in each):
            of_file = parts.setdefault(each["path"], {**each, "tokens": 0})
            of_file["tokens"] += each.get("tokens", 0)
        guide = 0 if form.get("guide") else queries.guide_tokens(form.get("wants", ""))
        left_out = _many(form, "leave_out")
        return self.html("choice.html", parts=[*parts.values()], left_out=left_out, guide=guide)

    def _given(self, form: Form) -> Iterator[str]:
        """Yield the options of the task that is typed."""
        if form.get("wants") != "words" and (check := form.get("check", "").strip()):
            yield f"--check={check}"
        yield from (f"--attach={self.desk.workspace / path}" for path in _many(form, "attach"))
        yield from (f"--leave-out={path}" for path in _many(form, "leave_out"))

    def _files(self, request: Request) -> Response:
        query, root = request.query_params, self.desk.workspace
        folder, session_id = query.get("folder", ""), query.get("session", "")
        if session_id and (home := self.desk.home()) is not None:
            root = Path(home.sessions.load(session_id).workspace)
        values = {"folder": folder, "session": session_id, "parts": "parts" in query}
        return self.html("files.html", found=queries.entries(self.desk, root, folder), **values)

    async def _find(self, request: Request) -> Response:
        """Say where in the workspace a dropped file lies: a browser tells its name and bytes only."""
        name = request.query_params.get("name", "")
        body = await request.body()
        return PlainTextResponse(await run_in_threadpool(queries.find, self.desk, name, body))

    async def _session(self, request: Request) -> Response:
        home, session_id = self._named(request)
        stamp = self._stamp(home, session_id)
        view = await run_in_threadpool(self._view, home, session_id)
        await self._wait_for_answer(home, view.session)
        # The output of a command may go on before the browser listens: then it is shown anew.
        values = {"shown": "" if view.is_at_work else stamp, **self._values(view)}
        return await run_in_threadpool(partial(self.html, "session.html", 200, **values))

    def _view(self, home: Home, session_id: str) -> SessionView:
        return SessionView(home, session_id, self._worker(session_id), self._stories[session_id])

    def _values(self, view: SessionView) -> dict[str, object]:
        number, _, plan = self._reviewed.get(view.id, (0, b"", ""))
        return {"view": view, "plan": plan * (number == view.session.sequence)}

    def _stamp(self, home: Home, session_id: str) -> str:
        """Return what changes when there may be something new to see of a session."""
        found, worker = home.sessions.journal_path(session_id).stat(), self._worker(session_id)
        is_waited_for = lock.is_held(home.waiting_path(session_id))
        return f"{found.st_size}-{found.st_mtime_ns}-{is_waited_for}-{worker.version}"

    async def _events(self, request: Request) -> Response:
        home, session_id = self._named(request)
        stream = self._stream(home, session_id, request.query_params.get("shown", ""))
        return StreamingResponse(stream, media_type="text/event-stream")

    async def _stream(self, home: Home, session_id: str, shown: str) -> AsyncIterator[str]:
        """Yield the view when its stamp is no longer `shown`, and the output of a command as it comes."""
        worker, news = self._worker(session_id), asyncio.Event()
        listeners = self._listeners.setdefault(session_id, set())
        listeners.add(news)
        written = worker.written
        try:
            while not self.is_closing:
                stamp = self._stamp(home, session_id)
                if stamp != shown:
                    shown, written = stamp, worker.written
                    view = await run_in_threadpool(self._view, home, session_id)
                    template = self._templates.get_template("view.html")
                    yield _event(await run_in_threadpool(template.render, self._values(view)))
                    await self._wait_for_answer(home, view.session)
                elif worker.written != written:
                    piece = worker.output[written - worker.written :]
                    written = worker.written
                    yield _event(self._templates.get_template("output.html").render(text=piece))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), _LOOK_S)
                    await asyncio.sleep(_GATHER_S)
                news.clear()
            yield "event: closed\ndata:\n\n"  # who listens on this port next is somebody else
        except CodingAgentError as fault:
            said = self._templates.get_template("said.html").render(fault=str(fault), lines=())
            yield _event(said)
        finally:
            listeners.discard(news)

    def _request_text(self, request: Request) -> Response:
        text = queries.request_text(*self._named(request), request.query_params)
        kind = "attachment" if "download" in request.query_params else "inline"
        return PlainTextResponse(text, headers={"Content-Disposition": f'{kind}; filename="request.txt"'})

    def _turn(self, request: Request) -> Response:
        home, session_id = self._named(request)
        turn = request.path_params["turn"]
        found = queries.turn(home, session_id, turn, request.query_params)
        return self.html("turn.html", 200, id=session_id, turn=turn, files=found)

    def _file(self, request: Request) -> Response:
        sides = queries.file(*self._named(request), request.query_params)
        return self.html("file.html", 200, path=request.query_params.get("path", ""), sides=sides)

    def _beside(self, request: Request) -> Response:
        name, data = queries.beside(*self._named(request), request.query_params.get("path", ""))
        # Never shown by the browser: it is saved, or dragged.
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}
        return Response(data, media_type="application/octet-stream", headers=headers)

    # --- actions -------------------------------------------------------------------------------

    async def _begin(self, request: Request) -> Response:
        form = await _form(request)
        name = "ask" if form.get("wants") == "words" else "new"
        words = [*self.desk.begin(name), "--json"]
        if name == "new":
            words.append(f"--guide={'installed' if form.get('guide') else 'whole'}")
        words += self._given(form)
        if name == "new" and (count := form.get("chats", "").strip()):
            words += [f"--chats={count}", *["--auto"] * ("auto" in form)]
        # The same process then waits for the answer, and for what the check says.
        worker = Worker((), lambda: self._wake(worker.session_id))
        await worker.begin(*words, "-", data=form.get("task", "").encode())
        if not await worker.has_begun():
            return self.said(fault=worker.fault or "no request was written")
        worker.home = self.desk.words
        self._workers[worker.session_id] = worker
        return Response(headers={"HX-Redirect": f"/s/{worker.session_id}"})

    async def _try(self, request: Request) -> Response:
        """Begin to run the check that is typed, as it will be run after changes; or stop it."""
        form = await _form(request)
        if self._trying is not None:
            self._trying.cancel()
        if "stop" in form:
            return self.html("tried.html", told="stopped")
        self._trying = asyncio.create_task(queries.check_tried(self.desk, form.get("check", "")))
        return self.html("tried.html", begun=clock.now())

    async def _tried(self, _: Request) -> Response:
        """Say how it ended, once it has."""
        with contextlib.suppress(asyncio.CancelledError):  # who stopped it says so
            if self._trying is not None:
                return self.html("tried.html", 200, **await asyncio.shield(self._trying))
        return Response(status_code=204)

    async def _answer(self, request: Request) -> Response:
        """Take an answer: as text, or as a file."""
        home, session_id = self._named(request)
        query, in_thread = request.query_params, run_in_threadpool
        session = await in_thread(self._stories[session_id].read_on, home, session_id)
        if digest := query.get("reviewed"):
            _, data, _ = self._reviewed.get(session_id, (0, b"", ""))
            if observations.digest_of(data) != digest:
                raise UsageError("another answer is looked at by now: give this one again")
        else:
            data = await in_thread(self._given_in, session, query, await request.body())
        if "unsure" in query and not await in_thread(queries.looks_like_answer, data, session):
            return self.html("unsure.html", 409)
        if query.get("sequence", "") not in ("", str(session.sequence)):
            raise UsageError(f"request {session.sequence} waits by now: nothing was taken")
        if not session.is_awaiting_answer:
            raise UsageError("no request waits for an answer at the moment")
        worker = self._worker(session_id)
        # Whatever stopped earlier: who gives an answer wants it taken.
        worker.fault, worker.is_stopped = "", False
        if skip := query.get("skip"):
            if session.chats:
                raise UsageError("it is tried whole, in a copy: tick all of it")
            await in_thread(queries.refuse_other, data, session)
            with queries.answer_file(data) as path:
                how = (f"--accept={path}", f"--skip={skip}")
                await worker.begin("resume", session_id, "--json", *how, instead=True)
                await self._taken(home, session_id, session.sequence, worker)
            return self.said()
        await run_in_threadpool(save_answer, home, session, data)
        await self._wait_for_answer(home, session)
        return self.said()

    def _given_in(self, session: Session, query: QueryParams, body: bytes) -> bytes:
        return queries.answer_in(self.desk, session, body, query.getlist("name"), query.getlist("size"))

    async def _review(self, request: Request) -> Response:
        """Show what an answer would do, and do nothing."""
        home, session_id = self._named(request)
        in_thread = run_in_threadpool
        session = await in_thread(self._stories[session_id].read_on, home, session_id)
        data = await in_thread(self._given_in, session, request.query_params, await request.body())
        await run_in_threadpool(queries.refuse_other, data, session)
        with queries.answer_file(data) as path:
            done = await run([*self.desk.words, "resume", session_id, "--json", f"--dry-run={path}"])
        if done.fault:
            return self.said(fault=done.fault)
        plan = [each for each in done.objects if each.get("kind") == "rehearsed"]
        html = await run_in_threadpool(self._plan, session.sequence, observations.digest_of(data), plan)
        self._reviewed[session_id] = session.sequence, data, bytes(html.body).decode()
        return html

    def _plan(self, sequence: int, digest: str, plan: list[dict[str, object]]) -> Response:
        is_diff = (str(each["operation"]).endswith("_FILE") and not each["fault"] for each in plan)
        texts = [str(each["difference"]) * has for each, has in zip(plan, is_diff, strict=True)]
        shown = zip(plan, map(files_of, texts), strict=True)
        return self.html("review.html", 200, sequence=sequence, digest=digest, plan=shown)

    async def _act(self, request: Request) -> Response:
        home, session_id = self._named(request)
        form, worker = await _form(request), self._worker(session_id)
        action = request.path_params["action"]
        session = await run_in_threadpool(self._stories[session_id].read_on, home, session_id)
        is_in_turn = not (session.is_awaiting_answer or session.is_complete)
        match action:
            case "stop":
                # A turn that ended meanwhile has nothing to stop.
                if is_in_turn:
                    worker.is_stopped = True
                    await worker.end()
            case "go-on":
                await worker.begin("resume", session_id, "--json")
            case "approve" | "deny":
                await self._decide(action, form, session, worker)
            case "drop":
                self._reviewed.pop(session_id, None)
            case "check" | "chats":
                if is_in_turn:
                    raise UsageError("a turn is at work: change it when that has ended")
                given = [f"--{action}={form.get(action, '').strip()}", *["--auto"] * ("auto" in form)]
                await worker.begin("resume", session_id, "--json", *given, instead=True)
            case _:
                if action == "undo" and not form.get("path"):
                    view = await run_in_threadpool(self._view, home, session_id)
                    turns = [each for each in view.turns if str(each.number) == form.get("turn")]
                    if not turns or not turns[0].undoes:
                        raise UsageError("that turn is undone already: nothing was done")
                    form["turns"] = str(turns[0].undoes)
                words_of(action, session, form)  # what can't be is refused at once
                if worker.is_running and is_in_turn:
                    worker.remarks.append(_WAITS)
                    worker.version += 1
                    self._wake(session_id)
                async with worker.acts:  # of two ticks, the second builds on what the first left out
                    session = await run_in_threadpool(self._stories[session_id].read_on, home, session_id)
                    words, data = words_of(action, session, form)
                    done = await run([*self.desk.words, *words], data)
                with contextlib.suppress(ValueError):
                    worker.remarks.remove(_WAITS)
                worker.version += 1
                self._wake(session_id)
                return self.said(*(e for e in done.remarks if e not in worker.remarks), fault=done.fault)
        return self.said()

    async def _decide(self, action: str, form: Form, session: Session, worker: Worker) -> None:
        asked = session.asked if session.is_awaiting_approval else None
        if asked is None or form.get("question") != f"{asked.index} {asked.at}":
            raise UsageError("that question is answered already: nothing was done")
        reason = form.get("reason", "").strip()
        more = [f"--reason={reason}"] if reason and action == "deny" else []
        more += ["--always"] if form.get("always") and action == "approve" else []
        # A model may name an operation like an option.
        named = ("--", session.session_id, asked.name)
        await worker.begin(action, *more, "--json", *named, instead=True)

    # --- processes -----------------------------------------------------------------------------

    def _worker(self, session_id: str) -> Worker:
        if session_id not in self._workers:
            self._workers[session_id] = Worker(self.desk.words, partial(self._wake, session_id))
        return self._workers[session_id]

    def _wake(self, session_id: str) -> None:
        for each in self._listeners.get(session_id, ()):
            each.set()

    async def _wait_for_answer(self, home: Home, session: Session) -> None:
        """Have a process wait for the answer, unless one does, or the person stopped it."""
        worker = self._worker(session.session_id)
        is_free = not (worker.is_running or worker.is_stopped or worker.fault)
        is_free = is_free and session.is_awaiting_answer
        if is_free and not lock.is_held(home.waiting_path(session.session_id)):
            # A session that is closed meanwhile stays so.
            await worker.begin("resume", session.session_id, "--json", "--unless-done")

    async def _taken(self, home: Home, session_id: str, sequence: int, worker: Worker) -> None:
        """Wait until an answer is in the journal, or can't be taken."""
        while worker.is_running:
            session = await run_in_threadpool(self._stories[session_id].read_on, home, session_id)
            if session.sequence != sequence or not session.is_awaiting_answer:
                return
            await asyncio.sleep(_GATHER_S)

    def _named(self, request: Request) -> tuple[Home, str]:
        home, session_id = self.desk.home(), request.path_params["id"]
        if home is None or not journal_entries.is_session_id(session_id):
            raise UsageError(f"there is no session '{session_id}' here")
        home.sessions.journal_path(session_id)
        return home, session_id


def _shown(value: object) -> object:
    """Return a text as the page shows it: what controls the display, or its direction, is made visible."""
    return plain_text.on_screen(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _event(html: str) -> str:
    """Return a message of a stream of server-sent events."""
    lines = html.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "".join(f"data: {line}\n" for line in lines) + "\n"


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form; a field given several times is joined by line ends."""
    body = (await request.body()).decode("utf-8", "replace")
    if "%00" in body or "\0" in body:
        raise UsageError("a NUL can't be in a field: nothing was done")
    return {name: "\n".join(each) for name, each in parse_qs(body, keep_blank_values=True).items()}


def _many(form: Form, name: str) -> list[str]:
    return [each for each in form.get(name, "").split("\n") if each]


class _Server(uvicorn.Server):
    """A server that ends the streams of its page when it is to end."""

    page: Page

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self.page.close()
        await super().shutdown(sockets)


def serve(desk: PageState, listening: socket.socket, opened: Callable[[str], None]) -> None:
    """Serve the page until Ctrl-C; `opened` gets its address, which lets in who has it."""
    page = Page(desk)

    async def failed(request: Request, fault: Exception) -> Response:
        is_known = isinstance(fault, CodingAgentError | OSError)
        told = str(fault) if is_known else f"this is a fault of codingagent: {fault!r}"
        if request.headers.get("hx-request-type") == "full":
            return page.html("fault.html", 404 if is_known else 500, fault=told)
        return page.said(fault=told)

    handlers: dict[Any, Any] = dict.fromkeys((CodingAgentError, OSError, Exception), failed)
    app = Starlette(routes=page.routes(), exception_handlers=handlers)
    limits = dict.fromkeys(("answer", "review"), mailbox.REPLY_LIMIT_BYTES)
    walls = access.Walls(app, partial(page.html, "shell.html"), listening.getsockname()[1], limits)
    server = _Server(access.config_of(walls))
    server.page = page
    with contextlib.suppress(KeyboardInterrupt):
        opened(walls.entrance)  # the system keeps who asks before it runs
        server.run([listening])
