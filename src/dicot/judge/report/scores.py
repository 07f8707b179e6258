"""Tables of scores: contenders by protocol or by data set, intervals, failures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, stdev

import pandas as pd

from dicot.judge.protocols import find_metric
from dicot.judge.report.frame import (
    CONTROLS,
    contender_of,
    data_sets,
    direction,
    metric_name,
    metric_of,
    note,
    require_controls,
    seeds_of,
    subset_notes,
)
from dicot.judge.report.tables import ABSENT, FAILED, NOT_RUN, Cell, Table, best_note, mark_best, text_table

MANY_SETS = 8  # more data sets stand below one another, not side by side
MAX_REASON = 300  # letters of an error message in a table; the CSV file holds all


def score_cell(values: Sequence[float], seeds: Sequence[int], digits: int, n_seeds: int) -> Cell:
    """Print mean and sample standard deviation over seeds and draws, and say what is missing or failed (NaN)."""
    scored = [(seed, value) for seed, value in zip(seeds, values, strict=True) if value == value]
    if not scored:
        return Cell(FAILED, FAILED)
    numbers = [value for _, value in scored]
    mean, seen = fmean(numbers), len({seed for seed, _ in scored})
    text = f"{round(mean, digits) + 0.0:.{digits}f}"  # no minus zero
    text += f" ± {stdev(numbers):.{digits}f}" if len(numbers) > 1 else ""
    text += f" ({seen} of {n_seeds} seeds)" if seen < n_seeds else ""
    if len(scored) < len(values):  # an average over the runs that happened to survive cannot be called the best
        return Cell(f"{text}, rest {FAILED}", FAILED)
    return Cell(text, mean=round(mean, digits))


def score_table(
    runs: pd.DataFrame,
    note: str,
    *,
    fixed: Sequence[str] = (),
    marked: bool = True,
    empty: Callable[[str, str], bool] = lambda line, column: False,
) -> Table:
    """Show the mean of every line in every column; `marked` marks the best of a column by its metric's direction.

    `fixed` names lines that are the same for every seed: where no draw differs either, they have no spread. `empty`
    tells where nothing is missing although there is no run.
    """
    metrics, n_seeds = metric_of(runs), len(seeds_of(runs))
    lines, columns = list(runs.line.cat.categories), list(runs.column.cat.categories)
    groups = runs.groupby(["line", "column"], observed=True)
    rows = groups[["value", "seed", "draw"]].agg(list).to_dict("index")

    def shown(line: str, column: str) -> Cell:
        if (line, column) not in rows:
            return Cell("") if empty(line, column) else Cell(NOT_RUN, ABSENT)
        values, seeds, draws = rows[line, column].values()
        constant = line in fixed and set(draws) == {1} and len(set(values)) == 1
        n = 1 if constant else len(values)
        return score_cell(values[:n], seeds[:n], metrics[column].decimals, 1 if constant else n_seeds)

    entries = {column: [shown(line, column) for line in lines] for column in columns}
    if marked:
        entries = {column: mark_best(cells, direction(metrics[column])) for column, cells in entries.items()}
    return text_table("contender", zip(lines, zip(*entries.values(), strict=True), strict=True), columns, note)


def seeds_text(seeds: Sequence[int], what: str = "Mean ± sample standard deviation over") -> str:
    """Say how many runs a number is made of."""
    if len(seeds) == 1:
        return f"One run (seed {seeds[0]}), no spread."
    return f"{what} seeds {', '.join(map(str, seeds))}."


def _broken(data: pd.DataFrame) -> pd.DataFrame:
    """Keep the rows of failed jobs, each with its reason in one line."""
    rows = data[data.error.notna()]
    return rows.assign(reason=rows.error.map(lambda text: " ".join(text.split())))


def failures(data: pd.DataFrame) -> str:
    """Give each reason once, with the contenders it hit."""
    by_reason = _broken(data).groupby("reason", sort=False).contender.unique()
    return " ".join(f"{', '.join(names)} {FAILED}: {reason}" for reason, names in by_reason.items())


def comparison(data: pd.DataFrame, fixed: Sequence[str] = ()) -> Table:
    """Compare the contenders of an evaluation: a row each, a column per protocol and headline metric, as they come.

    `fixed` names the contenders that are the same for every seed: where no draw differs either, they have no spread.
    """
    data = data[data.metric.isin([name for name in data.metric.unique() if find_metric(name).headline])]
    columns = data.protocol + " " + data.metric
    runs = data.assign(
        line=pd.Categorical(data.contender, data.contender.unique()), column=pd.Categorical(columns, columns.unique())
    )
    bold = best_note(metric_of(runs).map(direction))
    sentences = (_spread_text(data, fixed), *subset_notes(data), bold, failures(data))
    return score_table(runs, " ".join(filter(None, sentences)), fixed=fixed)


def _equal(data: pd.DataFrame, own: str, other: str) -> list[list[str]]:
    """Find protocols, or contenders, that are equal in all their numbers. What failed has none, and stays apart."""
    alike: dict[object, list[str]] = {}
    for name, rows in data.groupby(own, sort=False):
        numbers = rows[[other, "metric", "seed", "draw", "value"]].itertuples(index=False, name=None)
        key = name if rows.value.isna().any() else frozenset(numbers)
        alike.setdefault(key, []).append(str(name))
    return [names for names in alike.values() if len(names) > 1]


def equal_protocols(data: pd.DataFrame) -> list[list[str]]:
    """Find protocols that give everybody the same numbers."""
    return _equal(data, "protocol", "contender")


def equal_note(equal: Sequence[Sequence[str]]) -> str:
    """Say who is shown once; empty where nobody is."""
    told = (f"{', '.join(names[:-1])} and {names[-1]}" for names in equal)
    return f"Equal in every number, so shown once: {'; '.join(told)}." if equal else ""


def merged(data: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Keep protocols, and then contenders, once where all their numbers are equal; give who shares which name."""
    shared: dict[str, list[str]] = {}
    for own, other in (("protocol", "contender"), ("contender", "protocol")):
        equal = _equal(data, own, other)
        shared |= {", ".join(names): names for names in equal}
        data = data[~data[own].isin([name for names in equal for name in names[1:]])]
        data = data.assign(**{own: data[own].replace({names[0]: ", ".join(names) for names in equal})})
    return data, shared


def evaluation_table(
    data: pd.DataFrame, fixed: Sequence[str] = (), descriptions: Mapping[str, str] | None = None
) -> Table:
    """Compare the contenders of an evaluation: a column each, a row per protocol and metric, what is equal shown once.

    `descriptions` says what each protocol is.
    """
    rows, shared = merged(data)
    alike = [*fixed, *(title for title, names in shared.items() if set(names) <= set(fixed))]
    table = comparison(rows, alike).turned("protocol, metric")
    about: dict[str, str] = {}
    for title in rows.protocol.unique():
        words = [(name, (descriptions or {}).get(name, "")) for name in shared.get(title, [title])]
        text = "; ".join(f"{name}: {said}" if len(words) > 1 else said for name, said in words if said)
        name = next((name for name in table.cells.index if name.startswith(f"{title} ")), None)
        about |= {name: text} if text and name else {}
    return replace(table, note=" ".join(filter(None, (table.note, equal_note(list(shared.values()))))), about=about)


def _spread_text(data: pd.DataFrame, fixed: Sequence[str]) -> str:
    """Say what the numbers behind ± differ by."""
    seeds = seeds_of(data)
    draws = data.groupby("protocol", sort=False).draw.max()
    each = " with each seed" if len(seeds) > 1 else ""
    drawn = "; ".join(
        f"{count} draws of the labelled cases{each} for {', '.join(own.index)}"
        for count, own in draws[draws > 1].groupby(draws, sort=False)
    )
    if drawn and len(seeds) == 1:
        return f"One run (seed {seeds[0]}); mean ± sample standard deviation over {drawn}."
    text = f"{seeds_text(seeds)[:-1]}, and over {drawn}." if drawn else seeds_text(seeds)
    return text + (f" The same for all seeds: {', '.join(fixed)}." if fixed and len(seeds) > 1 else "")


def data_set_table(runs: pd.DataFrame) -> Table:
    """Show the mean of every line on every data set."""
    require_controls(runs, "Scores per data set")
    few = runs.column.nunique() <= MANY_SETS
    about = note(
        runs,
        seeds_text(seeds_of(runs)),
        f"Shown: {metric_name(runs)}. {best_note(metric_of(runs).map(direction))}",
        failures(runs) if few else "Failures are listed with their reasons.",
    )
    table = score_table(runs, about)
    return table if few else table.turned("data set")


def cost_table(runs: pd.DataFrame) -> Table:
    """Show what runs cost; a control takes no steps, so some of its cells are empty."""
    contender = contender_of(runs)
    about = note(runs, seeds_text(seeds_of(runs)), failures(runs))
    return score_table(runs, about, marked=False, empty=lambda line, column: contender[line] in CONTROLS)


def failure_table(data: pd.DataFrame) -> Table | None:
    """List every job that failed, with its reason, its seeds and protocols; None without any."""
    broken = _broken(data)
    if broken.empty:
        return None
    jobs = broken.assign(data=data_sets(broken)).groupby(["contender", "data", "schedule", "reason"], sort=False)

    def row(key: Sequence[str], rows: pd.DataFrame) -> list[Cell | str]:
        name, schedule, reason = key
        text = reason if len(reason) <= MAX_REASON else f"{reason[:MAX_REASON]} …"
        seeds = ", ".join(map(str, seeds_of(rows)))
        return [name, schedule or "none", seeds, ", ".join(rows.protocol.unique()), Cell(text, FAILED)]

    return text_table(
        "contender",
        ((contender, row(key, rows)) for (contender, *key), rows in jobs),
        ["data set", "schedule", "seeds", "protocols", "reason"],
        f"{jobs.ngroups} reason(s) in all. A failed job has no number anywhere in this report.",
    )
