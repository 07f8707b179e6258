"""A look at every file of recordings before any is cut: what all have in common, and which cannot be used."""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dicot.core.errors import ClockWarning, DicotWarning, InputError, SettingNeededError, listed
from dicot.core.settings import COLUMN, COLUMNS, how_to_set
from dicot.data.allowance import Allowance
from dicot.data.clocks import Remark, remark_sentences, unit_for_rate, unit_remedy
from dicot.data.cutting import Cut, CutPlan, no_window
from dicot.data.devices import join_advice
from dicot.data.folders import RecordingFiles, refuse_mistaken
from dicot.data.labelcolumns import check_lacking
from dicot.data.labels import labelled
from dicot.data.ranges import Misplaced, check_places
from dicot.data.reading import Reading, Source
from dicot.data.recording import Recording
from dicot.data.tags import NOTHING, Tag
from dicot.data.timestamps import SAME_RATE, stretches

Common = tuple[tuple[str, ...], float | None]  # channels and rate
NO_TAGS: Mapping[str, Tag] = {}


class UnreadFileWarning(DicotWarning):
    """A file of recordings that is left out because it cannot be used."""


class Outline(NamedTuple):
    """What recordings must have in common, of one of them, in plain values."""

    name: str
    channels: tuple[str, ...]
    units: tuple[str, ...]
    rate: float | None
    timed: bool  # whether it has time stamps
    label: str | None  # "text" or "number"
    group: str | None
    longest: int  # time steps of its longest stretch without a gap
    n_times: int = 0
    n_merged: int = 0  # rows that became one with the row before, which had the same time stamp
    remarks: tuple[Remark, ...] = ()  # on its clock
    assumed_unit: str | None = None  # of its time stamps, where nobody named one
    n_ranges: int = 0  # of labels in a table, for the whole file
    misplaced: tuple[Misplaced, ...] = ()  # those of them that do not lie in the recordings of the file
    lacking: tuple[str, ...] = ()  # columns that were named and that its file has not
    columns: tuple[str, ...] = ()  # of its file, where it lacks one
    has_missing: bool = False  # values


def outline_of(recording: Recording, reading: Reading) -> Outline:
    """Return what other recordings must agree with; missing values are refused where the reading says so."""
    lost = np.isnan(recording.values)
    has_missing = bool(lost.any())
    if reading.missing == "error" and has_missing:
        channel = int(np.argmax(lost.any(axis=1)))
        raise InputError(
            f"Recording {recording.name!r} has no value in channel {recording.channels[channel]!r} at "
            f"{np.count_nonzero(lost[channel])} of {recording.n_times} time steps, the first of which is "
            f"{np.argmax(lost[channel])}. Fill them in: {how_to_set('missing', 'interpolate')}, or zero. Or remove "
            "these rows."
        )
    longest, timed = recording.n_times, recording.times is not None
    if recording.times is not None:
        longest = max(int(run.stop - run.start) for run, *_ in stretches(recording.times, reading.gap))
    labels = [one.label for one in recording.ranges] or recording.label
    kinds = (_kind(labels), _kind(recording.group))
    return Outline(
        recording.name,
        recording.channels,
        recording.units,
        recording.rate,
        timed,
        *kinds,
        longest,
        n_times=recording.n_times,
        n_merged=recording.n_merged,
        remarks=recording.remarks,
        assumed_unit=recording.assumed_unit,
        n_ranges=recording.n_ranges,
        misplaced=recording.misplaced,
        lacking=recording.lacking,
        columns=recording.columns,
        has_missing=has_missing,
    )


def _kind(value: Any) -> str | None:
    values = np.atleast_1d(np.asarray(np.nan if value is None else value))
    return None if not labelled(values).any() else "text" if values.dtype.kind == "U" else "number"


def look_at(
    files: RecordingFiles,
    names: Sequence[str],
    reading: Reading,
    allowance: Allowance,
    *,
    known: Common | None = None,
    tags: Mapping[str, Tag] = NO_TAGS,
    on_file: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, list[Outline]]:
    """Return the outlines of the recordings of each file that can be used, of those called so.

    A file is left out where the allowance says so and it cannot be read, or has other channels or another rate than
    `known`, which was cut before, or than most files.
    """
    all_files = files.named(reading)

    def outlines_of(name: str) -> list[Outline]:
        recordings = files.read(name, reading, tags.get(name, NOTHING))
        refuse_mistaken([recording.name for recording in recordings], name, all_files)
        return [outline_of(recording, reading) for recording in recordings]

    outlines: dict[str, list[Outline]] = {}
    for done, name in enumerate(names):
        on_file(done, len(names))
        of_file = allowance.attempt(name, all_files[name], partial(outlines_of, name))
        if of_file is not None:
            outlines[name] = of_file

    if allowance.bad_files:
        for name, error in unlike_most(outlines, reading, known).items():
            allowance.refuse(name, all_files[name], error)
            del outlines[name]
    allowance.refuse_nothing_left(len(all_files))
    return outlines


def leave_out_unfillable(
    outlines: dict[str, list[Outline]],
    files: Mapping[str, Path],
    allowance: Allowance,
    plan: Callable[[str], object],
) -> None:
    """Leave out files in which more is missing than can be filled in, which only planning their windows tells."""
    if not allowance.bad_files:
        return
    names = [name for name, of_file in outlines.items() if any(outline.has_missing for outline in of_file)]
    for name in names:
        if allowance.attempt(name, files[name], partial(plan, name)) is None:
            del outlines[name]


def readable_recordings(source: Source, reading: Reading, allowance: Allowance) -> list[Recording]:
    """Return the recordings of all files that can be used, to be cut together."""
    files = RecordingFiles(source, room=math.inf)
    named, tags = files.named(reading), files.tags(reading)
    outlines = look_at(files, list(named), reading, allowance, tags=tags)

    def read(name: str) -> list[Recording]:
        return files.read(name, reading, tags.get(name, NOTHING))

    if allowance.bad_files:
        cut = settled(outlines, reading)
        leave_out_unfillable(outlines, named, allowance, lambda name: cut.plan(read(name)))
        allowance.refuse_nothing_left(len(named))
    warn_of_bad_files(allowance)
    return [recording for name in outlines for recording in read(name)]


def settled(outlines: Mapping[str, Sequence[Outline]], reading: Reading, known: Common | None = None) -> Cut:
    """Settle how the recordings of all files are cut."""
    return settle([outline for of_file in outlines.values() for outline in of_file], reading, known)


def warn_of_bad_files(allowance: Allowance) -> None:
    """Name the files that were left out, and why."""
    for sentence in allowance.sentences():
        warnings.warn(sentence, UnreadFileWarning, stacklevel=4)


def unlike_most(
    outlines: Mapping[str, Sequence[Outline]], reading: Reading, known: Common | None
) -> dict[str, InputError]:
    """Return files that cannot be cut together with what was cut before, or else with most of the others.

    Where no more than half agree nobody can say which are wrong, and nothing is left out: settling them is an error.
    """
    everyone = [outline for of_file in outlines.values() for outline in of_file]
    if known is None:
        channels = _of_most([tuple(sorted(outline.channels)) for outline in everyone])
        rate = _usual_rate([outline.rate for outline in everyone])
    else:
        channels, rate = known
    if reading.even:
        rate = None  # any rate is resampled
    errors: dict[str, InputError] = {}
    for name, of_file in outlines.items():
        for outline in of_file:
            problem = _channel_problem(outline, channels, known) or _rate_problem(outline, rate, known)
            if problem:
                errors[name] = InputError(problem)
    return errors


def _others(known: Common | None) -> str:
    return "most files have" if known is None else "what was cut before has"


def _channel_problem(outline: Outline, channels: tuple[str, ...] | None, known: Common | None) -> str:
    """Say that a recording has other channels; nothing where it has these."""
    if channels is None or set(outline.channels) == set(channels):
        return ""
    shared = [channel for channel in channels if channel in outline.channels]
    return (
        f"It has the channels {', '.join(outline.channels)}; {_others(known)} {', '.join(channels)}. Name those that "
        f"all have: {how_to_set('channels', shared or COLUMNS)}."
    )


def _rate_problem(outline: Outline, rate: float | None, known: Common | None) -> str:
    """Say that a recording has another rate, or would have this one in another unit; nothing where it has this one."""
    if rate is None:
        return ""
    problem = _unit_problem(outline, rate)
    if problem or not _is_other_rate(outline, rate, known is not None):
        return problem
    its_rate = "no time stamps" if outline.rate is None else f"{outline.rate:g} time steps per second"
    return f"It has {its_rate}; {_others(known)} {rate:g} per second. Resample: --set rate={rate:g}."


def _unit_problem(outline: Outline, rate: float) -> str:
    """Say that time stamps count in another unit than it seemed; nothing where they do not."""
    unit = unit_for_rate(outline.assumed_unit, outline.rate, rate)
    if unit is None or outline.assumed_unit is None or outline.rate is None:
        return ""
    return unit_remedy(outline.name, outline.assumed_unit, outline.rate, unit, rate)


def _of_most(values: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return the value that more than half have."""
    if not values:
        return None
    value, count = Counter(values).most_common(1)[0]
    return value if 2 * count > len(values) else None


def _usual_rate(rates: Sequence[float | None]) -> float | None:
    """Return the rate that more than half have."""
    numbers = np.array([np.nan if rate is None else rate for rate in rates])
    if np.isnan(numbers).all():
        return None
    usual = float(np.nanmedian(numbers))
    is_usual = np.abs(numbers - usual) <= SAME_RATE * usual
    return usual if 2 * is_usual.sum() > len(numbers) else None


def _is_other_rate(outline: Outline, rate: float, is_known: bool) -> bool:
    if outline.rate is None:
        # A recording without time stamps is taken to have the rate of what was cut before.
        return not outline.timed and not is_known
    return abs(outline.rate - rate) > SAME_RATE * rate


def settled_plan(recordings: Sequence[Recording], reading: Reading) -> CutPlan:
    """Settle what holds for all of these recordings, and say where their windows begin."""
    cut = settle([outline_of(one, reading) for one in recordings], reading)
    plan = cut.plan(recordings)
    if not len(plan):
        raise no_window(cut.length, max(plan.lengths.values(), default=0))
    return plan


def settle(
    outlines: Sequence[Outline], reading: Reading, known: tuple[tuple[str, ...], float | None] | None = None
) -> Cut:
    """Find what holds for all recordings, and for what was cut before (`known`); refuse what does not agree."""
    first, channels = ("what was cut before", known[0]) if known else (repr(outlines[0].name), outlines[0].channels)
    found: dict[str, tuple[str, str]] = {}  # channel -> unit, recording
    for one in outlines:
        if set(one.channels) != set(channels):
            advice = join_advice({outline.name: outline.channels for outline in outlines})
            joined = "" if advice is None else advice.sentence
            raise InputError(
                f"All recordings must have the same channels: {first} has {', '.join(channels)}; {one.name!r} has "
                f"{', '.join(one.channels)}. Choose those that all have: {_shared_channels(outlines, channels)}, or "
                f"leave the other files out. {joined}".strip()
            )
        for channel, unit in zip(one.channels, one.units, strict=False):
            other, name = found.setdefault(channel, (unit, one.name)) if unit else (unit, "")
            if unit.lower() != other.lower():
                raise InputError(
                    f"Channel {channel!r} is in {other} in {name!r} and in {unit} in {one.name!r}. Convert one of the "
                    f"files, or leave the channel out: {how_to_set('ignore', [channel])}."
                )
    check_lacking(outlines, reading.label, allowed=known is not None)
    texts = [what for what in ("label", "group") if {"text", "number"} <= {getattr(one, what) for one in outlines}]
    rate = _common_rate(outlines, reading, known[1] if known else None)
    warn_of_merged(outlines, reading.duplicates)
    for sentence in remark_sentences({one.name: one.remarks for one in outlines}):
        warnings.warn(sentence, ClockWarning, stacklevel=4)
    length, stride = reading.steps(rate)
    if rate is not None:
        check_ranges(outlines, length / rate)
    return Cut(reading, channels, rate, length, stride, tuple(texts))


def check_ranges(outlines: Sequence[Outline], tolerance: float) -> None:
    """Refuse a table of labels most of whose ranges lie outside; they may reach so many seconds over an end."""
    misplaced = [one for outline in outlines for one in outline.misplaced]
    check_places(sum(outline.n_ranges for outline in outlines), misplaced, tolerance)


def _shared_channels(outlines: Sequence[Outline], channels: Sequence[str]) -> str:
    """Say how to choose those of the channels that all recordings have."""
    shared = [channel for channel in channels if all(channel in outline.channels for outline in outlines)]
    return how_to_set("channels", shared or COLUMNS)


def _common_rate(outlines: Sequence[Outline], reading: Reading, before: float | None) -> float | None:
    """Return the rate of all windows; None where it is known of no recording."""
    if reading.rate is not None:
        _refuse_other_units(outlines, reading.rate)
        return reading.rate
    rates = {one.name: one.rate for one in outlines if one.rate is not None}
    timeless = [one.name for one in outlines if one.rate is None and not one.timed]
    if before is None and timeless and (rates or reading.resample):
        others = f", that of {listed(list(rates))} is" if rates else ""
        raise InputError(
            f"The rate of {listed(timeless)} is not known{others}. "
            f"Name the column of time stamps: {how_to_set('time', COLUMN)}, or say the rate: {how_to_set('rate', 50)}."
        )
    usual = before if before is not None else float(np.median(list(rates.values()))) if rates else None
    if usual is None:
        return None
    _refuse_other_units(outlines, usual)
    other = [name for name, rate in rates.items() if abs(rate - usual) > SAME_RATE * usual]
    if other and not reading.resample:
        near = min(rates, key=lambda name: abs(rates[name] - usual))
        first, own = (repr(near), rates[near]) if before is None else ("what was cut before", before)
        raise InputError(
            f"All recordings must have one rate: {first} has {own:g} time steps per second, {other[0]!r} "
            f"{rates[other[0]]:g} ({len(other)} of {len(rates)} differ). Resample them with --set rate={own:g}, "
            "or leave some out."
        )
    return usual


def _refuse_other_units(outlines: Sequence[Outline], rate: float) -> None:
    """Refuse recordings whose time stamps count in another unit than it seemed, because they would have this rate."""
    for outline in outlines:
        unit = unit_for_rate(outline.assumed_unit, outline.rate, rate)
        if unit is not None and outline.assumed_unit is not None and outline.rate is not None:
            remedy = unit_remedy(outline.name, outline.assumed_unit, outline.rate, unit, rate)
            raise SettingNeededError(remedy, unit=unit)


def warn_of_merged(outlines: Sequence[Outline], how: str) -> None:
    """Say how many rows of equal time stamps became one, in how many recordings."""
    n_merged = sum(one.n_merged for one in outlines)
    if not n_merged:
        return
    n_rows = n_merged + sum(one.n_times for one in outlines)
    n_recordings = sum(one.n_merged > 0 for one in outlines)
    warnings.warn(merged_sentence(n_merged, n_rows, n_recordings, how), DicotWarning, stacklevel=4)


def merged_sentence(n_merged: int, n_rows: int, n_recordings: int, how: str) -> str:
    """Say how many rows became one with the row before."""
    kept = "their mean was taken" if how == "mean" else "the first was kept"
    return (
        f"{n_merged:,} of {n_rows:,} rows, in {n_recordings:,} recording(s), share their time stamp with the row "
        f"before: {kept} (duplicates={how})."
    )
