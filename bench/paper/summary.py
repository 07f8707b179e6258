"""What of the paper reproduces, what does not and what cannot be said: sentences and a table, made from the records."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench.paper.grid import column_of, of_the_paper
from bench.paper.numbers import ARCHIVES, AVERAGE, LARGE, NAMES, VARIANTS, paper_tables, printed
from bench.paper.tables import Records
from bench.paper.times import measured, said, standing
from bench.report.frame import PAPER_SCHEDULE
from bench.report.stats import half_widths, holm, wilcoxon_pair
from dicot.data.datasets import family_of
from dicot.judge.report.page import Part
from dicot.judge.report.stats import ALPHA
from dicot.judge.report.tables import Table, signed, text_table

FEWEST_SETS = 6  # with fewer the signed-rank test cannot reach 5 %, whatever the gaps
HERO, RIVAL, CONTROL = "dicot", "catt", "calibrated"
AGREES, AGAINST, OPEN, ELSEWHERE = "reproduces", "the opposite", "no difference shown", "stand-ins: cannot be said"
BEATS = "Does Di-COT beat CaTT?"
LEARNS = "Does training add to an untrained encoder?"
SPLITS = "Does splitting matter?"
NEIGHBOUR = "Does the neighbour matter?"
DRAWN = "Uniform Splits Sampling (k_{max}) -> 10"
# Question -> the suite, the variant, what it is compared with, and what is compared in plain words.
VARIED: dict[str, tuple[tuple[str, str, str, str], ...]] = {
    SPLITS: (
        ("ablation", "w/o Overlap", HERO, "without overlap"),
        *(("extended_ablation", f"Global Fixed Splits (k) -> {k}", DRAWN, f"k fixed at {k}") for k in (2, 5, 10, 15)),
    ),
    NEIGHBOUR: (
        ("ablation", "Preceding Sub-block Contrast -> Next Sub-block Contrast", HERO, "the next one"),
        ("ablation", "Preceding Sub-block Contrast -> Shuffled Sub-block Contrast", HERO, "a shuffled one"),
        ("positive_selection", "Bidirectional (Preceding + Next)", "Preceding Sub-block", "both neighbours"),
    ),
}
ASKED = (BEATS, SPLITS, NEIGHBOUR, LEARNS)
PLACES = {"ucr": "UCR", "uea": "UEA", "large": "the large sets"}


class Finding(NamedTuple):
    """Two contenders on the data sets that both have: the mean gap, beside the paper's."""

    question: str
    who: str
    other: str
    where: str
    paper: float  # NaN: it prints none
    gaps: tuple[float, ...]
    p: float
    stand_ins: bool

    @property
    def mean(self) -> float:
        """Our mean gap."""
        return math.fsum(self.gaps) / len(self.gaps)

    @property
    def gap_text(self) -> str:
        """Our mean gap with its 95 % interval over data sets."""
        n = len(self.gaps)
        half = half_widths(float(pd.Series(self.gaps).std()), n)[1] if n > 1 else math.nan
        return signed(self.mean, 2) + ("" if math.isnan(half) else f" ± {half:.2f}")

    @property
    def verdict(self) -> str:
        """What it says of the paper's statement."""
        if self.stand_ins or len(self.gaps) < FEWEST_SETS:
            return ELSEWHERE
        if self.p > ALPHA:
            return OPEN
        if math.isnan(self.paper):
            return "more" if self.mean > 0 else "less"
        return AGREES if self.paper * self.mean > 0 else AGAINST


def findings(records: Records) -> list[Finding]:
    """Make all comparisons that the records allow; the p of a question are corrected together (Holm)."""
    found, out = [*_methods(records), *_variants(records)], list[Finding]()
    for question in ASKED:
        own = [one for one in found if one.question == question]
        tested = [one for one in own if one.verdict != ELSEWHERE]
        p = dict(zip(map(id, tested), holm([one.p for one in tested]).tolist(), strict=True))
        out += [one._replace(p=p.get(id(one), math.nan)) for one in own]
    return out


def _methods(records: Records) -> Iterator[Finding]:
    for suite, labels, words in (
        *((name, "linear", PLACES[name]) for name in (*ARCHIVES, "large")),
        ("low_label", "few_1pct", f"{PLACES['large']} with 1 % of the labels"),
    ):
        data = records.scored(labels, suite, as_paper=True)
        data, theirs = data[data.protocol == labels], printed(suite)
        for question, other in ((BEATS, RIVAL), (LEARNS, CONTROL)):
            gaps = _gaps(data, HERO, other)
            own = [column_of(*place) for place in gaps.index]
            exact = bool(own) and all(column.exact for column in own)
            columns = [column.paper for column in own] if exact else [AVERAGE]
            lines = [NAMES[HERO], NAMES.get(other, "")]
            paper = theirs.reindex(lines)[columns].mean(axis=1) if set(columns) <= set(theirs) else None
            value = math.nan if paper is None else float(paper.iloc[0] - paper.iloc[1])
            yield from _finding(question, NAMES[HERO], NAMES.get(other, other), words, value, gaps, not exact)


def _variants(records: Records) -> Iterator[Finding]:
    for question, pairs in VARIED.items():
        for suite, who, other, variant in pairs:
            theirs, data = paper_tables()[VARIANTS[suite]], records.of(suite)
            data = data[(data.metric == "accuracy") & (data.protocol == "linear") & (data.source == data.target)]
            data = data[of_the_paper(data) & data.schedule.isin(("", PAPER_SCHEDULE))]
            family = data.target.map(lambda name: kind if (kind := family_of(name)) in ARCHIVES else "large")
            base = NAMES[HERO] if other == HERO else other
            for place, words in PLACES.items():
                column = place if place in theirs[base] else "linear"  # what one of the tables calls the large sets
                paper = float(theirs[who][column] - theirs[base][column]) if column in theirs[base] else math.nan
                gaps = _gaps(data[family == place], who, other)
                exact = all(column_of(*pair).exact for pair in gaps.index)
                yield from _finding(question, variant, NAMES[HERO], words, paper, gaps, not exact)


def _gaps(data: pd.DataFrame, who: str, other: str) -> pd.Series:
    """Give the mean gap on every data set that both have, over the seeds that both have there."""
    own = data[data.contender.isin((who, other)) & ~data.trial].fillna({"value": math.inf})  # a run that failed
    runs = own.pivot_table("value", ["source", "target", "seed"], "contender").reindex(columns=[who, other]).dropna()
    gaps = (runs[who] - runs[other]).groupby(["source", "target"]).agg(lambda v: v.mean(skipna=False))
    return gaps[gaps.abs() < math.inf].round(9)


def _finding(
    question: str, who: str, other: str, words: str, paper: float, gaps: pd.Series, stand_ins: bool
) -> Iterator[Finding]:
    if len(gaps):
        words = words.replace("the large", "stand-ins for the large") if stand_ins else words
        values = tuple(gaps.tolist())
        yield Finding(question, who, other, words, paper, values, wilcoxon_pair(values, [0.0] * len(values)), stand_ins)


def summary_parts(records: Records, exhibits: Sequence[str]) -> Iterator[Part]:
    """Make the opening of the page, and the table behind it."""
    found = findings(records)
    tested = [one for one in found if not math.isnan(one.paper) and one.verdict != ELSEWHERE]
    same, unclear, opposite = (sum(one.verdict == kind for one in tested) for kind in (AGREES, OPEN, AGAINST))
    headline = (
        f"Of the paper's differences in accuracy the data at hand can test {len(tested)}. Reproduced: {same}. "
        f"Not told from chance: {unclear}. Of the opposite sign: {opposite}."
    )
    answers = [_answer(question, [one for one in found if one.question == question]) for question in ASKED]
    answers.insert(1, f"Is it faster? {_speed(records.beside)}")
    opening = headline if tested else "Nothing of the paper is recorded on its own data sets yet."
    yield Part("", lead=(opening, *answers, *_unsaid(records, exhibits)))
    if found:
        yield Part("What reproduces", _table(found))


def _answer(question: str, found: Sequence[Finding]) -> str:
    """Answer a question in plain words."""
    if not found:
        return f"{question} There is no record."
    tested = [one for one in found if one.verdict != ELSEWHERE]
    sure = [one for one in tested if one.verdict != OPEN]
    if question in VARIED:
        if not tested:
            low, high = (signed(pick(one.mean for one in found), 2) for pick in (min, max))
            return f"{question} Recorded on stand-ins alone, too few for a test: gaps from {low} to {high} points."
        largest = max(tested, key=lambda one: abs(one.mean))
        shown = "; ".join(f"{one.who} {one.gap_text} on {one.where}" for one in sure)
        return (
            f"{question} {len(sure)} of {len(tested)} comparisons on the archives show a difference beyond chance"
            f"{f': {shown}' if shown else ''}. The largest gap of all is {largest.gap_text} points ({largest.who}, "
            f"{largest.where})."
        )
    words = [
        f"{word} on {' and '.join(places)}"
        for word, sign in (("Yes", 1), ("No", -1))
        if (places := [one.where for one in sure if sign * one.mean > 0])
    ]
    told = [
        f"{one.gap_text} points on {one.where} ({len(one.gaps)} sets"
        + (f", p = {one.p:.2g})" if one in tested else ")")
        for one in found
    ]
    return f"{question} {'; '.join(words) or 'Not shown'}: {found[0].who} minus {found[0].other} {', '.join(told)}."


def _speed(beside: Path | None) -> str:
    """Say how fast Di-COT is where every run was alone, and how CaTT compares at large batches."""
    rows = measured(beside, "times")
    devices = {device: words for device in rows.device.unique() if (words := standing(rows, device))}
    told = [f"On {device}: {words[0].lower()}{words[1:]}" for device, words in devices.items()]
    for (device, name), own in rows[rows.question == "batches"].groupby(["device", "data_set"], sort=False):
        table = own.pivot_table("step_ms", "batch_size", "contender").reindex(columns=[HERO, RIVAL]).dropna()
        ratios = [f"{said(ratio)} at {size}" for size, ratio in (table[RIVAL] / table[HERO]).items()]
        head = f"How many times as long a step of CaTT takes on {name}, {device}, by batch size"
        told += [f"{head}: {', '.join(ratios)}."] if ratios else []
    own = rows[(rows.question == "methods") & rows.step_ms.notna()]
    first = set(own.loc[own.groupby(["device", "data_set"]).step_ms.idxmin(), "contender"])
    if told:
        told.insert(0, "Yes, by the step." if first == {HERO} else "Not everywhere." if HERO in first else "No.")
    paper = "The paper: the lowest training time of all, and CaTT more than twice as slow at a batch size of 64."
    return " ".join([*(told or ["Not measured: there is no file times.csv beside the records."]), paper])


def _unsaid(records: Records, exhibits: Sequence[str]) -> Iterator[str]:
    """Say what cannot be said, because the paper's large sets are not at hand."""
    data = records.of(*set(records.data.suite))
    found = {column_of(name, name) for name in {*data.source, *data.target}}
    own = {column.paper for column in found if column.exact} & set(LARGE)
    missing = [name for name in LARGE if name not in own]
    if not missing:
        return
    by = {name: [column.label.partition(",")[0] for column in found if column.paper == name] for name in missing}
    stand_ins = ", ".join(f"{labels[0]} for {name}" for name, labels in by.items() if labels)
    none = [name for name, labels in by.items() if not labels]
    kinds = {kind: [name.split()[1] for name in exhibits if name.startswith(kind)] for kind in ("Figure", "Table")}
    where = " and ".join(f"{kind}s {', '.join(own)}" for kind, own in kinds.items() if own)
    yield (
        f"What cannot be said: the paper's numbers on {', '.join(missing)} are neither confirmed nor refuted, because "
        f"these data are not at hand; {where} rest on them."
        + (f" Stand-ins of the same kind: {stand_ins}." if stand_ins else "")
        + (f" Nothing stands in for {' and '.join(none)}." if none else "")
    )


def _table(found: Sequence[Finding]) -> Table:
    """Show every comparison: the paper's difference, ours with its interval, and what it comes to."""
    rows = []
    for one in found:
        better, worse = (sum(sign * gap > 0 for gap in one.gaps) for sign in (1, -1))
        counts = f"{better} / {len(one.gaps) - better - worse} / {worse}"
        paper = "" if math.isnan(one.paper) else signed(one.paper, 2)
        cells = [f"{one.who} minus {one.other}", f"{one.where} ({len(one.gaps)})", paper, one.gap_text, counts]
        rows.append((one.question, [*cells, "" if math.isnan(one.p) else f"{one.p:.2g}", one.verdict]))
    heads = ["difference in accuracy", "where (sets)", "the paper's", "ours", "better / equal / worse", "p", "verdict"]
    about = (
        "Linear probes. The paper's: of Di-COT and CaTT over the same sets, of variants over all of its own. Ours: "
        "mean over data sets of the means over common seeds, ± half of a 95 % interval over data sets (Student's t). "
        "p: Wilcoxon signed-rank over data sets, Holm's correction within a question. Stand-ins are other data and too "
        "few for a test. With k fixed at 2 nothing is learned on the sets that Table 10 names (D-03)."
    )
    return text_table("question", rows, heads, about)
