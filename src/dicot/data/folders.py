"""Folders of recordings: which files there are, what they hold, and all of them as windows in one call."""

import glob
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dicot.data.collection import Windows, check_rate
from dicot.data.durations import window_length, window_stride
from dicot.data.naming import listed
from dicot.data.policies import MISSING, Array
from dicot.data.recordingfile import READERS, Choice, Recording, read_file
from dicot.data.recordings import slide
from dicot.data.timestamps import (
    GAP,
    SAME_RATE,
    check_gap,
    even_grid,
    interpolate_at,
    nearest,
    runs_between_gaps,
)
from dicot.errors import InputError, UnevenSamplingWarning, lookup

Source = str | Path | Sequence[str | Path]
_UNEVEN = 0.1  # share by which windows of one length may differ in time before it is worth a warning


def find_recordings(source: Source) -> list[Path]:
    """List the files of recordings of a folder and those below it, a pattern such as "data/*.csv", a file, or a list.

    In folders and by patterns only files with a known suffix count, and none that is hidden. Sorted, each once.
    """
    sources = [source] if isinstance(source, str | Path) else list(source)
    found = [path for one in sources for path in _files_of(one)]
    unique = {path.resolve(): path for path in reversed(found)}
    if not unique:
        raise InputError(f"{source!r} names no recording. Pass a folder, a pattern, or files ({_known()}).")
    return sorted(unique.values(), key=lambda path: path.as_posix())


def _files_of(source: str | Path) -> list[Path]:
    path = Path(source).expanduser()
    if path.is_dir():
        files = [file for file in path.rglob("*") if file.is_file()]
        visible = [file for file in files if not any(part.startswith(".") for part in file.relative_to(path).parts)]
        return _of_known_suffix(visible, f"Folder {path}")
    if path.is_file():
        return [path]  # asked for by name: an unknown suffix is an error of its reader
    if glob.has_magic(str(path)):
        return _of_known_suffix([Path(file) for file in glob.glob(str(path), recursive=True)], f"Pattern {source}")
    raise InputError(f"There is no file or folder {path}. Check the path.")


def _of_known_suffix(files: Iterable[Path], what: str) -> list[Path]:
    files = list(files)
    known = [file for file in files if file.suffix.lower() in READERS and file.is_file()]
    if not known:
        others = sorted({file.suffix or file.name for file in files})
        came = f"of its files the suffixes are {listed(others)}" if others else "it holds no file"
        raise InputError(f"{what} holds no recording ({_known()}); {came}. Check the path, or convert the files.")
    return known


def _known() -> str:
    return ", ".join(READERS)


def recording_names(files: Sequence[Path]) -> list[str]:
    """Name recordings by their files: without suffix, and without the folders that all are in."""
    paths = [file.resolve() for file in files]
    root = Path(os.path.commonpath([path.parent for path in paths]))
    names = [path.relative_to(root).with_suffix("").as_posix() for path in paths]
    return [
        name if names.count(name) == 1 else path.relative_to(root).as_posix()
        for name, path in zip(names, paths, strict=True)
    ]


def read_recordings(
    source: Source,
    *,
    time: str | None = None,
    unit: str | None = None,
    channels: Sequence[str] | None = None,
    label: str | None = None,
    group: str | None = None,
) -> list[Recording]:
    """Read all recordings of a folder, pattern, file or list; the parameters are those of `read_recording`.

    A file whose column of groups has several values holds a recording for each. All must have the same channels, which
    get the order of the first file.
    """
    files = find_recordings(source)
    choice = Choice(time, unit, channels, label, group)
    recordings: list[Recording] = []
    origins: list[Path] = []
    for file, name in zip(files, recording_names(files), strict=True):
        for one in read_file(file, choice):
            # A group that follows the file's own name after a colon stays.
            recordings.append(replace(one, name=name + one.name.removeprefix(file.stem)))
            origins.append(file)
            recordings[-1] = _in_order(recordings[-1], recordings[0].channels, file, origins[0])
    return _of_one_kind(recordings)


def _in_order(recording: Recording, channels: tuple[str, ...], file: Path, first: Path) -> Recording:
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
    return replace(recording, values=np.ascontiguousarray(recording.values[rows]), channels=channels)


def _of_one_kind(recordings: list[Recording]) -> list[Recording]:
    """Write labels and groups as text everywhere if some file has text: one may hold 1 and 2, another 1 and "none"."""
    for what in ("label", "group"):
        values = [getattr(one, what) for one in recordings]
        kinds = {np.asarray(value).dtype.kind == "U" for value in values if value is not None}
        if len(kinds) > 1:
            recordings = [
                replace(one, **{what: _as_text(value)}) for one, value in zip(recordings, values, strict=True)
            ]
    return recordings


def _as_text(value: Any) -> Any:
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype.kind == "f":
        text = np.array(["" if v != v else f"{v:g}" for v in array.reshape(-1)]).reshape(array.shape)
    else:
        text = array.astype(str)
    return text if array.ndim else text.item()


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

    No window spans two recordings or a gap. Recordings that are shorter than a window are named in one warning.

    Parameters
    ----------
    source : a folder, a pattern such as "data/*.csv", a file, or a list of these
    window : time steps, or a time such as "2.56s", "500ms" or "1min"
    stride : time steps, a time, or a share of the window such as "50%"
    time, unit, channels, label, group : as for `read_recording`. A window gets the most frequent label of its time
        steps; without a column of groups its group is its recording
    rate : time steps per second. Recordings without time stamps have this rate, the others are resampled to it
    resample : put unevenly sampled time steps on an even grid, by default at the median rate of the recordings. Values
        are interpolated linearly, not across gaps, and without a filter: smooth them first if the rate falls a lot
    missing : "error", "interpolate" or "zero" for NaN
    gap : a step between time stamps that is longer than so many median steps is a gap
    keep_tail : cover the end of a recording by a last window that ends there
    name : of the result, for reports
    """
    lookup(MISSING, missing, "policy for missing values")
    gap = check_gap(gap)
    recordings = read_recordings(source, time=time, unit=unit, channels=channels, label=label, group=group)
    if missing == "error":
        _refuse_missing(recordings)
    known = _common_rate(recordings, None if rate is None else check_rate(rate), resample)
    length = window_length(window, known)
    # Resampled ones come in pieces: a gap may be shorter than a step of the new rate, and is one all the same.
    tracks = recordings if rate is None and not resample else _resampled(recordings, known, gap)
    windows = slide(
        [one.values for one in tracks],
        length,
        window_stride(stride, length, known),
        labels=None if label is None else [one.label for one in tracks],
        groups=[one.name if one.group is None else one.group for one in tracks],
        missing=missing,
        keep_tail=keep_tail,
        name=name,
        rate=known,
        channels=tracks[0].channels,
        names=[one.name for one in tracks],
        times=_times(tracks, known),
        gap=gap,
    )
    _warn_of_uneven(windows)
    return windows


def _refuse_missing(recordings: Sequence[Recording]) -> None:
    lost = [one for one in recordings if np.isnan(one.values).any()]
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


def _common_rate(recordings: Sequence[Recording], rate: float | None, resample: bool) -> float | None:
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
        for run in runs_between_gaps(times, gap):
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


def _warn_of_uneven(windows: Windows) -> None:
    if windows.rate is None or windows.start is None or windows.end is None or windows.recording is None:
        return
    wanted = windows.n_times / windows.rate
    lasting = windows.end - windows.start
    uneven = np.abs(lasting - wanted) > _UNEVEN * wanted
    if uneven.any():
        which = list(dict.fromkeys(windows.recording[uneven].tolist()))
        warnings.warn(
            f"Uneven time stamps: windows of {windows.n_times} time steps last {lasting.min():.3g} to "
            f"{lasting.max():.3g} s, in {listed(which)}. Set resample=True (--resample) for an even grid.",
            UnevenSamplingWarning,
            stacklevel=3,
        )
