"""Scores to one comparison table: contenders down, protocols and metrics across."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Protocol

from dicot.errors import InputError
from dicot.protocols.base import Score

DECIMALS = {"nmi": 3, "ari": 3}  # these lie in 0..1, all others are percentages
DEFAULT_DECIMALS = 2
NOT_RUN = "not run"
FAILED = "failed"
BOLD = "Bold: highest mean as printed; ties are all marked."
SHOWN = ("accuracy", "macro_f1", "nmi", "ari")  # of each protocol in a table for people; files hold all


class Scored(Protocol):
    """A number of a contender or the reason why there is none: a Score, or a benchmark's Record."""

    @property
    def contender(self) -> str: ...

    @property
    def seed(self) -> int: ...

    @property
    def value(self) -> float: ...

    @property
    def error(self) -> str | None: ...


@dataclass(frozen=True)
class Cell:
    """What a renderer prints. Only `best` cells are bold; `tie` says that another one is equally good."""

    text: str
    best: bool = False
    tie: bool = False
    failed: bool = False
    mean: float | None = None

    @property
    def label(self) -> str:
        """The text with the mark of a tie."""
        return f"{self.text} (tie)" if self.tie else self.text


@dataclass(frozen=True)
class Table:
    """A table without a look. `rows` are aligned with `names`, their cells with `columns`."""

    corner: str
    columns: tuple[str, ...]
    names: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str

    def turned(self, corner: str) -> "Table":
        """Rows and columns exchanged: many protocols and few contenders read better that way."""
        return Table(corner, self.names, self.columns, tuple(zip(*self.rows, strict=True)), self.note)


def cell(scores: Sequence[Scored], decimals: int, n_seeds: int) -> Cell:
    """Mean and sample standard deviation over seeds and draws; what is missing or failed is said."""
    if not scores:
        return Cell(NOT_RUN, failed=True)
    values = [s.value for s in scores if s.error is None]
    if not values:
        return Cell(FAILED, failed=True)
    text = f"{fmean(values):.{decimals}f}"
    if len(values) > 1:
        text += f" ± {stdev(values):.{decimals}f}"
    seeds = {s.seed for s in scores if s.error is None}
    if len(seeds) < n_seeds:
        text += f" ({len(seeds)} of {n_seeds} seeds)"
    if len(values) < len(scores):  # an average over the runs that happened to survive cannot be called the best
        return Cell(f"{text}, rest {FAILED}", failed=True)
    return Cell(text, mean=round(fmean(values), decimals))


def signed(difference: float, decimals: int) -> str:
    """A difference with its sign; what rounds to nothing has none."""
    rounded = round(difference, decimals)
    return f"{rounded:+.{decimals}f}" if rounded else f"{0:.{decimals}f}"


def mark_best(column: Sequence[Cell], *, lowest: bool = False) -> list[Cell]:
    """Bold the highest (or lowest) mean at printed precision. Alone in a column, nothing is best."""
    means = [c.mean for c in column if c.mean is not None]
    if len(means) < 2:
        return list(column)
    top = min(means) if lowest else max(means)
    tie = means.count(top) > 1
    return [replace(c, best=True, tie=tie) if c.mean == top else c for c in column]


def seeds_text(seeds: Sequence[int], what: str = "Mean ± sample standard deviation over") -> str:
    """How many runs a number is made of."""
    if len(seeds) == 1:
        return f"One run (seed {seeds[0]}), no spread."
    return f"{what} seeds {', '.join(map(str, seeds))}."


def failures(scores: Iterable[Scored]) -> str:
    """Each reason once, with the contenders it hit."""
    reasons: dict[str, list[str]] = {}
    for score in scores:
        if score.error is not None:
            hit = reasons.setdefault(" ".join(score.error.split()), [])
            hit += [] if score.contender in hit else [score.contender]
    return " ".join(f"{', '.join(hit)} {FAILED}: {reason}" for reason, hit in reasons.items())


def comparison(
    scores: Iterable[Score],
    contenders: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    fixed: Sequence[str] = (),
) -> Table:
    """The table of all scores (or those of `metrics`), rows in the order of `contenders` (default: as they come).

    `fixed` names the contenders that are the same for every seed: where no draw differs either, they have no spread.
    """
    scores = [s for s in scores if metrics is None or s.metric in metrics]
    groups: dict[tuple[str, str, str], dict[tuple[int, int], Score]] = {}
    for s in scores:
        runs = groups.setdefault((s.contender, s.protocol, s.metric), {})
        if (s.seed, s.draw) in runs:
            which = f"seed {s.seed}" + (f" / draw {s.draw}" if s.draw > 1 else "")
            raise InputError(f"Two scores for {s.contender} / {s.protocol} / {s.metric} / {which}. Keep one.")
        runs[s.seed, s.draw] = s
    if not groups:
        raise InputError("A comparison table needs at least one score; got none.")
    found = list(dict.fromkeys(name for name, _, _ in groups))
    order = found if contenders is None else list(contenders)
    if missing := sorted(set(found) - set(order)):
        raise InputError(f"There are scores of contenders that are not in the given order: {', '.join(missing)}.")
    keys = list(dict.fromkeys((protocol, metric) for _, protocol, metric in groups))
    seeds = sorted({s.seed for s in scores})
    columns = []
    for protocol, metric in keys:
        decimals = DECIMALS.get(metric, DEFAULT_DECIMALS)
        cells = []
        for name in order:
            runs = groups.get((name, protocol, metric), {})
            kept = [runs[k] for k in sorted(runs)]
            nothing_varied = name in fixed and all(s.draw == 1 and s.value == kept[0].value for s in kept)
            cells.append(cell(kept[:1], decimals, 1) if nothing_varied else cell(kept, decimals, len(seeds)))
        columns.append(mark_best(cells))
    return Table(
        corner="contender",
        columns=tuple(f"{protocol} {metric}" for protocol, metric in keys),
        names=tuple(order),
        rows=tuple(zip(*columns, strict=True)),
        note=" ".join(filter(None, (_spread_text(scores, seeds, fixed), BOLD, failures(scores)))),
    )


def _spread_text(scores: Sequence[Score], seeds: Sequence[int], fixed: Sequence[str]) -> str:
    """What the numbers behind ± differ by."""
    draws: dict[str, int] = {}
    for score in scores:
        draws[score.protocol] = max(score.draw, draws.get(score.protocol, 1))
    by_count: dict[int, list[str]] = {}
    for protocol, count in draws.items():
        by_count.setdefault(count, []).append(protocol)
    drawn = "; ".join(
        f"{count} draws of the labelled cases{' with each seed' if len(seeds) > 1 else ''} for {', '.join(names)}"
        for count, names in by_count.items()
        if count > 1
    )
    same = f"The same for all seeds: {', '.join(fixed)}." if fixed and len(seeds) > 1 else ""
    if not drawn:
        return " ".join(filter(None, (seeds_text(seeds), same)))
    if len(seeds) == 1:
        return f"One run (seed {seeds[0]}); mean ± sample standard deviation over {drawn}."
    return " ".join(filter(None, (f"{seeds_text(seeds)[:-1]}, and over {drawn}.", same)))
