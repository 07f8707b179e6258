"""Recordings of several devices as one: on a common clock, at one rate, with the device before each channel's name."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError
from dicot.core.settings import COLUMN, how_to_set
from dicot.data.cases import Array
from dicot.data.reading import Reading
from dicot.data.recording import Recording
from dicot.data.timestamps import Seconds, even_grid, interpolate_at, nearest, seconds_since, stretches

SEPARATOR = "."  # between device and channel
Spans = list[tuple[float, float]]


def reading_of_device(device: str, reading: Reading, columns: Sequence[str]) -> Reading:
    """Return how the file of one device is read; `columns` are those that it has, as far as that is known."""
    start = device + SEPARATOR
    own = tuple(channel.removeprefix(start) for channel in reading.channels or () if channel.startswith(start))
    plain = tuple(channel for channel in reading.channels or () if not columns or channel in columns)
    return reading.replace(join=None, names=None, channels=own or plain or None, rate=None)


def join_devices(name: str, recordings: Mapping[str, Recording], reading: Reading) -> Recording:
    """Join recordings by device: the time that all cover, at the rate that was asked for or else the highest of theirs.

    Values between two time stamps are interpolated; where one device has a gap, all have it. Labels of time steps are
    those of the first device that has any.
    """
    clocks = _common_clocks(recordings)
    first = max(clock[0] for clock in clocks.values())
    last = min(clock[-1] for clock in clocks.values())
    if first >= last:
        spans = [f"{device} from {clock[0]:g} to {clock[-1]:g} s" for device, clock in clocks.items()]
        raise InputError(f"{name}: its devices have no time in common: {', '.join(spans)}. Check their time stamps.")
    rate = reading.rate or max(recording.rate or 0.0 for recording in recordings.values())
    grid = even_grid(np.array([first, last]), rate) if rate else np.array([first, last])
    is_covered = np.ones(len(grid), dtype=bool)
    for clock in clocks.values():
        is_covered &= _covered(grid, _spans(clock, reading.gap), rate)
    times = grid[is_covered]
    if len(times) < 2:
        raise InputError(f"{name}: its devices have no two time steps in common at {rate:g} per second. Check them.")

    values = [interpolate_at(times, clocks[device], one.values) for device, one in recordings.items()]
    channels = [f"{device}{SEPARATOR}{channel}" for device, one in recordings.items() for channel in one.channels]
    units = [unit for one in recordings.values() for unit in one.units or ("",) * len(one.channels)]
    lead = next(iter(recordings.values()))
    joined = replace(
        lead,
        name=name,
        values=np.concatenate(values),
        channels=tuple(channels),
        times=times,
        rate=rate,
        label=_label(recordings, clocks, times),
        units=tuple(units) if any(units) else (),
        n_merged=sum(one.n_merged for one in recordings.values()),
        remarks=tuple(remark for one in recordings.values() for remark in one.remarks),
        # A label that only one of the devices has is that of all.
        lacking=tuple(name for name in lead.lacking if all(name in one.lacking for one in recordings.values())),
        columns=tuple(dict.fromkeys(column for one in recordings.values() for column in one.columns)),
    )
    return _in_order(joined, reading.channels)


def _common_clocks(recordings: Mapping[str, Recording]) -> dict[str, Seconds]:
    """Return the time stamps of each device in seconds since the first date of the first one."""
    timeless = [device for device, recording in recordings.items() if recording.times is None]
    if timeless:
        raise InputError(
            f"{timeless[0]} has no time stamps, so there is no clock that the devices share. Name the column of time "
            f"stamps: {how_to_set('time', COLUMN)}."
        )
    origins = {device: recording.origin for device, recording in recordings.items()}
    if len({origin is None for origin in origins.values()}) > 1:
        dated = [device for device, origin in origins.items() if origin is not None]
        raise InputError(
            f"Only {', '.join(dated)} has dates: nobody can tell when the other began. Write the time stamps of all "
            "devices as dates, or all as seconds of one clock."
        )
    zero = next(iter(origins.values()))
    clocks = {}
    for device, recording in recordings.items():
        assert recording.times is not None
        # From one date to the other: seconds since 1970 have too many digits before the point.
        later = 0.0 if recording.origin is None else seconds_since(zero, recording.origin)
        clocks[device] = recording.times + later
    return clocks


def _spans(clock: Seconds, gap: float) -> Spans:
    """Return first and last time stamp of each stretch without a gap."""
    return [(float(clock[run.start]), float(clock[run.stop - 1])) for run, *_ in stretches(clock, gap)]


def _covered(grid: Seconds, spans: Spans, rate: float) -> NDArray[np.bool_]:
    """Tell which times of a grid lie in a stretch, its ends included."""
    slack = 1e-3 / rate if rate else 0.0
    is_covered = np.zeros(len(grid), dtype=bool)
    for first, last in spans:
        is_covered |= (grid >= first - slack) & (grid <= last + slack)
    return is_covered


def _label(recordings: Mapping[str, Recording], clocks: Mapping[str, Seconds], times: Seconds) -> Any:
    """Return the labels of the first device that has any, of each time the nearest."""
    for device, recording in recordings.items():
        if recording.label is None:
            continue
        if not isinstance(recording.label, np.ndarray) or recording.label.ndim == 0:
            return recording.label
        labels: Array = recording.label[nearest(times, clocks[device])]
        return labels
    return None


def _in_order(joined: Recording, channels: tuple[str, ...] | None) -> Recording:
    """Return the channels in the order that was asked for, where they were named with their devices."""
    if channels is None or set(channels) != set(joined.channels):
        return joined
    rows = [joined.channels.index(channel) for channel in channels]
    units = tuple(joined.units[row] for row in rows) if joined.units else ()
    return replace(joined, values=joined.values[rows], channels=channels, units=units)
