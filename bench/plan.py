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
class _Facts:
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
    rows = [recorded[job.key] for job in jobs if job.key in recorded]
    facts = _look(
        dict.fromkeys(data.name for job in jobs for data in (job.source, job.target)),
        {name for row in rows for name in (row.source, row.target)},
    )
    changed = {row.key: names for row in rows if (names := _changed(row, facts))}
    planned, states, problems = list[Job](), dict[str, str](), dict[str, DicotError]()
    too_large: dict[str, set[int]] = {}  # batches
    for job in jobs:
        source, batch = facts[job.source.name], int(job.contender.settings.get("batch_size", 0))
        if source.error is None and batch > source.n_train:
            too_large.setdefault(job.source.name, set()).add(batch)
            continue
        planned.append(job)
        found = {one.name: why for one in (job.source, job.target) if (why := facts[one.name].problem(one)) is not None}
        problems |= found
        row = recorded.get(job.key)
        if row is not None and job.key not in changed and (row.error is None or not retry_failed):
            states[job.key] = "recorded" if row.error is None else "failed"
        elif any(isinstance(why, MissingDataError) for why in found.values()):
            states[job.key] = "no data"
        else:
            states[job.key] = "unusable" if found else "to run"
    notes = [one.note for one in facts.values() if one.note]
    for name, sizes in too_large.items():
        batches = ", ".join(map(str, sorted(sizes)))
        notes.append(f"{name} has {facts[name].n_train} training cases: batches of {batches} are left out")
    return Plan(
        tuple(planned),
        states,
        tuple(sorted(name for name, why in problems.items() if isinstance(why, MissingDataError))),
        {name: str(why) for name, why in problems.items() if not isinstance(why, MissingDataError)},
        tuple(notes),
        tuple(sorted({name for names in changed.values() for name in names})),
    )


def _look(names: Mapping[str, None], compared: set[str]) -> dict[str, _Facts]:
    """Look at each of these data sets: at all of a file and of what is compared with a row, else at the card."""
    facts = {}
    with Bar("look at data", len(names)) as bar:
        for done, name in enumerate(names):
            bar.update(done, name)
            try:
                known = None if is_path(name) else card(name)  # an error where it is not here: nothing is downloaded
                about = f"{name}: {' '.join(known.notes).removesuffix('.')}" if known and known.notes else ""
                if known is not None and name not in compared:
                    facts[name] = _Facts(None, known.n_channels, known.n_train, note=about)
                    continue
                loaded = load_labelled(name)
                train = loaded.split.train
                facts[name] = _Facts(None, train.n_channels, len(train), loaded.fingerprint, loaded.note or about)
            except DicotError as error:  # one data set less, and no reason to end
                facts[name] = _Facts(error)
    return facts


def _changed(row: Result, facts: Mapping[str, _Facts]) -> list[str]:
    """Which of the row's data sets are known to be others now."""
    pairs = ((row.source, row.source_data), (row.target, row.target_data))
    return [name for name, then in pairs if then and (facts[name].fingerprint or then) != then]
