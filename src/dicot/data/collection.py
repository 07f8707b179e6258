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

from dicot.core.errors import InputError, LayoutWarning
from dicot.data.cases import to_array
from dicot.data.conversion import convert
from dicot.data.pieces import Cases, fingerprint
from dicot.data.policies import Array, FloatArray, Scale, name_cases
from dicot.data.texts import EXACT, as_text, text_array

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Windows(Cases):
    """Hold N checked cases of one shape (channels, time) with their labels, groups and places in recordings.

    `check_collection`, `slide`, `windows_from`, `from_table` and `load` make Windows. `fit`, `transform` and `pretrain`
    take them as they are, without looking at every value again: make them by hand only of arrays that are known to be
    finite.

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
        object.__setattr__(self, "shape", self.x.shape)
        if self.segments is not None:
            n, c, length = self.segments.shape if self.segments.ndim == 3 else (0, 0, 0)
            if (n, c) != self.x.shape[:2] or length < self.x.shape[2]:
                raise InputError(
                    f"Segments must have the cases and channels of x, {self.x.shape}, and at least its time steps; "
                    f"got {self.segments.shape}."
                )
        for what, value in _checked_identity(self).items():
            object.__setattr__(self, what, value)

    def __getitem__(self, rows: slice | Array, /) -> FloatArray:
        return self.x[rows]

    def labels(self) -> Array | None:
        """Return y."""
        return self.y

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
        import pandas as pd

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


def label_fingerprint(y: Array | None) -> str:
    """Return 16 hex digits that change with the class of any case, not with the names of the classes.

    Without labels the text is empty.
    """
    if y is None:
        return ""
    known = labelled(y)
    numbers = np.full(len(y), -1, dtype=np.int64)  # unlabelled cases are a class of their own
    numbers[known] = np.unique(y[known], return_inverse=True)[1]
    return hashlib.sha256(numbers.tobytes()).hexdigest()[:16]


def _checked_identity(windows: Windows) -> dict[str, Any]:
    """Return what is known of a case's place in a recording, converted; refuse what fits no case."""
    n = len(windows)
    known: dict[str, Any] = {}
    if windows.recording is not None:
        known["recording"] = np.asarray(windows.recording)
        if known["recording"].shape != (n,) or known["recording"].dtype.kind != "U":
            raise InputError(f"recording must hold one name, a text, for each of the {n} cases.")
    if (windows.start is None) != (windows.end is None):
        raise InputError("start and end belong together. Pass both or neither.")
    if windows.start is not None:
        start, end = known["start"], known["end"] = (
            np.asarray(windows.start, np.float64),
            np.asarray(windows.end, np.float64),
        )
        if start.shape != (n,) or end.shape != (n,):
            raise InputError(f"start and end must have one value for each of the {n} cases.")
        if len(wrong := np.flatnonzero(~(np.isfinite(start) & np.isfinite(end) & (end > start)))):
            raise InputError(
                f"A window must end after its start; {name_cases(wrong)} does not: {start[wrong[0]]:g} to "
                f"{end[wrong[0]]:g}. The end is where the last time step is over: add one step to its time."
            )
    if windows.channels is not None:
        known["channels"] = check_channel_names(windows.channels, windows.n_channels)
    if windows.rate is not None:
        known["rate"] = check_rate(windows.rate)
    return known


def check_channel_names(channels: Any, n_channels: int) -> tuple[str, ...]:
    """Return one name per channel, all different, as a tuple."""
    names = tuple(channels)
    if isinstance(channels, str) or not all(isinstance(name, str) and name for name in names):
        raise InputError(f"channels must be a sequence of names; got {channels!r}. Pass one text for each channel.")
    if len(names) != n_channels or len(set(names)) < len(names):
        raise InputError(f"channels must give each of the {n_channels} channel(s) a name of its own; got {names}.")
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
    if labels.shape != (n,):
        raise InputError(f"{what} must have one value for each of the {n} {noun}; got shape {labels.shape}.")
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
        return np.array(y, dtype=object)
    if hasattr(y, "iloc") and y.isna().to_numpy().any():
        return np.asarray(y.to_numpy(dtype=object, na_value=None))
    values = to_array(y)
    return values.astype(object) if values.dtype.kind == "T" else values


def _plain(values: Array, what: str) -> Array:
    """Turn objects into one array of strings or of numbers, with missing ones marked as `labelled` expects it.

    Whole numbers stay as they are, or become text where no dtype can represent all values exactly. True and False
    beside what is missing are text too, as they are without it in other files.
    """
    items = [v.item() if getattr(v, "ndim", None) == 0 else v for v in values]  # numpy's scalars and tensors
    items = [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in items]
    known = [v for v in items if not _is_lost(v)]
    if all(isinstance(v, str) for v in known):
        if not any(isinstance(v, str) for v in items):
            return np.full(len(items), np.nan)
        return text_array(["" if _is_lost(v) else v for v in items])
    if not all(isinstance(v, int | float) for v in known):
        kinds = ", ".join(sorted({type(v).__name__ for v in known}))
        raise InputError(f"{what} must hold only strings or only numbers; got {kinds}. Convert them to one type.")
    if len(known) == len(items) and all(isinstance(v, int) for v in known) and np.array(items).dtype.kind in "biu":
        return np.array(items)
    is_bool = all(isinstance(v, bool) for v in known)
    if not is_bool and all(isinstance(v, float) or abs(v) <= EXACT for v in known):
        return np.array([np.nan if _is_lost(v) else v for v in items], dtype=np.float64)
    return np.array(["" if _is_lost(v) else as_text(v) for v in items])


def _is_lost(value: Any) -> bool:
    # pandas.NA cannot be compared, so it is told by its name.
    lost = value is None or type(value).__name__ in ("NAType", "NaTType")
    return lost or value == "" or (isinstance(value, float) and math.isnan(value))


def warn_of_layout(n_channels: int, n_times: int, layout: str = "nct") -> None:
    """Say so when cases have more channels than time steps: few do, and most that seem to have their axes swapped."""
    if layout == "nct" and n_channels > n_times:
        warnings.warn(
            f"Each case is taken for {n_channels} channels of {_count(n_times, 'time step')}. If it is {n_channels} "
            f'time steps of {_count(n_times, "channel")}, set layout="ntc".',
            LayoutWarning,
            stacklevel=3,
        )
