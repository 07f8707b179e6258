"""What of a suite remains to be run, and why the rest does not."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dicot.bench.jobs import Job, Unit, distinct, units_of
from dicot.bench.ledger import Ledger
from dicot.bench.lines import Row
from dicot.bench.loading import load_labelled, missing_sets
from dicot.errors import DicotError
from dicot.progress import Bar

STATES = ("to run", "recorded", "failed", "no data")


@dataclass(frozen=True)
class Plan:
    """Every job once, with its state; the data sets that are not here, and those that are no longer what they were."""

    jobs: tuple[Job, ...]
    states: dict[str, str]  # by key
    missing: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def units(self) -> list[Unit]:
        return units_of(job for job in self.jobs if self.states[job.key] == "to run")

    def counts(self) -> dict[str, Counter[str]]:
        """Jobs in each state by contender."""
        table: dict[str, Counter[str]] = {}
        for job in self.jobs:
            table.setdefault(job.contender.name, Counter())[self.states[job.key]] += 1
        return table


def make_plan(jobs: Sequence[Job], ledger: Ledger, *, retry_failed: bool = False) -> Plan:
    """Compare jobs with what is recorded and with the data at hand.

    A recorded row counts as long as the data sets that it names are the same as then. Where one of them is on this
    machine and its fingerprint is another, the job runs again; where it is not here, nothing can be compared and the
    row stands.
    """
    unique = distinct(jobs)
    recorded = ledger.rows()
    missing = missing_sets({name for job in unique for name in (job.source.name, job.target.name)})
    known = [recorded[job.key] for job in unique if job.key in recorded]
    current = _fingerprints({name: None for row in known for name in (row["source"], row["target"])}, missing)

    def state(job: Job) -> str:
        row = recorded.get(job.key)
        if row is not None and not _changed(row, current):
            return "recorded" if row["error"] is None else "to run" if retry_failed else "failed"
        return "no data" if {job.source.name, job.target.name} & set(missing) else "to run"

    changed = sorted({name for row in known for name in _changed(row, current)})
    return Plan(tuple(unique), {job.key: state(job) for job in unique}, tuple(missing), tuple(changed))


def _fingerprints(names: dict[str, None], missing: Sequence[str]) -> dict[str, str]:
    """Of the data sets that can be loaded."""
    found = {}
    with Bar("compare data", len(names)) as bar:
        for done, name in enumerate(names):
            bar.update(done, name)
            if name in missing:
                continue
            try:
                found[name] = load_labelled(name).fingerprint
            except DicotError:  # its jobs fail, and say why
                continue
    return found


def _changed(row: Row, current: dict[str, str]) -> list[str]:
    """Which of the row's data sets are known to be others now."""
    pairs = ((row["source"], row["source_data"]), (row["target"], row["target_data"]))
    return [name for name, then in pairs if then and current.get(name, then) != then]
