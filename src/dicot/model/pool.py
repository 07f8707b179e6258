"""A pool of series from many sources and of none: what a universal encoder is trained on."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from dicot.core.errors import InputError, is_whole
from dicot.data import Windows
from dicot.data.cases import Array, Cases
from dicot.nets.encoders.universal import NO_SPREAD, POINTS

N_SERIES = 131_072
SYNTHETIC = 0.5  # share of the series that are made up
ROWS_AT_ONCE = 8192  # of made-up series
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
    is_share = isinstance(synthetic, int | float) and 0 <= synthetic <= 1
    if not is_whole(n_series, 1) or not is_share:
        raise InputError(f"n_series is a number of series and synthetic a share; got {n_series!r} and {synthetic!r}.")

    roots = np.sqrt([len(cases) * cases.n_channels for cases in sources.values()])
    shares = (1 - synthetic) * n_series * roots / roots.sum()
    counts = np.maximum(1, np.round(shares)).astype(int).tolist()
    parts = []
    for number, (cases, count) in enumerate(zip(sources.values(), counts, strict=True)):
        parts.append(_drawn(cases, count, np.random.default_rng([seed, number])))
    parts.append(made_up(round(synthetic * n_series), np.random.default_rng([seed, len(sources)])))
    series = np.concatenate(parts)

    varies = series.std(axis=1) > NO_SPREAD * np.abs(series).max(axis=1)
    if varies.sum() < 2:
        raise InputError(f"The pool has {varies.sum()} series that are not constant. Add sources.")
    x = _z_scored(series[varies]).astype(np.float32)
    return Windows(x[:, None], name=f"pool of {', '.join(sources)}")


def _drawn(cases: Cases, count: int, rng: np.random.Generator) -> Array:
    """Draw channels of cases, and of every other one a stretch; each is brought to 512 points."""
    n_times, n_points = cases.n_times, POINTS[-1]
    rows = np.sort(rng.integers(len(cases), size=count))
    channels = rng.integers(cases.n_channels, size=count)
    lengths = np.full(count, n_times)
    if n_times > SHORTEST:
        n_stretches = len(lengths[::2])
        logarithms = rng.uniform(np.log(SHORTEST), np.log(n_times), size=n_stretches)
        lengths[::2] = np.exp(logarithms).astype(int)
    starts = (rng.random(count) * (n_times - lengths + 1)).astype(int)

    time = np.arange(n_times)
    series = np.empty((count, n_points), np.float32)
    for number, case in enumerate(read_cases(cases, rows)):
        places = starts[number] + np.linspace(0, lengths[number] - 1, n_points)
        series[number] = np.interp(places, time, case[channels[number]])
    return series


def read_cases(cases: Cases, rows: Array, at_once: int = 1024) -> Iterator[Array]:
    for first in range(0, len(rows), at_once):
        yield from np.asarray(cases[rows[first : first + at_once]])


def made_up(count: int, rng: np.random.Generator) -> Array:
    """Make series (count, 512) of random spectra; some swell and fade, some have steps or a bump."""
    series = np.empty((count, POINTS[-1]), np.float32)
    for first in range(0, count, ROWS_AT_ONCE):
        rows = series[first : first + ROWS_AT_ONCE]
        rows[...] = _made_up(len(rows), POINTS[-1], rng)
    return series


def _made_up(count: int, n_points: int, rng: np.random.Generator) -> Array:
    def drawn(low: float = 0.0, high: float = 1.0) -> Array:
        """Draw a number for each series."""
        return rng.uniform(low, high, size=(count, 1))

    time = np.linspace(0, 1, n_points)
    amplitude = _amplitudes(np.arange(1, n_points // 2 + 1), drawn)
    phase = np.exp(2j * np.pi * rng.random(amplitude.shape))
    spectrum = np.concatenate([np.zeros((count, 1)), amplitude * phase], axis=1)
    x = _z_scored(np.fft.irfft(spectrum, n=n_points, axis=1))

    turns = time * np.exp(drawn(0, 2.5)) + drawn()
    swelling = 0.5 + 1 / (1 + np.exp(-8 * np.sin(2 * np.pi * turns)))
    x = np.where(drawn() < 0.4, x * swelling, x)

    turns = time * np.exp(drawn(0, 3)) + drawn()
    steps = _z_scored(np.sin(2 * np.pi * turns) > drawn(-1, 1))
    x = np.where(drawn() < 0.3, drawn(0, 0.6) * x + steps, x)

    middle, width = drawn(), drawn(0.01, 0.11)
    bump = np.exp(-(((time - middle) / width) ** 2))
    return np.asarray(np.where(drawn() < 0.4, x + drawn(-8, 8) * bump, x))


def _amplitudes(frequency: Array, drawn: Callable[..., Array]) -> Array:
    """Return the amplitudes of noise of any colour and of up to two tones, (count, frequencies)."""
    amplitude = frequency ** -drawn(0.3, 2.3)
    for _ in range(2):
        tone = np.exp(drawn(0, 5.3))
        peak = np.exp(-(((frequency - tone) / (0.03 * tone + 0.5)) ** 2))
        is_there = drawn() < 0.6
        amplitude = amplitude + is_there * drawn(0, 3) * amplitude.max(axis=1, keepdims=True) * peak
    return np.asarray(amplitude)


def _z_scored(x: Array) -> Array:
    deviation = x.std(axis=1, keepdims=True)
    return np.asarray((x - x.mean(axis=1, keepdims=True)) / np.where(deviation > 0, deviation, 1.0))
