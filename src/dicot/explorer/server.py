"""The explorer's server: on 127.0.0.1 alone, to whoever knows a token that is new at every start."""

import base64
import csv
import hmac
import io
import json
import re
import secrets
import socket
import webbrowser
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Annotated, Any, Literal, final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dicot.core import __version__
from dicot.core.errors import DicotError, InputError, need_extra
from dicot.explorer.labelling import BY, CONFIRMED, ChangedMeanwhileError, Range
from dicot.explorer.page import INDEX, KINDS, Assets
from dicot.explorer.workspace import LABEL_ROWS, SERIES_ROWS, ExplorerWorkspace, harmless

try:
    import uvicorn
    from fastapi import FastAPI, HTTPException, Query, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse, PlainTextResponse, Response
    from pydantic import BaseModel, Field, StrictInt
except ImportError as error:
    raise need_extra("fastapi and uvicorn", "explore", "The explorer") from error

ADDRESS = "127.0.0.1"
PATIENCE = 3  # seconds that running requests have when the server ends
LONGEST_LEAST = 86_400.0  # seconds that a page may ask predictions to last at least
MOST = 1000  # neighbours or suggestions of one request
ROWS = "[0-9]{1,9}(,[0-9]{1,9})*"
LARGEST_BODY = 2**20  # bytes
TOKEN = b"x-dicot-token"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the first address holds the token
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


def listen(port: int) -> socket.socket:
    """Return a socket that listens on this port of 127.0.0.1, 0 for a free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((ADDRESS, port))
        listener.listen()
    except (OSError, OverflowError) as error:
        listener.close()
        raise InputError(f"Port {port} cannot be used: {error}. Choose another, or --port 0 for a free one.") from error
    return listener


def serve(
    workspace: ExplorerWorkspace,
    listener: socket.socket,
    assets: Assets,
    *,
    on_ready: Callable[[str], None],
    open_browser: bool = True,
) -> None:
    """Serve a workspace until Ctrl-C; `on_ready` is told the address, which holds the token."""
    port, token = listener.getsockname()[1], secrets.token_urlsafe(32)
    app = create_app(workspace, token, port, assets)
    address = f"http://{ADDRESS}:{port}/?token={token}"
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=PATIENCE, ws="none"
    )  # an access log would hold the token
    on_ready(address)
    if open_browser:
        webbrowser.open(address)  # it listens already: a browser that is quick waits
    try:
        with threadpool_limits(1):  # a browser without a GPU draws on the same cores
            uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:  # uvicorn has ended by itself and hands the signal on
        pass
    finally:
        listener.close()


@final
class Guard:
    """An ASGI application around another one, which sees only requests that may be answered.

    Another site in the same browser can send requests here under a name that it owns (DNS rebinding): the Host tells.
    It can send requests blindly: without the token nothing under /api is answered.
    """

    def __init__(self, app: App, token: str, port: int) -> None:
        self.app, self._token = app, token.encode()
        self._hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"The explorer answers HTTP alone; got {scope['type']}.")
        is_api = scope["path"] == "/api" or scope["path"].startswith("/api/")

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {**HEADERS, "Cache-Control": "no-store" if is_api else "no-cache"}
                headers = [(name.lower().encode(), value.encode()) for name, value in own.items()]
                message = {**message, "headers": [*message.get("headers", ()), *headers]}
            await send(message)

        async def refuse(status: int, sentence: str) -> None:
            headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
            await answer({"type": "http.response.start", "status": status, "headers": headers})
            await answer({"type": "http.response.body", "body": json.dumps({"detail": sentence}).encode()})

        hosts, tokens = ([value for key, value in scope["headers"] if key == name] for name in (b"host", TOKEN))
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            await refuse(400, "This server answers only under its own address; the Host is another one.")
            return
        if is_api and not (len(tokens) == 1 and hmac.compare_digest(tokens[0], self._token)):
            await refuse(403, "The token is missing or wrong. Open the address that `dicot explore` printed.")
            return
        body, more = b"", True
        while more and len(body) <= LARGEST_BODY:  # whatever length it announces
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)  # not where the browser is gone
        if len(body) > LARGEST_BODY:
            await refuse(413, f"The request is larger than {LARGEST_BODY} bytes. Choose fewer windows.")
            return
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        await self.app(scope, replay, answer)


def create_app(workspace: ExplorerWorkspace, token: str, port: int, assets: Assets) -> FastAPI:
    """Return the application that answers what the page may ask of a workspace."""
    app = FastAPI(title="dicot explorer", version=__version__, openapi_url=None)
    app.add_middleware(Guard, token=token, port=port)

    class Labelled(BaseModel, extra="forbid"):
        rows: list[StrictInt] = Field(min_length=1, max_length=LABEL_ROWS)
        label: str | None
        confirm: bool = False  # somebody has looked at it again

    class Chosen(BaseModel, extra="forbid"):
        rows: list[StrictInt] = Field(min_length=1, max_length=len(workspace))

    class Between(BaseModel, extra="forbid"):
        start: float = Field(allow_inf_nan=False)
        end: float = Field(allow_inf_nan=False)

    class Seen(BaseModel, extra="forbid"):
        start: float = Field(allow_inf_nan=False)
        end: float = Field(allow_inf_nan=False)
        label: str

    class Changed(BaseModel, extra="forbid"):
        """A range as the page shows it, if it is there, and as it shall be, if it shall stay.

        `over` is the label that the page shows at the new place, if there is one: it is replaced.
        """

        before: Seen | None
        after: Between | None
        label: str | None
        over: str | None = None

    class Wanted(BaseModel, extra="forbid"):
        k: StrictInt = Field(ge=1, le=MOST)
        hidden: str | None = None  # a bit for each window, the first of a byte lowest, in base64

    How = Annotated[int, Query(ge=1, le=MOST)]

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:]) or "the request"
        return JSONResponse({"detail": f"{where}: {first['msg']}."}, 422)

    @app.exception_handler(DicotError)
    def refused(request: Request, error: DicotError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 422 if isinstance(error, InputError) else 500)

    @app.exception_handler(ChangedMeanwhileError)
    def too_late(request: Request, error: ChangedMeanwhileError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 409)

    def checked(rows: list[int]) -> list[int]:
        for row in rows:
            if not 0 <= row < len(workspace):
                raise InputError(f"There is no row {row}; the rows are 0 to {len(workspace) - 1}.")
        return list(dict.fromkeys(rows))

    def binary(values: Any, kind: str) -> Response:
        return Response(values.astype(kind).tobytes(), media_type="application/octet-stream")

    @app.get("/")
    def page() -> Response:
        return asset(INDEX)

    @app.get("/assets/{name:path}")
    def asset(name: str) -> Response:
        if name not in assets:
            raise HTTPException(404, "There is no such file.")
        return Response(assets[name], media_type=f"{KINDS[name]}; charset=utf-8")

    @app.get("/favicon.ico")
    def icon() -> Response:
        return Response(status_code=204)

    app.get("/api/about")(workspace.about)
    app.get("/api/labels")(workspace.labelled)
    app.post("/api/doubts")(workspace.doubts)

    @app.get("/api/points")
    def points() -> Response:
        return binary(workspace.overview.points, "<f4")

    @app.get("/api/columns/{name}")
    def column(name: str) -> Response:
        columns = workspace.columns()
        if name not in columns:
            raise HTTPException(404, f"There is no column {name[:100]!r}. There are {', '.join(columns)}.")
        found = columns[name]()
        return binary(found.values, "<f8" if found.categories is None else "<i4")

    @app.get("/api/series")
    def series(rows: str) -> dict[str, Any]:
        if not re.fullmatch(ROWS, rows) or rows.count(",") >= SERIES_ROWS:
            raise InputError(f"rows must be up to {SERIES_ROWS} whole numbers with commas; got {rows[:100]!r}.")
        return {"series": workspace.windows(checked([int(row) for row in rows.split(",")]))}

    @app.get("/api/context")
    def context(row: int) -> dict[str, Any]:
        return workspace.context(*checked([row]))

    @app.get("/api/neighbours")
    def neighbours(row: int, k: How = 10) -> dict[str, Any]:
        rows, distances = workspace.neighbours(checked([row])[0], k)
        return {"rows": rows, "distances": distances}

    @app.get("/api/find")
    def find(recording: str, time: float) -> dict[str, int]:
        return {"row": workspace.find(recording, time)}

    @app.post("/api/labels")
    def label(given: Labelled) -> dict[str, Any]:
        workspace.labels.set(checked(given.rows), given.label, CONFIRMED if given.confirm else BY)
        return workspace.labelled()

    @app.post("/api/undo")
    def undo() -> dict[str, Any]:
        any_left = workspace.labels.given().can_undo
        undone = workspace.labels.undo()
        return {**workspace.labelled(), "undone": undone, "any": any_left}

    @app.post("/api/suggest")
    def suggest(wanted: Wanted) -> dict[str, Any]:
        return workspace.suggest(wanted.k, None if wanted.hidden is None else _flags(wanted.hidden, len(workspace)))

    @app.get("/api/why")
    def why(row: int) -> dict[str, Any]:
        return workspace.why(*checked([row]))

    @app.post("/api/classify")
    def classify() -> dict[str, Any]:
        return workspace.classify().told()

    @app.post("/api/export")
    def export(chosen: Chosen) -> Response:
        return PlainTextResponse(
            workspace.table(checked(chosen.rows)),
            media_type="text/csv",
            headers={"Content-Disposition": 'attachment; filename="windows.csv"'},
        )

    Seconds = Annotated[float | None, Query(gt=0, le=LONGEST_LEAST, allow_inf_nan=False)]

    @app.get("/api/recordings/{number}/ranges")
    def along(number: int, least: Seconds = None) -> dict[str, Any]:
        return workspace.along(number, least)

    @app.get("/api/recordings")
    def recordings() -> dict[str, Any]:
        return {"recordings": workspace.whole().about()}

    @app.get("/api/recordings/{number}")
    def recording(number: int) -> dict[str, Any]:
        return workspace.whole().detail(number).about()

    @app.get("/api/recordings/{number}/tile")
    def tile(number: int, level: int, tile: int) -> Response:
        values = workspace.whole().detail(number).tile(level, tile)
        return Response(values, media_type="application/octet-stream")

    @app.post("/api/recordings/{number}/ranges")
    def change(number: int, given: Changed) -> dict[str, Any]:
        whole = workspace.whole()
        if (given.after is None) != (given.label is None) or (given.before is None and given.after is None):
            raise InputError("A range that stays has a label, and one that goes has none.")
        changes: dict[Range, str | None] = {}
        seen: dict[Range, str | None] = {}
        if given.before is not None:
            old = whole.name(number), given.before.start, given.before.end
            changes[old], seen[old] = None, given.before.label
        if given.after is not None:
            new = whole.place(number, given.after.start, given.after.end)
            changes[new] = given.label
            seen.setdefault(new, given.over)  # a range that only gets another name stays where it is
        workspace.labels.change(changes, seen)
        return {**workspace.labelled(), **workspace.along(number)}

    @app.get("/api/ranges/{form}")
    def export_ranges(form: Literal["csv", "json"]) -> Response:
        text = workspace.labels.exported(form, workspace.known.begun())
        if form == "json":
            return Response(text, media_type="application/json")
        lines = ([harmless(cell) for cell in line] for line in csv.reader(io.StringIO(text)))
        csv.writer(out := io.StringIO(), lineterminator="\n").writerows(lines)
        return PlainTextResponse(out.getvalue(), media_type="text/csv")

    return app


def _flags(text: str, n: int) -> NDArray[np.bool_]:
    """Return n flags that were sent as bits in base64."""
    with suppress(ValueError):
        held = np.frombuffer(base64.b64decode(text, validate=True), np.uint8)
        if len(held) == -(-n // 8):
            return np.unpackbits(held, count=n, bitorder="little").astype(bool)
    raise InputError(f"hidden must hold a bit for each of the {n} windows, in base64; got {text[:40]!r}.")
