"""A line of a benchmark table: who was scored, how, and what it is called there."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dicot.errors import InputError

if TYPE_CHECKING:
    from dicot.bench.record import Record

CONTROLS = ("random", "calibrated")  # the keys of dicot.controls, which needs torch
SCHEDULES = {"per_step": "schedule as in the paper", "per_epoch": "schedule as in the authors' code"}


@dataclass(frozen=True)
class Line:
    """A contender as one protocol scores it, with the schedule it was trained by. A trial is a line of its own."""

    contender: str
    protocol: str
    schedule: str = ""
    trial: bool = False

    @property
    def key(self) -> str:
        """The contender without its settings: `random` of `random, encoder=fcn`."""
        return base_name(self.contender)


def base_name(contender: str) -> str:
    """What stands before the first comma, bracket or space."""
    return contender.replace(",", " ").replace("(", " ").split(" ")[0]


def line_of(record: "Record") -> Line:
    return Line(record.contender, record.protocol, record.schedule, record.trial)


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
            words.append(SCHEDULES.get(line.schedule, line.schedule or "no schedule"))
        out[line] = ", ".join(words) + (" (trial)" if line.trial else "")
    return out


def require_controls(contenders: Collection[str], what: str) -> None:
    """A table of methods is not printed without both controls (D-02)."""
    found = {base_name(contender) for contender in contenders}
    if missing := [name for name in CONTROLS if name not in found]:
        raise InputError(
            f"{what}: a table of methods needs the controls {' and '.join(CONTROLS)}; there is no record of "
            f"{' and '.join(missing)}. Run them (`dicot bench` does by default) and report again."
        )


def latest(records: "Iterable[Record]") -> "tuple[list[Record], int]":
    """One record per cell and seed, the one recorded last, and how many older ones that leaves out."""
    kept: dict[tuple[object, ...], Record] = {}
    count = 0
    for record in sorted(records, key=lambda r: r.recorded):
        place = (line_of(record), record.source, record.target, record.metric, record.seed)
        count += 1
        kept.pop(place, None)  # so that the later one also comes later
        kept[place] = record
    return list(kept.values()), count - len(kept)


def trial_note(records: "Iterable[Record]") -> str:
    """What every table of trials says; empty where there are none."""
    steps = sorted({record.steps for record in records if record.trial})
    shown = " or ".join(map(str, steps))
    return f"Not a result: {shown} step{'' if steps == [1] else 's'}, to show that the code runs." if steps else ""


def with_batch_size(records: "Sequence[Record]") -> "list[Record]":
    """Each batch size as a contender of its own, for a suite that varies it."""
    return [replace(r, contender=f"{r.contender}, batch {r.batch_size}") if r.batch_size else r for r in records]
