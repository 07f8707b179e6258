"""Columns of inspected recordings that look like labels where nobody named one, and how they are named."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dicot.core.errors import listed
from dicot.core.settings import as_option
from dicot.data.inspection import Inspected
from dicot.data.labelcolumns import FewValues, of_several
from dicot.data.reading import Reading


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
