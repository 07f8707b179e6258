"""Columns of labels in a table: several of them, those that look like a second one, and files that have none."""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pandas as pd

from dicot.core.errors import DicotWarning, InputError, did_you_mean, listed
from dicot.core.settings import how_to_set
from dicot.data.cases import Array
from dicot.data.labels import as_text, is_number, lost_values
from dicot.data.reading import Reading

_FEW_VALUES = 10  # the most different values of a column that may be a label
_ENOUGH_ROWS = 64  # below which few values say nothing
_SELDOM = 0.05  # share of rows at which a label changes at most: the noise of a sensor at rest changes all the time


class WithColumns(Protocol):
    """A recording, or its outline."""

    @property
    def name(self) -> str: ...

    @property
    def lacking(self) -> Sequence[str]: ...

    @property
    def columns(self) -> Sequence[str]: ...


class TableColumns(NamedTuple):
    """The columns of a table that lacks some that were asked for."""

    name: str  # of its recording
    lacking: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


def with_one_label(reading: Reading, columns: Collection[str]) -> Reading:
    """Return a reading whose label is one column: of several names, the first; the others are left out of the channels.

    A column may have a comma in its own name.
    """
    if reading.label is None or "," not in reading.label or reading.label in columns:
        return reading
    first, *others = [part for part in map(str.strip, reading.label.split(",")) if part] or [reading.label]
    ignore = dict.fromkeys([*(reading.ignore or ()), *others])
    return reading.replace(label=first, ignore=tuple(ignore) or None)


def check_lacking(recordings: Sequence[WithColumns], label: str | None, allowed: bool = False) -> None:
    """Refuse a column that was named and that no recording has, and count recordings without that of labels.

    With `allowed`, none of them need have it: they are added to others that do.
    """
    first_label = (label or "").split(",")[0].strip()
    for name in dict.fromkeys(name for one in recordings for name in one.lacking):
        without = [one.name for one in recordings if name in one.lacking]
        if len(without) == len(recordings) and not allowed:
            columns = {column for one in recordings for column in one.columns}
            what = "The table has" if len(recordings) == 1 else "The tables have"
            raise InputError(f"{what} no column {name!r}. {did_you_mean(name, columns)}")
        if name in (label, first_label):
            sentence = (
                f"{len(without)} of {len(recordings)} recordings have no column {name!r}, so their windows have no "
                f"label: {listed(without)}."
            )
            warnings.warn(sentence, DicotWarning, stacklevel=4)


def refuse_second_label(columns: Mapping[str, Array], channels: Sequence[str], label: str) -> None:
    """Ask about channels that nobody named and that look like another label: they would give the answer away."""
    counts = {name: _count_values(columns[name]) for name in channels}
    if not any(count > _FEW_VALUES for count in counts.values()):
        return  # all are coarse: these are readings of a coarse sensor, or of switches
    suspects = [name for name, count in counts.items() if 2 <= count <= _FEW_VALUES and _is_like_label(columns[name])]
    if not suspects:
        return
    shown = "; ".join(f"{name!r} holds {listed(_values(columns[name]))}" for name in suspects)
    raise InputError(
        f"Beside the label {label!r}, {shown}, and changes seldom, as another label does; as a channel it would give "
        f"the answer away. Leave it out: {how_to_set('ignore', suspects)}. If it is a measurement, name the channels: "
        f"{how_to_set('channels', list(channels))}."
    )


def _count_values(column: Array) -> int:
    """Count the different values of a column, as far as it takes to see that they are not few."""
    head = pd.unique(_known(column[:1000]))
    return len(head) if len(head) > _FEW_VALUES else len(pd.unique(_known(column)))


def _known(column: Array) -> Array:
    return column[~lost_values(column)]


def _is_like_label(column: Array) -> bool:
    """Tell whether a column holds whole numbers that change seldom."""
    known = _known(column)
    if len(known) < _ENOUGH_ROWS:
        return False
    numbers = [float(value) for value in pd.unique(known).tolist() if _is_numeric(value)]
    codes = pd.factorize(known)[0]
    n_changes = int(np.count_nonzero(np.diff(codes)))
    return all(number.is_integer() for number in numbers) and n_changes <= _SELDOM * len(known)


def _is_numeric(value: object) -> bool:
    return isinstance(value, int | float | np.number) or is_number(str(value))


def _values(column: Array) -> list[str]:
    """Write the different values of a column in their order."""
    values: Iterable[object] = pd.unique(_known(column)).tolist()
    texts = {as_text(value) for value in values}
    return sorted(texts, key=lambda text: (not is_number(text), float(text) if is_number(text) else 0.0, text))
