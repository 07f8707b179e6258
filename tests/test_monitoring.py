"""Drift: a test that holds its level though windows of one recording are alike, and finds what has changed."""

import numpy as np
import pytest

from dicot.core.errors import InputError
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
