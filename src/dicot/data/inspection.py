"""A first look at recordings: what each file holds, which windows would suit them, and series thinned for drawing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, SettingNeededError, listed
from dicot.data.cases import Array
from dicot.data.clocks import Remark, unit_for_rate
from dicot.data.folders import RecordingFiles
from dicot.data.labelcolumns import FewValues, TableColumns, check_lacking, few_values
from dicot.data.namepattern import NamePattern, suggest_pattern
from dicot.data.offsets import offset_sentence
from dicot.data.ranges import Misplaced, check_places
from dicot.data.readers import column_names
from dicot.data.reading import Reading, Source, stem_of
from dicot.data.recording import Recording
from dicot.data.tables import says_time
from dicot.data.tags import NOTHING, Tag
from dicot.data.timestamps import WIDER_GAPS, Stretch, is_other_rate, resampled_lengths, runs_with, stretches

BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 24  # characters of a sparkline
_LOOKED_AT = 1 << 15  # time steps that a period is looked for in
_STRETCH, _STRETCHES = 1 << 10, 32  # time steps of a stretch, and how many are looked at where the whole has no period
_REPEATING = 0.2, 3  # share and number of the stretches that must have a period; in wandering noise at most one had
_NAMED = 4  # values of a part of the names that are shown
_FEWEST = 32  # time steps below which no period is looked for
_CLEAR = 0.3  # autocorrelation from which on a period counts
_AS_HIGH = 0.8  # share of the highest peak from which on the first one is the period, and the others repeat it


@dataclass(frozen=True)
class Inspected:
    """What one recording looks like; where it could not be read, `problem` says why and the rest is empty."""

    file: str
    rows: int = 0
    seconds: float | None = None  # from the first to the end of the last time step, gaps counted
    rate: float | None = None  # time steps per second
    gaps: int = 0
    missing: float = 0.0  # share of values
    channels: tuple[str, ...] = ()
    sparkline: str = ""  # how far the values are from their usual level, over time
    stretches: tuple[int, ...] = ()  # time steps between gaps, at this rate
    # The same with each of the wider gaps, resampled; empty where there are no gaps.
    wider: Mapping[float, tuple[int, ...]] = field(default_factory=dict)
    others: int = 0  # time steps at another rate
    period: float | None = None  # time steps after which the values repeat, on the whole or in many stretches
    means: tuple[float, ...] = ()  # of each channel
    stds: tuple[float, ...] = ()
    problem: str = ""
    path: Path | None = None
    columns: tuple[str, ...] = ()  # the channels; of a file with a problem what else its first row names but time
    bytes: int = 0  # of the file
    n_merged: int = 0  # rows that became one with the row before, which had the same time stamp
    settings: Mapping[str, str] = field(default_factory=dict)  # with which a file that has a problem could be read
    remarks: tuple[Remark, ...] = ()  # on its clock
    assumed_unit: str | None = None  # of its time stamps, where nobody named one
    n_ranges: int = 0  # of labels in a table
    misplaced: tuple[Misplaced, ...] = ()  # those of them that lie beyond its time
    table: TableColumns | None = None  # the columns of its file
    offsets: Mapping[str, str] = field(default_factory=dict)  # channel -> a sentence, where it stands on a large offset
    coarse: Mapping[str, FewValues] = field(default_factory=dict)  # channels, and columns of words, with few values


def inspect_recordings(
    source: Source | RecordingFiles, reading: Reading | None = None, **options: Any
) -> list[Inspected]:
    """Look at every recording, one file in memory at a time; a file that cannot be read is a row with its problem."""
    how = (reading or Reading()).replace(**options)
    files = RecordingFiles.of(source, room=0)
    named, tags = files.named(how), files.tags(how)

    def look(name: str, reading: Reading) -> list[Inspected]:
        return _inspected_file(files, name, named[name], reading, tags.get(name, NOTHING))

    rows_by_file = {name: look(name, how) for name in named}
    for name, unit in _units_of_most(rows_by_file).items():
        sentence = f"Its time stamps alone would be in another unit; those of most recordings are in {unit}."
        rows_by_file[name] = [
            replace(row, assumed_unit=unit, remarks=(*row.remarks, Remark(f"unit {unit} of most", sentence)))
            for row in look(name, how.replace(unit=unit))
        ]
    rows = [row for of_file in rows_by_file.values() for row in of_file]

    check_lacking([row.table for row in rows if row.table is not None], how.label)
    # Without a window nothing says how far a range may reach over the end of its recording.
    n_ranges = sum(row.n_ranges for row in rows)
    check_places(n_ranges, [place for row in rows for place in row.misplaced], tolerance=np.inf)
    return rows


def _units_of_most(rows_by_file: Mapping[str, Sequence[Inspected]]) -> dict[str, str]:
    """Return files whose time stamps would have the usual rate in another unit than they seem to have, and that one."""
    rates = [row.rate for rows in rows_by_file.values() for row in rows if row.rate is not None]
    units: dict[str, str] = {}
    for name, rows in rows_by_file.items():
        for row in rows:
            unit = unit_for_rate(row.assumed_unit, row.rate, float(np.median(rates))) if rates else None
            if unit is not None:
                units[name] = unit
    return units


def _inspected_file(files: RecordingFiles, name: str, file: Path, reading: Reading, tag: Tag) -> list[Inspected]:
    """Return a row for each recording of a file, or one with its problem."""
    size = file.stat().st_size
    shown = name + file.name.removeprefix(stem_of(file))
    try:
        recordings = files.read(name, reading, tag)
    except InputError as error:
        settings = error.settings if isinstance(error, SettingNeededError) else {}
        columns = tuple(named for named in column_names(file) if not says_time(named))
        return [Inspected(shown, problem=str(error), path=file, columns=columns, bytes=size, settings=settings)]
    rows = []
    for recording in recordings:
        row = _inspected(shown + recording.name.removeprefix(name), recording, reading.gap)
        table = TableColumns(recording.name, recording.lacking, recording.columns)
        rows.append(replace(row, path=file, columns=recording.channels, bytes=size, table=table))
    return rows


def _inspected(file: str, recording: Recording, gap: float) -> Inspected:
    values, times, rate = recording.values, recording.times, recording.rate
    found = [Stretch(slice(0, recording.n_times), rate, 0)] if times is None else stretches(times, gap)
    runs = [one.rows for one in found if rate is None or not is_other_rate(one.rate, rate)]
    wider: dict[float, tuple[int, ...]] = {}
    whole = runs  # but for some lost rows, which do not matter to a period
    if times is not None and rate is not None and len(runs) > 1:
        wider = {wider_gap: resampled_lengths(times, rate, wider_gap) for wider_gap in WIDER_GAPS if wider_gap > gap}
        whole = runs_with(times, rate, WIDER_GAPS[-1])
    longest = max(whole, key=lambda run: run.stop - run.start)
    seconds = None
    if rate is not None:
        seconds = recording.n_times / rate if times is None else float(times[-1] - times[0]) + 1 / rate
    lost = np.isnan(values)
    empty = lost.all(axis=1, keepdims=True)
    filled = np.where(empty, 0.0, values)  # a channel without values has neither level nor spread
    exact = filled.astype(np.float64)
    mean, std = (np.nanmean, np.nanstd) if lost.any() else (np.mean, np.std)
    return Inspected(
        file=file,
        rows=recording.n_times,
        seconds=seconds,
        rate=rate,
        gaps=len(found) - len({one.part for one in found}),
        missing=float(lost.mean()),
        channels=recording.channels,
        sparkline=sparkline(filled),
        stretches=tuple(run.stop - run.start for run in runs),
        wider=wider,
        others=recording.n_times - sum(run.stop - run.start for run in runs),
        period=usual_period(filled[:, longest]),
        means=tuple(map(float, mean(exact, axis=1))),
        stds=tuple(map(float, std(exact, axis=1))),
        n_merged=recording.n_merged,
        remarks=recording.remarks,
        n_ranges=recording.n_ranges,
        misplaced=recording.misplaced,
        assumed_unit=recording.assumed_unit,
        offsets=_offsets(recording),
        coarse={**_coarse_channels(recording), **recording.texts},
    )


def _coarse_channels(recording: Recording) -> dict[str, FewValues]:
    columns = zip(recording.channels, map(few_values, recording.values), strict=True)
    return {channel: column for channel, column in columns if column is not None}


def _offsets(recording: Recording) -> dict[str, str]:
    sentences = zip(recording.channels, map(offset_sentence, recording.values), strict=True)
    return {channel: sentence for channel, sentence in sentences if sentence}


def sparkline(values: Array) -> str:
    """Draw how far values (C, T) are from their median over time, in standard deviations; a blank has no value."""
    is_missing = np.isnan(values)
    # numpy's functions that leave out what is missing take ten times as long, which many short recordings feel.
    middle, spread_of = (np.nanmedian, np.nanstd) if is_missing.any() else (np.median, np.std)
    spread = spread_of(values, axis=1, keepdims=True, dtype=np.float64)
    apart = np.abs(values - middle(values, axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0)
    n_times = values.shape[1]
    n_parts = min(_WIDTH, n_times)
    longer = n_times % n_parts  # parts that have one time step more than the others
    sizes = np.full(n_parts, n_times // n_parts)
    sizes[:longer] += 1
    starts = np.cumsum(sizes) - sizes
    sums = np.add.reduceat(np.where(is_missing, 0.0, apart).sum(axis=0, dtype=np.float64), starts)
    counts = np.add.reduceat((~is_missing).sum(axis=0), starts)
    levels = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    top = np.nanmax(levels)
    heights = np.zeros(len(levels)) if not top > 0 else levels / top * (len(BARS) - 1)
    return "".join(" " if np.isnan(height) else BARS[round(float(height))] for height in heights)


def usual_period(values: Array) -> float | None:
    """Return the period of values (C, T), or else the median of those stretches that have one, if they are not few."""
    whole = dominant_period(values)
    n_stretches = values.shape[1] // _STRETCH
    if whole is not None or not n_stretches:
        return whole
    places = np.unique(np.linspace(0, n_stretches - 1, min(n_stretches, _STRETCHES)).astype(int)) * _STRETCH
    periods = [dominant_period(values[:, at : at + _STRETCH]) for at in places]
    found = [period for period in periods if period is not None]
    share, number = _REPEATING
    return float(np.median(found)) if len(found) >= max(number, share * len(periods)) else None


def dominant_period(values: Array) -> float | None:
    """Return the time steps after which values (C, T) repeat most clearly, by their autocorrelation; None if none.

    The first high peak after the autocorrelation has been negative counts if it is high again near twice that lag:
    noise that only wanders has one peak by chance, but seldom two.
    """
    n_times = min(values.shape[1], _LOOKED_AT)
    first = (values.shape[1] - n_times) // 2
    x = _flat(values[:, first : first + n_times])
    if n_times < _FEWEST or not len(x):
        return None
    spectrum = np.fft.rfft(x, 2 * n_times, axis=1)
    sums = np.fft.irfft((spectrum * spectrum.conj()).real, axis=1)[:, : n_times // 2 + 1].mean(axis=0)
    correlation = sums / (n_times - np.arange(len(sums)))  # for lags up to a half of the recording
    negative = np.flatnonzero(correlation < 0)
    if not len(negative):
        return None
    half = len(correlation) // 2  # so that twice the lag is there as well
    highest = correlation[negative[0] : half].max(initial=0.0)
    if highest < _CLEAR:
        return None
    # The top of the first hill that is as high: noise puts small peaks on its slopes.
    foot = int(negative[0] + np.argmax(correlation[negative[0] :] >= _AS_HIGH * highest))
    below = np.flatnonzero(correlation[foot:] < highest / 2)
    if not len(below):
        return None
    lag = int(foot + np.argmax(correlation[foot : foot + below[0]]))
    near = max(1, lag // 8)
    again = correlation[2 * lag - near : 2 * lag + near + 1].max(initial=0.0)
    if lag >= half or again < correlation[lag] / 2:
        return None
    # The peak lies between time steps: the top of the parabola through it and its neighbours.
    left, middle, right = correlation[lag - 1 : lag + 2]
    bend = left - 2 * middle + right
    return float(lag + np.clip((left - right) / (2 * bend), -0.5, 0.5)) if bend < 0 else float(lag)


def _flat(values: Array) -> NDArray[np.float64]:
    """Return the channels that change, without missing values and trend, with standard deviation 1."""
    time = np.arange(values.shape[1])
    rows = []
    for channel in values.astype(np.float64):
        known = ~np.isnan(channel)
        if known.sum() < _FEWEST:
            continue
        x = np.interp(time, time[known], channel[known])
        x = x - np.polyval(np.polyfit(time, x, 1), time)
        if (spread := x.std()) > 1e-9 * max(1e-30, np.abs(channel[known]).max()):
            rows.append(x / spread)
    return np.array(rows).reshape(-1, values.shape[1])


def names_sentence(names: Collection[str], pattern: str | None = None) -> str:
    """Say what the parts of names are, by a pattern or else by what they have in common; "" where that is nothing."""
    found = pattern or suggest_pattern(names)
    if found is None:
        return ""
    meant = NamePattern(found)
    read = [fields for name in names if (fields := meant.fields_of(name)) is not None]
    values = {field: sorted({one[field] for one in read}) for field in meant.fields}
    said = "; ".join(f"{field}: {listed(texts[:_NAMED])} ({len(texts)} in all)" for field, texts in values.items())
    if pattern is not None:
        return f"{len(read)} of {len(names)} files are called like this. {said}."
    # Nothing tells which part is the person and which the activity, so the example names neither.
    return (
        f"files are called like {found}. {said}. Give the parts names of your own, such as subject or activity, in "
        f"--names '{found}'; --label and --group then take these names."
    )


def extreme_places(values: Array, n: int) -> NDArray[np.intp]:
    """Return the time steps (C, n) of the least and the greatest of n / 2 stretches of (C, T), T > n, n even.

    They are in the order of time, and one comes twice where it is both. Missing values count only where a stretch has
    no other.
    """
    n_times = values.shape[1]
    size = -(-n_times // (n // 2))
    # Every time step is in some stretch, and all stretches have one size: a few time steps are in two of them.
    index = (np.arange(n // 2 * size) * n_times // (n // 2 * size)).reshape(n // 2, size)
    parts = values[:, index]  # (C, n / 2, size)
    lost = ~np.isfinite(parts)
    low, high = np.where(lost, np.inf, parts).argmin(axis=2), np.where(lost, -np.inf, parts).argmax(axis=2)
    ends = np.sort(np.stack([low, high], axis=2), axis=2)
    places: NDArray[np.intp] = np.take_along_axis(index[None], ends, axis=2).reshape(len(values), -1)
    return places


def stretched(values: Array, n: int) -> Array:
    """Return exactly n values per channel, n even: of more, the least and the greatest of n / 2 stretches."""
    n_times = values.shape[1]
    if n_times <= n:
        return values[:, np.arange(n) * n_times // n]
    return np.take_along_axis(values, extreme_places(values, n), axis=1)


def decimate(values: Array, most: int) -> Array:
    """Return (C, at most `most`) values that look the same: the least and the greatest of each stretch, in order."""
    return values if values.shape[1] <= most else stretched(values, most)
