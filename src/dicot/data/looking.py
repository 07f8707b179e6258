"""A look at every file of recordings before any is cut: what all have in common, and which cannot be used."""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from dicot.core.errors import DicotWarning, InputError
from dicot.core.settings import COLUMNS, how_to_set
from dicot.data.allowance import Allowance
from dicot.data.clocks import unit_for_rate, unit_remedy
from dicot.data.cutting import Cut, Outline, outline_of, settle
from dicot.data.folders import RecordingFiles, refuse_mistaken
from dicot.data.reading import Reading, Source
from dicot.data.recording import Recording
from dicot.data.tags import NOTHING, Tag
from dicot.data.timestamps import SAME_RATE

Common = tuple[tuple[str, ...], float | None]  # channels and rate
NO_TAGS: Mapping[str, Tag] = {}


class UnreadFileWarning(DicotWarning):
    """A file of recordings that is left out because it cannot be used."""


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
    channels = known[0] if known else _of_most([tuple(sorted(outline.channels)) for outline in everyone])
    others = "what was cut before has" if known else "most files have"
    rate = None
    if not reading.even:
        rate = known[1] if known else _usual_rate([outline.rate for outline in everyone])

    errors: dict[str, InputError] = {}
    for name, of_file in outlines.items():
        for outline in of_file:
            if channels is not None and set(outline.channels) != set(channels):
                has = f"It has the channels {', '.join(outline.channels)}; {others} {', '.join(channels)}."
                shared = [channel for channel in channels if channel in outline.channels]
                choice = how_to_set("channels", shared or COLUMNS)
                errors[name] = InputError(f"{has} Name those that all have: {choice}.")
            elif rate is not None and (problem := _unit_problem(outline, rate)):
                errors[name] = InputError(problem)
            elif rate is not None and _is_other_rate(outline, rate, known is not None):
                has = "no time stamps" if outline.rate is None else f"{outline.rate:g} time steps per second"
                errors[name] = InputError(f"It has {has}; {others} {rate:g} per second. Resample: --set rate={rate:g}.")
    return errors


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
