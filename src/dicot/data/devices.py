"""Several devices that recorded one person at the same time: their files by name, joined on a common clock."""

import glob
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import DicotWarning, InputError, listed
from dicot.core.settings import COLUMN, how_to_set
from dicot.data.cases import Array
from dicot.data.clocks import seconds_since
from dicot.data.namepattern import NamePattern, suggest_pattern
from dicot.data.reading import Reading, stem_of, suffix_of
from dicot.data.recording import Recording
from dicot.data.timestamps import Seconds, even_grid, interpolate_at, nearest, stretches

_FIELD = re.compile(r"\{([^{}:]*)(?::\d+)?\}")


def joined_files(named: Mapping[str, Path], reading: Reading) -> dict[str, Path]:
    """Return a file of each recording that is joined from several devices: that of the first one.

    A recording is named after the fields of its files but the device. Those that lack a device which most have, or have
    one more, are left out and named.
    """
    files: dict[tuple[str, ...], dict[str, Path]] = defaultdict(dict)  # by folder and other fields, then by device
    for name, file in named.items():
        before, fields = _fields_of(name, file, reading)
        device = fields.pop(str(reading.join))
        files[before, *fields.values()][device] = file
    usual = _usual_devices(files, reading)

    leads: dict[str, Path] = {}
    left_out = []
    for (before, *values), by_device in files.items():
        name = before + "_".join(values)
        if by_device.keys() != usual:
            left_out.append(f"{name} ({', '.join(sorted(by_device))})")
            continue
        if name in leads:
            raise InputError(f"Two joined recordings would be called {name!r}. Rename the files of one.")
        leads[name] = by_device[min(by_device)]
        _refuse_unnamed(leads[name], by_device, reading)
    if left_out:
        said = f"Left out {len(left_out)} of {len(files)} recordings, which do not have {' and '.join(sorted(usual))}"
        warnings.warn(f"{said}: {listed(left_out)}.", DicotWarning, stacklevel=3)
    return leads


def files_by_device(lead: Path, reading: Reading) -> dict[str, Path]:
    """Return the files that are joined with one of them, by device in the order of the alphabet."""
    depth = str(reading.names).count("/")
    whole = lead.absolute()
    _, fields = _fields_of(_tail(whole, depth), whole, reading)
    del fields[str(reading.join)]

    def part(field: re.Match[str]) -> str:
        return "*" if field[1] == reading.join else glob.escape(fields[field[1]])

    pieces = _FIELD.split(str(reading.names))  # text, field, text, field ... text
    texts = [glob.escape(piece) for piece in pieces[::2]]
    names = [part(field) for field in _FIELD.finditer(str(reading.names))]
    pattern = "".join(text + name for text, name in zip(texts, [*names, ""], strict=True))
    root = whole.parents[depth]
    found: dict[str, Path] = {}
    for path in sorted(root.glob(f"{pattern}{suffix_of(lead)}")):
        own = NamePattern(str(reading.names)).fields_of(_tail(path, depth))
        device = None if own is None else own.pop(str(reading.join))
        if device is not None and own == fields:
            found[device] = path
    return dict(sorted(found.items()))


def files_beside(lead: Path, reading: Reading) -> list[Path]:
    """Return the files that are joined with one of them, without it; none where nothing is joined."""
    if reading.join is None:
        return []
    return [path for path in files_by_device(lead, reading).values() if path != lead.absolute()]


class JoinAdvice(NamedTuple):
    """How files of several devices become one recording."""

    names: str  # a pattern with the field {device}
    channels: Mapping[str, Sequence[str]]  # by device

    @property
    def options(self) -> tuple[str, ...]:
        """Return the words of a command."""
        return ("--names", self.names, "--join", "device")

    @property
    def sentence(self) -> str:
        has = "; ".join(f"{device} has {listed(names)}" for device, names in sorted(self.channels.items()))
        return (
            f"The channels go by the name: {has}. To join devices of one person: --names '{self.names}' --join device"
        )


def join_advice(channels: Mapping[str, Sequence[str]]) -> JoinAdvice | None:
    """Tell how recordings are joined whose channels go by a part of their names; None where they do not."""
    pattern = suggest_pattern(channels)
    if pattern is None:
        return None
    meant = NamePattern(pattern)
    fields = {name: values for name in channels if (values := meant.fields_of(name)) is not None}
    for field in meant.fields:
        of_device: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        devices_of: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for name, values in fields.items():
            of_device[values[field]].add(tuple(sorted(channels[name])))
            devices_of[tuple(text for other, text in values.items() if other != field)].add(values[field])
        kinds = [next(iter(kinds)) for kinds in of_device.values() if len(kinds) == 1]
        are_devices = len(kinds) == len(of_device) == len(set(kinds)) > 1
        if are_devices and any(len(devices) > 1 for devices in devices_of.values()):
            return JoinAdvice(
                _names_with_device(meant, field),
                {device: next(iter(kinds)) for device, kinds in of_device.items()},
            )
    return None


def _names_with_device(meant: NamePattern, field: str) -> str:
    """Return the pattern with this field called device."""
    called = {field: "device"}
    if len(meant.fields) == 2:  # what else tells them apart is whose they are
        called |= {other: "subject" for other in meant.fields if other != field}
    return _FIELD.sub(lambda one: f"{{{called.get(one[1], one[1])}}}", meant.text)


def name_fields(file: Path, reading: Reading) -> dict[str, str] | None:
    """Return the fields of the name of a file, also where its recording has another name."""
    depth = str(reading.names).count("/")
    return NamePattern(str(reading.names)).fields_of(_tail(file.absolute(), depth))


def _tail(path: Path, depth: int) -> str:
    """Return the name of a file without suffix, with so many folders before it."""
    return "/".join([*path.parts[len(path.parts) - 1 - depth : -1], stem_of(path)])


def _fields_of(name: str, file: Path, reading: Reading) -> tuple[str, dict[str, str]]:
    """Return what stands before the part of a name that the pattern tells, and the fields of that part."""
    pattern = NamePattern(str(reading.names))
    fields = pattern.fields_of(name)
    if fields is None:
        raise InputError(
            f"{file} is not called like {pattern.text!r}. Correct the pattern (--names), or name the files that are."
        )
    folders = name.split("/")[: -1 - pattern.text.count("/")]
    return "".join(f"{folder}/" for folder in folders), fields


def _usual_devices(files: Mapping[tuple[str, ...], Mapping[str, Path]], reading: Reading) -> set[str]:
    """Return the devices that most recordings have, two at least."""
    sets = Counter(frozenset(by_device) for by_device in files.values() if len(by_device) > 1)
    if not sets:
        devices = sorted({device for by_device in files.values() for device in by_device})
        raise InputError(
            f"No two files agree in all of {reading.names!r} but {{{reading.join}}}, which is {listed(devices)}. "
            "Correct the pattern (--names), or leave out --join."
        )
    most = max(sets.values())
    return set(min((devices for devices, count in sets.items() if count == most), key=sorted))


def _refuse_unnamed(lead: Path, by_device: Mapping[str, Path], reading: Reading) -> None:
    """Refuse a recording of which a device was not named: whoever reads it later finds all by the first."""
    beside = {path.resolve() for path in files_by_device(lead, reading).values()}
    named = {path.resolve() for path in by_device.values()}
    if beside != named:
        others = listed([str(path) for path in sorted(beside ^ named)])
        raise InputError(
            f"{others} would be joined with {lead} as well. Name the folder with all files; they need one suffix."
        )


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
