"""audit.json says where the paper's own arithmetic does not hold: every sum that its tables allow, done again here."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
from scipy.stats import rankdata

from bench.paper.numbers import LARGE, paper_audit, paper_tables

T = paper_tables()
SHORT = {"Sup_B": "Supervised_B", "R. Init": "Random Init."}
EXACT, WRONG = "holds as printed", "does not hold"
ROUNDED, TIED = (
    f"off, but {why} entries" for why in ("within the rounding of its", "reached by breaking ties of rounded")
)


def average(table, what, entries, printed, digits=2):
    """A mean of printed entries; a half may have been rounded either way."""
    exact = [Fraction(Decimal(repr(value))) for value in entries]
    mean, half = sum(exact) / len(exact), Fraction(1, 2 * 10**digits)
    gap = abs(mean - Fraction(Decimal(repr(printed))))
    verdict = EXACT if gap <= half else ROUNDED if gap <= 2 * half else WRONG
    return table, what, printed, float(mean), verdict, "D-60" if table == "clustering" else "D-98"


def ranks(table, what, rows, printed):
    """Average ranks of rows over their columns; where entries tie, rounding may have hidden an order."""
    values = -np.array(list(rows.values())).T
    for name, mean, low, high in zip(
        rows, *(rankdata(values, axis=1, method=way).mean(axis=0) for way in ("average", "min", "max")), strict=True
    ):
        given, half = printed[name], 0.005 + 1e-9
        verdict = TIED if low - half <= given <= high + half else WRONG
        yield table, f"{what}, {name}", given, mean, EXACT if abs(mean - given) <= half else verdict, "D-98"


def same(table, what, printed, elsewhere, row="D-98"):
    return table, what, printed, elsewhere, EXACT if printed == elsewhere else WRONG, row


def archives():
    summary = T["ucr_uea_summary"]
    for suite in ("ucr", "uea"):
        table = f"{suite.upper()} and summary"
        rows = {name: [row[name] for row in T[suite].values()] for name in summary}
        for name, row in rows.items():
            yield average(table, f"average, {name}", row, T[f"{suite}_average"][name])
            yield average(table, f"average in the summary, {name}", row, summary[name][f"{suite}_accuracy"])
        yield from ranks(table, "average rank", rows, {name: summary[name][f"{suite}_rank"] for name in summary})


def large():
    tables = {"linear probe": T["linear_probe"], "1 % of the labels": T["low_label_1pct"]}
    tables |= {f"k-NN, {count} per class": rows for count, rows in T["knn"].items()}
    for title, rows in tables.items():
        for name, row in rows.items():
            printed = row["Avg Acc"] if "Avg Acc" in row else row["Avg. Acc ± 95% CI"]["mean"]
            yield average(title, f"average, {name}", [row[data]["mean"] for data in LARGE], printed)
    for name, row in T["transfer"].items():
        cells = [cell["mean"] for pair, cell in row.items() if pair != "average"]
        yield average("transfer", f"average, {name}", cells, row["average"])


def clustering():
    cells, main = T["clustering_per_dataset"], T["clustering_average"]
    own = {name: cells[SHORT.get(name, name)] for name in main["NMI"]}
    for name, row in own.items():
        for metric in ("nmi", "ari"):
            entries = [row[f"{data.lower()}_{metric}"] for data in LARGE]
            yield average("clustering", f"average {metric}, {name}", entries, main[metric.upper()][name], 3)
    columns = [f"{data.lower()}_{metric}" for data in LARGE for metric in ("nmi", "ari")]
    rows = {name: [cells[SHORT.get(name, name)][column] for column in columns] for name in main["AvgRank"]}
    yield from ranks("clustering", "average rank over six sets and two metrics", rows, main["AvgRank"])


def repeated():
    """Numbers that two tables print."""
    base, summary, chosen = T["ablation"]["Di-COT"], T["ucr_uea_summary"]["Di-COT"], T["positive_selection"]
    chosen, clusters = chosen["Preceding Sub-block"], T["clustering_average"]
    probe, few = (T[name]["Di-COT"]["Avg. Acc ± 95% CI"]["mean"] for name in ("linear_probe", "low_label_1pct"))
    yield same("ablation", "Di-COT, large", base["large"], probe)
    for family in ("ucr", "uea"):
        for table, row in (("ablation", base), ("positive selection", chosen)):
            yield same(table, family, row[family], summary[f"{family}_accuracy"])
    pairs = {"linear": probe, "linear_1pct": few, "knn_500": T["knn"]["500"]["Di-COT"]["Avg Acc"]}
    pairs |= {name: clusters[name.upper()]["Di-COT"] for name in ("nmi", "ari")}
    for name, value in (pairs | {"transfer": T["transfer"]["Di-COT"]["average"]}).items():
        yield same("positive selection", name, chosen[name], value)
    hours = round(T["training_seconds_large"]["preceding"] / 3600, 2)
    yield same("positive selection", "hours of training", hours, T["linear_probe"]["Di-COT"]["Time (hrs)"])
    twins = {
        "w/o Overlap": "Overlap -> 0%",
        "w/o Temperature": "Temperature \\tau -> 1.0",
        "Uniform Splits Sampling -> Global Fixed Splits": "Global Fixed Splits (k) -> 10",
        "Di-COT": "Uniform Splits Sampling (k_{max}) -> 10",
    }
    for short, long in twins.items():
        for family in base:
            yield same(
                "extended", f"{long}, {family}", T["ablation_extended"][long][family], T["ablation"][short][family]
            )


def prose():
    """What the running text says in numbers, or in words that are numbers."""
    probe, transfer = T["linear_probe"], T["transfer"]
    hours = {name: row["Time (hrs)"] for name, row in probe.items() if row["Time (hrs)"] is not None}
    places = sorted(hours, key=hours.get)

    def best(rows, name, others=()):
        """The columns in which a line has the highest mean, alone."""
        cells = {key: cell for key, cell in rows[name].items() if isinstance(cell, dict) and not key.startswith("Avg")}
        rivals = [rows[other] for other in others or rows if other != name]
        return sum(all(cell["mean"] > row[key]["mean"] for row in rivals) for key, cell in cells.items())

    rank = next(check[3] for check in clustering() if check[1].startswith("average rank") and "Di-COT" in check[1])
    faster, large_sets = round(hours["TF-C"] / hours["Di-COT"], 2), "large sets of six on which Random Init. beats"
    yield same("text", "average rank of Di-COT in clustering", 3.08, round(rank, 2), "D-59")
    for name, place in (("CaTT", 3), ("TS2Vec", 2)):
        yield same("text", f"place of {name} by training time, large sets", place, 1 + places.index(name), "D-100")
    yield same("text", "times that Di-COT trains faster than TF-C, large sets", 2.5, faster, "D-100")
    yield same("text", "transfer pairs of four on which Di-COT is best", 4, best(transfer, "Di-COT"), "D-101")
    bold = sum(best(rows, "Di-COT") for rows in T["knn"].values())
    yield same("k-NN", "cells of Di-COT printed in bold, and those that are highest", 30, bold, "D-99")
    beaten = best(probe, "Random Init.", ["Random Forest", "MiniRocket"])
    yield same("text", f"{large_sets} forest and MiniRocket", 6, beaten, "D-102")


def test_the_published_list_is_what_the_tables_give():
    checks = [*archives(), *large(), *clustering(), *repeated(), *prose()]
    rows = {
        (table, what, f"{printed:g}", f"{round(computed, 4):g}", row if verdict == WRONG else "D-103", verdict)
        for table, what, printed, computed, verdict, row in checks
        if verdict != EXACT
    }
    audit = paper_audit()
    assert len(checks) == audit["checks"] == 235
    assert rows == set(map(tuple, audit["rows"])) and len(rows) == 31


def test_verdicts_by_hand():
    assert average("t", "w", [1.01, 1.02], 1.01)[4] == average("t", "w", [1.01, 1.02], 1.02)[4] == EXACT  # a half
    assert [average("t", "w", [1.0, 1.02], printed)[4] for printed in (1.02, 1.03)] == [ROUNDED, WRONG]
    rows = {"a": [2.0, 2.0], "b": [2.0, 1.0]}
    for printed, verdict in (({"a": 1.25, "b": 1.75}, EXACT), ({"a": 1.5, "b": 1.5}, TIED), ({"a": 2, "b": 1}, WRONG)):
        assert [check[4] for check in ranks("t", "w", rows, printed)] == [verdict] * 2
