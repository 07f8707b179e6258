"""What has changed, in words: shares of classes, and level, scale and speed of each channel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dicot.data.cases import Array

POINTS = 0.05  # by which a share of a class must change to be named
RATIO = 1.25  # by which a scale or a frequency must change
SPREADS = 1.0  # times the usual difference between windows, by which anything must change
MOST = 4  # sentences
TO_SIGMA = 1.4826  # the median absolute deviation of a normal distribution, times this, is its standard deviation
NUMBERS = ("", "", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Change:
    """A change of one channel."""

    sentence: str
    size: float  # in multiples of how much windows of the reference differ


def changed_shares(shares: Mapping[str, tuple[float, float]], predicted: bool) -> list[str]:
    """Say which classes have become more frequent or rarer, the largest change first."""
    what = "Predictions" if predicted else "Labels that were given"
    by_size = sorted(shares.items(), key=lambda item: -abs(item[1][1] - item[1][0]))
    sentences = []
    for name, (before, now) in by_size[:MOST]:
        if abs(now - before) >= POINTS:
            direction = "rose" if now > before else "fell"
            sentences.append(f"{what} of {name} {direction} from {before:.0%} to {now:.0%}.".replace("%", " %"))
    return sentences


def changed_channels(
    before: Sequence[Array], now: Sequence[Array], channels: Sequence[str], rate: float | None
) -> list[Change]:
    """Say which channels have another level, scale or speed in the new windows (C, T), the largest change first."""
    old = np.stack([_statistics(window, rate) for window in before])  # (N, 3, C)
    new = np.stack([_statistics(window, rate) for window in now])
    changes: list[Change] = []
    for number, channel in enumerate(channels):
        changes += _of_channel(channel, old[:, :, number], new[:, :, number], rate)
    return sorted(changes, key=lambda change: -change.size)[:MOST]


def _statistics(window: Array, rate: float | None) -> Floats:
    """Return mean, log standard deviation and log mean frequency of each channel of a window."""
    x = np.nan_to_num(np.asarray(window, np.float64))
    mean = x.mean(axis=1)
    deviation = x.std(axis=1)
    power = np.abs(np.fft.rfft(x - mean[:, None], axis=1)) ** 2
    frequencies = np.fft.rfftfreq(x.shape[1], 1 / (rate or 1.0))
    total = power.sum(axis=1)
    tiny = np.finfo(np.float64).tiny
    frequency = (power * frequencies).sum(axis=1) / np.maximum(total, tiny)
    smallest = 1e-9 * (np.abs(x).max(axis=1) + 1e-30)
    return np.stack([mean, np.log(deviation + smallest), np.log(frequency + tiny)])


def _of_channel(channel: str, old: Floats, new: Floats, rate: float | None) -> list[Change]:
    """Return the changes of one channel from its statistics (N, 3) before and now."""
    level, scale, frequency = np.median(old, axis=0)
    level_now, scale_now, frequency_now = np.median(new, axis=0)
    level_spread, scale_spread, frequency_spread = TO_SIGMA * np.median(np.abs(old - np.median(old, axis=0)), axis=0)
    changes = []

    size = abs(level_now - level) / max(level_spread, float(np.exp(scale)) / 2, 1e-30)
    if size > SPREADS:
        direction = "rose" if level_now > level else "fell"
        changes.append(Change(f"The mean of {channel} {direction} from {level:.3g} to {level_now:.3g}.", size))

    ratio, size = _ratio(scale, scale_now, scale_spread)
    if ratio >= RATIO and size > SPREADS:
        word = "larger" if scale_now > scale else "smaller"
        changes.append(Change(f"{channel} is {_times(ratio)} {word}: its movement within a window.", size))

    ratio, size = _ratio(frequency, frequency_now, frequency_spread)
    if ratio >= RATIO and size > SPREADS:
        word = "faster" if frequency_now > frequency else "slower"
        unit = "Hz" if rate is not None else "per time step"
        values = f"from {np.exp(frequency):.2g} to {np.exp(frequency_now):.2g} {unit}"
        changes.append(Change(f"{channel} is {word}: its mean frequency went {values}.", size))
    return changes


def _ratio(before: float, now: float, spread: float) -> tuple[float, float]:
    """Return the ratio of two numbers, 1 or more, by their logarithms, and their distance in spreads."""
    ratio = float(np.exp(abs(now - before)))
    size = abs(now - before) / max(spread, float(np.log(RATIO)))
    return ratio, size


def _times(ratio: float) -> str:
    """Write a ratio as people say it."""
    whole = round(ratio)
    if 2 <= whole < len(NUMBERS) and abs(ratio - whole) < 0.05 * whole:
        return f"{NUMBERS[whole]} times"
    return f"{ratio:.2g} times" if ratio < 100 else f"{ratio:,.0f} times"
