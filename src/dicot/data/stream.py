"""Recordings cut file by file, and what a file held: enough to see later whether it has changed since."""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from dicot.core.errors import naming
from dicot.data.allowance import Allowance
from dicot.data.cases import Array, FloatArray
from dicot.data.collection import Windows
from dicot.data.coverage import SHORT, Coverage
from dicot.data.cutting import Cut, CutPlan, LeftOut, warn_of_short, warn_of_uneven
from dicot.data.folders import RecordingFiles
from dicot.data.labels import as_text
from dicot.data.looking import Common, leave_out_unfillable, look_at, settled, warn_of_bad_files
from dicot.data.reading import Reading, Source
from dicot.data.tags import NOTHING, Tag
from dicot.data.wfdb import wfdb_signal_files

SAMPLED_FILES = 200  # read in any case to draw a sample of windows
SEEN_PER_SAMPLED = 5  # windows that are seen for each that is drawn, before no further file is read


class CutFile(NamedTuple):
    """What came of cutting a file."""

    windows: str  # their hash
    left: LeftOut  # time steps that lie in no window
    coverage: Coverage


@final
class RecordingStream:
    """Recordings cut file by file: together the windows are those of `Windows.from_folder`.

    Every file is looked at first, so that an error of the last one is told before any work is done. `only` says which
    of all files to take, by name and tag. `known` are channels and rate of windows that were cut before. `on_file` is
    told how many files were looked at, and of how many. `allowance` says whether files that cannot be used are left
    out, and keeps them; `files` are the others.
    """

    def __init__(
        self,
        source: Source | RecordingFiles,
        reading: Reading,
        *,
        only: Callable[[Mapping[str, Path], Mapping[str, Tag]], Mapping[str, Path]] = lambda named, tags: named,
        known: Common | None = None,
        on_file: Callable[[int, int], None] = lambda done, total: None,
        allowance: Allowance | None = None,
    ) -> None:
        self.allowance = Allowance() if allowance is None else allowance
        self._files = RecordingFiles.of(source)
        named = self._files.named(reading)
        self._tags = self._files.tags(reading)
        names = list(only(named, self._tags))
        outlines = look_at(self._files, names, reading, self.allowance, known=known, tags=self._tags, on_file=on_file)
        self.cut: Cut = settled(outlines, reading, known)
        leave_out_unfillable(outlines, named, self.allowance, self._plan)
        self.allowance.refuse_nothing_left(len(named))
        warn_of_bad_files(self.allowance)
        # Several groups of a file are recordings, ":" and the group in their name.
        self.files = {name: named[name] for name in outlines}
        self._outlines = [outline for of_file in outlines.values() for outline in of_file]
        self.lengths = {  # by recording: time steps without a gap
            outline.name: outline.longest for outline in self._outlines
        }

    def coverage_before_cutting(self) -> Coverage:
        """Return what is known of the coverage before any recording is cut: which are certainly too short."""
        lengths = {}
        for outline in self._outlines:
            scale = 1.0
            if self.cut.reading.even and self.cut.rate is not None and outline.rate is not None:
                scale = self.cut.rate / outline.rate
            lengths[outline.name] = math.ceil(outline.longest * scale) + (scale != 1.0)
        too_short = {name: SHORT for name, n_steps in lengths.items() if n_steps < self.cut.length}
        return Coverage(lengths, too_short)

    def windows(self, name: str) -> Windows | None:
        """Cut the recordings of the file of this name; None where all are shorter than a window."""
        return _windows_of(self._plan(name))

    def cut_files(self, names: Sequence[str]) -> tuple[list[Windows], dict[str, CutFile]]:
        """Cut the recordings of several files; return their windows in this order, and what came of each file.

        Files follow each other in one object where that changes nothing, because thousands of short recordings take
        far less time together.
        """
        plans = {name: self._plan(name) for name in names}
        windows: list[Windows] = []
        files: dict[str, CutFile] = {}
        for _, group in groupby(plans, key=lambda name: _to_be_cut_alone(name, plans[name])):
            together = {name: plans[name] for name in group}
            joined = _windows_of(CutPlan(self.cut, [track for plan in together.values() for track in plan.tracks]))
            hashes = windows_hashes(joined, [len(plan) for plan in together.values()])
            for (name, plan), windows_hash_ in zip(together.items(), hashes, strict=True):
                files[name] = CutFile(windows_hash_, plan.left, Coverage.of(plan))
            if joined is not None:
                windows.append(joined)
        return windows, files

    def _plan(self, name: str) -> CutPlan:
        recordings = self._files.read(name, self.cut.reading, self._tags.get(name, NOTHING))
        return self.cut.plan(recordings)

    def sample(self, n_windows: int, n_bytes: int, seed: int) -> Windows | None:
        """Draw some windows to fit a model on: all of them in order, where there are not more; None where none fits.

        Of very many recordings some are drawn, and these alone are read once more.

        Parameters
        ----------
        n_windows, n_bytes : the most windows, and the most bytes of all their values
        seed : draws recordings and windows; the same windows are drawn of the same recordings
        """
        draw = np.random.default_rng(seed)
        names = list(self.files)
        order = draw.permutation(len(names)) if len(names) > SAMPLED_FILES else np.arange(len(names))
        drawn: list[tuple[float, int, int, FloatArray]] = []  # by a random number: file, row and values (C, T)
        n_seen = 0

        for n_read, place in enumerate(order.tolist()):
            if n_read >= SAMPLED_FILES and n_seen >= SEEN_PER_SAMPLED * n_windows:
                break
            windows = self.windows(names[place])
            if windows is None:
                continue
            n_seen += len(windows)
            keys = draw.random(len(windows)).tolist()
            drawn += [(key, place, row, values) for row, (key, values) in enumerate(zip(keys, windows.x, strict=True))]
            most = max(1, min(n_windows, n_bytes // windows.x[0].nbytes))
            if len(drawn) > most:
                chosen = sorted(drawn, key=lambda window: window[:3])[:most]
                # Copied, because a view would keep the windows of the whole recording in memory.
                drawn = [(key, place, row, values.copy()) for key, place, row, values in chosen]

        if not drawn:
            return None
        drawn.sort(key=lambda window: window[1:3])
        x = np.stack([values for *_, values in drawn])
        return Windows(x, channels=self.cut.channels, rate=self.cut.rate)

    def warn(self, about: Mapping[str, Array], left: LeftOut) -> None:
        """Say which recordings gave none of these windows, what lies in none, and where time stamps are uneven."""
        left.warn(self.cut.rate)
        self.warn_of_short(about)
        warn_of_uneven(about, self.cut)

    def warn_of_short(self, about: Mapping[str, Array]) -> None:
        """Say which recordings gave none of these windows."""
        with_window = set(about["recording"].tolist())
        warn_of_short({name: n for name, n in self.lengths.items() if name not in with_window}, self.cut.length)


def _windows_of(plan: CutPlan) -> Windows | None:
    return Windows(**plan.fields()) if len(plan) else None


def _to_be_cut_alone(name: str, plan: CutPlan) -> str:
    """Return the name of a file that others beside it would change, "" where they would not.

    Values of more digits than float32 become float32 where that loses nothing, which is decided for each file. Ranges
    of a table are counted for each file.
    """
    is_float32 = all(track.recording.values.dtype == np.float32 for track in plan.tracks)
    return "" if is_float32 and not plan.has_ranges else name


CHEAP = 2**24  # bytes that are hashed in any case; of a larger file the same size and time of change are believed


def facts_of(file: Path, beside: Sequence[Path] = ()) -> dict[str, Any]:
    """Return size, time of change and hash of a file, together with those that it names or that are joined with it."""
    files, size, changed = _state(
        file, beside
    )  # before it is read: a file that grows meanwhile is seen to differ later
    whole = hashlib.sha256()
    for one in files:
        with naming(file), one.open("rb") as opened:
            whole.update(hashlib.file_digest(opened, "sha256").digest())
    facts = {"file": str(file.resolve()), "bytes": size, "changed": changed, "sha256": whole.hexdigest()}
    return {**facts, "beside": [str(path.resolve()) for path in beside]} if beside else facts


def is_as_before(file: Path, facts: dict[str, Any]) -> bool:
    """Tell whether a file holds what it did; where only its size is known, that decides."""
    beside = [Path(path) for path in facts.get("beside", ())]
    _, size, changed = _state(file, beside)
    believed = facts.get("sha256") is None or (size > CHEAP and changed == facts.get("changed"))
    return bool(size == facts["bytes"] and (believed or facts_of(file, beside)["sha256"] == facts["sha256"]))


def _state(file: Path, beside: Sequence[Path]) -> tuple[list[Path], int, int]:
    """Return the files that a recording is read from, as a WFDB header names them, their size and time of change."""
    with naming(file):
        files = [file, *(wfdb_signal_files(file.with_suffix("")) if file.suffix.lower() == ".hea" else []), *beside]
        found = [one.stat() for one in files]
    return files, sum(one.st_size for one in found), max(one.st_mtime_ns for one in found)


def are_facts(entry: Any) -> bool:
    """Tell whether what a file says of another is whole; older ones have neither time nor hashes."""
    texts = dict.fromkeys(("sha256", "windows", "told"), str | None)
    kinds = {"file": str, "bytes": int, "changed": int | None, **texts}
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), kind) for key, kind in kinds.items()):
        return False
    beside = entry.get("beside", [])
    return isinstance(beside, list) and all(isinstance(path, str) for path in beside)


def windows_hash(windows: Windows | None) -> str:
    """Hash windows with all that is known of them, whatever order they come in."""
    return windows_hashes(windows, [0 if windows is None else len(windows)])[0]


def windows_hashes(windows: Windows | None, counts: Sequence[int]) -> list[str]:
    """Hash the windows of each of several files; `counts` says how many follow each other that are of one file."""
    digests = [hashlib.sha256() for _ in counts]
    if windows is None:
        return [digest.hexdigest() for digest in digests]

    assert windows.recording is not None and windows.start is not None and windows.end is not None
    file_of_window = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((windows.end, windows.start, windows.recording, file_of_window))
    unknown = np.full(len(windows), "")
    labels, groups = (unknown if part is None else as_text(part) for part in (windows.y, windows.group))
    columns = (file_of_window, windows.recording, windows.start, windows.end, labels, groups)
    rows = zip(order.tolist(), *(column[order].tolist() for column in columns), strict=True)
    for row, file, *about in rows:
        digests[file].update(repr(about).encode())
        # float32 also where some of a recording are kept with more digits: that depends on how long it is.
        digests[file].update(np.ascontiguousarray(windows.x[row], "<f4").data)
    return [digest.hexdigest() for digest in digests]
