"""What the explorer's page may ask of a workspace, by address."""

import base64
import csv
import io
import re
from contextlib import suppress
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dicot.core import __version__
from dicot.core.errors import DicotError, InputError, need_extra
from dicot.explorer.guard import Guard
from dicot.explorer.labelling import BY, CONFIRMED, ChangedMeanwhileError, Range
from dicot.explorer.page import INDEX, KINDS, Assets
from dicot.explorer.workspace import LABEL_ROWS, SERIES_ROWS, ExplorerWorkspace, harmless

try:
    from fastapi import FastAPI, HTTPException, Query, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse, PlainTextResponse, Response
    from pydantic import BaseModel, Field, StrictInt
except ImportError as error:
    raise need_extra("fastapi and uvicorn", "explore", "The explorer") from error

LONGEST_LEAST = 86_400.0  # seconds that a page may ask predictions to last at least
MOST = 1000  # neighbours or suggestions of one request
ROWS = "[0-9]{1,9}(,[0-9]{1,9})*"

Count = Annotated[int, Query(ge=1, le=MOST)]
Seconds = Annotated[float | None, Query(gt=0, le=LONGEST_LEAST, allow_inf_nan=False)]


class LabelRequest(BaseModel, extra="forbid"):
    rows: list[StrictInt] = Field(min_length=1, max_length=LABEL_ROWS)
    label: str | None
    confirm: bool = False  # somebody has looked at it again


class RangePlace(BaseModel, extra="forbid"):
    start: float = Field(allow_inf_nan=False)
    end: float = Field(allow_inf_nan=False)


class LabelledRangePlace(BaseModel, extra="forbid"):
    start: float = Field(allow_inf_nan=False)
    end: float = Field(allow_inf_nan=False)
    label: str


class RangeChange(BaseModel, extra="forbid"):
    """A range as the page shows it, if it is there, and as it shall be, if it shall stay.

    `over` is the label that the page shows at the new place, if there is one: it is replaced.
    """

    before: LabelledRangePlace | None
    after: RangePlace | None
    label: str | None
    over: str | None = None


class SuggestionRequest(BaseModel, extra="forbid"):
    k: StrictInt = Field(ge=1, le=MOST)
    hidden: str | None = None  # a bit for each window, the first of a byte lowest, in base64


def create_app(workspace: ExplorerWorkspace, token: str, port: int, assets: Assets) -> FastAPI:
    """Return the application that answers what the page may ask of a workspace."""
    app = FastAPI(title="dicot explorer", version=__version__, openapi_url=None)
    app.add_middleware(Guard, token=token, port=port)
    _add_errors(app)
    _add_page(app, assets)
    _add_windows(app, workspace)
    _add_labels(app, workspace)
    _add_recordings(app, workspace)
    return app


def _add_errors(app: FastAPI) -> None:
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


def _add_page(app: FastAPI, assets: Assets) -> None:
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


def _add_windows(app: FastAPI, workspace: ExplorerWorkspace) -> None:
    """Add what is asked about windows: map, columns, series, neighbours and tables."""

    class ExportRequest(BaseModel, extra="forbid"):
        rows: list[StrictInt] = Field(min_length=1, max_length=len(workspace))

    app.get("/api/about")(workspace.about)

    @app.get("/api/points")
    def points() -> Response:
        return _binary(workspace.overview.points, "<f4")

    @app.get("/api/columns/{name}")
    def column(name: str) -> Response:
        columns = workspace.columns()
        if name not in columns:
            raise HTTPException(404, f"There is no column {name[:100]!r}. There are {', '.join(columns)}.")
        colouring = columns[name]()
        return _binary(colouring.values, "<f8" if colouring.categories is None else "<i4")

    @app.get("/api/series")
    def series(rows: str) -> dict[str, Any]:
        if not re.fullmatch(ROWS, rows) or rows.count(",") >= SERIES_ROWS:
            raise InputError(f"rows must be up to {SERIES_ROWS} whole numbers with commas; got {rows[:100]!r}.")
        numbers = [int(row) for row in rows.split(",")]
        return {"series": workspace.windows(_checked_rows(workspace, numbers))}

    @app.get("/api/context")
    def context(row: int) -> dict[str, Any]:
        _checked_rows(workspace, [row])
        return workspace.context(row)

    @app.get("/api/neighbours")
    def neighbours(row: int, k: Count = 10) -> dict[str, Any]:
        _checked_rows(workspace, [row])
        rows, distances = workspace.neighbours(row, k)
        return {"rows": rows, "distances": distances}

    @app.get("/api/find")
    def find(recording: str, time: float) -> dict[str, int]:
        return {"row": workspace.find(recording, time)}

    @app.get("/api/why")
    def why(row: int) -> dict[str, Any]:
        _checked_rows(workspace, [row])
        return workspace.why(row)

    @app.post("/api/export")
    def export(request: ExportRequest) -> Response:
        return PlainTextResponse(
            workspace.table(_checked_rows(workspace, request.rows)),
            media_type="text/csv",
            headers={"Content-Disposition": 'attachment; filename="windows.csv"'},
        )


def _add_labels(app: FastAPI, workspace: ExplorerWorkspace) -> None:
    """Add labels of windows, and what is learned from them."""
    app.get("/api/labels")(workspace.labelled)
    app.post("/api/doubts")(workspace.doubts)

    @app.post("/api/labels")
    def label(request: LabelRequest) -> dict[str, Any]:
        rows = _checked_rows(workspace, request.rows)
        workspace.labels.set(rows, request.label, CONFIRMED if request.confirm else BY)
        return workspace.labelled()

    @app.post("/api/undo")
    def undo() -> dict[str, Any]:
        was_any = workspace.labels.given().can_undo
        undone = workspace.labels.undo()
        return {**workspace.labelled(), "undone": undone, "any": was_any}

    @app.post("/api/suggest")
    def suggest(request: SuggestionRequest) -> dict[str, Any]:
        hidden = None if request.hidden is None else _flags(request.hidden, len(workspace))
        return workspace.suggest(request.k, hidden)

    @app.post("/api/classify")
    def classify() -> dict[str, Any]:
        return workspace.classify().told()

    @app.get("/api/ranges/{form}")
    def export_ranges(form: Literal["csv", "json"]) -> Response:
        text = workspace.labels.exported(form, workspace.known.begun())
        if form == "json":
            return Response(text, media_type="application/json")
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        for line in csv.reader(io.StringIO(text)):
            writer.writerow([harmless(cell) for cell in line])
        return PlainTextResponse(table.getvalue(), media_type="text/csv")


def _add_recordings(app: FastAPI, workspace: ExplorerWorkspace) -> None:
    """Add the large view: whole recordings, and ranges along them."""

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

    @app.get("/api/recordings/{number}/ranges")
    def along(number: int, least: Seconds = None) -> dict[str, Any]:
        return workspace.along(number, least)

    @app.post("/api/recordings/{number}/ranges")
    def change(number: int, request: RangeChange) -> dict[str, Any]:
        _change_range(workspace, number, request)
        return {**workspace.labelled(), **workspace.along(number)}


def _change_range(workspace: ExplorerWorkspace, number: int, request: RangeChange) -> None:
    """Move, name, make or take away one range of a recording."""
    stays = request.after is not None
    has_label = request.label is not None
    if stays != has_label or (request.before is None and not stays):
        raise InputError("A range that stays has a label, and one that goes has none.")
    recordings = workspace.whole()
    changes: dict[Range, str | None] = {}
    seen: dict[Range, str | None] = {}
    if request.before is not None:
        old = recordings.name(number), request.before.start, request.before.end
        changes[old] = None
        seen[old] = request.before.label
    if request.after is not None:
        new = recordings.place(number, request.after.start, request.after.end)
        changes[new] = request.label
        seen.setdefault(new, request.over)  # a range that only gets another name stays where it is
    workspace.labels.change(changes, seen)


def _checked_rows(workspace: ExplorerWorkspace, rows: list[int]) -> list[int]:
    """Return each row once; an error for one that is not there."""
    for row in rows:
        if not 0 <= row < len(workspace):
            raise InputError(f"There is no row {row}; the rows are 0 to {len(workspace) - 1}.")
    return list(dict.fromkeys(rows))


def _binary(values: Any, kind: str) -> Response:
    return Response(values.astype(kind).tobytes(), media_type="application/octet-stream")


def _flags(text: str, n: int) -> NDArray[np.bool_]:
    """Return n flags that were sent as bits in base64."""
    with suppress(ValueError):
        packed = np.frombuffer(base64.b64decode(text, validate=True), np.uint8)
        if len(packed) == -(-n // 8):
            return np.unpackbits(packed, count=n, bitorder="little").astype(bool)
    raise InputError(f"hidden must hold a bit for each of the {n} windows, in base64; got {text[:40]!r}.")
