"""What a benchmark comes to, family by family: the verdict of an evaluation, with data sets in the place of seeds."""

from collections.abc import Iterator, Mapping

import pandas as pd

from dicot.data.datasets import family_of
from dicot.data.datasets.names import DEVELOPMENT
from dicot.judge.classical import CLASSICAL
from dicot.judge.protocols import PROTOCOLS, find_metric
from dicot.judge.protocols.base import COSTS
from dicot.judge.report.best import SUBJECT
from dicot.judge.report.frame import (
    ALL_LABELS,
    CONTROLS,
    NOISE,
    REFERENCES,
    by_data_set,
    contender_of,
    data_sets,
    direction,
    natural,
    note,
)
from dicot.judge.report.layouts import Request
from dicot.judge.report.parts import Part
from dicot.judge.report.scores import equal_note, equal_protocols
from dicot.judge.report.tables import text_table
from dicot.judge.report.verdict import (
    GAP_COLUMNS,
    SEEDS,
    SETS,
    Elsewhere,
    Ranking,
    Trial,
    decide,
    gap_row,
)
from dicot.judge.result import BASELINE, CONTROL, PRETRAINED, SUPERVISED

ROLES = {
    **dict.fromkeys(REFERENCES, SUPERVISED),
    **dict.fromkeys(CLASSICAL, BASELINE),
    **dict.fromkeys(CONTROLS, CONTROL),
}
FAMILIES = {"ucr": "UCR", "uea": "UEA", "large": "Large sets"}
CHOSEN = f"Sets that the preset {SUBJECT} was chosen on are left out."


def decision_parts(request: Request) -> Iterator[Part]:
    """Say of each family who is ahead, by how much, beyond noise or not, and what to do; then every protocol.

    Nothing is said where no block of data sets has the controls. Families are not averaged with each other: of one
    with 89 sets and one with 3 the first would decide alone.
    """
    equal = equal_protocols(request.data)
    repeated = [name for alike in equal for name in alike[1:]]
    data = request.data[~request.data.protocol.isin(repeated) & ~request.data.metric.isin(COSTS)]
    chosen_on = data_sets(data).isin(DEVELOPMENT) & (SUBJECT in set(data.contender))
    data = data[~chosen_on]
    sentences, rows = [], []
    families = data_sets(data).map(_family)
    several = families.nunique() > 1
    sizes = data_sets(data).groupby(families).nunique()
    for family in sorted(sizes.index, key=lambda name: (-sizes[name], natural(name))):  # the surest first
        rankings = list(_rankings(data[families == family], request))
        if not rankings:
            continue
        elsewhere = Elsewhere.of(rankings)
        found = decide(rankings[0], elsewhere)
        sentences += [f"{family}. " * several + found.sentence, " ".join(found.more)]
        for ranking, gap in elsewhere.gaps:
            sets = len(ranking.scores) if ranking.unit == SETS else 1
            told = [*gap_row(ranking, gap), *_controls(ranking), str(sets)]
            rows.append((f"{family}: " * several + f"{ranking.protocol} {ranking.metric}", told))
    if not sentences:
        return
    yield Part("", lead=tuple(sentences))
    if rows:
        told_by = note(
            data,
            "A difference above 0 is in favour of training. Intervals are over five data sets or more, of a single one "
            "over seeds, and allow for the choice among rivals (Bonferroni).",
            CHOSEN if chosen_on.any() else "",
            equal_note(equal),
            explained(data),
        )
        yield Part(
            "Training beside none",
            text_table("family, protocol, metric", rows, [*GAP_COLUMNS, *CONTROLS, "sets"], told_by),
        )


def _controls(ranking: Ranking) -> list[str]:
    """Both controls' means, which every table of methods has."""
    digits = find_metric(ranking.metric).decimals
    return [f"{ranking.mean(name):.{digits}f}" if name in ranking.names else "" for name in CONTROLS]


def explained(data: pd.DataFrame) -> str:
    """Say what each protocol is."""
    said = {
        name: PROTOCOLS[name]().description for name in sorted(data.protocol.unique(), key=natural) if name in PROTOCOLS
    }
    return " ".join(f"{name}: {about.rstrip('.')}." for name, about in said.items())


def _family(name: str) -> str:
    """Name the family of a data set or transfer; a set that no registry knows is its own."""
    first = name.partition(" > ")[0].partition(" (")[0]
    found = family_of(first)
    return first if found is None else FAMILIES.get(found, found)


def _rankings(data: pd.DataFrame, request: Request) -> Iterator[Ranking]:
    """Rank by each protocol that the controls have too, those with all labels and the most contenders first."""
    many = data.groupby("protocol").contender.nunique()
    both = [name for name, own in data.groupby("protocol") if set(CONTROLS) <= set(own.contender)]
    measures = Trial(data, {}).measures()
    for protocol in sorted(both, key=lambda name: (name not in ALL_LABELS, -many[name], natural(name))):
        if protocol in measures:
            metric = measures[protocol]
            own = data[(data.protocol == protocol) & (data.metric == metric)]
            if (ranking := _ranking(own, request, protocol, metric)) is not None:
                yield ranking


def _ranking(data: pd.DataFrame, request: Request, protocol: str, metric: str) -> Ranking | None:
    """Rank the lines of the first block by their mean over its data sets."""
    complete = request.blocks(by_data_set(data, [metric]))[:1]
    if not complete:
        return None
    block = complete[0]
    who: Mapping[str, str] = contender_of(block.runs)
    trial = Trial(block.runs, {line: ROLES.get(who[line], PRETRAINED) for line in block.shown.index})
    if len(block.columns) == 1:
        runs = block.own_runs()
        table = runs.pivot_table(index=["seed", "draw"], columns="line", values="value", observed=True).dropna(axis=1)
        unit = SEEDS
    else:
        table, unit = block.shown.T.copy(), SETS
        table.index = pd.MultiIndex.from_arrays([range(len(table)), [0] * len(table)], names=["seed", "draw"])
    merits = (direction(find_metric(metric)) * table.mean()).round(NOISE)
    order = sorted(table.columns, key=lambda line: -merits[line])
    return Ranking(trial, protocol, metric, table[order], unit) if len(order) > 1 else None
