"""Everybody against one: wins, ties, losses, mean difference and a corrected test."""

import numpy as np

from dicot.report.bench_tables import missing_text
from dicot.report.comparison import Cell, Table, signed
from dicot.report.grid import Grid
from dicot.report.lines import Line, require_controls
from dicot.report.significance import ALPHA, wilcoxon_holm
from dicot.report.standing import Block

PREFERRED = "dicot"


def favourite(block: Block) -> Line:
    """Di-COT, else the first line."""
    return next((line for line in block.lines if line.contender == PREFERRED), block.lines[0])


def baseline_line(table: Grid, block: Block, wanted: str | None) -> Line | None:
    """The block's line called `wanted`, by its label or its contender, or the favourite; None where it is not there."""
    if wanted is None:
        return favourite(block)
    return next((line for line in block.lines if wanted in (table.labels[line], line.contender)), None)


def outcomes(block: Block, against: Line) -> dict[Line, tuple[int, int, int]]:
    """Per other line: on how many data sets `against` is better, equal and worse."""
    base = block.means[block.lines.index(against)]
    return {
        line: (int((base > row).sum()), int((base == row).sum()), int((base < row).sum()))
        for line, row in zip(block.lines, block.means, strict=True)
        if line != against
    }


def baseline_table(table: Grid, block: Block, against: Line) -> Table:
    """Rows by mean difference, the strongest rival first."""
    require_controls(block.lines, "Comparison with a baseline")
    base = block.lines.index(against)
    p = wilcoxon_holm(block.means.T)
    counts = outcomes(block, against)
    gaps = {line: float(np.mean(block.means[base] - block.means[block.lines.index(line)])) for line in counts}

    def row(line: Line) -> tuple[Cell, ...]:
        corrected = p[base, block.lines.index(line)]
        verdict = "differs" if corrected <= ALPHA else "no difference shown"
        wins = (Cell(str(count)) for count in counts[line])
        return (*wins, Cell(signed(gaps[line], table.decimals)), Cell(f"{corrected:.2g}"), Cell(verdict))

    name = table.labels[against]
    note = table.note(
        missing_text(table, block),
        f"Difference: {name} minus the other. p: Wilcoxon signed-rank, Holm's correction over all pairs of the block.",
    )
    order = sorted(counts, key=lambda line: gaps[line])
    columns = (f"{name} better", "equal", f"{name} worse", "mean difference", "p, corrected", f"at {100 * ALPHA:g} %")
    return Table(f"{name} against", columns, tuple(table.labels[line] for line in order), tuple(map(row, order)), note)
