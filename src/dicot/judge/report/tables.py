"""A table of text and its looks: in a terminal, and what a page needs to show it."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pandas as pd
import rich.table
import rich.text

FAILED, NOT_RUN = "failed", "not run"
BEST, ABSENT = "best", "absent"  # looks, beside FAILED and ""
STYLES = {BEST: "bold", FAILED: "red", ABSENT: "red", "": ""}
TIE = " (tie)"
NUMBER = re.compile(r"[-+±]?\s?\d(.*[^.])?$")  # a cell that is aligned to the right, and no sentence
LONG_TEXT = 40  # letters from which a cell may break into lines


class Cell(NamedTuple):
    """Text, its look, and the number that counts for the choice of the best."""

    text: str
    look: str = ""
    mean: float = math.nan


@dataclass(frozen=True, eq=False)
class Table:
    """Cells by row and column; the name of the index stands in the corner."""

    cells: pd.DataFrame  # of Cell; anything else is shown as plain text
    note: str = ""
    about: Mapping[str, str] = field(default_factory=dict)  # what a row is, by its name, where that needs a word

    def turned(self, corner: str) -> "Table":
        return Table(self.cells.T.rename_axis(index=corner, columns=None), self.note)

    def part(self, columns: slice) -> "Table":
        """Keep these columns, by their place, and leave the note out."""
        return replace(self, cells=self.cells.iloc[:, columns], note="")

    @property
    def corner(self) -> str:
        return str(self.cells.index.name)

    @property
    def columns(self) -> list[str]:
        return [str(name) for name in self.cells.columns]

    def rows(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield each row's name and its cells as (text, look)."""
        for name, row in zip(self.cells.index, self.cells.to_numpy(), strict=True):
            yield str(name), [cell[:2] if isinstance(cell, Cell) else (str(cell), "") for cell in row]

    def text_columns(self) -> list[bool]:
        """Tell which columns hold words, not numbers; a sentence may begin with one."""
        columns = zip(*(row for _, row in self.rows()), strict=True)
        return [not any(NUMBER.match(text) and len(text) <= LONG_TEXT for text, _ in column) for column in columns]


def text_table(
    corner: str, rows: Iterable[tuple[str, Sequence[Cell | str]]], columns: Sequence[str], note: str
) -> Table:
    named = [(name, list(row)) for name, row in rows]
    index = pd.Index([name for name, _ in named], name=corner, dtype=object)
    return Table(pd.DataFrame([row for _, row in named], index, list(columns), dtype=object), note)


def mark_best(column: Sequence[Cell], sign: int = 1) -> list[Cell]:
    """Mark the best mean at printed precision: highest, lowest with sign -1, none with 0. Alone, nothing is best."""
    values = [sign * cell.mean for cell in column if not math.isnan(cell.mean)]
    if len(values) < 2 or not sign:
        return list(column)
    tie = TIE if values.count(max(values)) > 1 else ""
    return [Cell(c.text + tie, BEST, c.mean) if sign * c.mean == max(values) else c for c in column]


def best_note(signs: Iterable[int]) -> str:
    """Say what bold means, for columns in which more (1) or less (-1) is better."""
    seen = set(signs)
    word = "highest" if seen == {1} else "lowest" if seen == {-1} else "best"
    return f"Bold: {word} mean as printed; ties are all marked."


def signed(difference: float, digits: int) -> str:
    """Print a difference with its sign; one that rounds to zero has none."""
    rounded = round(difference, digits)
    return f"{rounded:+.{digits}f}" if rounded else f"{0:.{digits}f}"


def to_rich(table: Table) -> rich.table.Table:
    """Show it in a terminal; the note is the caption."""
    # Text, not str: brackets in an error message are not markup
    caption = rich.text.Text(table.note, style="table.caption") if table.note else None
    out = rich.table.Table(caption=caption, caption_justify="left")
    out.add_column(table.corner, no_wrap=True)
    for column in table.columns:
        out.add_column(rich.text.Text(column), justify="right", overflow="fold", min_width=len(column))
    for name, row in table.rows():
        out.add_row(rich.text.Text(name), *(rich.text.Text(text, STYLES[look]) for text, look in row))
    return out
