"""What the page's server answers: the page with script and styles, and overview, queue and explanations as JSON.

Every answer has the headers that keep a browser from doing anything but showing this page. Only GET and HEAD are
answered, and only to browsers that asked for one of our names. What a request says is the filter, the numbers of rows
and of a job, and, from a trusted proxy, the user.
"""

import asyncio
import gzip
import json
import re
import traceback
from collections.abc import Callable, Collection
from hashlib import blake2b
from importlib.resources import files
from typing import Any
from weakref import WeakKeyDictionary

from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from slurm_sns.config.settings import WebSection
from slurm_sns.errors import BadInput, SnsError
from slurm_sns.log import LimitedLog, Log, printable
from slurm_sns.web.kept_overview import FIRST_ROWS, Ask, Busy, Explanations, KeptOverview, PageClock, Sight
from slurm_sns.web.page_types import NoAnswer
from slurm_sns.web.viewers import Viewer, Viewers

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
#: The files of the page, and what they are. "" is the page itself.
STATIC = {
    "": ("page.html", "text/html; charset=utf-8"),
    "page.css": ("page.css", "text/css; charset=utf-8"),
    "page.js": ("page.js", "text/javascript; charset=utf-8"),
    "uPlot.iife.min.js": ("uPlot.iife.min.js", "text/javascript; charset=utf-8"),
    "uPlot.min.css": ("uPlot.min.css", "text/css; charset=utf-8"),
}
#: So many lines of the log a minute at most are about requests.
MOST_LINES = 10
#: Rows of one answer, characters of a filter.
MOST_ROWS, LONGEST_FILTER = 1000, 200
#: A shorter answer is not worth compressing; level 5 takes 5 ms for 200 kB.
LEAST_COMPRESSED_BYTES, COMPRESSION = 1000, 5

_JOB = re.compile(r"([1-9][0-9]{0,9})(?:_([0-9]{1,10}))?")
_REMEDY = "On the controller: systemctl status sns-scheduler. Until it runs, Slurm itself starts the jobs."


class Body:
    """An answer's bytes, plain and compressed, with the tag by which a browser asks whether it has changed."""

    def __init__(self, content: bytes, kind: str, cache: str) -> None:
        self._content, self._kind, self._cache = content, kind, cache
        self._packed = gzip.compress(content, COMPRESSION, mtime=0) if len(content) >= LEAST_COMPRESSED_BYTES else b""
        self._tag = f'W/"{blake2b(content, digest_size=16).hexdigest()}"'

    def answer(self, request: Request) -> Response:
        """The answer to this request, without the content if the browser has it."""
        headers = {"ETag": self._tag, "Cache-Control": self._cache, "Vary": "Accept-Encoding"}
        if self._tag in (each.strip() for each in request.headers.get("if-none-match", "").split(",")):
            return Response(status_code=304, headers=headers)
        if self._packed and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self._packed, headers=headers | {"Content-Encoding": "gzip"}, media_type=self._kind)
        return Response(self._content, headers=headers, media_type=self._kind)


def _as_json(value: Any) -> Body:
    return Body(json.dumps(value, separators=(",", ":")).encode(), "application/json", "no-store")


class _Page:
    """The routes."""

    def __init__(self, overview: KeptOverview, explanations: Explanations, viewers: Viewers) -> None:
        self._overview, self._explanations, self._viewers = overview, explanations, viewers
        folder = files("slurm_sns.web") / "static"
        self._static = {
            name: Body((folder / file).read_bytes(), kind, "no-cache") for name, (file, kind) in STATIC.items()
        }
        self._looks: asyncio.Task[None] | None = None
        self._bodies: WeakKeyDictionary[Sight, Body] = WeakKeyDictionary()

    def routes(self) -> list[Route]:
        return [
            Route("/", self._file),
            Route("/static/{name}", self._file),
            Route("/api/overview", self._told(self._get_overview)),
            Route("/api/jobs", self._told(self._get_jobs)),
            Route("/api/explain", self._told(self._get_explanation)),
        ]

    async def _file(self, request: Request) -> Response:
        name = request.path_params.get("name", "")
        if not name:  # the browser asks for the overview next: the scheduler is asked while it loads the script
            self._looks = asyncio.create_task(self._overview.look_ahead())
        body = self._static.get(name)
        return PlainTextResponse("no such file", 404) if body is None else body.answer(request)

    def _told(self, get: Callable[[Request, Viewer], Any]) -> Callable[[Request], Any]:
        """A route whose errors are told as JSON."""

        async def told(request: Request) -> Response:
            try:
                address = request.client.host if request.client else ""
                named = request.headers.getlist(self._viewers.header) if self._viewers.header else []
                viewer = await to_thread.run_sync(self._viewers.of, address, named)
            except BadInput as problem:
                return _refusal(403, str(problem))
            try:
                answer: Body | Response = await get(request, viewer)
            except BadInput as problem:
                return _refusal(400, str(problem))
            except Busy as problem:
                return _refusal(429, str(problem))
            except SnsError as problem:
                return _refusal(503, str(problem), self._overview.silent_since_s, _REMEDY)
            return answer.answer(request) if isinstance(answer, Body) else answer

        return told

    async def _get_overview(self, _: Request, viewer: Viewer) -> Body:
        sight = await self._overview.sight(viewer)
        if sight not in self._bodies:
            self._bodies[sight] = await to_thread.run_sync(lambda: _as_json(sight.overview()))
        return self._bodies[sight]

    async def _get_jobs(self, request: Request, viewer: Viewer) -> Body:
        offset, limit = _number(request, "offset", 0, 10**9), _number(request, "limit", FIRST_ROWS, MOST_ROWS)
        words = request.query_params.get("q", "")
        if len(words) > LONGEST_FILTER:
            raise BadInput(f"q has {len(words)} characters; valid: at most {LONGEST_FILTER}")
        sight = await self._overview.sight(viewer)
        return await to_thread.run_sync(lambda: _as_json(sight.part(offset, limit, words)))

    async def _get_explanation(self, request: Request, viewer: Viewer) -> Body | Response:
        name = request.query_params.get("job", "")
        found = _JOB.fullmatch(name)
        if found is None:
            raise BadInput(f"job {name[:LONGEST_FILTER]!r}: valid are a job's number, as 41, and a task, as 41_7")
        if not viewer.may_ask:
            return _refusal(403, "explanations are for users whom a proxy has named; on a terminal: sns explain JOBID")
        job = {each: int(number) for each, number in zip(("job_id", "task"), found.groups(), strict=True) if number}
        try:
            return _as_json(await self._explanations.of(viewer, job))
        except BadInput as problem:
            return _refusal(404, str(problem))


def _number(request: Request, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name, str(default))
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) > most:
        raise BadInput(f"{name} {text[:20]!r}: valid is a whole number from 0 to {most}")
    return int(text)


def _refusal(status: int, error: str, since_s: float | None = None, remedy: str = "") -> Response:
    told: NoAnswer = {"error": error, "since_s": since_s, "remedy": remedy}
    return Response(json.dumps(told), status, {"Cache-Control": "no-store"}, "application/json")


class _Guarded:
    """The application behind the checks of all requests, with the headers of all answers."""

    def __init__(self, app: ASGIApp, hosts: Collection[str], log: Log) -> None:
        self._app, self._hosts, self._log = app, hosts, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_begun = False

        async def guarded(message: Message) -> None:
            nonlocal is_begun
            if message["type"] == "http.response.start":
                is_begun = True
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            await send(message)

        try:
            await self._answering(Headers(scope=scope))(scope, receive, guarded)
        except Exception as defect:  # noqa: BLE001 -- the outermost place: a defect costs one answer, and is told
            for line in traceback.format_exception(defect):
                for part in line.rstrip().splitlines():
                    self._log(printable(part))
            if not is_begun:
                await _refusal(500, "a defect, which is in the log of sns web")(scope, receive, guarded)

    def _answering(self, headers: Headers) -> ASGIApp:
        """The application, or the refusal of a browser that was led here by a name that is not ours (DNS rebinding)."""
        named = headers.getlist("host")
        host = re.sub(r":[0-9]*$", "", named[0]).lower() if len(named) == 1 else ""
        if host in self._hosts:
            return self._app
        return _refusal(421, f"host {host[:100]!r} is not one of this page's; web.hosts in sns.yaml lists them")


def application(
    ask: Ask,
    settings: WebSection,
    *,
    user_id_of: Callable[[str], int | None],
    admin_ids: Collection[int],
    log: Log,
    clock: PageClock = PageClock(),  # noqa: B008 -- a value that cannot be changed
) -> ASGIApp:
    """The application; `ask` sends a request to the scheduler, as one whom it treats as an admin."""
    limited = LimitedLog(log, MOST_LINES, clock.steady)
    viewers = Viewers(settings, user_id_of, admin_ids, limited, clock.steady)
    page = _Page(KeptOverview(ask, clock), Explanations(ask, clock), viewers)
    hosts = LOCAL_HOSTS | {each.lower() for each in settings.hosts}
    routes = Router(page.routes(), redirect_slashes=False)  # a redirection would name a host
    return _Guarded(routes, hosts, limited)
