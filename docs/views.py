"""python docs/views.py [FILE]: draw docs/views.svg, one real case under each distortion of its views."""

import sys
from dataclasses import fields, replace
from pathlib import Path

import matplotlib
import torch
from matplotlib.figure import Figure

from dicot import load
from dicot.nets.views import Distortion

OFF = Distortion(noise=0, scale=0, offset=0, mask=0, crop=0, channel_drop=0)
CHANNELS = ("channel_drop",)  # needs several of them: three days stand for three channels
COLOURS = ("#0072B2", "#D55E00", "#009E73")  # of the views
SEED = 7
APART = 4  # the lines of two channels


def chains() -> dict[str, Distortion]:
    """Title -> distortion: every part alone, in the order of the settings, then all defaults at once."""
    parts = {field.name: getattr(Distortion(), field.name) for field in fields(Distortion)}
    parts["channel_drop"] = 0.5  # so that three views show it
    alone = {f"{name} = {value}": replace(OFF, **{name: value}) for name, value in parts.items()}
    return {**alone, "the defaults together": Distortion()}


def draw(axes, title: str, chain: Distortion, days: torch.Tensor) -> None:
    """The case in grey, and in colour three views of it."""
    n_channels = 3 if title.startswith(CHANNELS) else 1
    case = days[:n_channels]
    views = chain(case.expand(len(COLOURS), -1, -1), 0.0, 1.0)
    for number in range(n_channels):
        axes.plot(case[number] - APART * number, color="#bbbbbb", linewidth=3)
        for view, colour in zip(views, COLOURS, strict=True):
            axes.plot(view[number] - APART * number, color=colour, linewidth=1)
    axes.set_title(title, fontsize=9)
    axes.set(xticks=[], yticks=[], ylim=(-3 - APART * (n_channels - 1), 3))


def main(path: Path) -> None:
    """Write the picture: of one day of power demand in Italy, which comes with the package."""
    days = torch.from_numpy(load("ItalyPowerDemand").train.x[:3, 0])
    torch.manual_seed(SEED)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dicot", "font.family": "sans-serif"}):
        figure = Figure(figsize=(9, 4), layout="constrained")
        for axes, (title, chain) in zip(figure.subplots(2, 4).flat, chains().items(), strict=False):
            draw(axes, title, chain, days)
        figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("views.svg"))
