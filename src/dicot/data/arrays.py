"""Recordings that come as arrays: in memory, or in an .npz or a .mat."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dicot.core.errors import InputError, UnusedKeysWarning
from dicot.data import timestamps
from dicot.data.cases import Array, to_array, to_cases
from dicot.data.labelcolumns import with_one_label
from dicot.data.labels import check_channel_names, check_groups, check_labels, check_rate
from dicot.data.npyfile import ROLES
from dicot.data.reading import Reading
from dicot.data.recording import Parts, Recording
from dicot.data.tables import parts_of_table, says_time, table_columns, without_clocks
from dicot.data.timestamps import SAME_RATE, stretches


def parts_of_arrays(arrays: dict[str, Array], reading: Reading) -> Parts:
    """Take an array X (channels, time) with arrays beside it, or arrays (time,) that are a table of columns."""
    rate = None
    if "rate" in arrays:
        said = arrays.pop("rate")
        rate = check_rate(said.reshape(()).item() if said.size == 1 else said)
    values = [name for name in arrays if name.lower() in ROLES["X"] and arrays[name].ndim > 1]
    if not values:
        scalars = {name: arrays.pop(name) for name in list(arrays) if arrays[name].ndim == 0}
        label = scalars.get(reading.label or "")
        parts = parts_of_table(table_columns(arrays), reading if label is None else reading.replace(label=None))
        return parts._replace(rate=rate, label=parts.label if label is None else label.item())
    x = arrays.pop(values[0])
    if x.ndim != 2 or x.shape[0] > x.shape[1]:
        raise InputError(
            f"{values[0]!r} must have shape (channels, time) with more time steps than channels; got {x.shape}. "
            + ("Save it transposed." if x.ndim == 2 else "Cases that are cut already are read without a window.")
        )
    names = arrays.pop("channels", np.array([f"channel {i}" for i in range(len(x))]))
    columns = dict(zip(check_channel_names([str(name) for name in names.ravel()], len(x)), x, strict=True))
    reading = with_one_label(reading, arrays)
    used = {reading.time, reading.label, reading.group, *(name for name in arrays if says_time(name))}
    beside = {name: np.full(x.shape[1], a) if a.ndim == 0 else a for name, a in arrays.items() if name in used}
    if both := sorted(columns.keys() & beside.keys()):
        raise InputError(f"{both[0]!r} is the name of a channel and of an array beside them. Rename one of them.")
    if unused := [name for name in arrays if name not in used]:
        warnings.warn(f"Not used: {', '.join(unused)}.", UnusedKeysWarning, stacklevel=2)
    free = [name for name in columns if name not in (reading.ignore or ())]
    kept = reading.channels or tuple(without_clocks(columns, free, None, None))
    return parts_of_table(table_columns(columns | beside), reading.replace(channels=kept))._replace(rate=rate)


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
    single = not isinstance(arrays, list | tuple) and to_array(arrays).ndim <= 2
    tracks = to_cases([arrays] if single else arrays, layout)
    n, n_channels, longest = len(tracks), tracks[0].shape[0], max(track.shape[1] for track in tracks)
    if single:  # what belongs to the only recording may come bare, or in a list of one
        labels, groups = (
            v if v is None or (isinstance(v, list | tuple | np.ndarray) and len(v) == 1) else [v]
            for v in (labels, groups)
        )
        times = times if times is None or (len(times) == 1 and hasattr(times[0], "__len__")) else [times]
    for what, given in (("y", labels), ("group", groups), ("names", names), ("times", times)):
        if given is not None and (isinstance(given, str) or not hasattr(given, "__len__") or len(given) != n):
            raise InputError(f"{what} must hold one entry for each of the {n} recording(s); got {given!r}.")
    window = reading.window
    if isinstance(window, int) and n_channels >= window > longest:
        raise InputError(
            f"No recording is as long as a window of {window} time steps: {n_channels} channel(s) of at most {longest} "
            f'time steps came. Set layout="{"ntc" if layout == "nct" else "nct"}" if it is the other way round.'
        )
    called = check_channel_names(channels or [f"channel {i}" for i in range(n_channels)], n_channels)
    found = []
    for i, values in enumerate(tracks):
        if np.isinf(values).any():
            raise InputError(f"Recording {i if names is None else names[i]} contains inf. Remove or clip these values.")
        stamps = None if times is None else timestamps.check_stamps(times[i], values.shape[1], f"times[{i}]")
        own = None if stamps is None else timestamps.usual_rate(stamps, stretches(stamps, reading.gap))
        if rate is not None and own is not None and abs(own - rate) > SAME_RATE * rate:
            raise InputError(f"times[{i}] have {own:g} time steps per second; rate= says {rate:g}. Pass one of them.")
        own = own if rate is None else check_rate(rate)
        label, group = (
            default if given is None else _of_steps(given[i], values.shape[1], f"{what}[{i}]", check)
            for what, given, default, check in (("y", labels, None, check_labels), ("group", groups, i, check_groups))
        )
        found.append(Recording(str(i) if names is None else names[i], values, called, stamps, own, label, group))
    return found


def _of_steps(value: Any, n_times: int, what: str, check: Callable[..., Array]) -> Array:
    """Return one value for a recording, or one for each of its time steps."""
    alone = to_array(value).ndim == 0
    return check([value] if alone else value, 1 if alone else n_times, what, "time steps")
