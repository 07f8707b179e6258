"""Long recordings cut into windows."""

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dicot.data.cases import to_array, to_cases
from dicot.data.collection import Windows, check_groups, check_labels, labelled, warn_of_layout
from dicot.data.conversion import convert
from dicot.data.policies import Array, Cases, cases_where, fill_missing, name_cases
from dicot.errors import InputError, ShortRecordingWarning, is_whole


def slide(
    recordings: Any,
    length: int,
    stride: int,
    *,
    labels: Any = None,
    groups: Any = None,
    layout: str = "nct",
    missing: str = "error",
    keep_tail: bool = False,
    name: str = "",
) -> Windows:
    """Cut long recordings into windows of `length` time steps, one every `stride`; none spans two recordings.

    A recording shorter than a window is left out with a warning.

    Parameters
    ----------
    recordings : one array (channels, time) or (time,), or a list of them; (time, channels) with layout="ntc"
    length, stride : in time steps
    labels, groups : for each recording one value, or one value per time step, of which a window gets the most frequent
        (of several the smallest). NaN, None and "" mean unlabelled; a window that is labelled in less than half of its
        time steps has no label. Without groups, a window's group is the number of its recording
    layout : "nct" or "ntc"
    missing : "error", "interpolate" or "zero" for NaN
    keep_tail : cover the end of a recording by a last window that ends there; otherwise a tail shorter than a window
        is dropped
    name : of the result, for reports
    """
    for what, value in (("length", length), ("stride", stride)):
        if not is_whole(value, 1):
            raise InputError(f"{what} must be a whole number of at least 1 time step; got {value!r}.")
    single = not isinstance(recordings, list | tuple) and to_array(recordings).ndim <= 2
    tracks = _tracks([recordings] if single else recordings, layout, missing)
    _warn_of_short(tracks, length, layout)
    starts = [_starts(track.shape[1], length, stride, keep_tail) for track in tracks]
    if single:
        labels, groups = (None if v is None else _of_one_recording(v) for v in (labels, groups))
    ids = np.arange(len(tracks)) if groups is None else groups
    y = None if labels is None else _per_window(labels, tracks, starts, length, "labels")
    group = _per_window(ids, tracks, starts, length, "groups")
    return Windows(convert(_cut(tracks, starts, length, stride)).whole(), y, group, name)


def _of_one_recording(values: Any) -> Any:
    """Accept what belongs to the only recording bare, or in a list of one."""
    listed = not isinstance(values, str) and hasattr(values, "__len__") and len(values) == 1
    return values if listed else [values]


def split_groups(windows: Windows, test_groups: Iterable[Any]) -> tuple[Windows, Windows]:
    """Split into (train, test): the windows of `test_groups` are the test part, all others the training part."""
    if windows.group is None:
        raise InputError("These windows carry no groups. Pass groups= to slide or group= to check_collection.")
    wanted = list(test_groups)
    known = set(windows.group.tolist())
    unknown = [g for g in wanted if g not in known]
    if unknown or not wanted or known <= set(wanted):
        raise InputError(
            f"test_groups must name some, not all, of the groups {sorted(known)}; got {wanted}"
            + (f", of which {unknown} do not occur." if unknown else ".")
        )
    in_test = np.isin(windows.group, wanted)
    return windows.subset(~in_test), windows.subset(in_test)


def _tracks(recordings: Any, layout: str, missing: str) -> Cases:
    """Return recordings (C, T_i) without inf and NaN."""
    tracks = to_cases(recordings, layout)
    bad = cases_where(np.isinf, tracks)
    if len(bad):
        raise InputError(f"{name_cases(bad, 'Recording', 'Recordings')} contain inf. Remove or clip these values.")
    return fill_missing(tracks, missing, "recording")


def _warn_of_short(tracks: Cases, length: int, layout: str) -> None:
    """Say which recordings give no window, or that none does."""
    n_channels = tracks[0].shape[0]
    n_times = [track.shape[1] for track in tracks]
    longest = max(n_times)
    if longest < length:
        other = {"nct": "ntc", "ntc": "nct"}[layout]
        turned = (
            f'If these are in fact the time steps, set layout="{other}"; otherwise use'
            if n_channels >= length
            else "Use"
        )
        raise InputError(
            f"No recording is as long as a window of length={length}: {len(tracks)} recording(s) of {n_channels} "
            f"channel(s) came, the longest with {longest} time steps. {turned} a smaller length."
        )
    warn_of_layout(n_channels, longest, layout)
    short = [i for i, n in enumerate(n_times) if n < length]
    if short:
        named = name_cases(short, "recording", "recordings")
        lengths = name_cases([n_times[i] for i in short], "", "").strip()
        warnings.warn(
            f"Left out {named} ({lengths} time steps): shorter than a window of length={length}.",
            ShortRecordingWarning,
            stacklevel=3,
        )


def _starts(n_times: int, length: int, stride: int, keep_tail: bool) -> Array:
    starts = np.arange(0, n_times - length + 1, stride)
    if keep_tail and len(starts) and starts[-1] + length < n_times:
        starts = np.append(starts, n_times - length)
    return starts


def _cut(tracks: Cases, starts: Sequence[Array], length: int, stride: int) -> Array:
    out = np.empty((sum(map(len, starts)), tracks[0].shape[0], length), dtype=np.result_type(*tracks))
    row = 0
    for track, at in zip(tracks, starts, strict=True):
        if not len(at):
            continue
        views = np.lib.stride_tricks.sliding_window_view(track, length, axis=1)  # (C, T - length + 1, length)
        regular = views[:, ::stride].transpose(1, 0, 2)  # still a view: values are copied once, below
        out[row : row + len(regular)] = regular
        if len(at) > len(regular):
            out[row + len(regular)] = views[:, -1]
        row += len(at)
    return out


def _per_window(values: Any, tracks: Cases, starts: Sequence[Array], length: int, what: str) -> Array:
    """Return the value of each window from one value per recording or per time step."""
    if isinstance(values, str) or not hasattr(values, "__len__") or len(values) != len(tracks):
        raise InputError(f"{what} must hold one entry for each of the {len(tracks)} recording(s); got {values!r}.")
    checked = []
    check = check_groups if what == "groups" else check_labels
    for number, (value, track) in enumerate(zip(values, tracks, strict=True)):
        steps, n_values = ([value], 1) if to_array(value).ndim == 0 else (value, track.shape[1])
        checked.append(check(steps, n_values, f"{what}[{number}]", "time steps"))
    kinds = {v.dtype.kind == "U" for v in checked if labelled(v).any()}
    if len(kinds) > 1:
        raise InputError(f"{what} must be all strings or all numbers; got both. Convert them to one type.")
    unlabelled = np.array("" if True in kinds else np.nan)
    joined = np.concatenate([v if labelled(v).any() else np.full(len(v), unlabelled) for v in checked])
    seen = labelled(joined)
    codes = np.full(len(joined), -1, dtype=np.intp)
    known, codes[seen] = np.unique(joined[seen], return_inverse=True)
    parts = np.split(codes, np.cumsum([len(v) for v in checked])[:-1])
    winners = np.concatenate(
        [
            np.repeat(part, len(at)) if len(part) == 1 else _majority(part, at, length, len(known))
            for part, at in zip(parts, starts, strict=True)
        ]
    )
    values_of_windows: Array = (known if seen.all() else np.append(known, unlabelled))[winners]
    return values_of_windows


def _majority(codes: Array, starts: Array, length: int, n_codes: int) -> Array:
    """Return the most frequent code of each window, of several the smallest; -1 where less than half has a code."""
    best = np.zeros(len(starts), dtype=np.intp)
    most = np.zeros(len(starts), dtype=np.intp)
    coded = np.zeros(len(starts), dtype=np.intp)
    for code in range(n_codes):  # one code at a time: memory stays at one array of the recording's length
        seen = np.concatenate([[0], np.cumsum(codes == code)])
        count = seen[starts + length] - seen[starts]
        best[count > most] = code
        most = np.maximum(most, count)
        coded += count
    best[2 * coded < length] = -1
    return best
