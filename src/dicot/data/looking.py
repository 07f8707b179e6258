"""A look at every file of recordings before any is cut: what all have in common, and which cannot be used."""

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from dicot.core.errors import DicotWarning, InputError
from dicot.core.settings import COLUMNS, how_to_set
from dicot.data.allowance import Allowance
from dicot.data.clocks import unit_for_rate, unit_remedy
from dicot.data.cutting import Cut, Outline, outline_of, settle
from dicot.data.folders import files_to_read, read_named, refuse_mistaken
from dicot.data.reading import Reading, Source
from dicot.data.recording import Recording
from dicot.data.tags import NOTHING, Tag, tags_of
from dicot.data.timestamps import SAME_RATE

Common = tuple[tuple[str, ...], float | None]  # channels and rate


class UnreadFileWarning(DicotWarning):
    """A file of recordings that is left out because it cannot be used."""


@dataclass(frozen=True)
class FilesToRead:
    """Files of recordings by name, and what names and a table say of them."""

    files: Mapping[str, Path]
    tags: Mapping[str, Tag]
    all_files: Mapping[str, Path]  # also those that are not read because nothing in them is new

    def read(self, name: str, reading: Reading) -> list[Recording]:
        """Read the recordings of a file."""
        recordings = read_named(self.files[name], name, reading, self.tags.get(name, NOTHING))
        refuse_mistaken([recording.name for recording in recordings], name, self.all_files)
        return recordings


def look_at(
    source: FilesToRead,
    reading: Reading,
    allowance: Allowance,
    *,
    known: Common | None = None,
    on_file: Callable[[int, int], None] = lambda done, total: None,
    on_recordings: Callable[[str, list[Recording]], None] = lambda name, recordings: None,
) -> dict[str, list[Outline]]:
    """Return the outlines of the recordings of each file that can be used.

    A file is left out where the allowance says so and it cannot be read, or has other channels or another rate than
    `known`, which was cut before, or than most files.
    """
    outlines: dict[str, list[Outline]] = {}
    for done, (name, file) in enumerate(source.files.items()):
        on_file(done, len(source.files))
        recordings = allowance.attempt(name, file, partial(source.read, name, reading))
        if recordings is None:
            continue
        of_file = allowance.attempt(name, file, partial(_outlines, recordings, reading))
        if of_file is None:
            continue
        outlines[name] = of_file
        on_recordings(name, recordings)

    if allowance.bad_files:
        for name, error in unlike_most(outlines, reading, known).items():
            allowance.refuse(name, source.files[name], error)
            del outlines[name]
    allowance.refuse_nothing_left(len(source.all_files))
    return outlines


def readable_recordings(source: Source, reading: Reading, allowance: Allowance) -> list[Recording]:
    """Return the recordings of all files that can be used, to be cut together."""
    named = files_to_read(source, reading)
    files = FilesToRead(named, tags_of(source, named, reading), named)
    recordings: dict[str, list[Recording]] = {}
    outlines = look_at(files, reading, allowance, on_recordings=recordings.__setitem__)
    if allowance.bad_files:
        cut = settled(outlines, reading)
        for name in [name for name in outlines if has_missing(recordings[name])]:
            if allowance.attempt(name, named[name], partial(cut.plan, recordings[name])) is None:
                del outlines[name]
        allowance.refuse_nothing_left(len(named))
    warn_of_bad_files(allowance)
    return [recording for name in outlines for recording in recordings[name]]


def settled(outlines: Mapping[str, Sequence[Outline]], reading: Reading, known: Common | None = None) -> Cut:
    """Settle how the recordings of all files are cut."""
    return settle([outline for of_file in outlines.values() for outline in of_file], reading, known)


def has_missing(recordings: Sequence[Recording]) -> bool:
    """Tell whether values are missing, which only cutting can tell to be more than can be filled in."""
    return any(np.isnan(recording.values).any() for recording in recordings)


def warn_of_bad_files(allowance: Allowance) -> None:
    """Name the files that were left out, and why."""
    for sentence in allowance.sentences():
        warnings.warn(sentence, UnreadFileWarning, stacklevel=4)


def _outlines(recordings: Sequence[Recording], reading: Reading) -> list[Outline]:
    return [outline_of(recording, reading) for recording in recordings]


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
