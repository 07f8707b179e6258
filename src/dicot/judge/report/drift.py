"""What `dicot monitor` says and draws: what has changed against a reference."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dicot.judge.report.figures import GREY, PALETTE, legend_text, svg
from dicot.use.monitoring import Comparison, Drift

COLOURS = {"reference": GREY, "new": PALETTE[1]}


def verdict(found: Comparison, unit: str, remedy: str) -> list[str]:
    """Say what was found, how far that goes, and by `remedy` what to do where too little is known for a verdict."""
    alarms, undecided = found.alarms(), found.undecided()
    level = f"Where nothing changes, at most {found.alpha:.0%} of such comparisons of {unit}s raise an alarm."
    sentences = []
    if alarms:
        sentences.append(f"Changed: {_named(alarms)}. {level}")
    elif not undecided:
        sentences.append(f"No change was found. {level}")
    if undecided:
        weakest = max(undecided, key=lambda part: part.smallest)
        before, now = weakest.units
        which = "" if len(found.parts) == 1 else f" in {_named(undecided)}"
        sentences.append(
            f"Cannot tell whether anything has changed{which}: with {before} {unit}(s) of the reference and {now} new "
            f"one(s) no p-value can be below {weakest.smallest:.2g}, whatever they hold, and an alarm needs "
            f"{found.alpha:g}. {weakest.odd:.1%} of the new windows are odd, where about {found.alpha:.0%} would be if "
            f"nothing had changed. {remedy}"
        )
    return sentences


def _named(parts: Sequence[Drift]) -> str:
    return ", ".join(part.part or "the new windows" for part in parts[:5]) + ", ..." * (len(parts) > 5)


def columns_of(found: Comparison, unit: str) -> dict[str, list[str]]:
    """Return a row for each part, as text, by the title of its column."""
    rows = found.parts
    return {
        "part": [one.part or "new" for one in rows],
        f"{unit}s": [str(one.units[1]) for one in rows],
        "shift": [f"{one.shift:.3f}" for one in rows],
        **{f"p {test}": [f"{one.p[test]:.4f}" for one in rows] for test in rows[0].p},
        "odd windows": [f"{one.odd:.1%}" for one in rows],
    }


def drift_figure(found: Comparison) -> str:
    """Draw distances to the reference and, of the part where they differ most, the shares of classes."""
    most = max(found.parts, key=lambda one: sum(abs(now - before) for before, now in one.shares.values()))
    low, high = np.quantile(np.concatenate([found.usual, found.distance]), [0, 0.995]).tolist()
    heights = [2.6, *([0.9 + 0.35 * len(most.shares)] if most.shares else [])]

    def draw(figure: Any) -> None:
        panels = np.ravel(figure.subplots(len(heights), 1, height_ratios=heights))
        for side, (name, values) in enumerate(zip(COLOURS, (found.usual, found.distance), strict=True)):
            look: Any = {"weights": np.full(len(values), 100 / len(values)), "color": COLOURS[name], "alpha": 0.5}
            panels[0].hist(np.clip(values, low, high), np.linspace(low, high, 40), label=name, **look)
            shares = [100 * pair[side] for pair in most.shares.values()] if most.shares else []
            panels[-1].barh(np.arange(len(shares)) + 0.4 * side, shares, 0.38, color=COLOURS[name])
        if most.shares:
            panels[1].set_yticks(np.arange(len(most.shares)) + 0.2, [legend_text(name) for name in most.shares])
            panels[1].set(xlabel="% of the windows", title=f"Classes {most.part}")
        panels[0].set(xlabel="distance to the reference", ylabel="% of the windows")
        panels[0].legend(frameon=False)

    return svg(draw, (7.2, sum(heights)), "What has changed against the reference")
