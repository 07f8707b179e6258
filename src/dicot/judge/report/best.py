"""The report of the suite `best`: means over groups of data sets, what the preset gains on others, and seconds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pandas as pd

from dicot.core.errors import InputError
from dicot.data.datasets import family_of
from dicot.data.datasets.development import DEVELOPMENT
from dicot.judge.report.frame import CONTROLS, SETTINGS, latest, natural, note, placed, require_controls
from dicot.judge.report.standings import seconds_text
from dicot.judge.report.tables import ABSENT, NOT_RUN, Cell, Table, mark_best, text_table

SUBJECT, PAPER = "best", "dicot"
RIVALS = {"minirocket": "MiniRocket", PAPER: "Di-COT", "calibrated": "calibrated"}  # whom the gains are over
CORE = (SUBJECT, *RIVALS, *(name for name in CONTROLS if name not in RIVALS))  # a set counts where all of them have it
SENSORS = ("hapt", "wisdm2019", "sleepedf-night")
CHOSEN_ON = "The preset was chosen on HAPT, the sleep night, the development half of UCR and 7 of 14 UEA sets."
MEASURED = "cost"  # the protocol whose fits have the device for themselves
NOT_EMBEDDED = ("finetune-", MEASURED)  # protocols whose time to fit is not that of the embedding alone

Goals = Mapping[str, float]  # points by rival


class Question(NamedTuple):
    """What is asked of an embedding, and the protocols that answer; all numbers are shown out of a hundred."""

    title: str
    protocols: tuple[str, ...]
    metric: str = "accuracy"
    factor: float = 1.0


FIVE = Question("5 labels per class", ("few_5", "semi_5"))
ALL = Question("all labels", ("ridge", "linear"))
CLUSTERS = Question("clustering NMI", ("clustering",), "nmi", 100.0)


class Compared(NamedTuple):
    """Data sets that are averaged, what is asked on them, and what the preset should gain there."""

    title: str
    sets: tuple[str, ...]
    asked: tuple[tuple[Question, Goals], ...]
    wanted: int = 0  # how many sets there should be, where that is known
    chosen_on: bool = False  # whether all of them helped to choose the preset


@dataclass(frozen=True)
class Line:
    """A line of the table of gains: means over data sets of means over seeds."""

    title: str
    sets: list[str]
    seeds: list[int]
    means: dict[str, float]  # by contender, NaN where it was not run
    runs: dict[str, int]  # by contender: of the pairs of a data set and a seed that count, how many it has
    n_runs: int
    left_out: list[str]  # data sets that one of CORE lacks
    goals: Goals = field(default_factory=dict)
    wanted: int = 0
    multiples: dict[str, float] = field(default_factory=dict)  # by data set: of what the paper's method has

    def gain(self, rival: str) -> float:
        """Return by how much the preset is better."""
        return self.means.get(SUBJECT, float("nan")) - self.means.get(rival, float("nan"))


def gains(data: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """Give titles and tables: the gains on what is only reported, on what was chosen on, and the seconds."""
    data, dropped = _one_line_each(data[data.source == data.target])
    if SUBJECT not in set(data.contender):
        raise InputError(
            f"There is no record of {SUBJECT!r}, which this report is about. Run `dicot bench best` first."
        )
    require_controls(data, "Gains of the preset")
    known = groups(sorted(data.target.unique(), key=natural))
    for title, chosen_on in (("What the preset gains", False), ("The same where it was chosen", True)):
        own = [group for group in known if group.chosen_on == chosen_on]
        if lines := [line for group in own for line in gain_lines(data, group)]:
            yield title, gain_table(data, lines, dropped)
    if lines := [line for group in known for line in second_lines(data, group)]:
        yield "Seconds to fit and to embed a data set", second_table(data, lines)


def short_table(data: pd.DataFrame) -> Table:
    """Show the means of the preset, of those it is compared with and of the controls, on what is only reported."""
    data, _ = _one_line_each(latest(data[data.source == data.target]))
    require_controls(data, "The table of the preset")
    known = groups(sorted(data.target.unique(), key=natural))
    lines = [line for group in known if not group.chosen_on for line in gain_lines(data, group)]
    rows: list[tuple[str, list[Cell | str]]] = []
    for line in lines:
        cells = mark_best([_mean_cell(line, name, f"{line.means.get(name, 0.0):.1f}") for name in CORE])
        rows.append((line.title, [*cells, str(len(line.sets))]))
    seeds = sorted({seed for line in lines for seed in line.seeds})
    return text_table(
        "data sets, labels and protocol",
        rows,
        [*CORE, "sets"],
        "Accuracy in percent, NMI times 100: means over data sets of means over the seeds "
        f"{', '.join(map(str, seeds))}. {CHOSEN_ON}",
    )


def groups(names: Sequence[str]) -> list[Compared]:
    """Sort data sets into groups: three sensor sets, both halves of UCR, UEA, and every other large set by itself."""
    families = {name: family_of(name) for name in names}
    ucr, uea = ([name for name in names if families[name] == family] for family in ("ucr", "uea"))
    reported = [name for name in ucr if name not in DEVELOPMENT]
    sensors = tuple(name for name in SENSORS if name in names)
    others = [name for name in names if families[name] == "large" and name not in SENSORS]
    every: tuple[tuple[Question, Goals], ...] = ((FIVE, {}), (ALL, {}), (CLUSTERS, {}))
    found = [
        Compared(
            "HAPT, WISDM, sleep night",
            sensors,
            (
                (FIVE, {"minirocket": 8, PAPER: 10, "calibrated": 8}),
                (ALL, {"minirocket": 1, PAPER: 5, "calibrated": 4}),
                (CLUSTERS, {PAPER: 15, "calibrated": 15}),
            ),
            len(SENSORS),
        ),
        Compared(
            "UCR, reported half",
            tuple(reported),
            (
                (ALL, {"minirocket": 1, PAPER: 3, "calibrated": 3}),
                (FIVE, {"minirocket": 3, PAPER: 4, "calibrated": 4}),
            ),
        ),
        Compared("UEA", tuple(uea), ((ALL, {"minirocket": 2, PAPER: 1, "calibrated": 1}),)),
        *(Compared(name, (name,), every) for name in others),
        Compared(
            "UCR, development half",
            tuple(name for name in ucr if name in DEVELOPMENT),
            ((ALL, {}), (FIVE, {})),
            chosen_on=True,
        ),
    ]
    return [group for group in found if group.sets]


def gain_lines(data: pd.DataFrame, group: Compared) -> Iterator[Line]:
    """Answer each question of a group by each of its protocols."""
    for question, goals in group.asked:
        for wanted in question.protocols:
            # A protocol that was run on two choices of labelled cases has two names.
            for protocol in sorted(name for name in data.protocol.unique() if name.split(" (")[0] == wanted):
                own = data[(data.protocol == protocol) & (data.metric == question.metric)]
                values = own.assign(value=question.factor * own.value)
                title = f"{group.title}: {question.title}, {protocol}"
                if (line := summed_up(values, "value", group, title, goals)) is not None:
                    yield line


def second_lines(data: pd.DataFrame, group: Compared) -> Iterator[Line]:
    """Give the seconds to fit and to embed, the mean of a data set: as measured, or else as the scored runs took."""
    measured = data[data.protocol == MEASURED]
    scored = data[~data.protocol.str.startswith(NOT_EMBEDDED)]
    for name, title in (("fit_seconds", "fit"), ("embed_seconds", "embed")):
        own, column = (measured[measured.metric == name], "value") if len(measured) else (scored, name)
        line = summed_up(own, column, group, f"{group.title}: {title}", {})
        if line is not None:
            yield line


def summed_up(data: pd.DataFrame, column: str, group: Compared, title: str, goals: Goals) -> Line | None:
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
    by_set = common.groupby(level="target").mean()
    sets = sorted(common.index.get_level_values("target").unique(), key=natural)
    return Line(
        title,
        sets,
        sorted(common.index.get_level_values("seed").unique().tolist()),
        {str(name): float(value) for name, value in by_set.mean().items()},
        {str(name): int(count) for name, count in common.count().items()},
        len(common),
        sorted(set(own.target) - set(sets), key=natural),
        goals,
        group.wanted,
        (by_set[SUBJECT] / by_set[PAPER]).to_dict() if PAPER in by_set else {},
    )


def gain_table(data: pd.DataFrame, lines: Sequence[Line], dropped: Sequence[str]) -> Table:
    """Show every contender's mean and the gains on three of them, with the number of sets and the seeds."""
    names = _contenders(data)
    rows: list[tuple[str, list[Cell | str]]] = []
    for line in lines:
        shown = mark_best([_mean_cell(line, name, f"{line.means.get(name, 0.0):.2f}") for name in names])
        gains = [_gain_cell(line, rival) for rival in RIVALS]
        count = f"{len(line.sets)} of {line.wanted}" if line.wanted else str(len(line.sets))
        rows.append((line.title, [*shown, *gains, count, ", ".join(map(str, line.seeds))]))
    headings = [*names, *(f"gain on {name}" for name in RIVALS.values()), "sets", "seeds"]
    left_out = {name for line in lines for name in line.left_out}
    return text_table(
        "data sets, labels and protocol",
        rows,
        headings,
        note(
            data[data.protocol.isin(_named_protocols(data))],
            "Accuracy in percent, NMI times 100: means over data sets of means over seeds. A data set counts with the "
            f"seeds that all of {', '.join(CORE)} have there, as far as they were run. In brackets what was to be "
            "gained. Bold: highest mean as printed.",
            CHOSEN_ON,
            f"Not counted, because one of these has no score: {', '.join(sorted(left_out, key=natural))}."
            if left_out
            else "",
            f"Other settings of the same contenders are left out: {', '.join(dropped)}." if dropped else "",
        ),
    )


def second_table(data: pd.DataFrame, lines: Sequence[Line]) -> Table:
    """Show the seconds of every contender, and those of the preset as a multiple of the paper's method."""
    measured = data[data.protocol == MEASURED]
    shown = measured if len(measured) else data
    names = _contenders(shown)
    rows: list[tuple[str, list[Cell | str]]] = []
    for line in lines:
        cells = [_mean_cell(line, name, seconds_text(line.means.get(name, 0.0))) for name in names]
        paper = line.means.get(PAPER, float("nan"))
        ratio = f"{line.means[SUBJECT] / paper:.2f}" if paper > 0 else NOT_RUN
        most = max(line.multiples, key=line.multiples.__getitem__, default="")
        largest = f"{line.multiples[most]:.2f} ({most})" if most else NOT_RUN
        rows.append((line.title, [*cells, ratio, largest, str(len(line.sets))]))
    devices = sorted(set(shown.device) - {""})
    return text_table(
        "data sets",
        rows,
        [*names, f"{SUBJECT} / {PAPER}", "the largest", "sets"],
        note(
            shown.assign(subsets=""),
            "Means over data sets; to embed: all labelled cases of both parts, the shortest of three passes. Each fit "
            "had the device for itself."
            if len(measured)
            else "Means over data sets of means over seeds; to embed: all labelled cases of both parts. Where several "
            "fits share a GPU, the seconds of each are its own share.",
            f"Measured on {' and '.join(devices)}." if devices else "",
            "Times on different devices do not compare." if len(devices) > 1 else "",
            "On a shared device seconds grow with the number of fits at a time, which may differ between contenders: "
            "the ratio is a hint there and proves nothing."
            if any("(shared)" in device for device in devices)
            else "",
        ),
    )


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


def _named_protocols(data: pd.DataFrame) -> list[str]:
    asked = {protocol for question in (FIVE, ALL, CLUSTERS) for protocol in question.protocols}
    return [name for name in data.protocol.unique() if name.split(" (")[0] in asked]


def _mean_cell(line: Line, name: str, text: str) -> Cell:
    mean = line.means.get(name, float("nan"))
    if mean != mean:
        return Cell(NOT_RUN, ABSENT)
    if line.runs[name] < line.n_runs:  # a mean over fewer runs cannot be called the best
        return Cell(f"{text} ({line.runs[name]} of {line.n_runs} runs)")
    return Cell(text, mean=round(mean, 2))


def _gain_cell(line: Line, rival: str) -> Cell:
    gain = line.gain(rival)
    if gain != gain:
        return Cell(NOT_RUN, ABSENT)
    goal = f" ({line.goals[rival]:+g})" if rival in line.goals else ""
    return Cell(f"{gain:+.2f}{goal}")
