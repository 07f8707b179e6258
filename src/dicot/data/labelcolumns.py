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

MOST_VALUES = 10  # the most different values of a column that may be a label
MOST_CLASSES = 30  # of a column of words, which is no measurement
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
    coarse = {name: few_values(columns[name]) for name in channels}
    if None not in coarse.values():
        return  # all are coarse: these are readings of a coarse sensor, or of switches
    suspects = {name: column for name, column in coarse.items() if column is not None and column.is_like_label}
    if not suspects:
        return
    shown = "; ".join(f"{name!r} holds {listed(column.values)}" for name, column in suspects.items())
    raise InputError(
        f"Beside the label {label!r}, {shown}, and changes seldom, as another label does; as a channel it would give "
        f"the answer away. Leave it out: {how_to_set('ignore', list(suspects))}. If it is a measurement, name the "
        f"channels: {how_to_set('channels', list(channels))}."
    )


class FewValues(NamedTuple):
    """A column with few different values, in one recording or in several."""

    values: tuple[str, ...]  # in their order
    n_rows: int
    n_changes: int  # from a row to the next one of the same recording
    is_text: bool = False

    @property
    def is_like_label(self) -> bool:
        """Tell whether it holds several classes, whole numbers or words, that change seldom."""
        if not 1 < len(self.values) <= (MOST_CLASSES if self.is_text else MOST_VALUES):
            return False
        are_classes = self.is_text or all(float(value).is_integer() for value in self.values if is_number(value))
        changes_seldom = self.n_changes <= _SELDOM * self.n_rows
        return self.n_rows >= _ENOUGH_ROWS and are_classes and changes_seldom


def few_values(column: Array, most: int = MOST_VALUES, is_text: bool = False) -> FewValues | None:
    """Return the values of a column and how often they change; None where they are more than `most`."""
    if len(pd.unique(_known(column[:1000]))) > most:
        return None  # seen in the first rows already
    known = _known(column)
    codes, values = pd.factorize(known)
    if len(values) > most:
        return None
    n_changes = int(np.count_nonzero(np.diff(codes)))
    return FewValues(_in_order(map(as_text, values.tolist())), len(known), n_changes, is_text)


def text_classes(columns: Mapping[str, Array]) -> dict[str, FewValues]:
    """Return the columns of text whose values may be classes."""
    texts = {name: column for name, column in columns.items() if column.dtype.kind in "OUS"}
    coarse = {name: few_values(column, MOST_CLASSES, is_text=True) for name, column in texts.items()}
    return {name: column for name, column in coarse.items() if column is not None}


def of_several(recordings: Sequence[FewValues]) -> FewValues:
    """Return the values that one column has in several recordings."""
    values = {value for column in recordings for value in column.values}
    n_rows = sum(column.n_rows for column in recordings)
    n_changes = sum(column.n_changes for column in recordings)
    return FewValues(_in_order(values), n_rows, n_changes, any(column.is_text for column in recordings))


def _known(column: Array) -> Array:
    return column[~lost_values(column)]


def _in_order(texts: Iterable[str]) -> tuple[str, ...]:
    """Sort numbers by size, and words behind them."""
    return tuple(
        sorted(set(texts), key=lambda text: (not is_number(text), float(text) if is_number(text) else 0.0, text))
    )
