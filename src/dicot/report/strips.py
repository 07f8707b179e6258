"""Lines over label counts, and bars of wins, ties and losses."""

from collections.abc import Mapping, Sequence
from typing import Any

from dicot.errors import InputError
from dicot.report.drawing import GREY, MARKERS, PALETTE, svg
from dicot.report.placement import spread

LABEL_GAP = 0.042  # of the axis' height between two labels


def reference_curves(curves: Mapping[str, Sequence[float]], ticks: Sequence[str], x_label: str, y_label: str) -> str:
    """name -> one value per tick, NaN where there is none; each line is named at its right end."""
    if not curves or not ticks or any(len(values) != len(ticks) for values in curves.values()):
        raise InputError(f"Each line needs {len(ticks)} values, and there must be one line and one tick.")

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        drawn = []
        for i, (name, values) in enumerate(curves.items()):
            colour = PALETTE[i % len(PALETTE)]
            marker = MARKERS[i // len(PALETTE) % len(MARKERS)]
            style = ("-", "--", ":")[i // len(PALETTE) % 3]
            axes.plot(range(len(ticks)), values, style, color=colour, marker=marker, markersize=4, linewidth=1.2)
            ends = [(x, y) for x, y in enumerate(values) if y == y]  # NaN is not equal to itself
            drawn += [(ends[-1], name, colour)] if ends else []
        axes.set_xticks(range(len(ticks)), list(ticks))
        axes.set(xlabel=x_label, ylabel=y_label, xlim=(-0.15, len(ticks) - 0.6))
        axes.grid(axis="y", color="#eeeeee", linewidth=0.8)
        low, high = axes.get_ylim()
        heights = spread([y for (_, y), _, _ in drawn], LABEL_GAP * (high - low))
        for ((x, y), name, colour), height in zip(drawn, heights, strict=True):
            axes.plot([x, len(ticks) - 0.62], [y, height], color=colour, linewidth=0.5, alpha=0.6, clip_on=False)
            axes.text(len(ticks) - 0.6, height, name, color=colour, va="center", fontsize=8)
        axes.set_ylim(min(low, *heights), max(high, *heights))

    return svg(draw, (7.2, max(3.6, 0.21 * len(curves) + 1.2)), f"{y_label} over {x_label} of {len(curves)} contenders")


def win_tie_loss(counts: Mapping[str, tuple[int, int, int]], baseline: str) -> str:
    """name -> on how many data sets `baseline` is better, equal and worse."""
    if not counts or any(sum(three) == 0 for three in counts.values()):
        raise InputError(f"Wins, ties and losses need a data set for every contender; got {dict(counts)}.")
    looks = ((PALETTE[0], "white"), ("#d8dde3", "black"), (PALETTE[4], "black"))
    words = (f"{baseline} better", "equal", f"{baseline} worse")

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for row, three in enumerate(counts.values()):
            start = 0.0
            for count, (colour, ink), word in zip(three, looks, words, strict=True):
                share = 100 * count / sum(three)
                axes.barh(row, share, left=start, color=colour, height=0.7, label=word if row == 0 else None)
                if share >= 4:
                    axes.text(start + share / 2, row, str(count), ha="center", va="center", color=ink, fontsize=8)
                start += share
        axes.axvline(50, color=GREY, linewidth=0.8, linestyle="--")
        axes.set_yticks(range(len(counts)), list(counts))
        axes.set(xlim=(0, 100), ylim=(len(counts) - 0.5, -0.6), xlabel="share of the data sets, %")
        axes.tick_params(axis="y", length=0)
        figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=8)

    return svg(draw, (7.2, 1.2 + 0.27 * len(counts)), f"Data sets on which {baseline} is better, equal or worse")
