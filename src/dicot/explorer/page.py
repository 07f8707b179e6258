"""The page, built from web/, and a self-contained one to send to a colleague, with up to 20,000 windows in it."""

import base64
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, is_whole
from dicot.core.progress import Bar
from dicot.core.storage import check_writable, write_atomic
from dicot.data.inspection import stretched
from dicot.explorer.workspace import ExplorerWorkspace
from dicot.store.search import EmbeddingIndex
from dicot.store.series import Series
from dicot.use.projection import drawn_rows

INDEX, SCRIPT, STYLE = "index.html", "app.js", "app.css"
KINDS = {INDEX: "text/html", SCRIPT: "text/javascript", STYLE: "text/css"}
MOST_WINDOWS = 20_000
NEIGHBOURS = 8
MOST_POINTS = 128  # of a window's channel
SERIES_BYTES = 24_000_000  # of all series together: a page that a mail may carry
TAILS = 0.001  # share of the values on each side that the scale need not hold whole
LEVELS, MISSING = 254, 255  # of a byte: levels from 0 on, and what says that there is no value
# The page reaches nobody: everything is in it.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"

Rows = NDArray[np.intp]


Assets = Mapping[str, bytes]  # the files of KINDS by name


def load_assets(folder: Traversable | None = None) -> Assets:
    """Read the files of the page; without the folder they come from the installed package."""
    folder = files("dicot.explorer").joinpath("assets") if folder is None else folder
    if lacking := [name for name in KINDS if not folder.joinpath(name).is_file()]:
        said = f"The explorer's page is not built: {folder} has no {lacking[0]}."
        raise InputError(f"{said} Install dicot from a wheel, or build it: npm ci && npm run build in web/.")
    return {name: folder.joinpath(name).read_bytes() for name in KINDS}


def rows_of_page(n: int, sample: int | None) -> Rows:
    """Return the rows that a page shows: all, or so many that are drawn."""
    count = n if sample is None else sample
    if not is_whole(count, 1) or min(n, count) > MOST_WINDOWS:
        raise InputError(f"A page holds 1 to {MOST_WINDOWS} windows; got {count!r}. Draw some: --set sample=20000.")
    return drawn_rows(n, count, 0)


def write_page(path: Path, workspace: ExplorerWorkspace, rows: Rows, assets: Assets) -> None:
    """Write the page, whole or not at all."""
    check_writable(path)
    write_atomic(path, page_text(workspace, rows, assets).encode())


def page_text(workspace: ExplorerWorkspace, rows: Rows, assets: Assets) -> str:
    """Return the page as it stands in its file."""
    data = json.dumps(content(workspace, rows), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return joined(assets, data)


def content(workspace: ExplorerWorkspace, rows: Rows) -> dict[str, Any]:
    """Return what the page holds of some windows, which are numbered anew, from 0."""
    columns = {name: make() for name, make in workspace.columns().items()}
    labels = workspace.labels.given().all
    return {
        "about": {**workspace.about(), "n": len(rows)},
        "points": _packed(workspace.overview.points[rows], "<f4"),
        "columns": {
            name: _packed(column.values[rows], "<f8" if column.categories is None else "<i4")
            for name, column in columns.items()
        },
        "series": None if workspace.series is None else _series(workspace.series, rows),
        "rows": [workspace.describe(row, str(labels[row])) for row in rows.tolist()],
        "neighbours": _packed(_neighbours(workspace, rows), "<i4"),
    }


def _packed(values: Any, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, kind).tobytes()).decode()


def _series(series: Series, rows: Rows) -> dict[str, Any]:
    """Return the values of the windows as levels between the ends of each channel's scale."""
    n_channels = len(series.channels)
    room = SERIES_BYTES // max(1, len(rows) * n_channels)
    n_points = max(2, min(MOST_POINTS, room) // 2 * 2)
    values = np.full((len(rows), n_channels, n_points), np.nan, np.float32)
    with Bar("Series", len(rows)) as bar:
        for place, row in enumerate(rows.tolist()):
            window = series.window(row)
            if window is not None and window.shape[1]:
                values[place] = stretched(window, n_points)
            bar.update(place)
    scale = [_scale(values[:, channel]) for channel in range(n_channels)]
    levels = np.empty(values.shape, np.uint8)
    for channel, (low, high) in enumerate(scale):
        there = np.isfinite(values[:, channel])
        share = (np.where(there, values[:, channel], low) - low) / ((high - low) or 1.0)
        levels[:, channel] = np.where(there, np.round(np.clip(share, 0, 1) * LEVELS), MISSING)
    return {"points": n_points, "scale": scale, "missing": MISSING, "data": _packed(levels, "u1")}


def _scale(values: NDArray[np.float32]) -> tuple[float, float]:
    """Return the ends of a channel's scale: the extremes, unless a few of them lie so far out that nothing is left."""
    known = values[np.isfinite(values)].astype(np.float64)
    if not len(known):
        return 0.0, 0.0
    low, high = np.quantile(known, [TAILS, 1 - TAILS]).tolist()
    return max(float(known.min()), low - (high - low)), min(float(known.max()), high + (high - low))


def _neighbours(workspace: ExplorerWorkspace, rows: Rows) -> NDArray[np.int32]:
    """Return the nearest among the windows of the page (n, 8), -1 where there are fewer."""
    x = workspace.known.x[rows]
    index = EmbeddingIndex(x, **{name: values[rows] for name, values in workspace.known.columns().items()})
    left_out = [index.overlapping(row) for row in range(len(rows))]
    near = np.full((len(rows), NEIGHBOURS), -1, np.int32)
    pointed = np.flatnonzero(x.any(axis=1))  # a vector of zeros has no direction
    with Bar("Neighbours", len(pointed)) as bar:
        for start in range(0, len(pointed), 1000):
            part = pointed[start : start + 1000]
            near[part] = index.query(x[part], NEIGHBOURS, leave_out=[left_out[one] for one in part])[1]
            bar.update(start)
    return near


def joined(assets: Assets, data: str) -> str:
    """Put style, script and data into the page, which then needs no other file."""
    page, script, style = (assets[name].decode() for name in (INDEX, SCRIPT, STYLE))
    program = re.sub(r"</(?=script)", r"<\\/", script, flags=re.IGNORECASE)  # the same in strings
    safe = data.replace("<", "\\u003c")  # no text of the data can end the element
    held = f'<script type="application/json" id="dicot-inline">{safe}</script><script>{program}</script>'
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    for old, new in (
        ("<head>", f"<head>{policy}"),
        (f'<link rel="stylesheet" href="/assets/{STYLE}">', f"<style>{style}</style>"),
        (f'<script src="/assets/{SCRIPT}" defer></script>', ""),
        ("</body>", f"{held}</body>"),
    ):
        if page.count(old) != 1:
            raise InputError(f"The built page should have {old} once. Build it again in web/.")
        page = page.replace(old, new)
    return page
