"""The report of the suite `best`: means over groups of data sets, gains, seconds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from bench.datasets.names import DEVELOPMENT
from bench.report.frame import CONTROLS, SETTINGS, latest, note, placed, require_controls
from bench.report.scores import seconds_text
from dicot.core.errors import InputError
from dicot.data.datasets import family_of
from dicot.judge.report.frame import natural
from dicot.judge.report.tables import ABSENT, NOT_RUN, Cell, Table, mark_best, text_table

SUITE, PAPER, RIVAL = "best", "dicot", "minirocket"
INSTANT, BEST, BEFORE = SUBJECTS = ("instant", "best", "best-2026.11")
UNTRAINED, CALIBRATED = OF_THE_BOX = ("instant untrained", "instant calibrated")  # controls of the encoder in the box
CORE = (*SUBJECTS, RIVAL, PAPER, *CONTROLS)  # a set counts where all of them have it
SHORT = (*SUBJECTS, RIVAL, "hydra-multirocket", "quant", "catch22", UNTRAINED, PAPER)  # columns in the README
GAINS = (
    *((subject, RIVAL) for subject in SUBJECTS),
    *((INSTANT, BEFORE), (BEST, BEFORE), (INSTANT, UNTRAINED), (INSTANT, CALIBRATED), (BEST, INSTANT)),
)
SENSORS, UCR, UEA = FAMILIES = ("Sensor recordings", "UCR archive", "UEA archive")
CHOSEN = ", development"  # behind the name of a group
# Protocols, and the metric that is shown of each.
ASKED = dict.fromkeys(("few_5", "semi_5", "ridge", "linear", "knn_all"), "accuracy") | {"clustering": "nmi"}
# Systems whose authors classify with trees: the protocols that stand where others have a linear probe.
OWN_CLASSIFIER = {
    "quant": {"trees": "ridge", "trees_5": "few_5"},
    "catch22": {"forest": "ridge", "forest_5": "few_5"},
}
WITHOUT_CLASSIFIER = ("clustering", "cost")  # protocols that look at the features alone
TITLES = {"quant": "QUANT"}
FEATURES_OF = "{} features"  # the name of a system's features with a classifier that is not its own
BY_TREES = (
    "QUANT is classified by extremely randomised trees and catch22 by a random forest, as their authors do it. "
    '"QUANT features" and "catch22 features" are the same features with the classifier of the row.'
)
WORDS = {"few_5": "5 labels per class", "ridge": "all labels", "clustering": "clusters (NMI)"}
SHORT_ROWS = {  # of the table in the README: its name, the group and the protocol
    f"{group}, {WORDS[what]}": (group, what)
    for group in FAMILIES
    for what in (("few_5", "ridge", "clustering") if group == SENSORS else ("few_5", "ridge"))
}
# Of every table: whether the encoder in the box has seen its data sets.
SEEN = {
    False: "The encoder in the box has seen none of these data sets: it was trained on development sets and synthetic "
    "series, and everything was chosen there.",
    True: "These are development sets: the encoder in the box was trained on them, and everything was chosen there.",
}
ABOUT = "Accuracy in percent, NMI times 100: means over data sets of means over seeds."
MEASURED = "cost"  # the protocol whose fits have the device for themselves
NOT_EMBEDDED = ("finetune-", MEASURED)  # protocols whose time to fit is not that of the embedding alone


@dataclass(frozen=True, eq=False)
class Line:
    """A line of a table: means over data sets of means over seeds.

    Those pairs of a data set and a seed count that all contenders of CORE have, as far as they were run at all: every
    difference of two of them is then one over the same runs.
    """

    group: str
    what: str
    runs: pd.DataFrame  # (data set, seed) x contender: the pairs that count
    left_out: set[str]  # data sets that one of CORE lacks

    def distinct(self, level: str) -> list[Any]:
        """The data sets (`target`) or the seeds (`seed`) that count."""
        return sorted(self.runs.index.unique(level))

    def mean(self, name: str) -> float:
        """The mean of a contender; NaN where it was not run."""
        return float(self.runs[name].groupby("target").mean().mean()) if name in self.runs else float("nan")

    def gain(self, name: str, rival: str) -> float:
        """The difference of two means, over the runs that both have."""
        if not {name, rival} <= set(self.runs):
            return float("nan")
        both = self.runs[[name, rival]].dropna()
        return float((both[name] - both[rival]).groupby("target").mean().mean())

    def cell(self, name: str, form: Callable[[float], str]) -> Cell:
        """Show the mean of a contender; one over fewer runs cannot be called the best, one over fewer sets is none."""
        if pd.isna(mean := self.mean(name)):
            return Cell(NOT_RUN, ABSENT)
        there, sets = self.runs[name].dropna().index.unique("target"), self.distinct("target")
        if len(there) < len(sets):  # easier ones, perhaps
            return Cell(f"{len(there)} of {len(sets)} sets", ABSENT)
        count, total = self.runs[name].count(), len(self.runs)
        if count < total:
            return Cell(f"{form(mean)} ({count} of {total} runs)")
        return Cell(form(mean), mean=round(mean, 2))

    def counted(self) -> list[Cell]:
        """Show how many data sets count, or which where they are few, and the seeds."""
        sets = self.distinct("target")
        told = str(len(sets)) if len(sets) > 3 else ", ".join(sets)
        return [Cell(told), Cell(", ".join(map(str, self.distinct("seed"))))]


def gains(data: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """Give titles and tables: the gains on reported sets and on development sets, and the seconds.

    `data` are rows as `by_own_classifier` returns them.
    """
    data, dropped = _one_line_each(data)
    if not set(SUBJECTS) & set(data.contender):
        raise InputError(f"There is no record of {' or '.join(SUBJECTS)}. Run `python -m bench run best`.")
    require_controls(data, "Gains of the presets")
    lines = gain_lines(data)
    for title, seen in (("Reported sets", False), ("Development sets", True)):
        if own := [line for line in lines if line.group.endswith(CHOSEN) == seen]:
            yield title, gain_table(data, own, dropped, SEEN[seen])
    if lines := second_lines(data):
        yield "Seconds to fit and to embed a data set", second_table(data, lines)


def short_table(data: pd.DataFrame) -> Table:
    """Show the rows of SHORT_ROWS: the presets, those they are compared with and the control of the box."""
    data, _ = _one_line_each(by_own_classifier(latest(data)))
    require_controls(data, "The table of the presets")
    lines = {(line.group, line.what.split(" (")[0]): line for line in gain_lines(data)}
    shown = [(title, lines[place]) for title, place in SHORT_ROWS.items() if place in lines]
    names = [name for name in SHORT if name in set(data.contender)]
    rows = [
        (title, [*mark_best([line.cell(name, "{:.1f}".format) for name in names]), line.counted()[0]])
        for title, line in shown
    ]
    seeds = sorted({seed for _, line in shown for seed in line.distinct("seed")})
    trees = BY_TREES.split(". ")[0] + ". " if set(OWN_CLASSIFIER) & set(names) else ""
    about = f"{ABOUT[:-1]} {', '.join(map(str, seeds))}. {trees}{SEEN[False]}"
    return text_table("data", rows, [*names, "sets"], about)


def by_own_classifier(data: pd.DataFrame) -> pd.DataFrame:
    """Give each named system the scores of its authors' classifier, and call its features with other ones "features".

    The linear probes of a table are ours: a number of theirs is no number of QUANT or catch22.
    """
    data = data.copy()
    for system, protocols in OWN_CLASSIFIER.items():
        of_system = data.contender == system
        by_trees = of_system & data.protocol.isin(protocols)
        by_others = of_system & ~data.protocol.isin([*protocols, *WITHOUT_CLASSIFIER])
        data.loc[by_trees, "protocol"] = data.loc[by_trees, "protocol"].map(protocols)
        data.loc[by_others, "contender"] = FEATURES_OF.format(TITLES.get(system, system))
    return data


def group_of(name: str) -> str:
    """Name the group of a data set: its family, and whether it is a development set; empty for any other family."""
    group = {"large": SENSORS, "ucr": UCR, "uea": UEA}.get(family_of(name) or "", "")
    return group + CHOSEN if group and name in DEVELOPMENT else group


def gain_lines(data: pd.DataFrame) -> list[Line]:
    """Average what was asked, every protocol over every group."""
    # A protocol that was run on two choices of labelled cases has two names.
    rows = data[data.metric == data.protocol.str.split(" (", regex=False).str[0].map(ASKED)]
    names = sorted(rows.protocol.unique(), key=lambda name: (list(ASKED).index(name.split(" (")[0]), name))
    return averaged(
        rows.assign(what=rows.protocol, number=rows.value.where(rows.metric != "nmi", 100 * rows.value)), names
    )


def second_lines(data: pd.DataFrame) -> list[Line]:
    """Give the seconds to fit and to embed, the mean of a data set: as measured, or else as the scored runs took."""
    names = ["fit_seconds", "embed_seconds"]
    rows = data[(data.protocol == MEASURED) & data.metric.isin(names)].assign(number=lambda rows: rows.value)
    if rows.empty:
        scored = data[~data.protocol.str.startswith(NOT_EMBEDDED)].drop(columns="metric")
        rows = scored.melt(["contender", "target", "seed"], names, "metric", "number")
    return averaged(rows.assign(what=rows.metric.str.removesuffix("_seconds")), ["fit", "embed"])


def averaged(rows: pd.DataFrame, order: Sequence[str]) -> list[Line]:
    """Make a line of every group and `what`, in this order, of the column `number`; none where no preset has one."""
    rows = rows.assign(
        group=pd.Categorical(rows.target.map(group_of), [*FAMILIES, *(name + CHOSEN for name in FAMILIES)]),
        what=pd.Categorical(rows.what, order),
    )
    lines = []
    for (group, what), own in rows.groupby(["group", "what"], observed=True):
        wide = own.groupby(["target", "seed", "contender"]).number.agg(lambda v: v.mean(skipna=False)).unstack()
        core = [name for name in CORE if name in wide and wide[name].notna().any()]
        if set(SUBJECTS) & set(core):
            common = wide.dropna(subset=core)
            lines.append(Line(group, what, common, set(own.target) - set(common.index.unique("target"))))
    return lines


def gain_table(data: pd.DataFrame, lines: Sequence[Line], dropped: Sequence[str], seen: str) -> Table:
    """Show every contender's mean and the gains of the presets, with the number of sets and the seeds."""
    names, rows = _contenders(data), []
    pairs = [(name, rival) for name, rival in GAINS if {name, rival} <= set(names)]
    for line in lines:
        shown = mark_best([line.cell(name, "{:.2f}".format) for name in names])
        gaps = [line.gain(name, rival) for name, rival in pairs]
        gained = [Cell(NOT_RUN, ABSENT) if pd.isna(gap) else Cell(f"{gap:+.2f}") for gap in gaps]
        rows.append((f"{line.group}: {line.what}", [*shown, *gained, *line.counted()]))
    headings = [*names, *(f"{name} over {rival}" for name, rival in pairs), "sets", "seeds"]
    left_out = sorted(set().union(*(line.left_out for line in lines)), key=natural)
    core = [name for name in CORE if name in names]
    about = note(
        data[data.protocol.str.split(" (", regex=False).str[0].isin(list(ASKED))],
        f"{ABOUT} A data set counts with the seeds that all of {', '.join(core)} have there. Bold: highest mean.",
        seen,
        BY_TREES if set(OWN_CLASSIFIER) & set(names) else "",
        f"Not counted, because one of these has no score: {', '.join(left_out)}." if left_out else "",
        f"Other settings of the same contenders are left out: {', '.join(dropped)}." if dropped else "",
    )
    return text_table("data sets, protocol", rows, headings, about)


def second_table(data: pd.DataFrame, lines: Sequence[Line]) -> Table:
    """Show the seconds of every contender; the encoder in the box has seen the development sets."""
    measured = data[data.protocol == MEASURED]
    shown = measured if len(measured) else data
    names, rows = _contenders(shown), []
    for line in lines:
        cells = [line.cell(name, seconds_text) for name in names]
        rows.append((f"{line.group}: {line.what}", [*cells, line.counted()[0]]))
    devices = sorted(set(shown.device) - {""})
    about = note(
        shown.assign(subsets=""),
        "Means over data sets. To embed: all labelled cases of both parts.",
        "Each fit had the device for itself." if len(measured) else "Fits that share a GPU have their share of it.",
        f"Measured on {' and '.join(devices)}." if devices else "",
        "Times on different devices do not compare." if len(devices) > 1 else "",
        "The encoder in the box has seen the development sets and no other.",
    )
    return text_table("data sets", rows, [*names, "sets"], about)


def _one_line_each(data: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Keep one choice of settings for every contender, data set and protocol, and name what is kept nowhere.

    Settings are schedules, precisions and trials. Those count that most rows of a contender have; where a data set or
    a protocol was not run with them, the next ones. Transfers are left out.
    """
    own = data[data.source == data.target]
    runs = placed(own, own.target, SETTINGS)
    runs = runs.assign(of_line=runs.groupby("line", observed=True).line.transform("size"))
    place = ["contender", "target", "protocol"]
    first = runs.sort_values(["of_line", "line"], ascending=[False, True]).drop_duplicates(place)
    kept = runs.merge(first[[*place, "line"]], on=[*place, "line"])
    return kept, [str(line) for line in runs.line.cat.categories if line not in set(kept.line)]


def _contenders(data: pd.DataFrame) -> list[str]:
    """List the contenders in the order of a table, the presets first, the controls last."""
    names = list(dict.fromkeys(data.sort_values("line").contender))
    first = [name for name in SUBJECTS if name in names]
    last = [name for name in (*OF_THE_BOX, *CONTROLS) if name in names]
    return [*first, *(name for name in names if name not in (*first, *last)), *last]
