"""What of a suite remains to be run, and why the rest does not."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.ledger import Ledger
from dicot.core.errors import DicotError, InputError, MissingDataError
from dicot.core.progress import Bar
from dicot.data.datasets import card, is_path
from dicot.judge.evaluation.jobs import Job, JobData, Unit, unique_jobs, units_of
from dicot.judge.evaluation.labelled import load_labelled
from dicot.judge.result import Result

STATES = ("to run", "recorded", "failed", "no data", "unusable")


@dataclass(frozen=True)
class Plan:
    """Every job once, with its state, and what a user should know of the data sets.

    Batches larger than the training part would be smaller than they are called: such jobs are not in the plan.
    """

    jobs: tuple[Job, ...]
    states: dict[str, str]  # by key
    missing: tuple[str, ...]  # data sets that are not here
    unusable: dict[str, str]  # data sets that are here and cannot be used, with the reason
    notes: tuple[str, ...]  # what a user should know of data sets that are used
    changed: tuple[str, ...]  # data sets that are no longer what they were

    @property
    def units(self) -> list[Unit]:
        return units_of(job for job in self.jobs if self.states[job.key] == "to run")

    @property
    def finished(self) -> set[str]:
        """The fits, by key, whose jobs are all recorded: nothing has to be kept to go on with them."""
        unfinished = {job.fit_key for job in self.jobs if self.states[job.key] != "recorded"}
        return {job.fit_key for job in self.jobs} - unfinished

    def counts(self) -> dict[str, Counter[str]]:
        """Count the jobs in each state, by contender."""
        table: dict[str, Counter[str]] = {}
        for job in self.jobs:
            table.setdefault(job.contender.name, Counter())[self.states[job.key]] += 1
        return table


@dataclass(frozen=True)
class Known:
    """What is known of a data set before any job: why it cannot be used, or else what it is."""

    error: DicotError | None = None
    n_channels: int = 0
    n_train: int = 0
    fingerprint: str = ""  # where all of it was read
    note: str = ""

    def problem(self, wanted: JobData) -> DicotError | None:
        """Why a job cannot use these channels of it."""
        if self.error is None and max(wanted.channels or (0,)) >= self.n_channels:
            chosen = ", ".join(map(str, wanted.channels or ()))
            return InputError(f"It has {self.n_channels} channel(s), and the suite uses channels {chosen}, from 0.")
        return self.error


def make_plan(jobs: Sequence[Job], ledger: Ledger, *, retry_failed: bool = False) -> Plan:
    """Compare jobs with what is recorded and with the data at hand.

    A recorded row counts as long as the data sets that it names are the same as then. Where one of them is on this
    machine and its fingerprint is another, the job runs again; where it is not here, nothing can be compared and the
    row stands.
    """
    jobs = unique_jobs(jobs)
    recorded = {result.key: result for result in ledger.results()}
    rows = {job.key: recorded[job.key] for job in jobs if job.key in recorded}
    names = dict.fromkeys(data.name for job in jobs for data in (job.source, job.target))
    compared = {name for row in rows.values() for name in (row.source, row.target)}
    facts = look_at(names, compared)

    planned = [job for job in jobs if not exceeds(job, facts)]
    states: dict[str, str] = {}
    problems: dict[str, DicotError] = {}
    changed: set[str] = set()
    for job in planned:
        row = rows.get(job.key)
        changed_sets = [] if row is None else changes(row, facts)
        changed.update(changed_sets)
        own_problems = problems_of(job, facts)
        problems |= own_problems
        if row is not None and not changed_sets and (row.error is None or not retry_failed):
            states[job.key] = "recorded" if row.error is None else "failed"
        elif any(isinstance(error, MissingDataError) for error in own_problems.values()):
            states[job.key] = "no data"
        else:
            states[job.key] = "unusable" if own_problems else "to run"

    missing = sorted(name for name, error in problems.items() if isinstance(error, MissingDataError))
    unusable = {name: str(error) for name, error in problems.items() if name not in missing}
    notes = [known.note for known in facts.values() if known.note]
    notes += batch_notes([job for job in jobs if exceeds(job, facts)], facts)
    return Plan(tuple(planned), states, tuple(missing), unusable, tuple(notes), tuple(sorted(changed)))


def look_at(names: Mapping[str, None], compared: set[str]) -> dict[str, Known]:
    """Look at each of these data sets: at all of a file and of what is compared with a row, else at the card."""
    facts = {}
    with Bar("look at data", len(names)) as bar:
        for done, name in enumerate(names):
            bar.update(done, name)
            try:
                facts[name] = look_at_one(name, whole=name in compared or is_path(name))
            except DicotError as error:  # one data set less, and no reason to end
                facts[name] = Known(error)
    return facts


def look_at_one(name: str, *, whole: bool) -> Known:
    facts = None if is_path(name) else card(name)  # an error where it is not here: nothing is downloaded
    note = ""
    if facts is not None and facts.notes:
        note = f"{name}: {' '.join(facts.notes).removesuffix('.')}"
    if facts is not None and not whole:
        return Known(None, facts.n_channels, facts.n_train, note=note)
    loaded = load_labelled(name)
    train = loaded.split.train
    return Known(None, train.n_channels, len(train), loaded.fingerprint, loaded.note or note)


def batch_of(job: Job) -> int:
    return int(job.contender.settings.get("batch_size", 0))


def exceeds(job: Job, facts: Mapping[str, Known]) -> bool:
    """Tell whether the job's batches are larger than the training part."""
    source = facts[job.source.name]
    return source.error is None and batch_of(job) > source.n_train


def batch_notes(jobs: Sequence[Job], facts: Mapping[str, Known]) -> list[str]:
    """Say of each data set which batches are left out because they are larger than the training part."""
    batches: dict[str, set[int]] = {}
    for job in jobs:
        batches.setdefault(job.source.name, set()).add(batch_of(job))
    return [
        f"{name} has {facts[name].n_train} training cases: batches of {', '.join(map(str, sorted(sizes)))} are left out"
        for name, sizes in batches.items()
    ]


def problems_of(job: Job, facts: Mapping[str, Known]) -> dict[str, DicotError]:
    """Say by name which data sets of a job cannot be used, and why."""
    problems = {}
    for data in (job.source, job.target):
        error = facts[data.name].problem(data)
        if error is not None:
            problems[data.name] = error
    return problems


def changes(row: Result, facts: Mapping[str, Known]) -> list[str]:
    """Say which of the row's data sets are known to be others now."""
    pairs = ((row.source, row.source_data), (row.target, row.target_data))
    return [name for name, then in pairs if then and (facts[name].fingerprint or then) != then]
