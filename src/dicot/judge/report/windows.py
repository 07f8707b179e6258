"""A page of windows: their series side by side on one scale, to look at what was found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dicot.data.cases import Array
from dicot.data.inspection import extreme_places
from dicot.judge.report.page import need_jinja2

WIDTH, STRIP, SPACE = 320, 54, 6  # of a picture, of a channel in it and between two, in units of the drawing
MOST_POINTS = 640  # of a line; longer ones are drawn by the least and the greatest value of each stretch


@dataclass(frozen=True, eq=False)
class DrawnWindow:
    """A window on a page: its series, and what is said of it."""

    title: str
    values: Array  # (C, T), NaN where a value is missing
    facts: Mapping[str, str]
    span: tuple[str, str] = ("", "")  # where it begins and ends, below the picture
    marked: bool = False  # stands out, as the window that others are compared with


@dataclass(frozen=True)
class _Line:
    channel: str
    path: str  # as svg has it
    top: float
    number: int  # of its colour


def windows_page(
    title: str,
    lead: Sequence[str],
    windows: Sequence[DrawnWindow],
    channels: Sequence[str],
    facts: Mapping[str, object],
) -> str:
    """Draw windows (C, T) of the same channels; each channel has one scale on the whole page.

    The page is one file without scripts, follows light and dark, and has one column on a phone.
    """
    need_jinja2()
    from jinja2 import Environment, PackageLoader

    scales = [_scale([window.values[number] for window in windows]) for number in range(len(channels))]
    page = Environment(loader=PackageLoader("dicot.judge.report"), autoescape=True).get_template("windows.html")
    text: str = page.render(
        title=title,
        lead=lead,
        facts=facts,
        windows=[(window, _lines(window.values, channels, scales)) for window in windows],
        scales=[(name, f"{low:.4g}", f"{high:.4g}") for name, (low, high) in zip(channels, scales, strict=True)],
        width=WIDTH,
        height=len(channels) * (STRIP + SPACE),
        strip=STRIP,
    )
    return text


def _scale(series: Sequence[Array]) -> tuple[float, float]:
    """Return the least and the greatest value of a channel over all windows; never the same."""
    known = np.concatenate([one[np.isfinite(one)] for one in series]).astype(np.float64)
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _lines(values: Array, channels: Sequence[str], scales: Sequence[tuple[float, float]]) -> list[_Line]:
    lines = []
    for number, (name, (low, high)) in enumerate(zip(channels, scales, strict=True)):
        top = number * (STRIP + SPACE) + SPACE / 2
        heights = top + STRIP * (1 - (values[number].astype(np.float64) - low) / (high - low))
        lines.append(_Line(name, line_path(heights), top, number % 7))
    return lines


def line_path(heights: Array) -> str:
    """Return the path of a line over the width of a picture; it is broken where a value is missing."""
    n_times = len(heights)
    at = np.arange(n_times) * (WIDTH / max(1, n_times - 1))
    if n_times > MOST_POINTS:
        rows = np.unique(extreme_places(heights[None], MOST_POINTS))
        at, heights = at[rows], heights[rows]
    words, pen_down = [], False
    for x, y in zip(at.tolist(), heights.tolist(), strict=True):
        known = bool(np.isfinite(y))
        if known:
            words.append(f"{'L' if pen_down else 'M'}{x:.1f} {y:.1f}")
        pen_down = known
    return "".join(words)
