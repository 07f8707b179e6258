"""Pages: the parts of a report with their figures, and a page of drawn windows."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np

from dicot.core.errors import need_extra
from dicot.core.progress import Bar
from dicot.data.cases import Array
from dicot.data.inspection import extreme_places
from dicot.judge.report.tables import LONG_TEXT, Table

Facts = Mapping[str, object]  # of a run: version, seed, command ...
Steps = Sequence[tuple[str, str]]  # why, and the command

WIDTH, STRIP, SPACE = 320, 54, 6  # of a drawn window, of a channel in it and between two, in units of the drawing
MOST_POINTS = 640  # of a line; longer ones are drawn by the least and the greatest value of each stretch


@dataclass(frozen=True)
class Part:
    """A title with a table, figures by file name and a sentence about the figures, each if there is one.

    A first part without a title is the opening: what the whole report comes to.
    """

    title: str
    table: Table | None = None
    figures: Mapping[str, Callable[[], str]] = field(default_factory=dict)  # drawn last, because that takes time
    text: str = ""
    lead: tuple[str, ...] = ()  # paragraphs between the title and the table
    level: int = 2  # of the heading
    anchor: str = ""  # by which a page can be entered here
    drawings: Mapping[str, str] = field(default_factory=dict)  # the figures as svg, once they are drawn


def need_packages() -> None:
    """Raise an error where a page or a figure could not be made, before any work is done for it."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise need_extra("jinja2 and matplotlib", "report", "A page") from error


def drawn(parts: Iterable[Part], *, named_only: bool = False) -> list[Part]:
    """Draw all figures, each under a file name of its own, whatever the data sets are called.

    `named_only` gives them their names and draws nothing: for a text that only refers to them.
    """
    parts, out, taken = list(parts), [], set[str]()
    with Bar("report", sum(len(part.figures) for part in parts)) as bar:
        for part in parts:
            drawings = {}
            for name, draw in part.figures.items():
                bar.update(len(taken), part.title)
                free = next(one for i in count(1) if (one := f"{name}-{i}" if i > 1 else name).lower() not in taken)
                taken.add(free.lower())  # capitals alone make no other file everywhere
                drawings[free] = "" if named_only else draw()
            out.append(replace(part, drawings=drawings))
    return out


def render(title: str, parts: Sequence[Part], facts: Facts, banner: str = "", steps: Steps = ()) -> str:
    """Make the page: title, a warning if there is one, the facts, the parts.

    A page with an opening begins with that and with `steps` to go on with; its facts come last.
    """
    own, rest = split_opening(parts)
    shown = {"title": title, "opening": own, "parts": rest, "facts": facts, "banner": banner, "steps": steps}
    return _filled("page.html", **shown, long_text=LONG_TEXT)


def split_opening(parts: Sequence[Part]) -> tuple[Sequence[str], Sequence[Part]]:
    """Return the paragraphs that a report begins with, and its other parts."""
    return (parts[0].lead, parts[1:]) if parts and not parts[0].title else ((), parts)


def _filled(template: str, **values: Any) -> str:
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("dicot.judge.report"), autoescape=True)
    environment.filters["code"] = _code
    text: str = environment.get_template(template).render(values)
    return text


def _code(text: str) -> str:
    """Show what stands between two backticks as code, everything as the text that it is."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


@dataclass(frozen=True, eq=False)
class DrawnWindow:
    """A window on a page: its series, and what is said of it."""

    title: str
    values: Array  # (C, T), NaN where a value is missing
    facts: Mapping[str, str]
    span: tuple[str, str] = ("", "")  # where it begins and ends, below the picture
    marked: bool = False  # stands out, as the window that others are compared with
    shades: Array | None = None  # (C, P) of -1 to 1: behind equal stretches of the series, below 0 in another colour


@dataclass(frozen=True)
class Summary:
    """What stands above the figure of a page of windows."""

    title: str  # of the findings
    findings: Sequence[str] = ()
    table: Mapping[str, Sequence[str]] = field(default_factory=dict)  # title of a column -> its cells
    commands: Sequence[str] = ()  # to look closer


def windows_page(
    title: str,
    lead: Sequence[str],
    windows: Sequence[DrawnWindow],
    channels: Sequence[str],
    facts: Facts,
    figure: str = "",
    summary: Summary | None = None,
) -> str:
    """Draw windows (C, T) of the same channels; each channel has one scale on the whole page.

    Summary and figure stand above, with a link to each window. The page is one file without scripts, follows light and
    dark, and has one column on a phone.
    """
    scales = [_scale(np.concatenate([window.values[number] for window in windows])) for number in range(len(channels))]
    tops = [number * (STRIP + SPACE) + SPACE / 2 for number in range(len(channels))]

    def paths(values: Array) -> list[str]:
        strips = zip(values.astype(np.float64), tops, scales, strict=True)
        return [line_path(top + STRIP * (1 - (row - low) / (high - low))) for row, top, (low, high) in strips]

    return _filled(
        "windows.html",
        title=title,
        lead=lead,
        facts=facts,
        figure=figure,
        summary=summary,
        table_rows=[] if summary is None else list(zip(*summary.table.values(), strict=True)),
        windows=[(window, list(zip(channels, tops, paths(window.values), strict=True))) for window in windows],
        scales=[(name, f"{low:.4g}", f"{high:.4g}") for name, (low, high) in zip(channels, scales, strict=True)],
        width=WIDTH,
        height=len(channels) * (STRIP + SPACE),
        strip=STRIP,
    )


def _scale(values: Array) -> tuple[float, float]:
    """Return the least and the greatest known value; never the same."""
    known = values[np.isfinite(values)].astype(np.float64)
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def line_path(heights: Array) -> str:
    """Return the path of a line over the width of a picture; it is broken where a value is missing."""
    at = np.linspace(0, WIDTH, len(heights))
    if len(heights) > MOST_POINTS:
        rows = np.unique(extreme_places(heights[None], MOST_POINTS))
        at, heights = at[rows], heights[rows]
    known = np.isfinite(heights)
    begins = known & ~np.concatenate([[False], known[:-1]])
    points = zip(at[known].tolist(), heights[known].tolist(), begins[known].tolist(), strict=True)
    return "".join(f"{'M' if first else 'L'}{x:.1f} {y:.1f}" for x, y, first in points)
