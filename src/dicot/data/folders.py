"""Folders of recordings: which files there are, what they hold, and all of them as windows in one call."""

import glob
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path, PurePath
from typing import TypeVar, final

import numpy as np

from dicot.core.errors import InputError, NoWindowError, ShortRecordingWarning, UnevenSamplingWarning, lookup
from dicot.data.collection import Windows, check_rate
from dicot.data.durations import window_length, window_stride
from dicot.data.naming import listed, naming
from dicot.data.policies import MISSING, NO_VALUE, Array
from dicot.data.recordingfile import READERS, Choice, Recording, read_file, stem_of, suffix_of
from dicot.data.recordings import CutPlan, LeftOut, plan_cuts, warn_of_short
from dicot.data.texts import as_text
from dicot.data.timestamps import (
    GAP,
    SAME_RATE,
    check_gap,
    even_grid,
    interpolate_at,
    nearest,
    stretches,
)

Source = str | Path | Sequence[str | Path]
_UNEVEN = 0.1  # share by which windows of one length may differ in time before it is worth a warning


def find_recordings(source: Source) -> list[Path]:
    """List the files of recordings of a folder and those below it, a pattern such as "data/*.csv", a file, or a list.

    In folders and by patterns only files with a known suffix count, and none that is hidden. Sorted, each once.
    """
    return [file for file, _ in below_named(source)]


def named_recordings(source: Source) -> dict[str, Path]:
    """Find the same files, each with the name of its recording, which does not depend on what other files there are.

    It is the path below the folder that was named, or below that where a pattern begins, without suffix and with "/" on
    every system. A file that was named itself has its own name alone. Two files of one name are refused.
    """
    return by_name(below_named(source))


def below_named(source: Source) -> list[tuple[Path, PurePath]]:
    """Return files, each with its path below what was named."""
    sources = [source] if isinstance(source, str | Path) else list(source)
    found = [file for one in sources for file in _files_of(one)]
    unique = {path.resolve(): (path, below) for path, below in reversed(found)}
    if not unique:
        raise InputError(f"{source!r} names no recording. Pass a folder, a pattern, or files ({_known()}).")
    return sorted(unique.values(), key=lambda one: one[0].as_posix())


AnyPath = TypeVar("AnyPath", Path, str)


def by_name(files: Iterable[tuple[AnyPath, PurePath]]) -> dict[str, AnyPath]:
    """Name files by their paths below what was named."""
    named: dict[str, AnyPath] = {}
    for file, below in files:
        name = below.with_name(stem_of(below)).as_posix()
        if name in named:
            beside = PurePath(named[name]).parent == PurePath(file).parent
            wider = "" if beside else "the folder that holds both, or "
            raise InputError(
                f"{named[name]} and {file} would be two recordings called {name!r}. Name {wider}those of one kind by a "
                "pattern in quotation marks, such as 'recordings/**/*.csv', or rename one."
            )
        named[name] = file
    return named


def file_name_of(recording: str, names: Collection[str]) -> str | None:
    """Return the name of the file that a recording is of: where it has several groups, ":" and the group follow it."""
    while recording not in names and ":" in recording:
        recording = recording.rpartition(":")[0]
    return recording if recording in names else None


def refuse_mistaken(recordings: Iterable[str], name: str, names: Mapping[str, Path | str]) -> None:
    """Refuse recordings of the file called `name` that would be taken for those of another file."""
    for one in recordings:
        if (other := file_name_of(one, names)) != name:
            raise InputError(
                f"{names[name]} has a recording {one!r}, named after the file and its group, and the file "
                f"{names[str(other)]} has such a name itself. Rename this file."
            )


def pattern_of(folder: str | Path, files: Sequence[Path]) -> str | None:
    """Return a pattern that names just these of a folder's recordings; None where no simple one does."""
    root, wanted = Path(folder), {file.resolve() for file in files}
    others = [file.name for file in find_recordings(folder) if file.resolve() not in wanted]
    below = "**/" if any(file.parent != root for file in files) else ""
    suffixes = {file.suffix for file in files}
    suffix = suffixes.pop() if len(suffixes) == 1 else ".*"
    for start in ("", f"[!{''.join(sorted({name[0] for name in others}))}]"):
        pattern = f"{glob.escape(str(root))}/{below}{start}*{suffix}"
        if {Path(file).resolve() for file in glob.glob(pattern, recursive=True)} == wanted:
            return pattern
    return None


def _files_of(source: str | Path) -> list[tuple[Path, PurePath]]:
    path = Path(source).expanduser()
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*")) if file.is_file()]
        visible = [file for file in files if not any(part.startswith(".") for part in file.relative_to(path).parts)]
        return [(file, file.relative_to(path)) for file in _of_known_suffix(visible, f"Folder {path}")]
    if path.is_file():
        return [(path, PurePath(path.name))]  # asked for by name: an unknown suffix is an error of its reader
    if glob.has_magic(str(path)):
        found = _of_known_suffix(map(Path, sorted(glob.glob(str(path), recursive=True))), f"Pattern {source}")
        return [(file, file.relative_to(before_pattern(path))) for file in found]
    raise InputError(f"There is no file or folder {path}. Check the path.")


def before_pattern(path: PurePath) -> PurePath:
    """Return the folder where a pattern begins."""
    return type(path)(*takewhile(lambda part: not glob.has_magic(part), path.parts))


def _of_known_suffix(files: Iterable[Path], what: str) -> list[Path]:
    files = list(files)
    known = [file for file in files if suffix_of(file) in READERS and file.is_file()]
    if not known:
        others = sorted({file.suffix or file.name for file in files})
        came = f"of its files the suffixes are {listed(others)}" if others else "it holds no file"
        raise InputError(f"{what} holds no recording ({_known()}); {came}. Check the path, or convert the files.")
    return known


def _known() -> str:
    return ", ".join(READERS)


def read_recordings(
    source: Source,
    *,
    time: str | None = None,
    unit: str | None = None,
    channels: Sequence[str] | None = None,
    label: str | None = None,
    group: str | None = None,
    gap: float = GAP,
) -> list[Recording]:
    """Read all recordings of a folder, pattern, file or list; the parameters are those of `read_recording`.

    A file whose column of groups has several values holds a recording for each. All must have the same channels, which
    get the order of the first file.
    """
    files = named_recordings(source)
    choice = Choice(time, unit, channels, label, group)
    recordings: list[Recording] = []
    for name, file in files.items():
        known = recordings[0].channels if recordings else None
        own = read_named(file, name, choice, known, str(next(iter(files.values()))), gap)
        refuse_mistaken([one.name for one in own], name, files)
        recordings += own
    check_units(recordings)
    texts = mixed_kinds(recordings)
    return [with_texts(one, texts) for one in recordings]


def read_named(
    file: Path, name: str, choice: Choice, channels: tuple[str, ...] | None, first: str, gap: float
) -> list[Recording]:
    """Read the recordings of a file, named after `name`, with these channels in this order: those of `first`."""
    recordings = []
    for one in read_file(file, choice, gap):
        # A group that follows the file's own name after a colon stays.
        one = replace(one, name=name + one.name.removeprefix(stem_of(file)))
        channels = one.channels if channels is None else channels
        recordings.append(in_order(one, channels, file, first))
    return recordings


def read_tracks(
    file: Path, name: str, choice: Choice, channels: tuple[str, ...] | None, rate: float | None, gap: float
) -> list[Recording]:
    """Read a file as it is cut into windows: with this name, these channels, and on an even grid where a rate is given.

    One that is resampled comes in pieces of the same name, the stretches between its gaps.
    """
    recordings = read_named(file, name, choice, channels, "What was cut before", gap)
    return recordings if rate is None else _resampled(recordings, rate, gap)


def in_order(recording: Recording, channels: tuple[str, ...], file: Path | str, first: str) -> Recording:
    """Return a recording with its channels in the order of the first one's."""
    if recording.channels == channels:
        return recording
    if set(recording.channels) != set(channels):
        raise InputError(
            f"All recordings must have the same channels. {first} has {', '.join(channels)}; {file} has "
            f"{', '.join(recording.channels)}. Choose those that all have with channels= (--channels), or leave the "
            "other files out."
        )
    rows = [recording.channels.index(channel) for channel in channels]
    units = tuple(recording.units[row] for row in rows) if recording.units else ()
    return replace(recording, values=np.ascontiguousarray(recording.values[rows]), channels=channels, units=units)


def check_units(recordings: Sequence[Recording]) -> None:
    """Refuse a channel that two files have in different units, which no rule turns into one another."""
    for number, channel in enumerate(recordings[0].channels if recordings else ()):
        found: dict[str, tuple[str, str]] = {}
        for one in recordings:
            if one.units and (unit := one.units[number]):
                found.setdefault(unit.lower(), (unit, one.name))
        if len(found) > 1:
            (unit, name), (other, second), *_ = found.values()
            raise InputError(
                f"Channel {channel!r} is in {unit} in {name!r} and in {other} in {second!r}. Convert one of the "
                "files, leave it out, or choose other channels with channels= (--channels)."
            )


def mixed_kinds(recordings: Sequence[Recording]) -> list[str]:
    """Name what some files have as text and others not: one may hold the labels 1 and 2, another 1 and "none"."""
    mixed = []
    for what in ("label", "group"):
        values = [getattr(one, what) for one in recordings]
        if len({np.asarray(value).dtype.kind == "U" for value in values if value is not None}) > 1:
            mixed.append(what)
    return mixed


def with_texts(recording: Recording, texts: Sequence[str]) -> Recording:
    """Return a recording with these of its label and group written as text."""
    return replace(recording, **{what: as_text(getattr(recording, what)) for what in texts}) if texts else recording


def windows_from(
    source: Source,
    window: str | int,
    stride: str | int = "50%",
    *,
    time: str | None = None,
    unit: str | None = None,
    channels: Sequence[str] | None = None,
    rate: float | None = None,
    label: str | None = None,
    group: str | None = None,
    resample: bool = False,
    missing: str = "error",
    gap: float = GAP,
    keep_tail: bool = False,
    name: str = "",
) -> Windows:
    """Read recordings and cut them into windows that know their recording, start, end, channels and rate.

    No window spans two recordings, a gap or a change of rate; time stamps that only jitter are taken as even.
    Recordings shorter than a window are named in one warning, and another counts time steps that lie in no window.

    Parameters
    ----------
    source : a folder, a pattern such as "data/*.csv", a file, or a list of these
    window : time steps, or a time such as "2.56s", "500ms" or "1min"
    stride : time steps, a time, or a share of the window such as "50%"
    time, unit, channels, label, group : as for `read_recording`. A window gets the most frequent label of its time
        steps; without a column of groups its group is its recording
    rate : time steps per second. Recordings without time stamps have this rate, the others are resampled to it
    resample : put unevenly sampled time steps, and those of another rate, on an even grid, by default at the median
        rate of the recordings. Values are interpolated linearly, not across gaps, and without a filter: smooth them
        first if the rate falls a lot
    missing : "error", "interpolate" or "zero" for NaN
    gap : a step between time stamps that is longer than so many usual steps is a gap, unless those behind it catch up
    keep_tail : cover the end of a recording by a last window that ends there
    name : of the result, for reports
    """
    lookup(MISSING, missing, "policy for missing values")
    gap = check_gap(gap)
    recordings = read_recordings(source, time=time, unit=unit, channels=channels, label=label, group=group, gap=gap)
    refuse_missing(recordings, missing)
    known = common_rate(recordings, None if rate is None else check_rate(rate), resample)
    length = window_length(window, known)
    even = rate is not None or resample
    step = window_stride(stride, length, known)
    cutting = Cutting(length, step, known, even, label is not None, missing, gap, keep_tail)
    plan = cutting.plan(recordings)
    plan.left.warn(known)
    windows = replace(plan.windows(), name=name)
    if windows.recording is not None and windows.start is not None and windows.end is not None:
        warn_of_uneven(windows.recording, windows.end - windows.start, length, known)
    return windows


@dataclass(frozen=True)
class Cutting:
    """How recordings become windows: what a user said, settled for all of them."""

    length: int  # time steps
    stride: int
    rate: float | None
    even: bool  # put on an even grid of this rate
    labelled: bool
    missing: str
    gap: float
    keep_tail: bool = False

    def plan(self, recordings: Sequence[Recording]) -> CutPlan:
        """Say where the windows of some recordings begin, for those who cut a few at a time."""
        # Resampled ones come in pieces: a gap may be shorter than a step of the new rate, and is one all the same.
        tracks = _resampled(recordings, self.rate, self.gap) if self.even else recordings
        return plan_cuts(
            [one.values for one in tracks],
            self.length,
            self.stride,
            labels=[one.label for one in tracks] if self.labelled else None,
            groups=[one.name if one.group is None else one.group for one in tracks],
            missing=self.missing,
            keep_tail=self.keep_tail,
            rate=self.rate,
            channels=tracks[0].channels,
            names=[one.name for one in tracks],
            times=_times(tracks, self.rate),
            gap=self.gap,
        )


@final
class RecordingStream:
    """Recordings cut file by file: together the windows are those of `windows_from`, and one file is in memory.

    Every file is read twice: at first for what all recordings must have in common, so that an error of the last file
    is told before any work is done. The parameters are those of `windows_from`.

    Parameters
    ----------
    only : says which of all files, by name, to take
    known : channels and rate of windows that were cut before, which these recordings must have too
    on_file : is told how many files were read for the first time, and how many there are

    Attributes
    ----------
    files : name of the recording -> its file; where a file has several groups, ":" and the group follow the name
    cutting : what was settled for all
    channels : the names of the channels
    lengths : name of each recording -> time steps of its longest stretch without a gap
    left : name of each file that was cut -> how many of its time steps lie in no window
    """

    def __init__(
        self,
        source: Source,
        window: str | int,
        stride: str | int = "50%",
        *,
        time: str | None = None,
        unit: str | None = None,
        channels: Sequence[str] | None = None,
        rate: float | None = None,
        label: str | None = None,
        group: str | None = None,
        resample: bool = False,
        missing: str = "error",
        gap: float = GAP,
        only: Callable[[Mapping[str, Path]], Mapping[str, Path]] = lambda named: named,
        known: tuple[tuple[str, ...], float | None] | None = None,
        on_file: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        lookup(MISSING, missing, "policy for missing values")
        gap = check_gap(gap)
        named = named_recordings(source)
        self.files = only(named)
        self.lengths: dict[str, int] = {}
        self.left: dict[str, LeftOut] = {}
        self._choice, self._gap = Choice(time, unit, channels, label, group), gap
        self._first = "What was cut before" if known else str(next(iter(self.files.values()), ""))
        self.channels = known[0] if known else None
        outlines: list[Recording] = []
        for done, (name, file) in enumerate(self.files.items()):
            on_file(done, len(self.files))
            for one in self._read(name, file):
                with naming(file):
                    refuse_missing([one], missing)
                refuse_mistaken([one.name], name, named)
                self.channels = one.channels
                self.lengths[one.name] = longest_stretch(one, gap)
                outlines.append(outline(one))
        check_units(outlines)
        self._texts = mixed_kinds(outlines)
        settled = None if rate is None else check_rate(rate)
        if settled is None and known is not None and known[1] is not None:
            settled = _rate_as_before(outlines, known[1], resample)
        elif outlines:
            settled = common_rate(outlines, settled, resample)
        length = window_length(window, settled)
        even = rate is not None or resample
        step = window_stride(stride, length, settled)
        self.cutting = Cutting(length, step, settled, even, label is not None, missing, gap)

    def windows(self, name: str) -> Windows | None:
        """Cut the recordings of the file of this name; None where all are shorter than a window."""
        recordings = [with_texts(one, self._texts) for one in self._read(name, self.files[name])]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShortRecordingWarning)  # `warn` names them all
            try:
                plan = self.cutting.plan(recordings)
            except NoWindowError as error:
                self.left[name] = LeftOut(*error.left)
                return None
        self.left[name] = plan.left
        return plan.windows()

    def warn(self, recording: Array, start: Array, end: Array, left: LeftOut) -> None:
        """Say which recordings gave none of these windows, what lies in none, and where time stamps are uneven."""
        there = set(recording.tolist())
        left.warn(self.cutting.rate)
        warn_of_short({name: n for name, n in self.lengths.items() if name not in there}, self.cutting.length)
        warn_of_uneven(recording, end - start, self.cutting.length, self.cutting.rate)

    def _read(self, name: str, file: Path) -> list[Recording]:
        return read_named(file, name, self._choice, self.channels, self._first, self._gap)


def longest_stretch(recording: Recording, gap: float) -> int:
    if recording.times is None:
        return recording.n_times
    return max(int(run.stop - run.start) for run, *_ in stretches(recording.times, gap))


def outline(recording: Recording) -> Recording:
    """Return a recording without its values: its rate and what kind its labels and groups are."""
    label = recording.label[:0] if isinstance(recording.label, np.ndarray) else recording.label
    times = None if recording.times is None else recording.times[:0]
    return replace(recording, values=np.empty((len(recording.channels), 0), np.float32), times=times, label=label)


def _rate_as_before(recordings: Sequence[Recording], rate: float, resample: bool) -> float:
    """Return the rate that earlier windows had, which those of these recordings must have too."""
    for one in recordings:
        if one.rate is not None and not resample and abs(one.rate - rate) > SAME_RATE * rate:
            raise InputError(
                f"Recording {one.name!r} has {one.rate:g} time steps per second; what was cut before has {rate:g}. "
                f"Resample all of them with rate={rate:g} (--rate), into a new file, or leave this one out."
            )
    return rate


def refuse_missing(recordings: Sequence[Recording], missing: str) -> None:
    """Refuse missing values under "error", and under "interpolate" a channel that has none to fill in from."""
    if missing == "interpolate":
        for one in recordings:
            if dead := [c for c, row in zip(one.channels, one.values, strict=True) if np.isnan(row).all()]:
                raise InputError(NO_VALUE.format(f"Recording {one.name!r}", f"channel {dead[0]!r}"))
    lost = [one for one in recordings if missing == "error" and np.isnan(one.values).any()]
    if not lost:
        return
    first = np.isnan(lost[0].values)
    channel = int(np.argmax(first.any(axis=1)))
    step = int(np.argmax(first[channel]))
    others = f" ({len(lost)} of {len(recordings)} recordings miss values)" if len(lost) > 1 else ""
    raise InputError(
        f"Recording {lost[0].name!r} has no value in channel {lost[0].channels[channel]!r} at "
        f"{np.count_nonzero(first[channel])} of {lost[0].n_times} time steps, the first of which is {step}{others}. "
        'Set missing="interpolate" or missing="zero" (--missing), or remove these rows.'
    )


def common_rate(recordings: Sequence[Recording], rate: float | None, resample: bool) -> float | None:
    """Return the rate of all recordings, or None if it is not known of any."""
    if rate is not None:
        return rate
    rates = {one.name: one.rate for one in recordings if one.rate is not None}
    timeless = [one.name for one in recordings if one.rate is None and one.times is None]
    if timeless and (rates or resample):
        others = f", that of {listed(list(rates))} is" if rates else ""
        raise InputError(
            f"The rate of {listed(timeless)} is not known{others}. "
            "Name the column of time stamps as time= (--time), or say rate= (--rate)."
        )
    if not rates:
        return None
    usual = float(np.median(list(rates.values())))
    other = [one for one, found in rates.items() if abs(found - usual) > SAME_RATE * usual]
    if other and not resample:
        near = min(rates, key=lambda one: abs(rates[one] - usual))
        raise InputError(
            f"All recordings must have one rate. {near!r} has {rates[near]:g} time steps per second, {other[0]!r} "
            f"{rates[other[0]]:g} ({len(other)} of {len(rates)} differ). Resample them with rate={rates[near]:g} "
            "(--rate), or leave some out."
        )
    return usual


def _resampled(recordings: Sequence[Recording], rate: float | None, gap: float) -> list[Recording]:
    """Return the stretches between gaps, each with even time stamps of this rate."""
    if rate is None:
        return list(recordings)
    pieces: list[Recording] = []
    for one in recordings:
        times = one.times
        if times is None:  # without any, the rate is what was said
            times = np.arange(one.n_times) / (one.rate or rate)
        for run, *_ in stretches(times, gap):
            stamps, label = times[run], one.label
            grid = even_grid(stamps, rate)
            values = interpolate_at(grid, stamps, one.values[:, run])
            if isinstance(label, np.ndarray):
                label = label[run][nearest(grid, stamps)]
            pieces.append(replace(one, values=values, times=grid, rate=rate, label=label))
    return pieces


def _times(recordings: Sequence[Recording], rate: float | None) -> list[Array] | None:
    """Return the time stamps of all recordings, or None if none has any."""
    if all(one.times is None for one in recordings):
        return None
    return [np.arange(one.n_times) / (rate or 1.0) if one.times is None else one.times for one in recordings]


def warn_of_uneven(recording: Array, lasting: Array, length: int, rate: float | None) -> None:
    if rate is None:
        return
    uneven = np.abs(lasting - length / rate) > _UNEVEN * length / rate
    if uneven.any():
        which = list(dict.fromkeys(recording[uneven].tolist()))
        warnings.warn(
            f"Uneven time stamps: windows of {length} time steps last {lasting.min():.3g} to "
            f"{lasting.max():.3g} s, in {listed(which)}. Set resample=True (--resample) for an even grid.",
            UnevenSamplingWarning,
            stacklevel=3,
        )
