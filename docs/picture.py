"""python docs/picture.py MODEL: draw docs/picture.svg from a model that `make demo` left in out/demo/model."""

import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from dicot import TimeSeriesEmbedder, load
from dicot.nets.views import block_layout
from dicot.use.projection import tsne

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]


def draw_idea(axes, case: np.ndarray) -> None:
    """One case, its sub-blocks, and for one of them the block it must pick."""
    blocks = block_layout(len(case), 5, 0.5)
    axes.plot(case, color="#333333", linewidth=1)
    low = case.min() - 0.8
    for j, start in enumerate(blocks.starts):
        y = low - 0.55 * j
        axes.plot([start, start + blocks.length], [y, y], color=COLOURS[j % 6], linewidth=5, solid_capstyle="butt")
        axes.text(start + blocks.length + 6, y, f"sub-block {j}", va="center", fontsize=8, color=COLOURS[j % 6])
        if j:
            previous = blocks.starts[j - 1] + blocks.length / 2
            tip, tail = (previous, y + 0.45), (start + blocks.length / 2, y + 0.1)
            axes.annotate("", tip, tail, arrowprops={"arrowstyle": "->", "color": "#777777", "linewidth": 0.8})
    axes.set_title("each sub-block must pick its predecessor\namong the sub-blocks of its own case", fontsize=9)
    axes.axis("off")


def draw_map(axes, points: np.ndarray, labels: np.ndarray) -> None:
    for kind, colour in zip(np.unique(labels), COLOURS, strict=True):
        axes.scatter(*points[labels == kind].T, s=9, color=colour, linewidths=0)
    axes.set_title("242 unseen leaves (OSULeaf), coloured by\nspecies; no label was used in training", fontsize=9)
    axes.set(xticks=[], yticks=[])


def main(model: str) -> None:
    test = load("OSULeaf").test
    flat = tsne(TimeSeriesEmbedder.from_pretrained(model).transform(test.x), seed=0)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dicot", "font.family": "sans-serif"}):
        figure = Figure(figsize=(8.4, 3.4), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
        draw_idea(left, test.x[0, 0])
        draw_map(right, flat.points, test.y[flat.rows])
        figure.savefig(Path(__file__).with_name("picture.svg"), metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1])
