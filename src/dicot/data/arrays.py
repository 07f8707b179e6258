"""Recordings that come as arrays: in memory, or in an .npz or a .mat."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dicot.core.errors import InputError, UnusedKeysWarning
from dicot.data import timestamps
from dicot.data.cases import Array, RawCases, to_array, to_cases
from dicot.data.labelcolumns import with_one_label
from dicot.data.labels import check_channel_names, check_groups, check_labels, check_rate
from dicot.data.npyfile import ROLES
from dicot.data.reading import Reading
from dicot.data.recording import Parts, Recording
from dicot.data.tables import parts_of_table, says_time, table_columns, without_clocks
from dicot.data.timestamps import SAME_RATE, Seconds, stretches


def parts_of_arrays(arrays: dict[str, Array], reading: Reading) -> Parts:
    """Take an array X (channels, time) with arrays beside it, or arrays (time,) that are a table of columns."""
    rate = None
    if "rate" in arrays:
        value = arrays.pop("rate")
        rate = check_rate(value.reshape(()).item() if value.size == 1 else value)
    matrices = [name for name in arrays if name.lower() in ROLES["X"] and arrays[name].ndim > 1]
    if not matrices:
        return _parts_of_columns(arrays, reading)._replace(rate=rate)
    return _parts_of_matrix(matrices[0], arrays, reading)._replace(rate=rate)


def _parts_of_columns(arrays: Mapping[str, Array], reading: Reading) -> Parts:
    """Take arrays (time,) for columns of a table, of which a scalar may be the label."""
    columns = {name: array for name, array in arrays.items() if array.ndim > 0}
    label = arrays.get(reading.label or "")
    if label is None or label.ndim > 0:
        return parts_of_table(table_columns(columns), reading)
    parts = parts_of_table(table_columns(columns), reading.replace(label=None))
    return parts._replace(label=label.item())


def _parts_of_matrix(name: str, arrays: Mapping[str, Array], reading: Reading) -> Parts:
    """Take a matrix (channels, time) and the arrays beside it that have a role."""
    x = arrays[name]
    if x.ndim != 2 or x.shape[0] > x.shape[1]:
        raise InputError(
            f"{name!r} must have shape (channels, time) with more time steps than channels; got {x.shape}. "
            + ("Save it transposed." if x.ndim == 2 else "Cases that are cut already are read without a window.")
        )
    n_channels, n_times = x.shape
    names = arrays.get("channels", np.array([f"channel {number}" for number in range(n_channels)]))
    channels = dict(zip(check_channel_names([str(one) for one in names.ravel()], n_channels), x, strict=True))

    others = {other: array for other, array in arrays.items() if other not in (name, "channels")}
    reading = with_one_label(reading, others)
    with_role = {reading.time, reading.label, reading.group, *(other for other in others if says_time(other))}
    unused = [other for other in others if other not in with_role]
    beside = {
        other: np.full(n_times, array) if array.ndim == 0 else array
        for other, array in others.items()
        if other in with_role
    }
    both = sorted(channels.keys() & beside.keys())
    if both:
        raise InputError(f"{both[0]!r} is the name of a channel and of an array beside them. Rename one of them.")
    if unused:
        warnings.warn(f"Not used: {', '.join(unused)}.", UnusedKeysWarning, stacklevel=2)
    free = [channel for channel in channels if channel not in (reading.ignore or ())]
    used = reading.channels or tuple(without_clocks(channels, free, None, None))
    return parts_of_table(table_columns(channels | beside), reading.replace(channels=used))


def recordings_in_memory(
    arrays: Any,
    reading: Reading,
    labels: Any = None,
    groups: Any = None,
    layout: str = "nct",
    *,
    rate: float | None = None,
    channels: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    times: Any = None,
) -> list[Recording]:
    """Make recordings of arrays, as `Windows.from_array` describes them."""
    is_single = not isinstance(arrays, list | tuple) and to_array(arrays).ndim <= 2
    tracks = to_cases([arrays] if is_single else arrays, layout)
    if is_single:
        labels, groups, times = _in_list(labels), _in_list(groups), _times_in_list(times)
    for what, values in (("y", labels), ("group", groups), ("names", names), ("times", times)):
        _check_count(what, values, len(tracks))
    _check_layout(tracks, reading.window, layout)

    n_channels = tracks[0].shape[0]
    called = check_channel_names(channels or [f"channel {number}" for number in range(n_channels)], n_channels)
    recordings = []
    for number, values in enumerate(tracks):
        n_times = values.shape[1]
        if np.isinf(values).any():
            name = number if names is None else names[number]
            raise InputError(f"Recording {name} contains inf. Remove or clip these values.")
        stamps = None if times is None else timestamps.check_stamps(times[number], n_times, f"times[{number}]")
        label = None if labels is None else _of_steps(labels[number], n_times, f"y[{number}]", check_labels)
        group = number if groups is None else _of_steps(groups[number], n_times, f"group[{number}]", check_groups)
        recordings.append(
            Recording(
                str(number) if names is None else names[number],
                values,
                called,
                stamps,
                _rate_of(stamps, rate, reading, f"times[{number}]"),
                label,
                group,
            )
        )
    return recordings


def _in_list(values: Any) -> Any:
    """Return what belongs to the only recording in a list, as it may come bare or in a list of one."""
    if values is None or (isinstance(values, list | tuple | np.ndarray) and len(values) == 1):
        return values
    return [values]


def _times_in_list(times: Any) -> Any:
    """Return the time stamps of the only recording in a list."""
    if times is None or (len(times) == 1 and hasattr(times[0], "__len__")):
        return times
    return [times]


def _check_count(what: str, values: Any, n: int) -> None:
    if values is None:
        return
    has_entries = hasattr(values, "__len__") and not isinstance(values, str)
    if not has_entries or len(values) != n:
        raise InputError(f"{what} must hold one entry for each of the {n} recording(s); got {values!r}.")


def _check_layout(tracks: RawCases, window: str | int | None, layout: str) -> None:
    """Refuse recordings whose channels would fill a window and whose time steps would not."""
    n_channels = tracks[0].shape[0]
    longest = max(track.shape[1] for track in tracks)
    if isinstance(window, int) and n_channels >= window > longest:
        raise InputError(
            f"No recording is as long as a window of {window} time steps: {n_channels} channel(s) of at most {longest} "
            f'time steps came. Set layout="{"ntc" if layout == "nct" else "nct"}" if it is the other way round.'
        )


def _rate_of(stamps: Seconds | None, rate: float | None, reading: Reading, what: str) -> float | None:
    """Return the rate that was said, which that of the time stamps must be near, or else theirs."""
    stamped = None if stamps is None else timestamps.usual_rate(stamps, stretches(stamps, reading.gap))
    if rate is None:
        return stamped
    if stamped is not None and abs(stamped - rate) > SAME_RATE * rate:
        raise InputError(f"{what} have {stamped:g} time steps per second; rate= says {rate:g}. Pass one of them.")
    return check_rate(rate)


def _of_steps(value: Any, n_times: int, what: str, check: Callable[..., Array]) -> Array:
    """Return one value for a recording, or one for each of its time steps."""
    alone = to_array(value).ndim == 0
    return check([value] if alone else value, 1 if alone else n_times, what, "time steps")
