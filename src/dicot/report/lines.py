"""A line of a benchmark table: who was scored, how, and what it is called there."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dicot.errors import InputError
from dicot.report.paper import NAMES, variant_names

if TYPE_CHECKING:
    from dicot.bench.record import Record

CONTROLS = ("random", "calibrated")  # the keys of dicot.controls, which needs torch
LAST = ("supervised", "end-to-end", "minirocket", "raw-mean", "raw-flat", *CONTROLS)  # below the methods, in this order
PAPER_SCHEDULE = "per_step"


@dataclass(frozen=True)
class Line:
    """A contender as one protocol scores it, with schedule and precision of its training. A trial is its own line."""

    contender: str
    protocol: str
    schedule: str = ""
    precision: str = ""
    trial: bool = False

    @property
    def place(self) -> tuple[int, int, str, str, bool, str, str, bool]:
        """Where it stands in a table: Di-COT, its rivals and others, the paper's variants, references, controls."""
        how = self.protocol, self.schedule != PAPER_SCHEDULE, self.schedule, self.precision, self.trial
        known = [name for name in NAMES if name not in LAST]
        for block, names in ((0, known), (2, variant_names()), (3, LAST)):
            if self.contender in names:
                return block, names.index(self.contender), "", *how
        return 1, 0, self.contender, *how


def line_of(record: "Record") -> Line:
    return Line(record.contender, record.protocol, record.schedule, record.precision, record.trial)


def line_labels(lines: Iterable[Line]) -> dict[Line, str]:
    """A name for each line: the contender, and only those settings in which its own lines differ."""
    lines = list(dict.fromkeys(lines))
    out = {}
    for line in lines:
        own = [other for other in lines if other.contender == line.contender]
        words = [line.contender]
        if len({other.protocol for other in own}) > 1:
            words.append(line.protocol)
        if len({other.schedule for other in own}) > 1:
            words.append(line.schedule or "no schedule")
        if len({other.precision for other in own}) > 1:
            words.append(line.precision or "no precision")
        out[line] = ", ".join(words) + (" (trial)" if line.trial else "")
    return out


def schedule_note(lines: Iterable[Line]) -> str:
    """What the two schedules are, where a table has both."""
    if len({line.schedule for line in lines if line.schedule}) < 2:
        return ""
    return "per_step is the paper's schedule, per_epoch that of the authors' code (D-01)."


def trial_note(records: "Iterable[Record]") -> str:
    """What every table of trials says; empty where there are none."""
    steps = sorted({record.steps for record in records if record.trial})
    shown = " or ".join(map(str, steps))
    return f"Not a result: {shown} step{'' if steps == [1] else 's'}, to show that the code runs." if steps else ""


def table_note(records: "Iterable[Record]", lines: Iterable[Line], *sentences: str) -> str:
    """What stands below a table: whether it shows trials, what its schedules are, and the sentences that are there."""
    return " ".join(filter(None, (trial_note(records), schedule_note(lines), *sentences)))


def require_controls(lines: Iterable[Line], what: str) -> None:
    """A table of methods is not printed without both controls (D-02)."""
    contenders = {line.contender for line in lines}
    if missing := [name for name in CONTROLS if name not in contenders]:
        raise InputError(
            f"{what}: a table of methods needs the controls {' and '.join(CONTROLS)}; there is no record of "
            f"{' and '.join(missing)}. Run them (`dicot bench` does by default) and report again."
        )


def latest(records: "Iterable[Record]", varied: str | None = None) -> "tuple[list[Record], int]":
    """One record per cell and seed, the one recorded last, and how many older ones that leaves out.

    `varied` names a field that makes another cell, such as batch_size in a suite that is about it.
    """
    kept: dict[tuple[object, ...], Record] = {}
    count = 0
    for record in sorted(records, key=lambda r: r.recorded):
        own = getattr(record, varied) if varied else None
        kept[(line_of(record), record.source, record.target, record.metric, record.seed, own)] = record
        count += 1
    return list(kept.values()), count - len(kept)
