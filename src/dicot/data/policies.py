"""What to do with unequal lengths, missing values and scale. Pure numpy functions; no input is changed in place."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, is_whole, lookup
from dicot.data.pieces import Collection, blocks

Array = NDArray[Any]
FloatArray = NDArray[np.floating[Any]]
RawCases = Array | list[Array]  # (N, C, T), or N arrays (C, T_i), of any real type


def name_cases(index: Iterable[int], noun: str = "case", plural: str = "cases") -> str:
    """Name at most five cases: `case 3`, or `cases 3, 5, 9, 11, 40 and 12 more`."""
    named = [int(i) for i in index]
    more = f" and {len(named) - 5} more" if len(named) > 5 else ""
    return f"{noun if len(named) == 1 else plural} {', '.join(map(str, named[:5]))}{more}"


def cases_where(test: Callable[[Array], NDArray[np.bool_]], cases: RawCases) -> NDArray[np.intp]:
    """Return the positions of the cases with any value for which `test` is true."""
    if isinstance(cases, list):
        return np.flatnonzero([test(case).any() for case in cases])
    return np.concatenate([rows.start + np.flatnonzero(test(block).any((1, 2))) for rows, block in blocks(cases)])


def pad(case: Array, length: int) -> Array:
    """Add zeros at the end, or drop it where a test case is longer: (..., T) -> (..., length)."""
    out = np.zeros((*case.shape[:-1], length), dtype=case.dtype)
    out[..., : case.shape[-1]] = case[..., :length]
    return out


def crop(case: Array, length: int) -> Array:
    """Drop the end, or add zeros where a test case is shorter: (..., T) -> (..., length)."""
    return case[..., :length] if case.shape[-1] >= length else pad(case, length)


def resample(case: Array, length: int) -> Array:
    """Interpolate linearly onto `length` points, both ends included: (..., T) -> (..., length)."""
    n_times = case.shape[-1]
    if n_times == length:
        return case
    at = np.linspace(0.0, n_times - 1, length)
    channels = case.reshape(-1, n_times)
    out = np.stack([np.interp(at, np.arange(n_times), channel) for channel in channels])
    return out.reshape(*case.shape[:-1], length)


def target_length(lengths: Array, policy: str, length: int | None = None) -> int:
    """Return the length all cases get, or raise an error that names the cases that cannot get it."""
    lookup(UNEQUAL, policy, "policy for unequal length")
    if length is not None and not is_whole(length, 1):
        raise InputError(f"length must be a whole number of at least 1 time step; got {length!r}.")
    least, most = int(lengths.min()), int(lengths.max())
    wanted = int(length) if length is not None else least if policy == "crop" else most
    if policy == "error" and not least == most == wanted:
        asked = "" if length is None else f"; length={length} was asked for"
        raise InputError(
            f"The cases have {least if least == most else f'{least} to {most}'} time steps, and must have one length"
            f"{asked}; NaN in all channels at the end of a case counts as padding. "
            'Set unequal="pad", "crop" or "resample".'
        )
    if (policy == "pad" and most > wanted) or (policy == "crop" and least < wanted):
        wrong = lengths > wanted if policy == "pad" else lengths < wanted
        raise InputError(
            f"unequal={policy!r} to length={wanted} cannot {'shorten' if policy == 'pad' else 'lengthen'} "
            f"{name_cases(np.flatnonzero(wrong))}: the cases have {least} to {most} time steps."
        )
    return wanted


# "error" only ever sees cases of the right length, which cropping leaves alone.
UNEQUAL: dict[str, Callable[[Array, int], Array]] = {
    "error": crop,
    "pad": pad,
    "crop": crop,
    "resample": resample,
}


def interpolate(case: Array) -> Array:
    """Fill NaN linearly in time and extend the edges: (C, T) -> (C, T).

    A channel without any value stays as it is, for whoever knows its name to refuse.
    """
    out = case.copy()
    time = np.arange(case.shape[1])
    for channel in out:
        gap = np.isnan(channel)
        if gap.any() and not gap.all():
            channel[gap] = np.interp(time[gap], time[~gap], channel[~gap])
    return out


def zero(case: Array) -> Array:
    """Set NaN to 0."""
    return np.where(np.isnan(case), case.dtype.type(0.0), case)


# "error" is raised by whoever can name the cases.
MISSING: dict[str, Callable[[Array], Array]] = {"error": lambda case: case, "interpolate": interpolate, "zero": zero}


NO_VALUE = (
    '{} has no value at all in {}, and missing="interpolate" has nothing to fill it in from. Leave out the file, or '
    'the channel with channels= (--channels), or set missing="zero" (--missing zero).'
)


@dataclass(frozen=True, eq=False)
class Scale:
    """A z-score per channel with statistics fixed by `fit`; a constant channel is only centred."""

    mean: NDArray[np.float64]  # (C,)
    std: NDArray[np.float64]  # (C,)

    @classmethod
    def fit(cls, x: Collection) -> "Scale":
        """Compute the statistics of each channel of x (N, C, T) in float64, in two passes that need little memory."""
        n_channels = x.shape[1]
        mean, variance = np.zeros(n_channels), np.zeros(n_channels)
        low, high = np.full(n_channels, np.inf), np.full(n_channels, -np.inf)
        for rows, block in blocks(x):
            share = len(block) / rows.stop  # of the cases so far
            mean += (np.array([channel.mean(dtype=np.float64) for channel in np.moveaxis(block, 1, 0)]) - mean) * share
            low, high = np.minimum(low, block.min(axis=(0, 2))), np.maximum(high, block.max(axis=(0, 2)))
        if not np.isfinite(mean).all():
            raise InputError("Scale.fit needs values without NaN and inf. Pass the x of checked Windows.")
        for rows, block in blocks(x):
            share = len(block) / rows.stop
            centred = zip(np.moveaxis(block, 1, 0), mean, strict=True)
            squares = [np.square(channel - centre).mean() for channel, centre in centred]
            variance += (np.array(squares) - variance) * share
        std = np.sqrt(variance)
        return cls(mean, np.where((low == high) | (std == 0), 1.0, std))

    def __call__(self, x: Array) -> FloatArray:
        """Return x (N, C, T) or (C, T) in units of the fitted standard deviation."""
        if x.shape[-2] != len(self.mean):
            raise InputError(
                f"This Scale was fitted on {len(self.mean)} channel(s); X has {x.shape[-2]}. Fit it on data like X."
            )
        with np.errstate(over="ignore"):  # what is too large is refused by whoever knows the case
            scaled: FloatArray = ((x - self.mean[:, None]) / self.std[:, None]).astype(np.float32)
        return scaled


def scale_each_case(x: Array) -> FloatArray:
    """Scale channels case by case to mean 0 and standard deviation 1, constant ones to 0: (N, C, T) -> (N, C, T)."""
    mean = x.mean(axis=2, keepdims=True, dtype=np.float64)
    std = x.std(axis=2, keepdims=True, dtype=np.float64)
    constant = x.max(axis=2, keepdims=True) == x.min(axis=2, keepdims=True)
    centred = np.where(constant, 0.0, x - mean)
    scaled: FloatArray = (centred / np.where(constant | (std == 0), 1.0, std)).astype(np.float32)
    return scaled


class Policies(TypedDict, total=False):
    """The keywords that every reader hands through to check_collection."""

    unequal: str
    missing: str
    scale: str | Scale | None
    length: int | None
