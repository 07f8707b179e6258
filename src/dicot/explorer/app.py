"""The explorer's HTTP interface: what the page may ask of a workspace."""

import re
from typing import TYPE_CHECKING, Annotated, Any

from dicot import __version__
from dicot.core.errors import DicotError, InputError, need_extra
from dicot.explorer.assets import INDEX, Assets
from dicot.explorer.guard import Guard
from dicot.explorer.workspace import LABEL_ROWS, SERIES_ROWS, ExplorerWorkspace

if TYPE_CHECKING:
    from fastapi import FastAPI

MOST = 1000  # neighbours or suggestions of one request
ROWS = "[0-9]{1,9}(,[0-9]{1,9})*"


def create_app(workspace: ExplorerWorkspace, token: str, port: int, assets: Assets) -> "FastAPI":
    """Return the application that serves a workspace on 127.0.0.1, to whoever knows the token."""
    try:
        from fastapi import FastAPI, HTTPException, Query, Request
        from fastapi.exceptions import RequestValidationError
        from fastapi.responses import JSONResponse, PlainTextResponse, Response
        from pydantic import BaseModel, ConfigDict, Field, StrictInt
    except ImportError as error:
        raise need_extra("fastapi", "explore", "The explorer") from error

    app = FastAPI(title="dicot explorer", version=__version__, openapi_url=None)
    app.add_middleware(Guard, token=token, port=port)

    class Labelled(BaseModel):
        model_config = ConfigDict(extra="forbid")
        rows: list[StrictInt] = Field(min_length=1, max_length=LABEL_ROWS)
        label: str | None

    class Chosen(BaseModel):
        model_config = ConfigDict(extra="forbid")
        rows: list[StrictInt] = Field(min_length=1, max_length=len(workspace))

    How = Annotated[int, Query(ge=1, le=MOST)]

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:]) or "the request"
        return JSONResponse({"detail": f"{where}: {first['msg']}."}, 422)

    @app.exception_handler(DicotError)
    def refused(request: Request, error: DicotError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 422 if isinstance(error, InputError) else 500)

    def checked(rows: list[int]) -> list[int]:
        for row in rows:
            if not 0 <= row < len(workspace):
                raise InputError(f"There is no row {row}; the rows are 0 to {len(workspace) - 1}.")
        return list(dict.fromkeys(rows))

    def binary(values: Any, kind: str) -> Response:
        return Response(values.astype(kind).tobytes(), media_type="application/octet-stream")

    @app.get("/")
    def page() -> Response:
        return Response(assets[INDEX].content, media_type=assets[INDEX].kind)

    @app.get("/favicon.ico")
    def icon() -> Response:
        return Response(status_code=204)

    @app.get("/assets/{name:path}")
    def asset(name: str) -> Response:
        if name not in assets:
            raise HTTPException(404, "There is no such file.")
        return Response(assets[name].content, media_type=assets[name].kind)

    @app.get("/api/about")
    def about() -> dict[str, Any]:
        return workspace.about()

    @app.get("/api/points")
    def points() -> Response:
        return binary(workspace.overview.points, "<f4")

    @app.get("/api/columns/{name}")
    def column(name: str) -> Response:
        try:
            found = workspace.column(name)
        except KeyError as error:
            known = ", ".join(workspace.column_names())
            raise HTTPException(404, f"There is no column {name[:100]!r}. There are {known}.") from error
        return binary(found.values, "<f4" if found.categories is None else "<i4")

    @app.get("/api/series")
    def series(rows: str) -> dict[str, Any]:
        if not re.fullmatch(ROWS, rows):
            raise InputError(f"rows must be whole numbers separated by commas; got {rows[:100]!r}.")
        numbers = [int(row) for row in rows.split(",")]
        if len(numbers) > SERIES_ROWS:
            raise InputError(f"At most {SERIES_ROWS} rows at once; got {len(numbers)}.")
        return {"series": workspace.windows(checked(numbers))}

    @app.get("/api/context")
    def context(row: int) -> dict[str, Any]:
        (row,) = checked([row])
        return workspace.context(row)

    @app.get("/api/neighbours")
    def neighbours(row: int, k: How = 10) -> dict[str, Any]:
        (row,) = checked([row])
        rows, distances = workspace.neighbours(row, k)
        return {"rows": rows, "distances": distances}

    @app.get("/api/find")
    def find(recording: str, time: float) -> dict[str, int]:
        try:
            return {"row": workspace.find(recording, time)}
        except InputError as error:
            raise HTTPException(404, str(error)) from error

    @app.get("/api/labels")
    def labels() -> dict[str, Any]:
        return workspace.labelled()

    @app.post("/api/labels")
    def label(given: Labelled) -> dict[str, Any]:
        workspace.labels.set(checked(given.rows), given.label)
        return workspace.labelled()

    @app.post("/api/undo")
    def undo() -> dict[str, Any]:
        undone = workspace.labels.undo()
        return {**workspace.labelled(), "undone": undone}

    @app.get("/api/suggest")
    def suggest(k: How = 20) -> dict[str, Any]:
        rows, reason = workspace.suggest(k)
        return {"rows": rows, "reason": reason}

    @app.post("/api/classify")
    def classify() -> dict[str, Any]:
        found = workspace.classify()
        return {"sentence": found.sentence, "warnings": list(found.warnings)}

    @app.post("/api/export")
    def export(chosen: Chosen) -> Response:
        return PlainTextResponse(
            workspace.table(checked(chosen.rows)),
            media_type="text/csv",
            headers={"Content-Disposition": 'attachment; filename="windows.csv"'},
        )

    return app
