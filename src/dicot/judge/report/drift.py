"""What `dicot monitor` says and draws: what has changed against a reference."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dicot.judge.report.figures import GREY, PALETTE, legend_text, svg
from dicot.use.monitoring import Comparison, Drift

COLOURS = {"reference": GREY, "new": PALETTE[1]}


def verdict(found: Comparison, unit: str, remedy: str, short_blocks: bool = False) -> list[str]:
    """Say what was found, how far that goes, and by `remedy` what to do where too little is known for a verdict.

    `short_blocks` are units that are no independent evidence: more comparisons than alpha alarm without a change.
    """
    alarms = found.alarms()
    undecided = found.undecided()
    level = _level(found.alpha, unit, short_blocks)
    sentences = []
    if alarms:
        sentences.append(f"Changed: {_named(alarms)}. {level}")
    elif not undecided:
        sentences.append(f"No change was found. {level}")
    if undecided:
        which = "" if len(found.parts) == 1 else f" in {_named(undecided)}"
        weakest = max(undecided, key=lambda part: part.smallest)
        sentences.append(
            f"Cannot tell whether anything has changed{which}: {_too_few(weakest, found.alpha, unit)} "
            f"{weakest.odd:.1%} of the new windows are odd, where about {found.alpha:.0%} would be if nothing had "
            f"changed. {remedy}"
        )
    return sentences


def _level(alpha: float, unit: str, short_blocks: bool) -> str:
    """Say how often there is an alarm though nothing has changed."""
    if short_blocks:
        return (
            f"These {unit}s are too short to be independent: where nothing changes, more than {alpha:.0%} of such "
            "comparisons may raise an alarm."
        )
    return f"Where nothing changes, at most {alpha:.0%} of such comparisons of {unit}s raise an alarm."


def _too_few(part: Drift, alpha: float, unit: str) -> str:
    """Say why the units of this part are too few for a verdict."""
    before, now = part.units
    units = f"with {before} {unit}(s) of the reference and {now} new one(s)"
    if part.smallest > alpha:
        return f"{units} no p-value can be below {part.smallest:.2g}, whatever they hold, and an alarm needs {alpha:g}."
    return (
        f"{units} only the most extreme of all arrangements could have raised an alarm (its p-value is "
        f"{part.smallest:.2g}, and an alarm needs {alpha:g})."
    )


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
