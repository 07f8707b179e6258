"""Where contenders stand over many data sets: averages, intervals and ranks over complete blocks."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dicot.report.grid import Grid
from dicot.report.lines import CONTROLS, Line
from dicot.report.ranks import Floats, average_ranks, interval

ENOUGH_SETS = 5  # below this, the line with the fewest sets is left out of a block, as long as there are others
WORTHWHILE = 0.9  # share of the sets; a first block with fewer is followed by one of the lines that have all


@dataclass(frozen=True, eq=False)
class Block:
    """Lines and the data sets on which all of them were scored; `left_out` says who lacks how many sets."""

    lines: tuple[Line, ...]
    columns: tuple[str, ...]
    means: Floats  # (lines, columns), complete
    left_out: Mapping[Line, int]

    @property
    def ranks(self) -> Floats:
        ranks: Floats = average_ranks(self.means.T)
        return ranks


@dataclass(frozen=True)
class Standing:
    """One line's numbers over the sets of a block. The half widths are None with fewer than two shared seeds."""

    average: float
    rank: float
    n_seeds: int
    deviation: float | None = None
    normal: float | None = None
    student: float | None = None


def _block(table: Grid, chosen: list[int]) -> Block:
    scored = np.isfinite(table.means)
    shared = np.flatnonzero(scored[chosen].all(axis=0))
    rest = [i for i in range(len(table.lines)) if i not in chosen]
    return Block(
        tuple(table.lines[i] for i in chosen),
        tuple(table.columns[j] for j in shared),
        table.means[chosen][:, shared],
        {table.lines[i]: int((~scored[i]).sum()) for i in rest},
    )


def blocks(table: Grid) -> list[Block]:
    """At most two: as many lines as possible, and, where that costs a tenth of the sets, the lines that have them all.

    Ranks need a score of every line on every set. A line that leaves the others fewer than five sets in common is
    left out of the first block; a line that lacks any set, out of the second. The controls are never left out: without
    a set that both have there is no block.
    """
    scored = np.isfinite(table.means)
    controls = {i for i, line in enumerate(table.lines) if line.contender in CONTROLS}
    wide = [i for i in range(len(table.lines)) if scored[i].any() or i in controls]
    enough = min(ENOUGH_SETS, len(table.columns))
    while scored[wide].all(axis=0).sum() < enough and (others := [i for i in wide if i not in controls]):
        if len(wide) == 1:
            break
        wide.remove(min(reversed(others), key=lambda i: scored[i].sum()))
    full = [i for i in range(len(table.lines)) if scored[i].all()]
    costly = scored[wide].all(axis=0).mean() < WORTHWHILE
    chosen = [wide, full] if costly and len(full) > 1 and controls <= set(full) else [wide]
    return [block for block in (_block(table, lines) for lines in chosen if lines) if block.columns]


def standings(table: Grid, block: Block) -> dict[Line, Standing]:
    """Average over the block's sets, its spread over seeds, and the average rank, best average first."""
    out, ranks = {}, block.ranks
    for i, line in enumerate(block.lines):
        runs = list(table.over(line, block.columns).values())
        spread: tuple[float, ...] = ()
        if len(runs) > 1:
            spread = (float(np.std(runs, ddof=1)), interval(runs)[1], interval(runs, "t")[1])
        out[line] = Standing(float(block.means[i].mean()), float(ranks[i]), len(runs), *spread)
    return dict(sorted(out.items(), key=lambda item: -item[1].average))


def fit_seconds(table: Grid, line: Line, columns: tuple[str, ...]) -> float:
    """Seconds to fit on the sources of these columns, mean over seeds, each source once; NaN where not measured."""
    by_source: dict[str, dict[int, float]] = {}
    for column in columns:
        for seed, record in table.runs(line, column).items():
            by_source.setdefault(record.source, {})[seed] = record.fit_seconds
    total = math.fsum(float(np.mean(list(runs.values()))) for runs in by_source.values())
    return total if by_source else math.nan


def fit_devices(table: Grid, block: Block) -> dict[Line, str]:
    """What each line was fitted on; empty where that was the same for all, because times compare then."""

    def devices(line: Line) -> str:
        return " and ".join(sorted({r.device for c in block.columns for r in table.runs(line, c).values() if r.device}))

    found = {line: devices(line) for line in block.lines}
    return found if len(set(found.values())) > 1 else dict.fromkeys(found, "")
