"""Files of several devices that recorded one person at the same time, by what their names have in common."""

import glob
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dicot.core.errors import DicotWarning, InputError, listed
from dicot.data.filenames import stem_of, suffix_of
from dicot.data.namepattern import NamePattern, suggest_pattern
from dicot.data.reading import Reading

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
