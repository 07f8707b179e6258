"""Windows, the checked form of every collection of cases, and check_collection, the only way user data gets there."""

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicot.core.errors import DicotWarning, InputError, listed
from dicot.core.settings import how_to_prepare
from dicot.data.allowance import Allowance
from dicot.data.arrays import recordings_in_memory
from dicot.data.cases import Array, Cases, FloatArray, Policies, Scale, fingerprint, name_cases
from dicot.data.casetables import table_cases
from dicot.data.conversion import convert
from dicot.data.coverage import Coverage, refuse_partial
from dicot.data.cutting import warn_of_uneven
from dicot.data.labels import as_text, check_channel_names, check_groups, check_labels, check_rate, labelled
from dicot.data.looking import readable_recordings, settled_plan
from dicot.data.reading import Reading, Source
from dicot.data.tables import recordings_of_table


@dataclass(frozen=True, eq=False)
class Windows(Cases):
    """Hold N checked cases of one shape (channels, time) with their labels, groups and places in recordings.

    `from_folder`, `from_table`, `from_array` and `dicot.load` make Windows. `fit`, `transform` and `pretrain` take them
    as they are, without looking at every value again: make them by hand only of arrays that are known to be finite.

    `start` and `end` are in seconds where `rate` is known and in time steps where it is not. A window ends where its
    last time step is over, so that 128 time steps at 50 Hz last 2.56 s and neighbours without overlap touch.
    """

    x: FloatArray  # (N, C, T), C-contiguous, finite; float32, or float64 where that would swallow all differences
    y: Array | None = None  # (N,) labels; `labelled` tells which are known
    group: Array | None = None  # (N,) whose case it is: a person, a device, a recording
    name: str = ""
    segments: FloatArray | None = None  # (N, C, L), L >= T: what training draws a window of each case from, every epoch
    # Where the cases come from. No part of the fingerprint: results do not depend on it.
    recording: Array | None = None  # (N,) names of the recordings
    start: NDArray[np.float64] | None = None  # (N,)
    end: NDArray[np.float64] | None = None  # (N,)
    channels: tuple[str, ...] | None = None  # the C names
    rate: float | None = None  # time steps per second
    # (N,) datetime64[us] in UTC, NaT where a recording has no dates. Dates without a zone are taken for UTC.
    start_time: Array | None = None
    end_time: Array | None = None

    def __post_init__(self) -> None:
        known: dict[str, Any] = {"shape": self.x.shape}
        kinds = {"recording": None, "start": "f8", "end": "f8", "start_time": "M8[us]", "end_time": "M8[us]"}
        for what, kind in kinds.items():
            if (values := getattr(self, what)) is not None:
                known[what] = np.asarray(values, kind)
                if known[what].shape != self.x.shape[:1] or known[what].dtype.kind not in "UfM":
                    raise InputError(f"{what} must have a name or a time for each of the {len(self.x)} cases.")
        if (self.start is None) != (self.end is None):
            raise InputError("start and end belong together. Pass both or neither.")
        if self.start is not None and len(wrong := np.flatnonzero(~(known["end"] > known["start"]))):
            start, end = (known[side][wrong[0]] for side in ("start", "end"))
            raise InputError(f"A window must end after its start; {name_cases(wrong)} is from {start:g} to {end:g}.")
        if self.channels is not None:
            known["channels"] = check_channel_names(self.channels, self.x.shape[1])
        if self.rate is not None:
            known["rate"] = check_rate(self.rate)
        if self.segments is not None and (
            self.segments.shape[:2] != self.x.shape[:2] or self.segments.shape[2] < self.x.shape[2]
        ):
            shapes = f"{self.x.shape}, and its time steps or more; got {self.segments.shape}"
            raise InputError(f"Segments must have the cases and channels of x, {shapes}.")
        for what, value in known.items():
            object.__setattr__(self, what, value)

    @classmethod
    def from_folder(
        cls,
        source: "Source",
        window: str | int,
        stride: str | int = "50%",
        *,
        name: str = "",
        allowance: Allowance | None = None,
        **options: Any,
    ) -> "Windows":
        """Read recordings and cut them into windows that know their recording, start, end, channels and rate.

        No window spans two recordings, a gap or a change of rate; time stamps that only jitter are taken as even.
        Recordings shorter than a window are named in one warning, and another counts time steps that lie in no window.
        More than a fifth of either is an error.

        Parameters
        ----------
        source : a folder, a pattern such as "data/*.csv", a file, or a list of these
        window : time steps, or a time such as "2.56s", "500ms" or "1min"
        stride : time steps, a time, or a share of the window such as "50%"
        name : of the result, for reports
        allowance : whether files that cannot be used may be left out, and more than a fifth may lie in no window; what
            is left out is kept in it. By default both are errors
        options : further fields of a `Reading`: time, unit, channels, rate, label, group, resample, missing, gap and
            keep_tail; names, such as "{activity}_{subject}", of which label and group may then name a field; and table,
            the path of a .csv of labels, as docs/concepts.md describes it
        """
        reading = Reading(window, stride).replace(**options)
        allowance = Allowance() if allowance is None else allowance
        plan = settled_plan(readable_recordings(source, reading, allowance), reading)
        refuse_partial(Coverage.of(plan), plan.cut, allowance)
        plan.warn()
        warn_of_uneven(plan.about, plan.cut)
        return cls(**plan.fields(), name=name)

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        case: str | None = None,
        recording: str | None = None,
        time: str | None = None,
        channels: Sequence[str] | None = None,
        window: str | int | None = None,
        label: str | None = None,
        group: str | None = None,
        ignore: Sequence[str] = (),
        name: str = "",
        **options: Any,
    ) -> "Windows":
        """Make Windows from a table with one row per time step, of cases or, with `window`, of recordings to be cut.

        Rows may come in any order; cases and recordings have the order of their first row.

        Parameters
        ----------
        table : a pandas DataFrame, a pyarrow Table or a dict of columns
        case : the column that names a case
        recording : with `window`, the column that names a recording; without it all rows are one
        time : the column that orders the rows, of recordings their time stamps: without it a DatetimeIndex, or a column
            that looks like it
        channels : the columns of values; without it every other column of numbers, save those to `ignore`. One that
            never changes within a case is asked about
        window : as for `from_folder`
        label, group : the columns of labels and groups; of a case both, and of a recording its group, never change
        ignore : columns that hold no values
        name : of the result, for reports
        options : of cases unequal, missing, scale and length, as for `from_array`; of recordings stride and further
            fields of a `Reading`, as for `from_folder`
        """
        if (case is None) == (window is None) or (case is not None and (time is None or recording is not None)):
            raise InputError("Say window= and recording= to cut recordings, or case= and time= for cases cut already.")
        if window is not None:
            reading = Reading(window, time=time, label=label).replace(channels=channels and tuple(channels), **options)
            plan = settled_plan(recordings_of_table(table, reading, recording, group, ignore), reading)
            plan.warn()
            return cls(**plan.fields(), name=name)
        named = {"channels": channels and tuple(channels), "ignore": tuple(ignore) or None}
        reading = Reading(case=case, time=time, label=label, group=group).replace(**named)
        content = table_cases(table, reading)
        windows = check_collection(content.X, content.y, group=content.group, name=name, **options)
        return replace(windows, channels=content.channels)

    @classmethod
    def from_array(
        cls,
        X: Any,
        y: Any = None,
        *,
        group: Any = None,
        window: str | int | None = None,
        stride: str | int = "50%",
        layout: str = "nct",
        missing: str = "error",
        name: str = "",
        **options: Any,
    ) -> "Windows":
        """Check cases, or cut recordings in memory; an InputError says what to change.

        Parameters
        ----------
        X : cases: an array (N, C, T) or (N, T), a list of (C, T_i) or (T_i,) arrays, tensors, a data frame, or Windows.
            NaN in all channels at the end of a case means that the case is shorter. With `window`, recordings: one
            array (C, T) or (T,), or a list of them
        y, group : one label, and one group such as a person, for each case. For each recording one value, or one value
            per time step, of which a window gets the most frequent; one that is labelled in less than half of its time
            steps has no label. NaN, None and "" mean unlabelled
        window, stride : of recordings, as for `from_folder`; None where X are cases
        layout : "nct", or "ntc" where time comes before channels
        missing : "error", "interpolate" or "zero" for NaN
        name : of the result, for reports
        options : of cases unequal ("error", "pad", "crop" or "resample"), length (time steps of every case) and scale
            (None, "dataset", "case" or a Scale); of recordings rate (time steps per second), times (increasing time
            stamps in seconds, for each recording), channels (their names), names (of the recordings), gap and keep_tail
        """
        if window is None:
            return check_collection(X, y, group=group, layout=layout, missing=missing, name=name, **options)
        cutting = {key: options.pop(key) for key in ("gap", "keep_tail") if key in options}
        reading = Reading(window, stride, missing=missing, **cutting)
        recordings = recordings_in_memory(X, reading, y, group, layout, **options)
        warn_of_layout(len(recordings[0].channels), max(one.n_times for one in recordings), layout)
        plan = settled_plan(recordings, reading)
        plan.warn()
        windows = cls(**plan.fields(), name=name)
        return windows if options.get("channels") else replace(windows, channels=None)

    def __getitem__(self, rows: slice | Array, /) -> FloatArray:
        return self.x[rows]

    def labels(self) -> Array | None:
        """Return y."""
        return self.y

    @property
    def array(self) -> FloatArray:
        """Give x."""
        return self.x

    def __repr__(self) -> str:
        name = f"name={self.name!r}, " if self.name else ""
        counts = [_count(len(self), "case"), _count(self.n_channels, "channel"), _count(self.n_times, "time step")]
        if self.y is not None:
            known = labelled(self.y)
            counts.append(_count(len(np.unique(self.y[known])), "class", "classes"))
            if not known.all():
                counts.append(f"{np.count_nonzero(~known)} unlabelled")
        for what, values in (("group", self.group), ("recording", self.recording)):
            counts += [] if values is None else [_count(len(np.unique(values)), what)]
        lines = [f"Windows({name}{', '.join(counts)})"]
        if self.channels is not None:
            lines.append(f"channels: {listed(self.channels)}")
        if self.rate is not None:
            lines.append(f"{self.n_times / self.rate:.6g} s each, {self.rate:.6g} time steps per second")
        if self.y is not None:
            texts, numbers = np.unique(as_text(self.y[labelled(self.y)]), return_counts=True)
            lines.append(f"labels: {listed([f'{t} ({n})' for t, n in zip(texts, numbers, strict=True)])}")
        times = [ends[labelled(ends)] for ends in (self.start_time, self.end_time) if ends is not None]
        if len(times) == 2 and len(times[0]):
            lines.append(" to ".join(as_text(np.array([times[0].min(), times[1].max()]))))
        return "\n  ".join(lines)

    def subset(self, index: Array | Sequence[int] | slice) -> "Windows":
        """Return the cases at `index` (positions, a mask or a slice) with all that is known about them."""
        rows: Any = index
        if not isinstance(index, slice):
            rows = np.atleast_1d(np.asarray(index))
            rows = rows.astype(np.intp) if rows.size == 0 else rows
        facts = ("x", "y", "group", "recording", "start", "end", "start_time", "end_time", "segments")
        chosen: dict[str, Any] = {
            what: np.ascontiguousarray(part[rows]) for what in facts if (part := getattr(self, what)) is not None
        }
        return replace(self, **chosen)

    def to_pandas(self) -> pd.DataFrame:
        """Return a frame with one row per window: recording, start, end, start_time, end_time, group and label.

        Both times are in UTC. What is not known is None.
        """
        label = self.y
        if label is not None and label.dtype.kind == "U":
            label = np.array([text or None for text in label.tolist()], dtype=object)
        ends = {"start_time": self.start_time, "end_time": self.end_time}
        times = {what: None if values is None else pd.DatetimeIndex(values, tz="UTC") for what, values in ends.items()}
        places = {"recording": self.recording, "start": self.start, "end": self.end, **times}
        return pd.DataFrame({**places, "group": self.group, "label": label}, index=pd.RangeIndex(len(self)))

    def fingerprint(self) -> str:
        """Return 16 hex digits that change with any value of x or of the segments; nothing else counts."""
        if self.segments is None:
            return fingerprint(self.x)
        both = fingerprint(self.x) + fingerprint(self.segments)
        return hashlib.sha256(both.encode()).hexdigest()[:16]


def keep_identity(before: Windows, after: Windows, unequal: str = "error") -> Windows:
    """Return `after`, `before` under other policies, with its recordings, times, channels, and the rate that fits."""
    rate, start, end = before.rate, before.start, before.end
    if unequal == "resample" and before.n_times != after.n_times:
        if min(before.n_times, after.n_times) == 1:
            rate = start = end = None  # one time step has no rate
        elif rate is not None:
            rate *= (after.n_times - 1) / (before.n_times - 1)  # both ends stay where they are
    return replace(after, recording=before.recording, start=start, end=end, channels=before.channels, rate=rate)


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def check_collection(
    X: Any, y: Any = None, *, group: Any = None, layout: str = "nct", name: str = "", **policies: Unpack[Policies]
) -> Windows:
    """Check cases and turn them into Windows, or raise an InputError that says what to change.

    Parameters are those of `Windows.from_array` for cases. The result shares memory with X where nothing had to be
    changed.
    """
    segments, given = None, X if isinstance(X, Windows) else None
    if isinstance(X, Windows):
        y = X.y if y is None else y
        group = X.group if group is None else group
        segments = segments_under(X, policies.get("scale"), policies.get("length"))
        name, layout, X = name or X.name, "nct", X.x
    cases = convert(X, layout=layout, **policies)
    y = None if y is None else check_labels(y, len(cases), "y")
    group = None if group is None else check_groups(group, len(cases), "group")
    windows = Windows(cases.whole(), y, group, name, segments)
    return windows if given is None else keep_identity(given, windows, policies.get("unequal", "error"))


def segments_under(windows: Windows, scale: str | Scale | None, length: int | None = None) -> FloatArray | None:
    """Return the segments of Windows; a policy that would have to change them too is refused."""
    if windows.segments is not None and (scale is not None or length not in (None, windows.n_times)):
        said = f"{windows.name or 'This training set'} draws windows while it trains: scale and length would miss them."
        raise InputError(f"{said} Leave both out, or use fixed windows: replace(windows, segments=None).")
    return windows.segments


def labelled_cases(windows: Windows) -> Windows:
    assert windows.y is not None
    rows = labelled(windows.y)
    return windows if rows.all() else windows.subset(rows)


def warn_of_layout(n_channels: int, n_times: int, layout: str = "nct") -> None:
    """Say so when cases have more channels than time steps: few do, and most that seem to have their axes swapped."""
    if layout == "nct" and n_channels > n_times:
        said = f"Each case is taken for {n_channels} channels of {_count(n_times, 'time step')}."
        warnings.warn(
            f"{said} If time comes before channels: {how_to_prepare('layout', 'ntc')}.", DicotWarning, stacklevel=3
        )
