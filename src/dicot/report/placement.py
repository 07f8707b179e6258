"""Labels of points that do not cover one another."""

import math
from collections.abc import Sequence
from typing import Any

from dicot.report.drawing import GREY

RADII = (7, 13, 20, 28, 38, 50, 64, 80, 100)  # points from the marker to the label
ANGLES = tuple(math.radians(a) for a in (0, 45, -45, 90, -90, 135, -135, 180, 22, -22, 67, -67, 112, -112, 157, -157))
MARKER = 4.0  # half width of what a label keeps away from
NEAR = 13  # from here on a line leads from the label to its point

Box = tuple[float, float, float, float]  # left, bottom, right, top, in points


def overlap(a: Box, b: Box) -> float:
    """The area that two boxes share."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    return width * height if width > 0 and height > 0 else 0.0


def _outside(a: Box, frame: Box) -> float:
    inside = overlap(a, frame)
    return (a[2] - a[0]) * (a[3] - a[1]) - inside


def _box(x: float, y: float, angle: float, radius: float, size: tuple[float, float]) -> Box:
    """The label whose nearest edge lies `radius` from the point in this direction."""
    across, up = math.cos(angle), math.sin(angle)
    middle_x, middle_y = x + across * (radius + size[0] / 2), y + up * (radius + size[1] / 2)
    return middle_x - size[0] / 2, middle_y - size[1] / 2, middle_x + size[0] / 2, middle_y + size[1] / 2


def places(points: Sequence[tuple[float, float]], sizes: Sequence[tuple[float, float]], frame: Box) -> list[Box]:
    """A box for each label: the nearest free place, or the one that covers least. All in points."""
    markers = [(x - MARKER, y - MARKER, x + MARKER, y + MARKER) for x, y in points]
    taken: dict[int, Box] = {}
    for i in sorted(range(len(points)), key=lambda i: -points[i][1]):
        best, least = (0.0, 0.0, 0.0, 0.0), math.inf
        for radius in RADII:
            for angle in ANGLES:
                box = _box(*points[i], angle, radius, sizes[i])
                cost = 4 * _outside(box, frame) + sum(overlap(box, other) for other in (*taken.values(), *markers))
                if cost < least - 1e-9:
                    best, least = box, cost
            if least == 0:
                break
        taken[i] = best
    return [taken[i] for i in range(len(points))]


def label_points(figure: Any, axes: Any, points: Sequence[tuple[float, float, str, str]]) -> None:
    """Write the (x, y, text, colour) of data points beside them. The axes must have their final limits and scales."""
    figure.draw_without_rendering()
    scale = 72 / figure.dpi
    spots = [tuple(scale * axes.transData.transform((x, y))) for x, y, _, _ in points]
    sizes = []
    for _, _, text, _ in points:
        probe = axes.text(0, 0, text, fontsize=8)
        extent = probe.get_window_extent()
        sizes.append((scale * extent.width + 2, scale * extent.height + 1))
        probe.remove()
    frame = axes.get_window_extent()
    edges = (scale * frame.x0, scale * frame.y0, scale * frame.x1, scale * frame.y1)
    for (x, y, text, colour), spot, box in zip(points, spots, places(spots, sizes, edges), strict=True):
        offset = ((box[0] + box[2]) / 2 - spot[0], (box[1] + box[3]) / 2 - spot[1])
        gap = math.hypot(max(box[0] - spot[0], 0, spot[0] - box[2]), max(box[1] - spot[1], 0, spot[1] - box[3]))
        line = (
            {"arrowstyle": "-", "color": GREY, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}
            if gap >= NEAR - 4
            else None
        )
        note = axes.annotate(
            text,
            (x, y),
            xytext=offset,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=8,
            color=colour,
            arrowprops=line,
        )
        note.set_in_layout(False)


def spread(values: Sequence[float], gap: float) -> list[float]:
    """The values moved apart until neighbours are `gap` away from each other, in the same order, about their middle."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    groups: list[tuple[list[int], float]] = []  # members and the middle of each run of touching labels
    for i in order:
        members, middle = [i], float(values[i])
        while groups and middle - gap * (len(members) - 1) / 2 < groups[-1][1] + gap * (len(groups[-1][0]) + 1) / 2:
            before, _ = groups.pop()
            members = before + members
            middle = sum(values[m] for m in members) / len(members)
        groups.append((members, middle))
    out = [0.0] * len(values)
    for members, middle in groups:
        for place, m in enumerate(members):
            out[m] = middle + gap * (place - (len(members) - 1) / 2)
    return out
