"""The report of the suite `best`: means over groups of data sets, what the preset gains there, and seconds."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from dicot.core.errors import InputError
from dicot.data.datasets import family_of
from dicot.data.datasets.names import DEVELOPMENT
from dicot.judge.report.frame import CONTROLS, SETTINGS, latest, natural, note, placed, require_controls
from dicot.judge.report.standings import seconds_text
from dicot.judge.report.tables import ABSENT, NOT_RUN, Cell, Table, mark_best, text_table

SUBJECT, PAPER = "best", "dicot"
RIVALS = ("minirocket", PAPER, "calibrated")  # whom the gains are over
CORE = (SUBJECT, *RIVALS, *(name for name in CONTROLS if name not in RIVALS))  # a set counts where all of them have it
SENSOR_SETS = ("hapt", "wisdm2019", "sleepedf-night")
SENSORS, UCR, UEA = "Phone, watch and sleep recordings", "UCR archive", "UEA archive"
CHOSEN = f"{UCR}, development half"  # all of these helped to choose the preset
ASKED = {  # protocols, and the metric that is shown of each
    "few_5": "accuracy",
    "semi_5": "accuracy",
    "ridge": "accuracy",
    "linear": "accuracy",
    "clustering": "nmi",
}
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

    title: str
    runs: pd.DataFrame  # (data set, seed) x contender: the pairs that count
    left_out: list[str]  # data sets that one of CORE lacks

    @property
    def n_sets(self) -> str:
        """How many data sets count."""
        return str(self.runs.index.unique("target").size)

    @property
    def seeds(self) -> list[int]:
        """The seeds that count."""
        return sorted(self.runs.index.unique("seed").tolist())

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
    data, dropped = _one_line_each(data[data.source == data.target])
    if SUBJECT not in set(data.contender):
        raise InputError(f"There is no record of {SUBJECT!r}, which this report is about. Run `dicot bench best`.")
    require_controls(data, "Gains of the preset")
    known = groups(data.target.unique())
    for title, chosen_on in (("What the preset gains", False), ("The same where it was chosen", True)):
        own = [group for group in known if (group == CHOSEN) == chosen_on]
        if lines := [line for group in own for line in gain_lines(data, group, known[group])]:
            yield title, gain_table(data, lines, dropped)
    if lines := [line for group, sets in known.items() for line in second_lines(data, group, sets)]:
        yield "Seconds to fit and to embed a data set", second_table(data, lines)


def short_table(data: pd.DataFrame) -> Table:
    """Show the rows of SHORT_ROWS: the preset, those it is compared with and the controls."""
    data, _ = _one_line_each(latest(data[data.source == data.target]))
    require_controls(data, "The table of the preset")
    known = groups(data.target.unique())
    lines = [
        (title, line)
        for title, (group, protocol) in SHORT_ROWS.items()
        if group in known
        for line in gain_lines(data, group, known[group], [protocol])
    ]
    rows: list[tuple[str, list[Cell | str]]] = [
        (title, [*mark_best([line.cell(name, "{:.1f}".format) for name in CORE]), line.n_sets]) for title, line in lines
    ]
    seeds = sorted({seed for _, line in lines for seed in line.seeds})
    return text_table("data", rows, [*CORE, "sets"], f"{ABOUT[:-1]} {', '.join(map(str, seeds))}. {CHOSEN_ON}")


def groups(names: Sequence[str]) -> dict[str, list[str]]:
    """Sort data sets into groups: three sensor sets, both halves of UCR, UEA, and every other large set by itself."""
    of = {name: family_of(name) for name in sorted(names, key=natural)}
    found = {
        SENSORS: [name for name in SENSOR_SETS if name in of],
        UCR: [name for name in of if of[name] == "ucr" and name not in DEVELOPMENT],
        UEA: [name for name in of if of[name] == "uea"],
        **{name: [name] for name in of if of[name] == "large" and name not in SENSOR_SETS},
        CHOSEN: [name for name in of if of[name] == "ucr" and name in DEVELOPMENT],
    }
    return {title: sets for title, sets in found.items() if sets}


def gain_lines(
    data: pd.DataFrame, group: str, sets: Sequence[str], protocols: Sequence[str] = tuple(ASKED)
) -> Iterator[Line]:
    """Average every protocol over a group."""
    for wanted in protocols:
        # A protocol that was run on two choices of labelled cases has two names.
        for protocol in sorted(name for name in data.protocol.unique() if name.split(" (")[0] == wanted):
            own = data[(data.protocol == protocol) & (data.metric == ASKED[wanted])]
            factor = 100 if ASKED[wanted] == "nmi" else 1
            yield from averaged(own.assign(value=factor * own.value), "value", sets, f"{group}: {protocol}")


def second_lines(data: pd.DataFrame, group: str, sets: Sequence[str]) -> Iterator[Line]:
    """Give the seconds to fit and to embed, the mean of a data set: as measured, or else as the scored runs took."""
    measured = data[data.protocol == MEASURED]
    scored = data[~data.protocol.str.startswith(NOT_EMBEDDED)]
    for name in ("fit_seconds", "embed_seconds"):
        own, column = (measured[measured.metric == name], "value") if len(measured) else (scored, name)
        yield from averaged(own, column, sets, f"{group}: {name.split('_')[0]}")


def averaged(data: pd.DataFrame, column: str, sets: Sequence[str], title: str) -> Iterator[Line]:
    """Make the line of a column over the rows of these data sets; nothing where the preset has none."""
    own = data[data.target.isin(sets)]
    wide = own.groupby(["target", "seed", "contender"])[column].agg(lambda v: v.mean(skipna=False)).unstack()
    core = [name for name in CORE if name in wide and wide[name].notna().any()]
    if SUBJECT in core:
        common = wide.dropna(subset=core)
        yield Line(title, common, sorted(set(own.target) - set(common.index.unique("target")), key=natural))


def gain_table(data: pd.DataFrame, lines: Sequence[Line], dropped: Sequence[str]) -> Table:
    """Show every contender's mean and the gains on three of them, with the number of sets and the seeds."""
    names = _contenders(data)
    rows: list[tuple[str, list[Cell | str]]] = []
    for line in lines:
        shown = mark_best([line.cell(name, "{:.2f}".format) for name in names])
        differences = [line.mean(SUBJECT) - line.mean(rival) for rival in RIVALS]
        gained = [Cell(NOT_RUN, ABSENT) if pd.isna(gain) else Cell(f"{gain:+.2f}") for gain in differences]
        rows.append((line.title, [*shown, *gained, line.n_sets, ", ".join(map(str, line.seeds))]))
    headings = [*names, *(f"gain on {name}" for name in RIVALS), "sets", "seeds"]
    left_out = sorted({name for line in lines for name in line.left_out}, key=natural)
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
    names = _contenders(shown)
    rows: list[tuple[str, list[Cell | str]]] = []
    for line in lines:
        ratio = f"{line.mean(SUBJECT) / paper:.2f}" if (paper := line.mean(PAPER)) > 0 else NOT_RUN
        rows.append((line.title, [*(line.cell(name, seconds_text) for name in names), ratio, line.n_sets]))
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
    a protocol was not run with them, the next ones.
    """
    runs = placed(data, data.target, SETTINGS)
    runs = runs.assign(of_line=runs.groupby("line", observed=True).line.transform("size"))
    place = ["contender", "target", "protocol"]
    first = runs.sort_values(["of_line", "line"], ascending=[False, True]).drop_duplicates(place)
    kept = runs.merge(first[[*place, "line"]], on=[*place, "line"])
    used = set(kept.line)
    return kept.drop(columns="of_line"), [str(line) for line in runs.line.cat.categories if line not in used]


def _contenders(data: pd.DataFrame) -> list[str]:
    """List the contenders in the order of a table, the preset first."""
    names = list(dict.fromkeys(data.sort_values("line").contender))
    return [SUBJECT, *(name for name in names if name != SUBJECT)]
