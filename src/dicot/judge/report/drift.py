"""What `dicot monitor` says and draws: what has changed against a reference."""

from typing import Any

import numpy as np

from dicot.judge.report.figures import GREY, PALETTE, legend_text, svg
from dicot.use.monitoring import Comparison

SIDES, COLOURS = ("reference", "new"), (GREY, PALETTE[1])


def verdict(found: Comparison, unit: str) -> list[str]:
    """Say in two sentences what was found, and how far that goes."""
    alarms, weak = found.alarms(), max(found.parts, key=lambda one: one.smallest)
    named = ", ".join(one.part or "the new windows" for one in alarms[:5]) + ", ..." * (len(alarms) > 5)
    said = f"Changed: {named}." if alarms else "No change was found."
    if weak.smallest <= found.alpha:
        return [
            said,
            f"If {unit}s came about as in the reference, an alarm had a probability of {found.alpha:.0%} at most.",
        ]
    return [
        f"{said} But {weak.units[0]} {unit}(s) of the reference and {weak.units[1]} new one(s) cannot give a p-value "
        f"below {weak.smallest:.2g}, whatever they hold. Compare more of them, or another --unit."
    ]


def columns_of(found: Comparison, unit: str) -> dict[str, list[str]]:
    """Return a row for each part, as text, by the title of its column."""
    rows = found.parts
    return {
        "part": [one.part or "new" for one in rows],
        "windows": [str(one.windows) for one in rows],
        f"{unit}s": [str(one.units[1]) for one in rows],
        "shift": [f"{one.shift:.3f}" for one in rows],
        **{f"p {test}": [f"{one.p[test]:.4f}" for one in rows] for test in rows[0].p},
        "odd windows": [f"{one.odd:.1%}" for one in rows],
    }


def drift_figure(found: Comparison) -> str:
    """Draw the shift of each part, shares of classes, and distances to the reference."""
    parts, alarms = found.parts, found.alarms()
    most = max(parts, key=lambda one: sum(abs(now - before) for before, now in one.shares.values()))
    low, high = np.quantile(np.concatenate([found.usual, found.distance]), [0, 0.995]).tolist()

    def shifts(axes: Any) -> None:
        texts = [f"{one.part or 'new'}, p {min(one.p.values()):.2g}" for one in parts]
        colours = [PALETTE[1] if one in alarms else GREY for one in parts]
        axes.barh(np.arange(len(parts)), [one.shift for one in parts], 0.7, color=colours)
        axes.set_yticks(np.arange(len(parts)), texts)
        axes.set(xlim=(0, 1), title="Shift: 0 as the reference, 1 nothing in common")

    def shares(axes: Any) -> None:
        for side in range(2):
            values = [100 * pair[side] for pair in most.shares.values()]
            axes.barh(np.arange(len(values)) + 0.4 * side, values, 0.38, color=COLOURS[side])
        axes.set_yticks(np.arange(len(most.shares)) + 0.2, [legend_text(name) for name in most.shares])
        axes.set(xlabel="% of the windows", title=f"Classes {most.part}")

    def distances(axes: Any) -> None:
        for side, values in enumerate((found.usual, found.distance)):
            look: Any = {"weights": np.full(len(values), 100 / len(values)), "color": COLOURS[side], "alpha": 0.5}
            axes.hist(np.clip(values, low, high), np.linspace(low, high, 40), label=SIDES[side], **look)
        axes.set(xlabel="distance", ylabel="% of the windows", title="Distance to held-out windows of the reference")
        axes.legend(frameon=False)

    panels = {shifts: 0.6 + 0.25 * len(parts)}
    panels |= {shares: 0.8 + 0.35 * len(most.shares)} if most.shares else {}
    panels |= {distances: 2.2}

    def draw(figure: Any) -> None:
        for axes, panel in zip(
            np.ravel(figure.subplots(len(panels), 1, height_ratios=[*panels.values()])), panels, strict=True
        ):
            panel(axes)
            if panel in (shifts, shares):
                axes.invert_yaxis()

    return svg(draw, (7.2, sum(panels.values()) + 0.5 * len(panels)), "What has changed against the reference")
