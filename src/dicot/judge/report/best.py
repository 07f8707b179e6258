"""The report of the suite `best`: means over groups of data sets, what the preset gains there, and seconds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from dicot.core.errors import InputError
from dicot.data.datasets import family_of
from dicot.data.datasets.names import DEVELOPMENT
from dicot.judge.report.frame import CONTROLS, SETTINGS, latest, natural, note, placed, require_controls
from dicot.judge.report.scores import seconds_text
from dicot.judge.report.tables import ABSENT, NOT_RUN, Cell, Table, mark_best, text_table

SUBJECT, PAPER = "best", "dicot"
RIVALS = ("minirocket", PAPER, "calibrated")  # whom the gains are over
CORE = (SUBJECT, *RIVALS, *(name for name in CONTROLS if name not in RIVALS))  # a set counts where all of them have it
SENSOR_SETS = ("hapt", "wisdm2019", "sleepedf-night")
SENSORS, UCR, UEA = "Phone, watch and sleep recordings", "UCR archive", "UEA archive"
CHOSEN = f"{UCR}, development half"  # all of these helped to choose the preset
# Protocols, and the metric that is shown of each.
ASKED = dict.fromkeys(("few_5", "semi_5", "ridge", "linear"), "accuracy") | {"clustering": "nmi"}
SHORT_ROWS = {  # of the table in the README: its name, the group and the protocol
    f"{SENSORS}, 5 labels per class": (SENSORS, "few_5"),
    f"{SENSORS}, all labels": (SENSORS, "ridge"),
    f"{SENSORS}, clusters (NMI)": (SENSORS, "clustering"),
    f"{UCR}, 5 labels per class": (UCR, "few_5"),
    f"{UCR}, all labels": (UCR, "ridge"),
    f"{UEA}, all labels": (UEA, "ridge"),
}
CHOSEN_ON = "The preset was chosen on HAPT, the sleep night, the development half of UCR and 7 of 14 UEA sets."
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

    @property
    def n_sets(self) -> str:
        return str(self.runs.index.unique("target").size)

    @property
    def seeds(self) -> list[int]:
        return sorted(self.runs.index.unique("seed"))

    def mean(self, name: str) -> float:
        """The mean of a contender; NaN where it was not run."""
        return float(self.runs[name].groupby("target").mean().mean()) if name in self.runs else float("nan")

    def cell(self, name: str, form: Callable[[float], str]) -> Cell:
        """Show the mean of a contender; one over fewer runs cannot be called the best."""
        if pd.isna(mean := self.mean(name)):
            return Cell(NOT_RUN, ABSENT)
        count, total = self.runs[name].count(), len(self.runs)
        if count < total:
            return Cell(f"{form(mean)} ({count} of {total} runs)")
        return Cell(form(mean), mean=round(mean, 2))


def gains(data: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """Give titles and tables: the gains on what is only reported, on what was chosen on, and the seconds."""
    data, dropped = _one_line_each(data)
    if SUBJECT not in set(data.contender):
        raise InputError(f"There is no record of {SUBJECT!r}, which this report is about. Run `dicot bench best`.")
    require_controls(data, "Gains of the preset")
    lines = gain_lines(data)
    for title, chosen_on in (("What the preset gains", False), ("The same where it was chosen", True)):
        if own := [line for line in lines if (line.group == CHOSEN) == chosen_on]:
            yield title, gain_table(data, own, dropped)
    if lines := second_lines(data):
        yield "Seconds to fit and to embed a data set", second_table(data, lines)


def short_table(data: pd.DataFrame) -> Table:
    """Show the rows of SHORT_ROWS: the preset, those it is compared with and the controls."""
    data, _ = _one_line_each(latest(data))
    require_controls(data, "The table of the preset")
    lines = {(line.group, line.what.split(" (")[0]): line for line in gain_lines(data)}
    shown = [(title, lines[place]) for title, place in SHORT_ROWS.items() if place in lines]
    cells = {title: mark_best([line.cell(name, "{:.1f}".format) for name in CORE]) for title, line in shown}
    rows = [(title, [*cells[title], Cell(line.n_sets)]) for title, line in shown]
    seeds = sorted({seed for _, line in shown for seed in line.seeds})
    return text_table("data", rows, [*CORE, "sets"], f"{ABOUT[:-1]} {', '.join(map(str, seeds))}. {CHOSEN_ON}")


def group_of(name: str) -> str:
    """Name the group of a data set: three sensor sets, both halves of UCR, UEA; any other large set is its own."""
    if name in SENSOR_SETS:
        return SENSORS
    family = family_of(name)
    return {"ucr": CHOSEN if name in DEVELOPMENT else UCR, "uea": UEA, "large": name}.get(family or "", "")


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
    """Make a line of every group and `what`, in this order, of the column `number`; none where the preset has none."""
    others = sorted(set(rows.target.map(group_of)) - {SENSORS, UCR, UEA, CHOSEN, ""}, key=natural)
    rows = rows.assign(
        group=pd.Categorical(rows.target.map(group_of), [SENSORS, UCR, UEA, *others, CHOSEN]),
        what=pd.Categorical(rows.what, order),
    )
    lines = []
    for (group, what), own in rows.groupby(["group", "what"], observed=True):
        wide = own.groupby(["target", "seed", "contender"]).number.agg(lambda v: v.mean(skipna=False)).unstack()
        core = [name for name in CORE if name in wide and wide[name].notna().any()]
        if SUBJECT in core:
            common = wide.dropna(subset=core)
            lines.append(Line(group, what, common, set(own.target) - set(common.index.unique("target"))))
    return lines


def gain_table(data: pd.DataFrame, lines: Sequence[Line], dropped: Sequence[str]) -> Table:
    """Show every contender's mean and the gains on three of them, with the number of sets and the seeds."""
    names, rows = _contenders(data), []
    for line in lines:
        shown = mark_best([line.cell(name, "{:.2f}".format) for name in names])
        gaps = [line.mean(SUBJECT) - line.mean(rival) for rival in RIVALS]
        gained = [Cell(NOT_RUN, ABSENT) if pd.isna(gap) else Cell(f"{gap:+.2f}") for gap in gaps]
        counts = [Cell(line.n_sets), Cell(", ".join(map(str, line.seeds)))]
        rows.append((f"{line.group}: {line.what}", [*shown, *gained, *counts]))
    headings = [*names, *(f"gain on {name}" for name in RIVALS), "sets", "seeds"]
    left_out = sorted(set().union(*(line.left_out for line in lines)), key=natural)
    about = note(
        data[data.protocol.str.split(" (", regex=False).str[0].isin(list(ASKED))],
        f"{ABOUT} A data set counts with the seeds that all of {', '.join(CORE)} have there. Bold: highest mean.",
        CHOSEN_ON,
        f"Not counted, because one of these has no score: {', '.join(left_out)}." if left_out else "",
        f"Other settings of the same contenders are left out: {', '.join(dropped)}." if dropped else "",
    )
    return text_table("data sets, protocol", rows, headings, about)


def second_table(data: pd.DataFrame, lines: Sequence[Line]) -> Table:
    """Show the seconds of every contender, and those of the preset as a multiple of the paper's method."""
    measured = data[data.protocol == MEASURED]
    shown = measured if len(measured) else data
    names, rows = _contenders(shown), []
    for line in lines:
        ratio = f"{line.mean(SUBJECT) / paper:.2f}" if (paper := line.mean(PAPER)) > 0 else NOT_RUN
        cells = [line.cell(name, seconds_text) for name in names]
        rows.append((f"{line.group}: {line.what}", [*cells, Cell(ratio), Cell(line.n_sets)]))
    devices = sorted(set(shown.device) - {""})
    about = note(
        shown.assign(subsets=""),
        "Means over data sets. To embed: all labelled cases of both parts.",
        "Each fit had the device for itself." if len(measured) else "Fits that share a GPU have their share of it.",
        f"Measured on {' and '.join(devices)}." if devices else "",
        "Times on different devices do not compare." if len(devices) > 1 else "",
    )
    return text_table("data sets", rows, [*names, f"{SUBJECT} / {PAPER}", "sets"], about)


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
    """List the contenders in the order of a table, the preset first."""
    names = list(dict.fromkeys(data.sort_values("line").contender))
    return [SUBJECT, *(name for name in names if name != SUBJECT)]
