"""A pool of series from many sources and of none: what a universal encoder is trained on."""

from collections.abc import Iterator, Mapping

import numpy as np

from dicot.core.errors import InputError, is_whole
from dicot.data import Windows
from dicot.data.cases import Array, Cases
from dicot.nets.encoders.universal import NO_SPREAD, POINTS

N_SERIES = 131_072
SYNTHETIC = 0.5  # share of the series that are made up
SHORTEST = 64  # time steps of a stretch that is drawn from a longer case


def make_pool(
    sources: Mapping[str, Cases], *, n_series: int = N_SERIES, synthetic: float = SYNTHETIC, seed: int = 0
) -> Windows:
    """Draw series (n, 1, 512), z-scored: a share that is made up, and the others from all sources.

    Of each source there are as many as the root of what it has. A series is a channel of a case, every other one a
    stretch of it, 64 time steps or more. Constant ones are left out.
    """
    if not sources:
        raise InputError("A pool needs a source, such as a data set or a folder of recordings.")
    if not is_whole(n_series, 1) or not isinstance(synthetic, int | float) or not 0 <= synthetic <= 1:
        raise InputError(f"n_series is a number of series and synthetic a share; got {n_series!r} and {synthetic!r}.")
    sizes = np.sqrt([len(cases) * cases.n_channels for cases in sources.values()])
    counts = np.maximum(1, np.round((1 - synthetic) * n_series * sizes / sizes.sum())).astype(int)
    drawn = [
        _drawn(cases, count, np.random.default_rng([seed, number]))
        for number, (cases, count) in enumerate(zip(sources.values(), counts.tolist(), strict=True))
    ]
    series = np.concatenate([*drawn, made_up(round(synthetic * n_series), np.random.default_rng([seed, len(sources)]))])
    kept = series.std(axis=1) > NO_SPREAD * np.abs(series).max(axis=1)
    if kept.sum() < 2:
        raise InputError(f"The pool has {kept.sum()} series that are not constant. Add sources.")
    return Windows(_z_scored(series[kept]).astype(np.float32)[:, None], name=f"pool of {', '.join(sources)}")


def _drawn(cases: Cases, count: int, rng: np.random.Generator) -> Array:
    n_times = cases.n_times
    rows, channels = np.sort(rng.integers(len(cases), size=count)), rng.integers(cases.n_channels, size=count)
    lengths = np.full(count, n_times)
    if n_times > SHORTEST:
        lengths[::2] = np.exp(rng.uniform(np.log(SHORTEST), np.log(n_times), size=len(lengths[::2]))).astype(int)
    starts = (rng.random(count) * (n_times - lengths + 1)).astype(int)
    time, series = np.arange(n_times), np.empty((count, POINTS[-1]), np.float32)
    for number, case in enumerate(read_cases(cases, rows)):
        places = starts[number] + np.linspace(0, lengths[number] - 1, POINTS[-1])
        series[number] = np.interp(places, time, case[channels[number]])
    return series


def read_cases(cases: Cases, rows: Array, at_once: int = 1024) -> Iterator[Array]:
    for first in range(0, len(rows), at_once):
        yield from np.asarray(cases[rows[first : first + at_once]])


def made_up(count: int, rng: np.random.Generator) -> Array:
    """Make series (count, 512) of random spectra; some swell and fade, some have steps or a bump."""
    n, half = POINTS[-1], POINTS[-1] // 2
    series = np.empty((count, n), np.float32)
    for first in range(0, count, 8192):
        rows = series[first : first + 8192]
        rows[...] = _made_up(len(rows), n, half, rng)
    return series


def _made_up(count: int, n: int, half: int, rng: np.random.Generator) -> Array:
    def one(low: float = 0.0, high: float = 1.0) -> Array:
        return rng.uniform(low, high, size=(count, 1))

    frequency, time = np.arange(1, half + 1), np.linspace(0, 1, n)
    amplitude = frequency ** -one(0.3, 2.3)  # noise of any colour
    for _ in range(2):  # and up to two tones
        tone = np.exp(one(0, 5.3))
        peak = np.exp(-(((frequency - tone) / (0.03 * tone + 0.5)) ** 2))
        amplitude = amplitude + (one() < 0.6) * one(0, 3) * amplitude.max(axis=1, keepdims=True) * peak
    spectrum = amplitude * np.exp(2j * np.pi * rng.random((count, half)))
    x = _z_scored(np.fft.irfft(np.concatenate([np.zeros((count, 1)), spectrum], axis=1), n=n, axis=1))
    swelling = 0.5 + 1 / (1 + np.exp(-8 * np.sin(2 * np.pi * (time * np.exp(one(0, 2.5)) + one()))))
    x = np.where(one() < 0.4, x * swelling, x)
    steps = _z_scored(np.sin(2 * np.pi * (time * np.exp(one(0, 3)) + one())) > one(-1, 1))
    x = np.where(one() < 0.3, one(0, 0.6) * x + steps, x)
    bump: Array = np.exp(-(((time - one()) / one(0.01, 0.11)) ** 2))
    return np.asarray(np.where(one() < 0.4, x + one(-8, 8) * bump, x))


def _z_scored(x: Array) -> Array:
    deviation = x.std(axis=1, keepdims=True)
    return np.asarray((x - x.mean(axis=1, keepdims=True)) / np.where(deviation > 0, deviation, 1.0))
