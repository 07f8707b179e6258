"""The series behind vectors: found again by what a file of vectors says about its source."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import numpy as np

from dicot.data.choices import choices_file, read_choices
from dicot.data.collection import check_rate
from dicot.data.folders import find_recordings, read_tracks, recording_names
from dicot.data.policies import Array
from dicot.data.recordingfile import Choice, Recording
from dicot.data.timestamps import GAP
from dicot.datasets import load_parts
from dicot.errors import InputError
from dicot.vectors import Vectors

KEPT = 4  # files that stay in memory: the windows of a page lie in several, in any order


@final
class SeriesReader:
    """Read the values (C, T) of the windows that vectors were made of.

    Parameters
    ----------
    vectors : as `read_vectors` gave them
    path : of their file, for errors
    data : recordings, or a file of cases, to read instead of those that the file names: they may have been moved

    Attributes
    ----------
    channels : names of the C channels; numbers where they have none
    """

    channels: tuple[str, ...]

    def __init__(self, vectors: Vectors, path: Path, data: str | Path | None = None) -> None:
        self._vectors, self._path = vectors, path
        source = vectors.source
        if source is None:
            if data is None:
                raise InputError(f"{path} does not say what it was made of. Name its recordings (--data).")
            kept = read_choices(choices_file(data))  # nothing else tells how they were read
            source = {"kind": "recordings", "options": kept, "channels": kept.get("channels"), "rate": kept.get("rate")}
        self._source = source
        options, channels = source.get("options"), source.get("channels")
        if not isinstance(options, dict) or not isinstance(channels, list | None):
            raise InputError(f"{path} is damaged: what it says about its source cannot be used. Embed it again.")
        self._rate = None if source.get("rate") is None else check_rate(source["rate"])
        if source.get("kind") == "recordings":
            self._cases: list[Array] | None = None
            self._files = _files(path, source, data)
            self._tracks: dict[str, list[Recording]] = {}
            self.channels = tuple(channels) if channels else self._read(next(iter(self._files)))[0].channels
        else:
            self._cases = _cases(path, vectors, source, data)
            self.channels = tuple(channels or (f"channel {i}" for i in range(len(self._cases[0]))))

    def values(self, row: int) -> Array:
        """Return the values (C, T) of the window in this row of the vectors, NaN where one is missing."""
        if self._cases is not None:
            return self._cases[row]
        recording, start, end = (column[row] for column in self._vectors.places())
        recording = str(recording)
        name = self._file_of(recording)
        for track in self._read(name):
            if track.name == recording:
                found = _stretch(track, float(start), float(end), self._rate, self._source.get("n_times"))
                if found is not None:
                    return found
        raise InputError(
            f"{self._files[name]} has no time steps of {recording!r} from {start:g} to {end:g}, where row {row} of "
            f"{self._path} lies. Was the file changed? Embed it again, or name the recordings (--data)."
        )

    def _file_of(self, recording: str) -> str:
        for name in (recording, recording.rpartition(":")[0]):  # a file of several groups
            if name in self._files:
                return name
        raise InputError(
            f"Recording {recording!r} of {self._path} is in none of the {len(self._files)} files of recordings. Name "
            "the folder that it was embedded from (--data)."
        )

    def _read(self, name: str) -> list[Recording]:
        if name not in self._tracks:
            options = self._source["options"]
            choice = Choice(*(options.get(key) for key in Choice._fields))
            even = options.get("rate") is not None or bool(options.get("resample"))
            wanted = tuple(self._source["channels"]) if self._source.get("channels") else None
            while len(self._tracks) >= KEPT:
                del self._tracks[next(iter(self._tracks))]
            rate = self._rate if even else None
            gap = options.get("gap", GAP)
            self._tracks[name] = read_tracks(self._files[name], name, choice, wanted, rate, gap)
        return self._tracks[name]


def _files(path: Path, source: Mapping[str, Any], data: str | Path | None) -> dict[str, Path]:
    """Return the file of each recording, by name."""
    if data is not None:
        found = find_recordings(data)
        return dict(zip(recording_names(found), found, strict=True))
    entries = source.get("recordings")
    if not isinstance(entries, dict) or not entries:
        raise InputError(f"{path} does not say which recordings it was made of. Name them (--data).")
    files = {name: Path(str(entry.get("file")) if isinstance(entry, dict) else "") for name, entry in entries.items()}
    lost = [file for file in files.values() if not file.is_file()]
    if len(lost) == len(files):
        raise InputError(f"The recordings of {path} are gone: there is no {lost[0]}. Say where they are (--data).")
    return files


def _cases(path: Path, vectors: Vectors, source: Mapping[str, Any], data: str | Path | None) -> list[Array]:
    """Return all cases in the order of their vectors."""
    places = source.get("data")
    if data is None and (not isinstance(places, list) or not places):
        raise InputError(f"{path} does not say which cases it was made of. Name them (--data).")
    place = str(data) if data is not None else str(places[0])  # type: ignore[index]
    contents = load_parts(place, **source["options"])
    cases = [np.asarray(case) for part in contents.values() for case in part.X]
    if len(cases) != len(vectors):
        raise InputError(f"{place} has {len(cases)} cases, and {path} has vectors of {len(vectors)}. Embed it again.")
    return cases


def _stretch(track: Recording, start: float, end: float, rate: float | None, n_times: int | None) -> Array | None:
    """Return the time steps of a recording from one time to another; None where it does not have them all."""
    rate = rate or track.rate or 1.0
    times = track.times if track.times is not None else np.arange(track.n_times) / rate
    first = int(np.searchsorted(times, start - 0.5 / rate))
    last = first + (n_times or round((end - start) * rate))
    there = last <= len(times) and abs(times[first] - start) * rate <= 0.5
    return track.values[:, first:last] if there and abs((times[last - 1] - end) * rate + 1) <= 0.5 else None
