"""Recordings cut file by file: one after the other in memory, the windows of `Windows.from_folder`."""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import final

from dicot.core.errors import NoWindowError, ShortRecordingWarning
from dicot.data.collection import Windows
from dicot.data.cutting import Cut, LeftOut, outline_of, settle, warn_of_short, warn_of_uneven
from dicot.data.folders import named_recordings, read_named, refuse_mistaken
from dicot.data.policies import Array
from dicot.data.reading import Reading, Source
from dicot.data.recording import Recording

_KEPT = 2**28  # bytes of recordings that are kept between looking at them and cutting them


@final
class RecordingStream:
    """Recordings cut file by file: together the windows are those of `Windows.from_folder`.

    Every file is looked at first, so that an error of the last one is told before any work is done. What was read is
    kept while there is room, and otherwise read again.

    Parameters
    ----------
    source, reading : a folder, a pattern, a file or a list, and how it is read
    only : says which of all files, by name, to take
    known : channels and rate of windows that were cut before, which these recordings must have too
    on_file : is told how many files were looked at, and how many there are

    Attributes
    ----------
    files : name of the recording -> its file; where a file has several groups, ":" and the group follow the name
    cut : what was settled for all
    lengths : name of each recording -> time steps of its longest stretch without a gap
    left : name of each file that was cut -> how many of its time steps lie in no window
    """

    def __init__(
        self,
        source: Source,
        reading: Reading,
        *,
        only: Callable[[Mapping[str, Path]], Mapping[str, Path]] = lambda named: named,
        known: tuple[tuple[str, ...], float | None] | None = None,
        on_file: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        named = named_recordings(source)
        self.files = only(named)
        self.left: dict[str, LeftOut] = {}
        self._kept: dict[str, list[Recording]] = {}
        outlines, room = [], _KEPT
        for done, (name, file) in enumerate(self.files.items()):
            on_file(done, len(self.files))
            found = read_named(file, name, reading)
            refuse_mistaken([one.name for one in found], name, named)
            outlines += [outline_of(one, reading) for one in found]
            room -= sum(one.values.nbytes + 8 * one.n_times for one in found)
            if room >= 0:
                self._kept[name] = found
        self.lengths = {one.name: one.longest for one in outlines}
        self.cut: Cut = settle(outlines, reading, known)

    def windows(self, name: str) -> Windows | None:
        """Cut the recordings of the file of this name; None where all are shorter than a window."""
        recordings = self._kept.get(name) or read_named(self.files[name], name, self.cut.reading)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShortRecordingWarning)  # `warn` names them all
            try:
                plan = self.cut.plan(recordings)
            except NoWindowError as error:
                self.left[name] = LeftOut(*error.left)
                return None
        self.left[name] = plan.left
        return Windows(**plan.fields())

    def warn(self, recording: Array, start: Array, end: Array, left: LeftOut) -> None:
        """Say which recordings gave none of these windows, what lies in none, and where time stamps are uneven."""
        there = set(recording.tolist())
        left.warn(self.cut.rate)
        warn_of_short({name: n for name, n in self.lengths.items() if name not in there}, self.cut.length)
        warn_of_uneven(recording, end - start, self.cut.length, self.cut.rate)
