"""Windows, the checked form of every collection of cases, and check_collection, the only way user data gets there."""

import hashlib
import math
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, LayoutWarning, need_extra
from dicot.data.cases import to_array
from dicot.data.conversion import convert, fingerprint
from dicot.data.policies import Array, FloatArray, Scale, name_cases
from dicot.data.texts import EXACT, as_text, text_array

if TYPE_CHECKING:
    import pandas as pd

    from dicot.data.reading import Source


@dataclass(frozen=True, eq=False)
class Windows:
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

    def __post_init__(self) -> None:
        if self.segments is not None:
            n, c, length = self.segments.shape if self.segments.ndim == 3 else (0, 0, 0)
            if (n, c) != self.x.shape[:2] or length < self.x.shape[2]:
                raise InputError(
                    f"Segments must have the cases and channels of x, {self.x.shape}, and at least its time steps; "
                    f"got {self.segments.shape}."
                )
        for what, value in _checked_identity(self).items():
            object.__setattr__(self, what, value)

    # What makes Windows is built on them, so the three ways are imported when they are called.

    @classmethod
    def from_folder(
        cls, source: "Source", window: str | int, stride: str | int = "50%", *, name: str = "", **options: Any
    ) -> "Windows":
        """Read recordings and cut them into windows that know their recording, start, end, channels and rate.

        No window spans two recordings, a gap or a change of rate; time stamps that only jitter are taken as even.
        Recordings shorter than a window are named in one warning, and another counts time steps that lie in no window.

        Parameters
        ----------
        source : a folder, a pattern such as "data/*.csv", a file, or a list of these
        window : time steps, or a time such as "2.56s", "500ms" or "1min"
        stride : time steps, a time, or a share of the window such as "50%"
        name : of the result, for reports
        options : further fields of a `Reading`: time, unit, channels, rate, label, group, resample, missing, gap and
            keep_tail
        """
        from dicot.data.folders import windows
        from dicot.data.reading import Reading

        return windows(source, Reading(window, stride).replace(**options), name)

    @classmethod
    def from_table(cls, table: Any, *, case: str, time: str, **options: Any) -> "Windows":
        """Make Windows from a long table, one row per case and time step: pandas, pyarrow or a dict of columns.

        Rows may come in any order; cases have the order of their first row.

        Parameters
        ----------
        table : a pandas DataFrame, a pyarrow Table or a dict of columns
        case, time : the columns that name a case and order its rows
        options : channels (the columns of values; without it every other column of numbers), label and group (columns
            with one value per case), ignore (columns that hold no values), name, and the policies unequal, missing,
            scale and length, as for `from_array`
        """
        from dicot.data.tables import from_table

        return from_table(table, case=case, time=time, **options)

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
        from dicot.data.cutting import slide

        how: dict[str, Any] = {"layout": layout, "missing": missing, "name": name, **options}
        return slide(X, window, stride, labels=y, groups=group, **how)

    def __len__(self) -> int:
        return len(self.x)

    @property
    def n_channels(self) -> int:
        """Give the number of channels C."""
        return int(self.x.shape[1])

    @property
    def n_times(self) -> int:
        """Give the number of time steps T."""
        return int(self.x.shape[2])

    def __repr__(self) -> str:
        name = f"name={self.name!r}, " if self.name else ""
        counts = [_count(len(self), "case"), _count(self.n_channels, "channel"), _count(self.n_times, "time step")]
        if self.y is not None:
            known = labelled(self.y)
            counts.append(_count(len(np.unique(self.y[known])), "class", "classes"))
            if not known.all():
                counts.append(f"{np.count_nonzero(~known)} unlabelled")
        if self.group is not None:
            counts.append(_count(len(np.unique(self.group)), "group"))
        return f"Windows({name}{', '.join(counts)})"

    def subset(self, index: Array | Sequence[int] | slice) -> "Windows":
        """Return the cases at `index` (positions, a mask or a slice) with all that is known about them."""
        rows: Any = index
        if not isinstance(index, slice):
            rows = np.atleast_1d(np.asarray(index))
            rows = rows.astype(np.intp) if rows.size == 0 else rows
        facts = ("y", "group", "recording", "start", "end")
        chosen: dict[str, Any] = {what: getattr(self, what)[rows] for what in facts if getattr(self, what) is not None}
        if self.segments is not None:
            chosen["segments"] = np.ascontiguousarray(self.segments[rows])
        return replace(self, x=np.ascontiguousarray(self.x[rows]), **chosen)

    def to_pandas(self) -> "pd.DataFrame":
        """Return a frame with one row per window: recording, start, end, group and label; what is not known is None."""
        try:
            import pandas as pd
        except ImportError as error:
            raise need_extra("pandas", "tables", "A frame of windows") from error
        label = self.y
        if label is not None and label.dtype.kind == "U":
            known = labelled(label)
            label = label.astype(object)
            label[~known] = None
        facts = {"recording": self.recording, "start": self.start, "end": self.end, "group": self.group, "label": label}
        return pd.DataFrame(facts, index=pd.RangeIndex(len(self)))

    def fingerprint(self) -> str:
        """Return 16 hex digits that change with any value of x or of the segments; nothing else counts."""
        if self.segments is None:
            return fingerprint(self.x)
        both = fingerprint(self.x) + fingerprint(self.segments)
        return hashlib.sha256(both.encode()).hexdigest()[:16]

    def label_fingerprint(self) -> str:
        """Return 16 hex digits that change with the class of any case, not with the names of the classes.

        Without labels the text is empty.
        """
        if self.y is None:
            return ""
        known = labelled(self.y)
        numbers = np.full(len(self), -1, dtype=np.int64)  # unlabelled cases are a class of their own
        numbers[known] = np.unique(self.y[known], return_inverse=True)[1]
        return hashlib.sha256(numbers.tobytes()).hexdigest()[:16]


def _checked_identity(windows: Windows) -> dict[str, Any]:
    """Return what is known of a case's place in a recording, converted; or raise an error that names the value."""
    n = len(windows)
    known: dict[str, Any] = {}
    if windows.recording is not None:
        names = np.asarray(windows.recording)
        if names.shape != (n,) or names.dtype.kind != "U":
            raise InputError(
                f"recording must hold one name for each of the {n} cases; got shape {names.shape} of dtype "
                f"{names.dtype}. Pass text, such as the name of the file."
            )
        known["recording"] = names
    if (windows.start is None) != (windows.end is None):
        lost = "start" if windows.start is None else "end"
        raise InputError(f"start and end belong together; {lost} is missing. Pass both or neither.")
    if windows.start is not None and windows.end is not None:
        known |= _checked_times(windows.start, windows.end, n)
    if windows.channels is not None:
        known["channels"] = check_channel_names(windows.channels, windows.n_channels)
    if windows.rate is not None:
        known["rate"] = check_rate(windows.rate)
    return known


def _checked_times(start: Any, end: Any, n: int) -> dict[str, NDArray[np.float64]]:
    times = {}
    for what, values in (("start", start), ("end", end)):
        try:
            times[what] = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"{what} must hold numbers; {error}. Convert dates to seconds first.") from error
        if times[what].shape != (n,):
            raise InputError(f"{what} must have one value for each of the {n} cases; got shape {times[what].shape}.")
        if not np.isfinite(times[what]).all():
            which = name_cases(np.flatnonzero(~np.isfinite(times[what])))
            raise InputError(f"{what} must be finite; it is not in {which}. Pass neither start nor end if unknown.")
    wrong = np.flatnonzero(times["end"] <= times["start"])
    if len(wrong):
        first = wrong[0]
        raise InputError(
            f"A window must end after its start; {name_cases(wrong)} does not: {times['start'][first]:g} to "
            f"{times['end'][first]:g}. The end is where the last time step is over: add one step to its time."
        )
    return times


def check_channel_names(channels: Any, n_channels: int) -> tuple[str, ...]:
    """Return one name per channel, all different, as a tuple."""
    if isinstance(channels, str) or not all(isinstance(name, str) and name for name in channels):
        raise InputError(f"channels must be a sequence of names; got {channels!r}. Pass one text for each channel.")
    names = tuple(str(name) for name in channels)
    if len(names) != n_channels:
        raise InputError(f"channels must name each of the {n_channels} channel(s); got {len(names)}: {names}.")
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"Every channel needs a name of its own; {', '.join(twice)} came more than once.")
    return names


def check_rate(rate: Any) -> float:
    """Return time steps per second as a float."""
    number = isinstance(rate, int | float | np.integer | np.floating) and not isinstance(rate, bool)
    if not number or not 0 < rate <= sys.float_info.max:  # a whole number may be larger than any float
        raise InputError(f"rate must be a positive number of time steps per second; got {str(rate)[:40]}.")
    return float(rate)


def keep_identity(before: Windows, after: Windows, unequal: str = "error") -> Windows:
    """Return `after`, the same cases under other policies, with recordings, times, channel names and rate of `before`.

    Cases that were padded or cropped keep the place that they came from, resampled ones get the rate that fits.
    """
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
    X: Any,
    y: Any = None,
    *,
    group: Any = None,
    layout: str = "nct",
    unequal: str = "error",
    missing: str = "error",
    scale: str | Scale | None = None,
    length: int | None = None,
    name: str = "",
) -> Windows:
    """Check cases and turn them into Windows, or raise an InputError that says what to change.

    The result shares memory with X where nothing had to be changed.

    Parameters
    ----------
    X : an array (N, C, T) or (N, T), a list of (C, T_i) or (T_i,) arrays, tensors, a data frame, or Windows. NaN in all
        channels at the end of a case means that the case is shorter
    y, group : one label, and one group such as a person, for each case
    layout : "nct", or "ntc" where time comes before channels
    unequal : "error", "pad", "crop" or "resample" for cases of unequal length
    missing : "error", "interpolate" or "zero" for NaN
    scale : None, "dataset" (z-score per channel), "case", or a Scale that was fitted before
    length : time steps of every case, where `unequal` may change them
    name : of the result, for reports
    """
    segments, given = None, X if isinstance(X, Windows) else None
    if isinstance(X, Windows):
        y = X.y if y is None else y
        group = X.group if group is None else group
        segments = segments_under(X, scale, length)
        name, layout, X = name or X.name, "nct", X.x
    cases = convert(X, layout=layout, unequal=unequal, missing=missing, scale=scale, length=length)
    y = None if y is None else check_labels(y, len(cases), "y")
    group = None if group is None else check_groups(group, len(cases), "group")
    windows = Windows(cases.whole(), y, group, name, segments)
    return windows if given is None else keep_identity(given, windows, unequal)


def segments_under(windows: Windows, scale: str | Scale | None, length: int | None = None) -> FloatArray | None:
    """Return the segments of Windows; a policy that would have to change them too is refused."""
    if windows.segments is not None and (scale is not None or length not in (None, windows.n_times)):
        raise InputError(
            f"{windows.name or 'This training set'} draws its windows while it trains, and neither scale nor length is "
            "applied to what it draws from. Leave both out, or use fixed windows: replace(windows, segments=None)."
        )
    return windows.segments


def labelled(y: Array) -> NDArray[np.bool_]:
    """Tell which labels of Windows (N,) are known: NaN among numbers and the empty string among text are not."""
    if y.dtype.kind == "f":
        return ~np.isnan(y)
    known: NDArray[np.bool_] = y != "" if y.dtype.kind == "U" else np.ones(len(y), dtype=bool)
    return known


def labelled_cases(windows: Windows) -> Windows:
    """Return the cases whose label is known."""
    assert windows.y is not None
    rows = labelled(windows.y)
    return windows if rows.all() else windows.subset(rows)


def check_labels(y: Any, n: int, what: str, noun: str = "cases") -> Array:
    """Return labels as an array (n,) of numbers or of strings, one for each of the n things called `noun`.

    NaN, None, pandas.NA and the empty string mean unlabelled; `labelled` tells which are not.
    """
    labels = _to_values(y)
    if labels.ndim != 1:
        raise InputError(f"{what} must have shape ({noun},); got {labels.shape}. Pass one value for each.")
    if len(labels) != n:
        raise InputError(f"{what} must have one value for each of the {n} {noun}; got {len(labels)}.")
    if labels.dtype == object:
        labels = _plain(labels, what)
    elif labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8", "replace")
    if labels.dtype.kind not in "biufU":
        raise InputError(f"{what} must hold strings or numbers; got dtype {labels.dtype}. Convert it first.")
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        which = name_cases(np.flatnonzero(np.isinf(labels)), noun.removesuffix("s"), noun)
        raise InputError(f"{what} contains inf at {which}. Pass None or NaN for what has no label.")
    return labels if labelled(labels).all() or labels.dtype.kind == "U" else labels.astype(np.float64, copy=False)


def name_of_groups(group: Array | None, recording: Array | None, column: str | None = None) -> str:
    """Name what a group is: a recording where it is one, else as its column is called, else a group."""
    if recording is not None and (group is None or np.array_equal(group.astype(str), recording.astype(str))):
        return "recording"
    return column or "group"


def check_groups(group: Any, n: int, what: str, noun: str = "cases") -> Array:
    """Return group ids as check_labels returns labels; each must be known."""
    ids = check_labels(group, n, what, noun)
    lost = np.flatnonzero(~labelled(ids))
    if len(lost):
        which = name_cases(lost, noun.removesuffix("s"), noun)
        raise InputError(f"{what} has no value at {which}. Fill it in, drop these {noun}, or pass no {what}.")
    return ids


def _to_values(y: Any) -> Array:
    """Return an array of numbers or text, or of objects where some values may be missing."""
    if isinstance(y, np.ma.MaskedArray):
        y = y.tolist()  # None for what is masked
    if isinstance(y, list | tuple):
        # Not by way of one dtype for all: numpy would write NaN among strings as "nan", and round large numbers.
        try:
            return np.array(y, dtype=object)
        except ValueError as error:
            raise InputError(f"The values cannot be read as one array ({error}). Pass numpy arrays.") from error
    if hasattr(y, "iloc") and y.isna().to_numpy().any():
        return np.asarray(y.to_numpy(dtype=object, na_value=None))
    values = to_array(y)
    return values.astype(object) if values.dtype.kind == "T" else values


def _plain(values: Array, what: str) -> Array:
    """Turn objects into one array of strings or of numbers, with missing ones marked as `labelled` expects it."""
    items = [v.item() if getattr(v, "ndim", None) == 0 else v for v in values]  # numpy's scalars and tensors
    items = [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in items]
    known = [v for v in items if not _is_lost(v)]
    if all(isinstance(v, str) for v in known):
        if not any(isinstance(v, str) for v in items):
            return np.full(len(items), np.nan)
        return text_array(["" if _is_lost(v) else v for v in items])
    if all(isinstance(v, int | float) for v in known):
        return _numbers(items, known)
    kinds = ", ".join(sorted({type(v).__name__ for v in known}))
    raise InputError(f"{what} must hold only strings or only numbers; got {kinds}. Convert them to one type.")


def _numbers(items: list[Any], known: list[Any]) -> Array:
    """Return whole numbers as they are, or as text where no dtype can represent all values exactly.

    True and False beside what is missing are text too, as they are without it in other files.
    """
    whole = all(isinstance(v, int) for v in known)
    if whole and len(known) == len(items):
        numbers = np.array(items)
        if numbers.dtype.kind in "biu":
            return numbers
    is_bool = all(isinstance(v, bool) for v in known)
    if not is_bool and all(isinstance(v, float) or abs(v) <= EXACT for v in known):
        return np.array([np.nan if _is_lost(v) else v for v in items], dtype=np.float64)
    return np.array(["" if _is_lost(v) else as_text(v) for v in items])


def _is_lost(value: Any) -> bool:
    # pandas.NA cannot be compared, so it is told by its name.
    nan = isinstance(value, float) and math.isnan(value)
    return (
        value is None or nan or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, str) and not value)
    )


def warn_of_layout(n_channels: int, n_times: int, layout: str = "nct") -> None:
    """Say so when cases have more channels than time steps: few do, and most that seem to have their axes swapped."""
    if layout == "nct" and n_channels > n_times:
        warnings.warn(
            f"Each case is taken for {n_channels} channels of {_count(n_times, 'time step')}. If it is {n_channels} "
            f'time steps of {_count(n_times, "channel")}, set layout="ntc".',
            LayoutWarning,
            stacklevel=3,
        )
