"""The page of `dicot monitor`: what has changed against a reference, with pictures."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dicot.data.cases import Array
from dicot.data.inspection import decimate
from dicot.judge.report.figures import GREY, PALETTE, SAMPLES, legend_text, map_panels, svg
from dicot.judge.report.page import DrawnWindow, Facts, Part, drawn, render
from dicot.judge.report.tables import FAILED, Cell, Table
from dicot.use.monitoring import CLASSES, VECTORS, Comparison, Drift

SIDES = ("reference", "new")
ACROSS = 3  # drawn windows side by side


def verdict(found: Comparison, unit: str) -> tuple[str, str]:
    """Say in two sentences what was found, and how far that goes."""
    alarms, n = found.alarms(), len(found.parts)
    weak = [one for one in found.parts if one.smallest * n > found.alpha]
    named = ", ".join(one.part for one in alarms[:5] if one.part) + (" and others" if len(alarms) > 5 else "")
    said = f"Changed: {named or 'the new windows differ from the reference'}." if alarms else "No change was found."
    if weak:
        one = max(weak, key=lambda part: part.smallest)
        counts = f"{one.units[0]} {unit}(s) of the reference and {one.units[1]} new one(s)"
        return said, (
            f"{counts} cannot give a p-value below {one.smallest:.2g}, so {'part of it' if n > 1 else 'a change'} could "
            "not have been found. Compare more of them, or what belongs together in smaller units (--unit)."
        )
    return said, (
        f"Where nothing changes, at most {found.alpha:.0%} of such comparisons raise an alarm, if new {unit}s come about "
        "as those of the reference did."
    )


def columns_of(found: Comparison, unit: str) -> dict[str, list[str]]:
    """Return a row for each part, as text, by the title of its column."""
    rows = found.parts
    named = {"part": [one.part for one in rows]} if rows[0].part else {}
    asked = [test for test in (VECTORS, CLASSES) if test in rows[0].p]
    return {
        **named,
        "windows": [str(one.windows) for one in rows],
        f"{unit}s": [str(one.units[1]) for one in rows],
        "shift": [f"{one.shift:.3f}" for one in rows],
        **{f"p {test}": [f"{one.adjusted[test]:.4f}" for one in rows] for test in asked},
        "odd windows": [f"{one.odd:.1%}" for one in rows],
    }


def drift_page(
    title: str,
    found: Comparison,
    unit: str,
    points: tuple[Array, Array],
    windows: Sequence[DrawnWindow],
    channels: Sequence[str],
    facts: Facts,
) -> str:
    """Make the page: the verdict, a table of parts, shares of classes, distances, a map, and the oddest windows."""
    said, alarms = verdict(found, unit), {one.part for one in found.alarms()}
    columns = columns_of(found, unit)
    names = columns.pop("part", ["new"])
    cells = pd.DataFrame(columns, index=pd.Index(names, name="part"))
    marked = [one.part in alarms for one in found.parts]
    cells = cells.apply(
        lambda column: [Cell(text, FAILED if bad else "") for text, bad in zip(column, marked, strict=True)]
    )
    note = (
        "shift: 0 where vectors are distributed as in the reference, 1 where they have nothing in common. p: by "
        f"exchanging whole {unit}s, corrected for all tests of this page (Holm). odd windows: those with an outlier's "
        f"p-value of at most {found.alpha:g}. Red: an alarm."
    )
    parts = [Part("", lead=said), Part("What was compared", Table(cells, note))]
    if len(found.parts) > 1:
        parts.append(Part("Shift of each part", figures={"shift": lambda: _shift_bars(found.parts, alarms)}))
    if found.parts[0].shares:
        most = max(found.parts, key=lambda one: sum(abs(now - before) for before, now in one.shares.values()))
        title_of = f"Shares of classes{f' in {most.part}, which differs most' if most.part else ''}"
        parts.append(Part(title_of, figures={"classes": lambda: _class_bars(most)}))
    text = (
        "Of the reference, windows that were held out. A distance is a multiple of how far its windows lie apart there."
    )
    parts.append(Part("Distance to the reference", figures={"distances": lambda: _distances(found)}, text=text))
    sides = np.repeat(SIDES, [len(one) for one in points])
    panel = {"First two principal components": (np.concatenate(points), sides)}
    parts.append(Part("Where the windows lie", figures={"map": lambda: map_panels(panel, np.array(SIDES))}))
    if windows:
        text = "The new windows that lie farthest from the reference, farthest first. Each channel has one scale."
        parts.append(Part("What changed most", figures={"windows": lambda: _series(windows, channels)}, text=text))
    return render(title, drawn(parts), facts)


def _class_bars(one: Drift) -> str:
    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for side, (name, colour) in enumerate(zip(SIDES, (GREY, PALETTE[1]), strict=True)):
            shares = [100 * pair[side] for pair in one.shares.values()]
            axes.barh(np.arange(len(shares)) + 0.4 * side, shares, 0.38, color=colour, label=name)
        axes.set_yticks(np.arange(len(one.shares)) + 0.2, [legend_text(name) for name in one.shares])
        axes.invert_yaxis()
        axes.set_xlabel("% of the windows")
        axes.legend(frameon=False)

    return svg(draw, (7.2, 1.0 + 0.35 * len(one.shares)), "Shares of classes")


def _shift_bars(parts: Sequence[Drift], alarms: set[str]) -> str:
    def draw(figure: Any) -> None:
        axes = figure.subplots()
        colours = [PALETTE[1] if one.part in alarms else GREY for one in parts]
        axes.barh([legend_text(one.part) for one in parts], [one.shift for one in parts], 0.7, color=colours)
        axes.invert_yaxis()
        axes.set_xlabel("shift")

    return svg(draw, (7.2, 1.0 + 0.22 * len(parts)), "Shift of each part")


def _distances(found: Comparison) -> str:
    both = np.concatenate([found.usual, found.distance])
    edges = np.linspace(both.min(), np.quantile(both, 0.995), 40)

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for name, values, colour in zip(SIDES, (found.usual, found.distance), (GREY, PALETTE[1]), strict=True):
            share = np.full(len(values), 100 / len(values))
            clipped = np.minimum(values, edges[-1])
            axes.hist(clipped, edges, weights=share, histtype="stepfilled", alpha=0.5, color=colour, label=name)
        axes.set(xlabel="distance", ylabel="% of the windows")
        axes.legend(frameon=False)

    return svg(draw, (7.2, 2.6), "Distances to the reference")


def _series(windows: Sequence[DrawnWindow], channels: Sequence[str]) -> str:
    rows, values = -(-len(windows) // ACROSS), [window.values.astype(np.float64) for window in windows]
    low, high = (
        np.nanmin([np.nanmin(one, axis=1) for one in values], axis=0),
        np.nanmax([np.nanmax(one, axis=1) for one in values], axis=0),
    )
    span, strips = np.where(high > low, high - low, 1.0), -np.arange(len(channels))

    def draw(figure: Any) -> None:
        for axes in (grid := figure.subplots(rows, ACROSS, squeeze=False)).flat:
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        for axes, window, one in zip(grid.flat, windows, values, strict=False):
            about = "  ".join(f"{name} {value}" for name, value in window.facts.items())
            axes.set_title(f"{window.title}\n{about}", fontsize=7)
            lines = decimate((one - low[:, None]) / span[:, None], SAMPLES) * 0.9 + strips[:, None]
            for number, line in enumerate(lines):
                axes.plot(line, color=PALETTE[number % len(PALETTE)], linewidth=0.7)
        for axes in grid[:, 0]:
            axes.set_yticks(strips + 0.45, channels)
            axes.tick_params(length=0, labelsize=7)

    return svg(draw, (7.2, rows * (0.5 + max(0.8, 0.25 * len(channels)))), "The windows that changed most")
