"""Pages that draw windows of vectors: which ones, what is said of each, and the series behind them."""

import warnings
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dicot.core.errors import DicotWarning, InputError
from dicot.core.storage import write_atomic
from dicot.data.allowance import Allowance
from dicot.data.cases import Array
from dicot.data.labels import as_text
from dicot.judge.report.page import DrawnWindow, Facts, Summary, windows_page
from dicot.store.series import Series, series_of
from dicot.store.vectors import Vectors


@dataclass(frozen=True, eq=False)
class WindowsPage:
    """What a page of windows shows."""

    title: str
    lead: Sequence[str]
    windows: Mapping[int, Mapping[str, str]]  # row of the vectors -> what is said of the window
    marked: Container[int] = ()  # rows that stand out
    shades: Mapping[int, Array] = field(default_factory=dict)  # row -> (C, P), as of a DrawnWindow
    first: Sequence[DrawnWindow] = ()  # windows of another file, drawn before these
    figure: str = ""
    summary: Summary | None = None


def write_windows_page(
    out: Path,
    page: WindowsPage,
    path: Path,
    vectors: Vectors,
    facts: Facts,
    *,
    data: str | None = None,
    allowance: Allowance | None = None,
) -> None:
    """Write a page that draws windows of the vectors in `path`.

    data : where the recordings are now, if they were moved
    allowance : whether windows of recordings that cannot be read may be left out, and which were
    """
    series = None
    windows = list(page.first)
    if page.windows:
        series = series_of(vectors, data, {}, path=path)
        windows += draw_windows(path, vectors, series, page, allowance)
    channels = () if series is None else series.channels
    text = windows_page(page.title, page.lead, windows, channels, facts, page.figure, page.summary)
    write_atomic(out, text.encode())


def draw_windows(
    path: Path,
    vectors: Vectors,
    series: Series,
    page: WindowsPage,
    allowance: Allowance | None = None,
) -> list[DrawnWindow]:
    """Read the windows of a page; one whose recording cannot be read is an error, or left out where it may be."""
    allowance = Allowance() if allowance is None else allowance
    drawn = []
    for row, facts in page.windows.items():
        title = window_title(vectors, row)
        values = series.window(row)
        if values is None:
            recording = str(vectors.places()[0][row])
            error = InputError(f"Row {row} of {path}, {title}: {series.lost[recording]}")
            _leave_out(recording, error, allowance)
            continue
        drawn.append(
            DrawnWindow(
                title,
                values,
                {**facts, **_group_and_label(vectors, row)},
                _span(vectors, row),
                marked=row in page.marked,
                shades=page.shades.get(row),
            )
        )
    return drawn


def _leave_out(recording: str, error: InputError, allowance: Allowance) -> None:
    if not allowance.bad_files:
        raise error
    if recording not in allowance.files:
        warnings.warn(f"Not drawn: {error}", DicotWarning, stacklevel=3)
    allowance.refuse(recording, recording, error)


def window_title(vectors: Vectors, row: int) -> str:
    """Name a window: by its recording and start, or else by its row."""
    if not vectors.placed:
        return f"row {row}"
    recording, start, _ = vectors.places()
    return f"{recording[row]} @ {start[row]:.10g}"


def _span(vectors: Vectors, row: int) -> tuple[str, str]:
    if not vectors.placed:
        return "", ""
    has_rate = vectors.source is not None and vectors.source.rate
    unit = " s" if has_rate else ""
    _, start, end = vectors.places()
    return f"{start[row]:.10g}{unit}", f"{end[row]:.10g}{unit}"


def _group_and_label(vectors: Vectors, row: int) -> dict[str, str]:
    columns = {"group": vectors.group, "label": vectors.label}
    texts = {name: as_text(values[row]) for name, values in columns.items() if values is not None}
    return {name: text for name, text in texts.items() if text}
