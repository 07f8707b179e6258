"""Suggestions for recordings that were looked at: window, stride, scale, labels, and what else they need to be cut."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dicot.core.errors import InputError, listed
from dicot.core.settings import as_option
from dicot.data.cutting import LeftOut
from dicot.data.inspection import Inspected
from dicot.data.labelcolumns import FewValues, of_several
from dicot.data.reading import Reading, seconds_text, time_steps
from dicot.data.timestamps import GAP, SAME_RATE, WIDER_GAPS

# Windows. Wearables are cut into 2 to 5 seconds in most studies; 2.56 s are 128 time steps at 50 Hz, as in UCI HAR.
_PERIODS = 4  # in a window, where the recordings repeat
_SECONDS = 2.56
_FEWEST_STEPS, _MOST_STEPS = 64, 512  # of a window of so many seconds: fewer say little, more take long
_SLOW = 2.0  # time steps per second, below which events take minutes
_COMMON = 128  # time steps where the recordings are slow, or their rate is unknown
_SHORTEST = 16  # time steps, also where four periods are shorter
_LEAST_SECONDS, _LEAST_FAST = 0.1, 1024  # a window lasts as long, where that is not more time steps than these
_WINDOWS_OF_RECORDING = 6  # side by side in the usual recording; 20 at a stride of 25%
_WINDOWS_IN_ALL = 40  # side by side in all recordings; fewer make no map

# Strides. A first map of 5,000 windows takes about a minute on two cores.
_FEW, _MANY = 500, 5_000  # windows

_SHIFTED = 3.0  # standard deviations between the levels of recordings from which on each case is scaled by itself,
_ALIKE = 2.0  # unless their sizes differ by more than this factor, which then tells recordings apart

_WORTH_BRIDGING = 0.1  # share of rows in stretches shorter than a window, from which on a wider gap is looked for
_ENOUGH = 0.05  # share of rows by which a wider gap may rescue fewer than the widest


@dataclass(frozen=True)
class Suggestion:
    """A reading for recordings, with its reasons."""

    reading: Reading
    reasons: dict[str, str]  # field of the reading -> why it is so, or why it is not set, in a sentence
    left: LeftOut | None = None  # what would lie in no window, where nothing is resampled


@dataclass(frozen=True)
class _Length:
    """A window as text or time steps, in time steps, and why."""

    window: str | int
    steps: int
    reason: str


def suggest_windows(rows: Sequence[Inspected], reading: Reading | None = None) -> Suggestion:
    """Suggest window, stride, scale and more for inspected recordings; what else a reading says stays."""
    sound = [row for row in rows if not row.problem and row.rows]
    if not sound:
        raise InputError(f"None of the {len(rows)} recording(s) could be read, so nothing can be suggested.")
    said = reading or Reading()
    rates = [row.rate for row in sound if row.rate is not None]
    rate = float(np.median(rates)) if len(rates) == len(sound) else None

    found: dict[str, tuple[Any, str]] = {"channels": _channels(sound, said), "scale": _scale(sound)}
    if unit := _unit(sound):
        found["unit"] = unit, "the time stamps have a sane rate in it, and do not name a unit themselves."
    if rate is not None and any(abs(one - rate) > SAME_RATE * rate for one in rates):
        differ = f"the rates differ, {min(rates):g} to {max(rates):g} per second; this is the median."
        found["rate"] = float(f"{rate:.4g}"), differ
    if lacking := [row.missing for row in sound if row.missing]:
        count = f"{len(lacking)} of {len(sound)} recordings miss values, up to {max(lacking):.1%} of one."
        found["missing"] = "interpolate", count

    if said.gap == GAP and (gap := _wider_gap(sound, rate)) is not None:
        steps = _window(_bridged(sound, gap), rate).steps
        found["gap"] = gap, _gap_reason(sound, gap, steps)
        found["resample"] = True, "values are interpolated where rows were lost."
        sound = _bridged(sound, gap)
    length = _window(sound, rate)
    stride, stride_reason = _stride(sound, length.steps)
    found["window"] = length.window, length.reason
    found["stride"] = stride, stride_reason

    left = None if "rate" in found else _left_out(sound, length.steps, stride)
    settled = said.replace(**{key: value for key, (value, _) in found.items() if value is not None})
    return Suggestion(settled, {key: why for key, (_, why) in found.items() if why}, left)


def no_rate_sentence(rows: Sequence[Inspected]) -> str:
    """Say how windows are counted where no recording tells its rate; "" where some do."""
    if any(row.rate is not None for row in rows):
        return ""
    return "No file has time stamps, so windows are counted in time steps. If you know the rate: --set rate=50"


def _channels(rows: Sequence[Inspected], said: Reading) -> tuple[tuple[str, ...] | None, str]:
    common = tuple(name for name in rows[0].channels if all(name in row.channels for row in rows))
    if any(set(row.channels) != set(common) for row in rows):
        return common or None, "those that all recordings have"
    return common or None, "those asked for" if said.channels else "all columns of numbers"


def _unit(rows: Sequence[Inspected]) -> str | None:
    """Return the unit that the time stamps of all recordings seem to have, where it may well be another."""
    units = {row.assumed_unit for row in rows}
    is_doubtful = any(remark.kind.startswith("unit") for row in rows for remark in row.remarks)
    return units.pop() if is_doubtful and len(units) == 1 else None


def _between(rows: Sequence[Inspected], length: int) -> int:
    """Count the rows in stretches between gaps that are shorter than a window."""
    return sum(n for row in rows if len(row.stretches) > 1 for n in row.stretches if n < length)


def _bridged(rows: Sequence[Inspected], gap: float) -> list[Inspected]:
    """Return the recordings as they are with a wider gap, resampled."""
    return [replace(row, stretches=row.wider.get(gap, row.stretches)) for row in rows]


def _wider_gap(rows: Sequence[Inspected], rate: float | None) -> float | None:
    """Return the least gap that brings most rows into windows, where many lie in none without it."""
    n_rows = sum(row.rows for row in rows)
    widest = WIDER_GAPS[-1]
    length = _window(_bridged(rows, widest), rate).steps
    without = _between(rows, length)
    with_widest = _between(_bridged(rows, widest), length)
    if without < _WORTH_BRIDGING * n_rows or 2 * with_widest > without:
        return None
    enough = with_widest + _ENOUGH * n_rows
    return next(gap for gap in WIDER_GAPS if _between(_bridged(rows, gap), length) <= enough)


def _gap_reason(rows: Sequence[Inspected], gap: float, length: int) -> str:
    n_rows = sum(row.rows for row in rows)
    n_gaps = sum(len(row.stretches) - 1 for row in rows)
    n_left = sum(len(row.stretches) - 1 for row in _bridged(rows, gap))
    without = _between(rows, length) / n_rows
    with_gap = _between(_bridged(rows, gap), length) / n_rows
    return (
        f"{n_gaps - n_left:,} of {n_gaps:,} gaps are {int(gap) - 1} lost row(s) or less. Bridged, {with_gap:.0%} of "
        f"rows lie in stretches that are shorter than a window, instead of {without:.0%}."
    )


def _left_out(rows: Sequence[Inspected], length: int, stride: str) -> LeftOut:
    """Count the time steps that lie in no such window, as they are cut."""
    step = time_steps(stride, None, length)
    cut = [n for row in rows for n in row.stretches if len(row.stretches) > 1 or row.others or n >= length]
    between = sum(n for n in cut if n < length)
    tail = sum((n - length) % step for n in cut if n >= length)
    return LeftOut(sum(row.rows for row in rows), between, sum(row.others for row in rows), tail)


def _window(rows: Sequence[Inspected], rate: float | None) -> _Length:
    usual = _usual_steps(rate)
    # Periods are compared in seconds where all rates are known, because these may differ.
    periodic = [row for row in rows if row.period is not None]
    periods = [row.period / row.rate * rate if rate and row.rate else row.period for row in periodic if row.period]
    if 2 * len(periods) >= len(rows):
        period = float(np.median(periods))
        steps = round(_PERIODS * period)
        length = f"{period / rate:.3g} s" if rate else f"{period:.3g} time steps"
        reason = (
            f"{len(periods)} of {len(rows)} recordings repeat, at least in parts, after {length}; a window "
            f"holds {_PERIODS} such periods"
        )
    else:
        steps = usual
        seldom = f" in more than {len(periods)} of {len(rows)} recordings" if periods else ""
        reason = f"no period found{seldom}; {steps} time steps are {_why_usual(rate)}"

    least = max(_SHORTEST, min(_LEAST_FAST, round(_LEAST_SECONDS * rate))) if rate else _SHORTEST
    if steps < least:
        steps = least
        reason += f", made longer to {least} time steps, because slower changes tell more"
    most = max(usual, _most_steps(rows))
    if steps > most:
        steps = most
        reason += f", shortened to {most} time steps so that there are some tens of windows"
    # What one recording in ten is shorter than: the others give at least one window.
    most = max(1, int(np.quantile([max(row.stretches) for row in rows], 0.1)))
    if steps > most:
        steps = most
        reason += f", shortened to {most} time steps so that nine in ten recordings are long enough"

    if rate is None:
        # Where no recording has a rate, commands say it once for all of them.
        unlike_others = any(row.rate is not None for row in rows)
        counted = " Some recordings tell no rate, so it is counted in time steps." if unlike_others else ""
        return _Length(steps, steps, f"{reason}.{counted}")
    text = seconds_text(steps / rate)
    return _Length(text, time_steps(text, rate), f"{reason}.")


def _usual_steps(rate: float | None) -> int:
    """Return the time steps of a window of which nothing is known but the rate."""
    if rate is None or rate < _SLOW:
        return _COMMON
    return min(max(round(_SECONDS * rate), _FEWEST_STEPS), _MOST_STEPS)


def _why_usual(rate: float | None) -> str:
    if rate is None or rate < _SLOW:
        return "only a common size to start from"
    return f"{_usual_steps(rate) / rate:.3g} s at this rate, a common size to start from"


def _most_steps(rows: Sequence[Inspected]) -> int:
    """Return the longest window with which the usual recording, and all of them, still give some tens of windows."""
    usual_recording = float(np.median([max(row.stretches) for row in rows]))
    in_all = sum(n for row in rows for n in row.stretches)
    return int(min(usual_recording / _WINDOWS_OF_RECORDING, in_all / _WINDOWS_IN_ALL))


def _stride(rows: Sequence[Inspected], steps: int) -> tuple[str, str]:
    def count(share: float) -> int:
        stride = max(1, round(share * steps))
        return sum(max(0, (length - steps) // stride + 1) for row in rows for length in row.stretches)

    half = count(0.5)
    if half < _FEW:
        return "25%", f"at 50% there would be only {half:,} windows; more overlap makes {count(0.25):,}."
    if half > _MANY:
        return "100%", (
            f"without overlap {count(1.0):,} windows hold all values once, for a first map that is made soon; 50% "
            f"would make {half:,}."
        )
    return "50%", f"an event at the border of one window is in the middle of the next; this makes {half:,} windows."


def _scale(rows: Sequence[Inspected]) -> tuple[str | None, str]:
    channels = rows[0].channels
    alike = [row for row in rows if row.channels == channels]
    means, stds = np.array([row.means for row in alike]), np.array([row.stds for row in alike])  # (recordings, C)
    within = np.median(stds, axis=0)
    moving = within > 0
    if not moving.any():
        return None, "no channel changes in most recordings, so there is nothing to scale."
    shift = np.array([np.ptp(np.quantile(level, [0.1, 0.9])) for level in means.T])[moving] / within[moving]
    low, high = np.quantile(stds[:, moving], [0.1, 0.9], axis=0)
    sizes = (high / np.maximum(low, 1e-9 * within[moving])).max()
    # One channel whose level tells, as load or temperature do, is no reason to take the level from all.
    if len(alike) > 1 and (least := int(np.argmin(shift))) >= 0 and shift[least] > _SHIFTED and sizes <= _ALIKE:
        name = [c for c, is_moving in zip(channels, moving, strict=True) if is_moving][least]
        return "case", (
            f"the level of {name}{' and of all other channels' * (len(shift) > 1)} differs between recordings by "
            f"{shift[least]:.1f} times what it varies within one, and the size does not; scaled by itself, each window "
            "shows its shape. Where the level matters, use dataset."
        )
    ratio = within[moving].max() / within[moving].min()
    return "dataset", (
        f"the channels differ in size by a factor of {ratio:.3g}; one z-score per channel evens them out, and keeps "
        "differences between windows. Where gain and offset are accidents, use case."
    )


class LabelAdvice(NamedTuple):
    """Columns that look like labels, and what to say of them."""

    columns: tuple[str, ...] = ()  # for --label: the first is the label, the others are no channels
    sentences: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return ",".join(self.columns)

    @property
    def options(self) -> tuple[str, ...]:
        """Return the words of a command."""
        return ("--label", self.label) if self.columns else ()


def label_advice(rows: Sequence[Inspected], reading: Reading, has_table: bool = False) -> LabelAdvice:
    """Name the columns that look like labels, where neither label nor channels are chosen.

    A channel is judged beside the others: where all hold few values, they are readings of a coarse sensor. Where a
    table has the labels, --label names one of its columns, so other columns can only be left out.
    """
    if reading.label is not None or reading.channels is not None or reading.join is not None:
        return LabelAdvice()

    channels = list(dict.fromkeys(channel for row in rows for channel in row.channels))
    coarse = _coarse_everywhere(rows)
    suspects = {name: column for name, column in coarse.items() if column.is_like_label}
    texts = [name for name, column in suspects.items() if column.is_text]
    are_all_coarse = all(channel in coarse for channel in channels)
    numbers = [] if are_all_coarse else [name for name in suspects if name in channels]

    same_values: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name in numbers:
        same_values[suspects[name].values].append(name)
    if has_table:
        return LabelAdvice((), tuple(_coarse_sentence(names, values) for values, names in same_values.items()))
    sentences = [_numbers_sentence(names, values) for values, names in same_values.items()]
    sentences += [_text_sentence(name, suspects[name]) for name in texts]
    # One column of words is the label: others beside it are no channels anyway.
    return LabelAdvice((*texts[:1], *numbers), tuple(sentences))


def _coarse_everywhere(rows: Sequence[Inspected]) -> Mapping[str, FewValues]:
    """Return the columns that hold few values in every recording which has them."""
    parts: dict[str, list[FewValues]] = defaultdict(list)
    with_many: set[str] = set()
    for row in rows:
        with_many |= {channel for channel in row.channels if channel not in row.coarse}
        for name, column in row.coarse.items():
            parts[name].append(column)
    return {name: of_several(columns) for name, columns in parts.items() if name not in with_many}


def _numbers_sentence(names: Sequence[str], values: Sequence[str]) -> str:
    several = len(names) > 1
    hold = "hold" if several else "holds"
    them = "they are labels" if several else "it is a label"
    nothing = "they are nothing" if several else "it is nothing"
    channels = "they are channels" if several else "it is a channel"
    return (
        f"{_joined(names)} {hold} only {_joined(values)}. If {them}, say {as_option('label', names)}; "
        f"if {nothing}, {as_option('ignore', names)}. Otherwise {channels}."
    )


def _coarse_sentence(names: Sequence[str], values: Sequence[str]) -> str:
    hold = "hold" if len(names) > 1 else "holds"
    remedy = as_option("ignore", names)
    return f"{_joined(names)} {hold} only {_joined(values)}. To keep labels out of the channels: {remedy}."


def _text_sentence(name: str, column: FewValues) -> str:
    n_values = len(column.values)
    return f"{name} is a column of text with {n_values} values: {as_option('label', name)} gives each window its label."


def _joined(names: Sequence[str]) -> str:
    """Write names as a list in a sentence, with "and" before the last."""
    if not 1 < len(names) <= 12:
        return listed(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
