"""Tables of scores: contenders by protocol and metric, what failed, and who is equal to whom."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, stdev

import pandas as pd

from dicot.judge.protocols import find_metric
from dicot.judge.protocols.base import COSTS
from dicot.judge.report import frame
from dicot.judge.report.tables import ABSENT, FAILED, NOT_RUN, Cell, Table, best_note, mark_best

DEVIATION = "Mean ± sample standard deviation over"


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


def score_table(runs: pd.DataFrame, note: str, fixed: Sequence[str] = ()) -> Table:
    """Show the mean of every line in every column, the best of a column marked by its metric's direction.

    Of costs nothing is marked, and nothing is missing: a control takes no steps. `fixed` names lines that are the same
    for every seed: where no draw differs either, they have no spread.
    """
    metrics, n_seeds = frame.metric_of(runs), len(frame.seeds_of(runs))
    lines, columns = list(runs.line.cat.categories), list(runs.column.cat.categories)
    groups = runs.groupby(["line", "column"], observed=True)
    rows = groups[["value", "seed", "draw"]].agg(list).to_dict("index")

    def shown(line: str, column: str) -> Cell:
        if (line, column) not in rows:
            return Cell("") if metrics[column].name in COSTS else Cell(NOT_RUN, ABSENT)
        values, seeds, draws = rows[line, column].values()
        constant = line in fixed and set(draws) == {1} and len(set(values)) == 1
        n = 1 if constant else len(values)
        return score_cell(values[:n], seeds[:n], metrics[column].decimals, 1 if constant else n_seeds)

    entries = {column: [shown(line, column) for line in lines] for column in columns}
    for column, metric in metrics.items():
        entries[column] = mark_best(entries[column], 0 if metric.name in COSTS else frame.direction(metric))
    return Table(pd.DataFrame(entries, pd.Index(lines, name="contender")), note)


def seeds_text(data: pd.DataFrame, what: str = DEVIATION, fixed: Sequence[str] = ()) -> str:
    """Say how many runs a number is made of, and what they differ by. `fixed` are the same for every seed."""
    seeds = ", ".join(map(str, frame.seeds_of(data)))
    one, draws = data.seed.nunique() == 1, data.groupby("protocol", sort=False).draw.max()
    drawn = "; ".join(
        f"{count} draws of the labelled cases{'' if one else ' with each seed'} for {', '.join(own.index)}"
        for count, own in draws[draws > 1].groupby(draws, sort=False)
    )
    if one:
        return f"One run (seed {seeds})" + (f"; {what[0].lower()}{what[1:]} {drawn}." if drawn else ", no spread.")
    same = f" The same for all seeds: {', '.join(fixed)}." if fixed else ""
    return f"{what} seeds {seeds}{f', and over {drawn}' if drawn else ''}.{same}"


def failed_rows(data: pd.DataFrame) -> pd.DataFrame:
    """Keep the rows of failed jobs, each with its reason in one line."""
    rows = data[data.error.notna()]
    return rows.assign(reason=rows.error.map(lambda text: " ".join(text.split())))


def failures(data: pd.DataFrame) -> str:
    """Give each reason once, with the contenders it hit."""
    by_reason = failed_rows(data).groupby("reason", sort=False).contender.unique()
    return " ".join(f"{', '.join(names)} {FAILED}: {reason}" for reason, names in by_reason.items())


def comparison(data: pd.DataFrame, fixed: Sequence[str] = ()) -> Table:
    """Compare the contenders of an evaluation: a row each, a column per protocol and headline metric, as they come."""
    data = data[data.metric.isin([name for name in data.metric.unique() if find_metric(name).headline])]
    columns = data.protocol + " " + data.metric
    runs = data.assign(
        line=pd.Categorical(data.contender, data.contender.unique()), column=pd.Categorical(columns, columns.unique())
    )
    bold = best_note(frame.metric_of(runs).map(frame.direction))
    sentences = (seeds_text(data, fixed=fixed), *frame.subset_notes(data), bold, failures(data))
    return score_table(runs, " ".join(filter(None, sentences)), fixed)


def equal_protocols(data: pd.DataFrame, own: str = "protocol", other: str = "contender") -> list[list[str]]:
    """Find protocols, or contenders, that are equal in all their numbers. What failed has none, and stays apart."""
    alike: dict[object, list[str]] = {}
    for name, rows in data.groupby(own, sort=False):
        numbers = rows[[other, "metric", "seed", "draw", "value"]].itertuples(index=False, name=None)
        key = name if rows.value.isna().any() else frozenset(numbers)
        alike.setdefault(key, []).append(str(name))
    return [names for names in alike.values() if len(names) > 1]


def equal_note(equal: Sequence[Sequence[str]]) -> str:
    """Say who is shown once; empty where nobody is."""
    told = (f"{', '.join(names[:-1])} and {names[-1]}" for names in equal)
    return f"Equal in every number, so shown once: {'; '.join(told)}." if equal else ""


def merged(data: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Keep protocols, and then contenders, once where all their numbers are equal; give who shares which name."""
    shared: dict[str, list[str]] = {}
    for own, other in (("protocol", "contender"), ("contender", "protocol")):
        equal = equal_protocols(data, own, other)
        shared |= {", ".join(names): names for names in equal}
        data = data[~data[own].isin([name for names in equal for name in names[1:]])]
        data = data.assign(**{own: data[own].replace({names[0]: ", ".join(names) for names in equal})})
    return data, shared


def evaluation_table(data: pd.DataFrame, fixed: Sequence[str] = (), descriptions: Mapping[str, str] = {}) -> Table:
    """Compare contenders: a column each, a row per protocol and metric with its description; equal ones shown once."""
    rows, shared = merged(data)
    alike = [*fixed, *(title for title, names in shared.items() if set(names) <= set(fixed))]
    table = comparison(rows, alike).turned("protocol, metric")
    about: dict[str, str] = {}
    for title in rows.protocol.unique():
        words = [(name, descriptions.get(name, "")) for name in shared.get(title, [title])]
        text = "; ".join(f"{name}: {said}" if len(words) > 1 else said for name, said in words if said)
        name = next((name for name in table.cells.index if name.startswith(f"{title} ")), None)
        about |= {name: text} if text and name else {}
    return replace(table, note=" ".join(filter(None, (table.note, equal_note(list(shared.values()))))), about=about)
