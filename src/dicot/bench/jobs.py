"""What a benchmark consists of: a job is one contender, fitted on one data set and scored on one, by one protocol."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Contender:
    """Who is compared, with all settings that its result depends on."""

    name: str  # in tables; not part of any key
    kind: str  # its key among the methods, controls or classical baselines
    method_params: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)  # of TimeSeriesEmbedder: encoder, schedule, steps ...


@dataclass(frozen=True)
class DataSet:
    """A data set by name, or some of its channels."""

    name: str
    channels: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Job:
    """One line of the ledger.

    The key hashes what the values depend on by choice. What they depend on by circumstance, namely version, device
    and the data that a name stands for, is recorded beside them.
    """

    suite: str
    contender: Contender
    source: DataSet  # what the contender is fitted on
    target: DataSet  # what it is scored on: the source, but for transfer
    protocol: str
    seed: int
    steps: int | None = None  # of a protocol that trains; None: as many as it says itself
    trial: bool = False  # somewhere there are fewer steps than there should be

    @cached_property
    def fit_config(self) -> dict[str, Any]:
        """What the fitted contender depends on."""
        return _given(
            kind=self.contender.kind,
            method_params=dict(self.contender.method_params),
            settings=dict(self.contender.settings),
            source=self.source.name,
            source_channels=self.source.channels,
            seed=self.seed,
        )

    @cached_property
    def config(self) -> dict[str, Any]:
        """What the values depend on."""
        return self.fit_config | _given(
            target=self.target.name, target_channels=self.target.channels, protocol=self.protocol, steps=self.steps
        )

    @cached_property
    def key(self) -> str:
        return key_of(self.config)


@dataclass(frozen=True)
class Unit:
    """Jobs that share a fit."""

    jobs: tuple[Job, ...]

    @property
    def first(self) -> Job:
        return self.jobs[0]

    @cached_property
    def key(self) -> str:
        return key_of(self.first.fit_config)

    def by_target(self) -> dict[DataSet, list[Job]]:
        """The jobs of each data set that must be embedded once."""
        targets: dict[DataSet, list[Job]] = {}
        for job in self.jobs:
            targets.setdefault(job.target, []).append(job)
        return targets

    def __str__(self) -> str:
        job, settings = self.first, self.first.contender.settings
        notes = [
            f"seed {job.seed}",
            f"channels {', '.join(map(str, job.source.channels))}" if job.source.channels else "",
            f"batches of {settings['batch_size']}" if "batch_size" in settings else "",
            settings["schedule"] if settings.get("schedule", "per_step") != "per_step" else "",
        ]
        return f"{job.contender.name} on {job.source.name}, {', '.join(note for note in notes if note)}"


def canonical(config: Mapping[str, Any]) -> str:
    """The same text for the same configuration, whatever the order of its entries."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"))


def key_of(config: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical text."""
    return hashlib.sha256(canonical(config).encode()).hexdigest()


def distinct(jobs: Iterable[Job]) -> list[Job]:
    """The first job of each key: suites overlap, and so do the settings of an ablation."""
    return list({job.key: job for job in reversed(list(jobs))}.values())[::-1]


def units_of(jobs: Iterable[Job]) -> list[Unit]:
    """The jobs by what is fitted, those of a source next to each other, so that its data are loaded once."""
    groups: dict[str, list[Job]] = {}
    for job in distinct(jobs):
        groups.setdefault(key_of(job.fit_config), []).append(job)
    return sorted((Unit(tuple(group)) for group in groups.values()), key=lambda unit: unit.first.source.name)


def _given(**values: Any) -> dict[str, Any]:
    """Without what is empty, so that a setting that nobody uses changes no key."""
    return {name: value for name, value in values.items() if value is not None and value != {}}
