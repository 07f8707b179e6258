"""How far a run is: which units are finished, and what failed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dicot.bench.jobs import Job, Unit


@dataclass(frozen=True)
class Finished:
    """A unit whose last job was recorded."""

    unit: Unit
    number: int  # in the order of finishing, from 1
    errors: tuple[str, ...]

    def __str__(self) -> str:
        count = len(self.unit.jobs)
        failed = f", {len(self.errors)} failed: {self.errors[0].splitlines()[0]}" if self.errors else ""
        return f"{self.unit}: {count} job{'s' if count > 1 else ''}{failed}"


class Tally:
    """Told of every recorded job, it tells of every finished unit."""

    def __init__(self, units: Sequence[Unit], on_unit: Callable[[Finished], None]) -> None:
        self._unit = {job.key: unit for unit in units for job in unit.jobs}
        self._left = {unit.key: len(unit.jobs) for unit in units}
        self._errors: dict[str, list[str]] = {unit.key: [] for unit in units}
        self._on_unit = on_unit
        self.units, self.jobs, self.failed = 0, 0, 0  # finished units, recorded jobs, those of them that failed
        self.first_error = ""

    def __call__(self, job: Job, error: str | None) -> None:
        unit = self._unit[job.key]
        self._left[unit.key] -= 1
        self.jobs += 1
        if error is not None:
            self.failed += 1
            self.first_error = self.first_error or f"{unit}, {job.protocol}: {error}"
            self._errors[unit.key].append(error)
        if not self._left[unit.key]:
            self.units += 1
            self._on_unit(Finished(unit, self.units, tuple(self._errors[unit.key])))
