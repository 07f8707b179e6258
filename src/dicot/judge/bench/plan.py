"""What of a suite remains to be run, and why the rest does not."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dicot.core.errors import DicotError, InputError, MissingDataError
from dicot.core.progress import Bar
from dicot.data.datasets import card, is_path
from dicot.judge.bench.ledger import Ledger
from dicot.judge.evaluation.jobs import Job, JobData, Unit, unique_jobs, units_of
from dicot.judge.evaluation.loading import load_labelled
from dicot.judge.evaluation.result import Result

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
    notes: tuple[str, ...]  # what is done to data sets before they can be used
    changed: tuple[str, ...]  # data sets that are no longer what they were

    @property
    def units(self) -> list[Unit]:
        return units_of(job for job in self.jobs if self.states[job.key] == "to run")

    @property
    def finished(self) -> set[str]:
        """The fits, by key, whose jobs are all recorded: nothing has to be kept to go on with them."""
        return {job.fit_key for job in self.jobs} - {
            job.fit_key for job in self.jobs if self.states[job.key] != "recorded"
        }

    def counts(self) -> dict[str, Counter[str]]:
        """Count the jobs in each state, by contender."""
        table: dict[str, Counter[str]] = {}
        for job in self.jobs:
            table.setdefault(job.contender.name, Counter())[self.states[job.key]] += 1
        return table


@dataclass(frozen=True)
class _Facts:
    """What is known of a data set before any job: why it cannot be used, or else what it is."""

    error: DicotError | None = None
    n_channels: int = 0
    n_train: int = 0
    fingerprint: str = ""  # where all of it was read
    note: str = ""

    def is_too_small(self, job: Job) -> bool:
        """Whether it has fewer training cases than a batch of the job."""
        return self.error is None and _batch_size(job) > self.n_train

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
    unique = unique_jobs(jobs)
    recorded = {result.key: result for result in ledger.results()}
    rows = [recorded[job.key] for job in unique if job.key in recorded]
    facts = _look(
        dict.fromkeys(data.name for job in unique for data in (job.source, job.target)),
        {name for row in rows for name in (row.source, row.target)},
    )
    too_large = {job.key: job for job in unique if facts[job.source.name].is_too_small(job)}
    unique = [job for job in unique if job.key not in too_large]
    current = {name: one.fingerprint for name, one in facts.items() if one.fingerprint}
    problems = {
        data: problem
        for job in unique
        for data in (job.source, job.target)
        if (problem := facts[data.name].problem(data)) is not None
    }

    def state(job: Job) -> str:
        row = recorded.get(job.key)
        if row is not None and not _changed(row, current) and (row.error is None or not retry_failed):
            return "recorded" if row.error is None else "failed"
        reasons = [problems[data] for data in (job.source, job.target) if data in problems]
        missing = any(isinstance(reason, MissingDataError) for reason in reasons)
        return "no data" if missing else "unusable" if reasons else "to run"

    return Plan(
        tuple(unique),
        {job.key: state(job) for job in unique},
        tuple(sorted({data.name for data, why in problems.items() if isinstance(why, MissingDataError)})),
        {data.name: str(why) for data, why in problems.items() if not isinstance(why, MissingDataError)},
        (*(one.note for one in facts.values() if one.note), *_left_out(too_large.values(), facts)),
        tuple(sorted({name for row in rows for name in _changed(row, current)})),
    )


def _left_out(jobs: Iterable[Job], facts: Mapping[str, _Facts]) -> list[str]:
    """Say which batches are larger than the training part of a data set."""
    sizes: dict[str, set[int]] = {}
    for job in jobs:
        sizes.setdefault(job.source.name, set()).add(_batch_size(job))
    return [
        f"{name} has {facts[name].n_train} training cases: batches of {', '.join(map(str, sorted(found)))} are left out"
        for name, found in sizes.items()
    ]


def _batch_size(job: Job) -> int:
    return int(job.contender.settings.get("batch_size", 0))


def _look(names: Iterable[str], compared: set[str]) -> dict[str, _Facts]:
    """Look at each of these data sets: at all of a file and of what is compared with a row, else at the card."""
    names = list(names)
    facts = {}
    with Bar("look at data", len(names)) as bar:
        for done, name in enumerate(names):
            bar.update(done, name)
            try:
                facts[name] = _facts(name, compared)
            except DicotError as error:  # one data set less, and no reason to end
                facts[name] = _Facts(error)
    return facts


def _facts(name: str, compared: set[str]) -> _Facts:
    known = None if is_path(name) else card(name)  # an error where it is not here, and nothing is downloaded
    if known is not None and name not in compared:
        return _Facts(n_channels=known.n_channels, n_train=known.n_train)
    loaded = load_labelled(name)
    train = loaded.split.train
    return _Facts(None, train.n_channels, len(train), loaded.fingerprint, loaded.note)


def _changed(row: Result, current: dict[str, str]) -> list[str]:
    """Which of the row's data sets are known to be others now."""
    pairs = ((row.source, row.source_data), (row.target, row.target_data))
    return [name for name, then in pairs if then and current.get(name, then) != then]
