"""Small drawings written out as svg: some series of each class, and a map that tells what is under the pointer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from dicot.data.inspection import decimate
from dicot.judge.protocols.base import Floats, Labels
from dicot.judge.report.figures import GREY, MAX_LEGEND, PALETTE

Cases = NDArray[np.floating]  # (N, C, T)

PER_CLASS = 3  # series that are drawn
MAX_CLASSES = 12  # with the most cases
MAX_CHANNELS = 12
WIDTH = 180  # of a class' drawing, in svg units as all that follow
STRIPS = (56, 20)  # the height of a channel: of a single one, and at least
LABEL = 11  # the height of its name
ACROSS, BELOW = 36, 50  # letters that fit above a channel, and below the map
SAMPLES = 120  # stretches of a long series, of which the lowest and the highest value are drawn
MAP, EDGE, CAPTION, PANEL = 420, 8, 16, 44  # the map's side and margin; what appears below it: a line, and the series
POINT = 3.2
BUDGET = 600_000  # letters that the series of all points may take
LETTERS = 5  # of one value
SHAPES = (  # circle, triangle, square: with 7 colours 21 classes
    "M{x} {y}m-{r} 0a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z",
    "M{x} {y}m0 -{r}l{r} {d}l-{d} 0z",
    "M{x} {y}m-{r} -{r}h{d}v{d}h-{d}z",
)


@dataclass(frozen=True, eq=False)
class Ranges:
    """The lowest and the highest value of each channel: one scale for all drawings."""

    low: Floats  # (C,)
    high: Floats

    @classmethod
    def of(cls, cases: Cases) -> "Ranges":
        """Look at all values of some cases."""
        return cls(cases.min(axis=(0, 2)).astype(np.float64), cases.max(axis=(0, 2)).astype(np.float64))

    def path(self, series: Cases, channel: int, box: tuple[float, float, float, float], samples: int) -> str:
        """Write the line of a channel (T,) inside a box (x, y, width, height), with relative steps of whole units."""
        x, y, width, height = box
        values = decimate(np.asarray(series, dtype=np.float64)[None], 2 * samples)[0]
        span = self.high[channel] - self.low[channel] or 1.0
        heights = np.rint(y + height * (self.high[channel] - values) / span).astype(int)
        places = np.rint(np.linspace(x, x + width, len(values))).astype(int)
        steps = zip(np.diff(places).tolist(), np.diff(heights).tolist(), strict=True)
        return f"M{places[0]} {heights[0]}l" + " ".join(f"{dx} {dy}" for dx, dy in steps)


def shades(classes: Labels) -> dict[str, tuple[str, str]]:
    """Give every class, by its name in text, a colour and a shape: the same in all drawings of a page."""
    return {
        str(name): (PALETTE[i % len(PALETTE)], SHAPES[i // len(PALETTE) % len(SHAPES)])
        for i, name in enumerate(classes)
    }


def channel_names(count: int, names: Sequence[str] | None) -> list[str]:
    """Name the channels, by their numbers where they have no names."""
    return list(names) if names else [f"channel {i}" for i in range(1, count + 1)]


def class_series(x: Cases, labels: Labels, channels: Sequence[str], look: Mapping[str, tuple[str, str]]) -> str:
    """Draw a few cases of each class over one another, a strip for each channel, with one scale per channel.

    `labels` are names in text; of many classes those with the most cases are drawn, of many channels the first ones.
    """
    names, counts = np.unique(labels, return_counts=True)
    largest = sorted(np.argsort(-counts, kind="stable")[:MAX_CLASSES].tolist())
    rng = np.random.default_rng(0)
    chosen = {
        str(names[i]): rng.choice(np.flatnonzero(labels == names[i]), min(PER_CLASS, counts[i]), replace=False)
        for i in largest
    }
    shown = range(min(len(channels), MAX_CHANNELS))
    ranges = Ranges.of(x[np.concatenate(list(chosen.values()))])
    strip = max(STRIPS[1], STRIPS[0] - 6 * (len(shown) - 1))
    height = len(shown) * (strip + LABEL)
    out = []
    for (name, rows), i in zip(chosen.items(), largest, strict=True):
        colour, lines = look[name][0], []
        for c in shown:
            top = c * (strip + LABEL)
            text = f": {ranges.low[c]:.3g} to {ranges.high[c]:.3g}"
            text = _short(channels[c], ACROSS - len(text)) + text
            full = f"<title>{escape(channels[c])}</title>"
            lines.append(f'<text x="0" y="{top + LABEL - 3}">{escape(text)}{full}</text>')
            box = (1.0, float(top + LABEL), WIDTH - 2.0, strip - 3.0)
            for row in rows:
                path = ranges.path(x[row, c], c, box, SAMPLES)
                lines.append(f'<path d="{path}" stroke="{colour}"/>')
        told = f"{len(rows)} of {counts[i]} case(s) of {name}"
        out.append(
            f"<figure><figcaption>{escape(name)} <span>({counts[i]})</span></figcaption>"
            f'<svg role="img" aria-label="{escape(told, quote=True)}" viewBox="0 0 {WIDTH} {height}">'
            f"{''.join(lines)}</svg></figure>"
        )
    return f'<div class="series">{"".join(out)}</div>'


def _short(text: str, letters: int) -> str:
    """Cut text that a drawing has no room for."""
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def series_text(labels: Labels, n_channels: int) -> str:
    """Say what `class_series` draws and what it leaves out."""
    classes = len(np.unique(labels))
    text = f"Up to {PER_CLASS} training cases of each class, drawn at random; in brackets the number of its cases. "
    text += "Every channel has one scale for all classes, the range beside its name."
    text += f" Shown are the {MAX_CLASSES} largest of {classes} classes." if classes > MAX_CLASSES else ""
    return text + (
        f" Shown are the first {MAX_CHANNELS} of {n_channels} channels." if n_channels > MAX_CHANNELS else ""
    )


def hover_map(
    points: Floats,
    labels: Labels,
    tips: Sequence[str],
    x: Cases,
    channels: Sequence[str],
    look: Mapping[str, tuple[str, str]],
    wrong: NDArray[np.bool_],
    title: str,
) -> str:
    """Draw points (N, 2) by class; below the map appear what the one under the pointer is and its series, all channels.

    There is no script: a point's series is part of the page, and hidden until then. Those that are `wrong` are ringed.
    """
    low, span = points.min(axis=0), float(np.ptp(points, axis=0).max()) or 1.0
    spots = EDGE + (points - low + (span - np.ptp(points, axis=0)) / 2) / span * (MAP - 2 * EDGE)
    spots[:, 1] = MAP - spots[:, 1]
    shown = range(min(len(channels), MAX_CHANNELS))
    samples = int(np.clip(BUDGET / len(points) / len(shown) / LETTERS, 8, 2 * SAMPLES)) // 2
    ranges, wide = Ranges.of(x), (MAP - 2 * EDGE) / len(shown)
    marks = []
    for i, ((px, py), label) in enumerate(zip(spots.round(1).tolist(), labels.tolist(), strict=True)):
        colour, shape = look[label]
        boxes = [(EDGE + c * wide, MAP + CAPTION + 4.0, wide - 4.0, PANEL - 6.0) for c in shown]
        series = "".join(ranges.path(x[i, c], c, boxes[c], samples) for c in shown)
        mark = shape.format(x=px, y=py, r=POINT, d=round(2 * POINT, 1))
        marks.append(
            f'<g class="{"point wrong" if wrong[i] else "point"}"><path d="{mark}" fill="{colour}"/><g class="tip">'
            f'<text x="{EDGE}" y="{MAP + CAPTION - 3}">{escape(_short(tips[i], BELOW))}</text>'
            f'<path d="{series}" stroke="{colour}"/></g></g>'
        )
    frame = f'<rect x=".5" y=".5" width="{MAP - 1}" height="{MAP - 1}" fill="none" stroke="{GREY}"/>'
    size = f"0 0 {MAP} {MAP + CAPTION + PANEL}"
    svg = f'<svg role="img" aria-label="{escape(title, quote=True)}" viewBox="{size}">{frame}{"".join(marks)}</svg>'
    return f'<div class="map">{svg}{_legend(look)}</div>'


def _legend(look: Mapping[str, tuple[str, str]]) -> str:
    if len(look) > MAX_LEGEND:
        return ""
    entries = []
    for name, (colour, shape) in look.items():
        mark = shape.format(x=6, y=6, r=4, d=8)
        sign = f'<svg viewBox="0 0 12 12" aria-hidden="true"><path d="{mark}" fill="{colour}"/></svg>'
        entries.append(f"<li>{sign}{escape(name)}</li>")
    return f"<ul>{''.join(entries)}</ul>"
