"""Series of each class and the map with hover: scales, limits, and text that stays text."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from dicot.judge.report.sketches import (
    BUDGET,
    MAX_CHANNELS,
    MAX_CLASSES,
    PER_CLASS,
    Ranges,
    channel_names,
    class_series,
    hover_map,
    series_text,
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


def test_a_channel_has_one_scale_for_all_classes():
    x, labels, channels, look = drawn(n_classes=2, n_channels=1, per_class=1)
    x[0], x[1] = np.linspace(0, 1, 20), np.linspace(0, 10, 20)
    paths = [e.get("d") for e in tags(class_series(x, labels, channels, look), "path")]
    heights = [sum(int(dy) for dy in re.findall(r"-?\d+ (-?\d+)", path.split("l")[1])) for path in paths]
    assert heights[1] == pytest.approx(10 * heights[0], abs=3), "ten times the rise, ten times the height"
    assert {t.text for t in tags(class_series(x, labels, channels, look), "text")} == {f"c0{EVIL}: 0 to 10"}


def test_many_classes_and_channels_are_cut_and_the_text_says_so():
    x, labels, channels, look = drawn(n_classes=15, n_channels=14, per_class=2)
    fragment = class_series(x, labels, channels, look)
    assert len(tags(fragment, "figure")) == MAX_CLASSES and f"c{MAX_CHANNELS}" not in fragment
    text = series_text(labels, 14)
    assert "12 largest of 15 classes" in text and "first 12 of 14 channels" in text
    assert "largest" not in series_text(labels[:4], 2) and "first" not in series_text(labels[:4], 2)


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


def test_a_map_of_many_points_and_channels_stays_small():
    rng = np.random.default_rng(0)
    labels = np.array([f"{i % 3}" for i in range(2000)])
    x = rng.normal(size=(2000, 12, 500)).astype(np.float32)
    fragment = hover_map(
        rng.normal(size=(2000, 2)),
        labels,
        ["case"] * 2000,
        x,
        channel_names(12, None),
        shades(np.unique(labels)),
        np.zeros(2000, bool),
        "map",
    )
    assert len(fragment) < 3 * BUDGET
