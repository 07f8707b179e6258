"""Drift: a test that holds its level though windows of one recording are alike, and finds what has changed."""

import numpy as np
import pytest
from scipy.signal import lfilter

from dicot.core.errors import InputError
from dicot.judge.report.drift import verdict
from dicot.use.blocks import LONGER, blocks_of, seconds_alike, suggested_block
from dicot.use.changes import changed_channels, changed_shares
from dicot.use.monitoring import compare

ALPHA = 0.05


def week(rng: np.random.Generator, n: int, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Six windows of each of n recordings, which differ more from each other than their windows do."""
    centres = 2 * rng.normal(size=(n, 4)) + shift
    return (np.repeat(centres, 6, axis=0) + rng.normal(size=(6 * n, 4))).astype(np.float32), np.repeat(np.arange(n), 6)


def alarm(seed: int, shift: float = 0.0, alone: bool = False) -> bool:
    rng = np.random.default_rng(seed)
    (old, before), (new, now) = week(rng, 20), week(rng, 10, shift)
    return bool(compare(old, new, units=None if alone else (before, now), alpha=ALPHA).alarms())


@pytest.mark.slow
def test_without_a_change_alarms_are_as_rare_as_they_should_be() -> None:
    false = np.mean([alarm(seed) for seed in range(400)])
    assert false <= ALPHA + 2 * (ALPHA * (1 - ALPHA) / 400) ** 0.5
    assert np.mean([alarm(seed, alone=True) for seed in range(20)]) > 0.9, "windows counted one by one alarm always"


def test_a_changed_week_is_found_among_others() -> None:
    assert sum(alarm(seed) for seed in range(10)) <= 2 and sum(alarm(seed, shift=2.5) for seed in range(10)) >= 9
    rng = np.random.default_rng(0)
    (old, before), (fine, now), (moved, _) = week(rng, 30), week(rng, 12), week(rng, 12, 3.0)
    kinds = np.where(before % 10 == 0, "fall", "walk"), np.tile(np.where(now % 2 == 0, "fall", "walk"), 2)
    both = {"units": (before, np.tile(now, 2)), "parts": np.repeat(["W1", "W2"], 72)}
    found = compare(old, np.concatenate([fine, moved]), **both)
    assert [one.part for one in found.alarms()] == ["W2"] and [one.units for one in found.parts] == [(30, 12)] * 2
    assert found.parts[0].shift < found.parts[1].shift < 1 and found.parts[0].odd < found.parts[1].odd
    one, _ = compare(old, np.concatenate([fine, moved]), **both, classes=kinds).parts
    assert one.p["classes"] <= ALPHA < one.p["vectors"] and one.shares == {"fall": (0.1, 0.5), "walk": (0.9, 0.5)}
    part = np.where(before < 15, "a", "b")
    assert compare(old, fine, units=(before, now), parts=["a"] * 72, reference_parts=part).parts[0].units == (15, 12)
    with pytest.raises(InputError, match="no window of 'c'"):
        compare(old, fine, parts=["c"] * 72, reference_parts=part)


def test_few_units_cannot_alarm() -> None:
    rng = np.random.default_rng(2)
    (old, before), (new, now) = week(rng, 4), week(rng, 2, 50.0)
    (one,) = compare(old, new, units=(before, now)).parts
    assert one.smallest == pytest.approx(1 / 15) and one.p["vectors"] > ALPHA


def test_no_change_is_not_claimed_where_only_one_arrangement_could_have_alarmed() -> None:
    rng = np.random.default_rng(2)
    (old, before), (new, now) = week(rng, 3), week(rng, 4)
    found = compare(old, new, units=(before, now), alpha=ALPHA)
    assert found.parts[0].smallest == pytest.approx(1 / 35) and not found.alarms()
    assert found.undecided() == list(found.parts), "one arrangement of 35 alarms: the absence of an alarm says nothing"
    (sentence,) = verdict(found, "recording", "Record more.")
    assert sentence.startswith("Cannot tell whether anything has changed: with 3 recording(s)")
    assert "only the most extreme of all arrangements" in sentence and sentence.endswith("Record more.")
    far = compare(old, new + 100, units=(before, now), alpha=ALPHA)
    assert far.alarms() and not far.undecided(), "an alarm stays an alarm"
    (old, before), (new, now) = week(rng, 4), week(rng, 5)
    assert not compare(old, new, units=(before, now), alpha=ALPHA).undecided(), "several of 126 arrangements alarm"


def test_as_many_units_on_both_sides_have_half_as_many_arrangements() -> None:
    rng = np.random.default_rng(2)
    (old, before), (new, now) = week(rng, 3), week(rng, 3, 100.0)
    (part,) = compare(old, new, units=(before, now)).parts
    assert part.smallest == pytest.approx(2 / 20), "with sides exchanged the distance is the same"
    assert part.p["vectors"] == pytest.approx(part.smallest, abs=0.03)


def test_blocks_of_time_follow_each_other_in_every_recording() -> None:
    recording = np.array([*"aaaaaaa", *"bbbb"])
    start = np.array([100.0, 101, 102, 103, 104, 105, 106, 0, 1, 2, 3])
    named = blocks_of(recording, start, 3.0)
    assert named.tolist() == ["a 0"] * 3 + ["a 1"] * 4 + ["b 0"] * 4, "a short end belongs to the block before it"
    assert blocks_of(recording, start, 2.0).tolist()[:7] == ["a 0", "a 0", "a 1", "a 1", "a 2", "a 2", "a 2"]


def long_recording(rng: np.random.Generator, n: int, memory: float) -> np.ndarray:
    """Windows, one a second, that stay alike for `memory` seconds."""
    keep = np.exp(-1 / memory)
    noise = rng.normal(size=(n, 4)) * np.sqrt(1 - keep**2)
    noise[0] /= np.sqrt(1 - keep**2)
    return np.asarray(lfilter([1.0], [1.0, -keep], noise, axis=0), np.float32)


def block_alarm(seed: int, seconds: float, shift: float = 0.0, memory: float = 5.0) -> bool:
    """One long recording against another, of the same process unless it is shifted."""
    rng = np.random.default_rng(seed)
    old, new = long_recording(rng, 2000, memory), long_recording(rng, 1500, memory) + np.float32(shift)
    units = [blocks_of(np.full(len(x), "a"), np.arange(len(x), dtype=float), seconds) for x in (old, new)]
    return bool(compare(old, new, units=(units[0], units[1]), alpha=ALPHA).alarms())


@pytest.mark.slow
def test_blocks_that_are_long_enough_hold_the_level_and_short_ones_do_not() -> None:
    false = np.mean([block_alarm(seed, LONGER * 5.0) for seed in range(400)])
    assert false <= 0.1, "neighbouring blocks are still a little alike: 8.5 % when this was written"
    assert np.mean([block_alarm(seed, 5.0) for seed in range(40)]) > 0.2


def test_how_long_windows_stay_alike_is_measured_and_blocks_are_suggested_by_it() -> None:
    assert not block_alarm(0, 100.0) and block_alarm(0, 100.0, shift=1.5)
    x = long_recording(np.random.default_rng(0), 4000, 5.0)
    name, start = np.full(len(x), "a"), np.arange(len(x), dtype=float)
    seconds = seconds_alike(x, name, start)
    assert 2 < seconds < 8
    assert suggested_block([(name, start)] * 2, LONGER * seconds) == "5min"
    assert suggested_block([(name[:500], start[:500])] * 2, LONGER * seconds) is None, "nothing honest is that short"


def test_what_changed_is_said_in_words() -> None:
    rng = np.random.default_rng(0)
    time = np.arange(100) / 50
    old = [np.stack([10 * np.sin(6 * time + rng.normal()), rng.normal(size=100), np.sin(9 * time)]) for _ in range(20)]
    new = [np.stack([window[0] / 10, window[1] + 7, np.sin(40 * time + rng.normal())]) for window in old]
    said = " ".join(change.sentence for change in changed_channels(old, new, ("x", "y", "z"), 50.0))
    assert "x is ten times smaller" in said and "The mean of y rose from" in said and "z is faster" in said
    assert changed_channels(old, [window + rng.normal(size=(3, 1)) / 20 for window in old], ("x", "y", "z"), 50.0) == []
    assert changed_shares({"E": (0.06, 0.53), "F": (0.94, 0.47), "G": (0.2, 0.21)}, True) == [
        "Predictions of E rose from 6 % to 53 %.",
        "Predictions of F fell from 94 % to 47 %.",
    ]
