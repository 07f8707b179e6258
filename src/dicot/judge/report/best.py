"""The report of the suite `best`: means over groups of data sets, what the preset gains there, and seconds."""

from collections.abc import Iterator, Sequence
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


@dataclass(frozen=True)
class Collected:
    """Data sets that are averaged, and whether all of them helped to choose the preset."""

    title: str
    sets: tuple[str, ...]
    chosen_on: bool = False


@dataclass(frozen=True)
class Line:
    """A line of a table: means over data sets of means over seeds."""

    title: str
    sets: list[str]
    seeds: list[int]
    means: dict[str, float]  # by contender
    runs: dict[str, int]  # by contender: of the pairs of a data set and a seed that count, how many it has
    n_runs: int
    left_out: list[str]  # data sets that one of CORE lacks

    def cell(self, name: str, text: str) -> Cell:
        """Show the mean of a contender; one over fewer runs cannot be called the best."""
        if pd.isna(mean := self.means.get(name, float("nan"))):
            return Cell(NOT_RUN, ABSENT)
        if self.runs[name] < self.n_runs:
            return Cell(f"{text} ({self.runs[name]} of {self.n_runs} runs)")
        return Cell(text, mean=round(mean, 2))


def gains(data: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """Give titles and tables: the gains on what is only reported, on what was chosen on, and the seconds."""
    data, dropped = _one_line_each(data[data.source == data.target])
    if SUBJECT not in set(data.contender):
        raise InputError(f"There is no record of {SUBJECT!r}, which this report is about. Run `dicot bench best`.")
    require_controls(data, "Gains of the preset")
    known = groups(sorted(data.target.unique(), key=natural))
    for title, chosen_on in (("What the preset gains", False), ("The same where it was chosen", True)):
        own = [group for group in known if group.chosen_on == chosen_on]
        if lines := [line for group in own for line in gain_lines(data, group)]:
            yield title, gain_table(data, lines, dropped)
    if lines := [line for group in known for line in second_lines(data, group)]:
        yield "Seconds to fit and to embed a data set", second_table(data, lines)


def short_table(data: pd.DataFrame) -> Table:
    """Show the rows of SHORT_ROWS: the preset, those it is compared with and the controls."""
    data, _ = _one_line_each(latest(data[data.source == data.target]))
    require_controls(data, "The table of the preset")
    known = {group.title: group for group in groups(sorted(data.target.unique(), key=natural))}
    rows: list[tuple[str, list[Cell | str]]] = []
    seeds: set[int] = set()
    for title, (group, protocol) in SHORT_ROWS.items():
        for line in gain_lines(data, known[group], [protocol]) if group in known else ():
            cells = mark_best([line.cell(name, f"{line.means.get(name, 0.0):.1f}") for name in CORE])
            rows.append((title, [*cells, str(len(line.sets))]))
            seeds |= set(line.seeds)
    about = f"{ABOUT[:-1]} {', '.join(map(str, sorted(seeds)))}. {CHOSEN_ON}"
    return text_table("data", rows, [*CORE, "sets"], about)


def groups(names: Sequence[str]) -> list[Collected]:
    """Sort data sets into groups: three sensor sets, both halves of UCR, UEA, and every other large set by itself."""
    families = {name: family_of(name) for name in names}
    ucr = [name for name in names if families[name] == "ucr"]
    found = [
        Collected(SENSORS, tuple(name for name in SENSOR_SETS if name in names)),
        Collected(UCR, tuple(name for name in ucr if name not in DEVELOPMENT)),
        Collected(UEA, tuple(name for name in names if families[name] == "uea")),
        *(Collected(name, (name,)) for name in names if families[name] == "large" and name not in SENSOR_SETS),
        Collected(f"{UCR}, development half", tuple(name for name in ucr if name in DEVELOPMENT), chosen_on=True),
    ]
    return [group for group in found if group.sets]


def gain_lines(data: pd.DataFrame, group: Collected, protocols: Sequence[str] = tuple(ASKED)) -> Iterator[Line]:
    """Average every protocol over a group."""
    for wanted in protocols:
        # A protocol that was run on two choices of labelled cases has two names.
        for protocol in sorted(name for name in data.protocol.unique() if name.split(" (")[0] == wanted):
            own = data[(data.protocol == protocol) & (data.metric == ASKED[wanted])]
            factor = 100 if ASKED[wanted] == "nmi" else 1
            line = averaged(own.assign(value=factor * own.value), "value", group, f"{group.title}: {protocol}")
            if line is not None:
                yield line


def second_lines(data: pd.DataFrame, group: Collected) -> Iterator[Line]:
    """Give the seconds to fit and to embed, the mean of a data set: as measured, or else as the scored runs took."""
    measured = data[data.protocol == MEASURED]
    scored = data[~data.protocol.str.startswith(NOT_EMBEDDED)]
    for name in ("fit_seconds", "embed_seconds"):
        own, column = (measured[measured.metric == name], "value") if len(measured) else (scored, name)
        if (line := averaged(own, column, group, f"{group.title}: {name.split('_')[0]}")) is not None:
            yield line


def averaged(data: pd.DataFrame, column: str, group: Collected, title: str) -> Line | None:
    """Average a column of the rows of a group, over seeds and then over data sets; None where there is nothing.

    Those pairs of a data set and a seed count that all contenders of CORE have, as far as they were run at all: every
    difference of two of them is then one over the same runs.
    """
    own = data[data.target.isin(group.sets)]
    wide = own.groupby(["target", "seed", "contender"])[column].agg(lambda v: v.mean(skipna=False)).unstack()
    core = [name for name in CORE if name in wide and wide[name].notna().any()]
    if SUBJECT not in core:
        return None
    common = wide.dropna(subset=core)
    sets = sorted(common.index.unique("target"), key=natural)
    return Line(
        title,
        sets,
        sorted(common.index.unique("seed").tolist()),
        common.groupby(level="target").mean().mean().to_dict(),
        common.count().to_dict(),
        len(common),
        sorted(set(own.target) - set(sets), key=natural),
    )


def gain_table(data: pd.DataFrame, lines: Sequence[Line], dropped: Sequence[str]) -> Table:
    """Show every contender's mean and the gains on three of them, with the number of sets and the seeds."""
    names = _contenders(data)
    rows: list[tuple[str, list[Cell | str]]] = []
    for line in lines:
        shown = mark_best([line.cell(name, f"{line.means.get(name, 0.0):.2f}") for name in names])
        differences = [line.means[SUBJECT] - line.means.get(rival, float("nan")) for rival in RIVALS]
        gained = [Cell(NOT_RUN, ABSENT) if pd.isna(gain) else Cell(f"{gain:+.2f}") for gain in differences]
        rows.append((line.title, [*shown, *gained, str(len(line.sets)), ", ".join(map(str, line.seeds))]))
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
        cells = [line.cell(name, seconds_text(line.means.get(name, 0.0))) for name in names]
        paper = line.means.get(PAPER, float("nan"))
        ratio = f"{line.means[SUBJECT] / paper:.2f}" if paper > 0 else NOT_RUN
        rows.append((line.title, [*cells, ratio, str(len(line.sets))]))
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
