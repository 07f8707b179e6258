"""Series of each class and the map with hover: scales, limits, and text that stays text."""

import re
import xml.etree.ElementTree as ET

import numpy as np
from dicot.judge.report.sketches import (
    PER_CLASS,
    Ranges,
    channel_names,
    class_series,
    hover_map,
    shades,
)

EVIL = '<b>"&'


def drawn(n_classes=3, n_channels=2, n_times=20, per_class=5):
    rng = np.random.default_rng(0)
    labels = np.array([EVIL if i == 0 else f"class {i:02}" for i in range(n_classes)]).repeat(per_class)
    x = rng.normal(size=(len(labels), n_channels, n_times)).astype(np.float32)
    channels = channel_names(n_channels, [f"c{i}{EVIL}" for i in range(n_channels)])
    return x, labels, channels, shades(np.unique(labels))


def tags(fragment, name):
    return [element for element in ET.fromstring(fragment).iter() if element.tag.endswith(name)]


def test_every_class_has_a_few_series_of_every_channel():
    x, labels, channels, look = drawn()
    fragment = class_series(x, labels, channels, look)
    figures = tags(fragment, "figure")
    assert len(figures) == 3
    for figure in figures:
        assert len([e for e in figure.iter() if e.tag == "path"]) == 2 * PER_CLASS
    assert "".join(tags(fragment, "figcaption")[0].itertext()) == f"{EVIL} (5)"
    assert fragment == class_series(x, labels, channels, look)


def test_long_series_keep_their_spikes():
    series = np.zeros(10_000)
    series[5_003] = 9.0
    path = Ranges(np.array([0.0]), np.array([9.0])).path(series, 0, (0, 0, 100, 50), 20)
    assert path.count(" ") < 90 and re.search(r"-50\b", path) and re.search(r"\b50\b", path)


def test_the_map_tells_what_a_point_is_without_a_script():
    x, labels, channels, look = drawn()
    points = np.random.default_rng(1).normal(size=(15, 2))
    tips = [f"test case {i}: {label}" for i, label in enumerate(labels)]
    wrong = np.arange(15) == 4
    fragment = hover_map(points, labels, tips, x, channels, look, wrong, f"a {EVIL} title")
    assert "<script" not in fragment and "http" not in fragment and EVIL not in fragment
    groups = [e for e in tags(fragment, "g") if (e.get("class") or "").startswith("point")]
    assert [e.get("class") for e in groups].count("point wrong") == 1 and len(groups) == 15
    told = [next(t.text for t in group.iter() if t.tag.endswith("text")) for group in groups]
    assert told == tips
    assert len(tags(fragment, "li")) == 3
    numbers = [float(v) for g in groups for v in re.match(r"M([\d.]+) ([\d.]+)m", g[0].get("d")).groups()]
    assert min(numbers) >= 0 and max(numbers) <= 420
