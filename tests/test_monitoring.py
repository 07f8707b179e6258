"""Drift: a test that holds its level though windows of one recording are alike, and finds what has changed."""

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.use.monitoring import compare

ALPHA = 0.05


def week(rng: np.random.Generator, n: int, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Six windows of each of n recordings, which differ more from each other than their windows do."""
    centres = 2 * rng.normal(size=(n, 4)) + shift
    x = np.repeat(centres, 6, axis=0) + rng.normal(size=(6 * n, 4))
    return x.astype(np.float32), np.repeat(np.arange(n), 6)


def alarm(seed: int, shift: float = 0.0, alone: bool = False) -> bool:
    rng = np.random.default_rng(seed)
    (old, before), (new, now) = week(rng, 20), week(rng, 10, shift)
    return bool(compare(old, new, units=None if alone else (before, now), alpha=ALPHA).alarms())


@pytest.mark.slow
def test_without_a_change_alarms_are_as_rare_as_they_should_be() -> None:
    false = np.mean([alarm(seed) for seed in range(400)])
    assert false <= ALPHA + 2 * (ALPHA * (1 - ALPHA) / 400) ** 0.5
    assert np.mean([alarm(seed, alone=True) for seed in range(20)]) > 0.9, "windows counted one by one alarm always"


def test_a_change_is_found_and_its_absence_is_not_made_up() -> None:
    assert sum(alarm(seed, shift=2.5) for seed in range(10)) >= 9
    assert sum(alarm(seed) for seed in range(10)) <= 2


def test_parts_are_compared_for_themselves() -> None:
    rng = np.random.default_rng(0)
    (old, before), (fine, _), (moved, _) = week(rng, 30), week(rng, 12), week(rng, 12, 3.0)
    weeks, now = np.repeat(["W1", "W2"], len(fine)), np.concatenate([np.arange(72) // 6, np.arange(72) // 6])
    found = compare(old, np.concatenate([fine, moved]), units=(before, now), parts=weeks)
    assert [one.part for one in found.alarms()] == ["W2"] and [one.units for one in found.parts] == [(30, 12)] * 2
    assert found.parts[0].shift < found.parts[1].shift < 1
    assert found.distance[:72].mean() < found.distance[72:].mean() and found.parts[1].odd > found.parts[0].odd
    same = compare(
        old, moved, units=(before, now[:72]), parts=["a"] * 72, reference_parts=np.where(before < 15, "a", "b")
    )
    assert same.parts[0].units == (15, 12)
    with pytest.raises(InputError, match="no window of 'c'"):
        compare(old, moved, parts=["c"] * 72, reference_parts=["a"] * len(old))


def test_shares_of_classes_have_a_test_of_their_own() -> None:
    rng = np.random.default_rng(1)
    (old, before), (new, now) = week(rng, 40), week(rng, 20)
    kinds = np.where(before % 10 == 0, "fall", "walk"), np.where(now % 2 == 0, "fall", "walk")
    (one,) = compare(old, new, units=(before, now), classes=kinds).parts
    assert one.p["classes"] <= ALPHA < one.p["vectors"] and one.shares == {"fall": (0.1, 0.5), "walk": (0.9, 0.5)}


def test_few_units_cannot_alarm_and_say_so() -> None:
    rng = np.random.default_rng(2)
    (old, before), (new, now) = week(rng, 4), week(rng, 2, 50.0)
    (one,) = compare(old, new, units=(before, now)).parts
    assert one.smallest == pytest.approx(1 / 15) and one.p["vectors"] > ALPHA
    assert compare(old, new, units=(before, now)).parts[0] == one, "the same numbers again"
    with pytest.raises(InputError, match="alpha must be"):
        compare(old, new, alpha=1.0)
