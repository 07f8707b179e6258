"""What an evaluation consists of: a job is one contender, fitted on one data set and scored on one, by one protocol."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from dicot.core.errors import lookup
from dicot.judge.evaluation.contenders import Contender, described, given
from dicot.judge.protocols import every_protocol
from dicot.judge.protocols.base import AUTHORS, AnyProtocol, Protocol
from dicot.judge.result import Result, canonical, key_of

# Facts about a training that have a field of their own in a result; the rest is kept together.
TRAINING_FACTS = ("schedule", "steps", "batch_size", "precision")


@dataclass(frozen=True)
class JobData:
    """A data set by name or file, or some of its channels."""

    name: str
    channels: tuple[int, ...] | None = None
    family: str | None = None  # of a file: whose recipe and settings it takes; a set by name has its own
    scale: str | None = None  # the policy of `load`: each set by its own training part; None: values as they are

    def config(self, part: str) -> dict[str, Any]:
        """What is said of it in a configuration, as "source" or "target"."""
        rest = {name: getattr(self, name) for name in ("channels", "scale", "family")}
        return given(**{part: self.name}, **{f"{part}_{name}": value for name, value in rest.items()})


@dataclass(frozen=True)
class Job:
    """One contender, one pair of data sets, one protocol, one seed.

    The key hashes everything the values depend on by choice. What they depend on by circumstance, namely the version,
    the device and the data that a name stands for, is recorded next to them.
    """

    suite: str
    contender: Contender
    source: JobData  # what the contender is fitted on
    target: JobData  # what it is scored on; differs from the source in transfer
    protocol: str
    seed: int
    steps: int | None = None  # of a protocol that trains; None: as many as it says itself
    trial: bool = False  # somewhere there are fewer steps than there should be
    draws: bool = False  # score every draw of labelled cases rather than one
    subsets: str = AUTHORS  # where one is scored: the authors', or "per-seed" one by the seed
    own_protocol: AnyProtocol | None = None  # where it is not the registered one

    def scorer(self) -> AnyProtocol:
        protocol = self.own_protocol or lookup(every_protocol(), self.protocol, "protocol")()
        if self.contender.classifier and isinstance(protocol, Protocol):
            return protocol.classified_by(self.contender.classifier)
        return protocol

    @cached_property
    def fit_config(self) -> dict[str, Any]:
        """What the fitted contender depends on."""
        return self.contender.config | self.source.config("source") | {"seed": self.seed}

    @cached_property
    def fit_key(self) -> str:
        """The same for jobs that can share a fit."""
        shared = {"seed": None} if self.contender.fixed else {}
        return key_of({**self.fit_config, **shared})

    @property
    def unit_key(self) -> str:
        """The same for jobs that do share one."""
        return f"{self.fit_key}-alone" if self.scorer().alone else self.fit_key

    @cached_property
    def config(self) -> dict[str, Any]:
        """What the values depend on."""
        subsets = self.subsets if self.subsets != AUTHORS else None
        chosen = given(protocol=self.protocol, steps=self.steps, draws=self.draws or None, subsets=subsets)
        return self.fit_config | self.target.config("target") | chosen

    @cached_property
    def key(self) -> str:
        return key_of(self.config)

    def __str__(self) -> str:
        settings, source = self.contender.settings, self.source
        notes = [
            f"{self.contender.name} on {source.name}",
            f"channels {', '.join(map(str, source.channels))}" if source.channels else "",
            f"scale {source.scale}" if source.scale else "",
            f"batches of {settings['batch_size']}" if "batch_size" in settings else "",
            str(settings["schedule"]) if settings.get("schedule", "per_step") != "per_step" else "",
            f"seed {self.seed}",
        ]
        return ", ".join(filter(None, notes))

    def result(
        self,
        values: Mapping[str, float],
        error: str | None = None,
        draw: int = 1,
        recipe: Mapping[str, Any] | None = None,
        **facts: Any,
    ) -> Result:
        """Make the row for these values; `recipe` is the one that the training used, where there was one."""
        settings, recipe = self.contender.settings, recipe or {}
        told = recipe if self.contender.own else {}  # others are told theirs by their settings
        trained = {name: settings.get(name, told.get(name)) for name in ("schedule", "precision")}
        trained |= {name: recipe.get(name, settings.get(name)) for name in ("steps", "batch_size")}
        rest = {name: value for name, value in recipe.items() if name not in TRAINING_FACTS}
        return Result(
            suite=self.suite,
            contender=self.contender.name,
            source=self.source.name,
            target=self.target.name,
            protocol=self.protocol,
            seed=self.seed,
            draw=draw,
            values=dict(values),
            error=error,
            trial=self.trial,
            recipe=json.dumps(rest, sort_keys=True, default=described),
            recorded=datetime.now(UTC).isoformat(timespec="seconds"),
            key=self.key,
            config=canonical(self.config),
            right=getattr(values, "right", None),
            **{name: described(value) for name, value in trained.items() if value is not None},
            **{name: round(value, 4) if name.endswith("_seconds") else value for name, value in facts.items()},
        )


@dataclass(frozen=True)
class Unit:
    """Jobs that share a fit; what measures a fit has one of its own, so that it need not wait beside the others."""

    jobs: tuple[Job, ...]

    @property
    def first(self) -> Job:
        return self.jobs[0]

    @property
    def key(self) -> str:
        return self.first.unit_key

    @property
    def alone(self) -> bool:
        """Whether something is measured that others would disturb."""
        return any(job.scorer().alone for job in self.jobs)

    @property
    def seeds(self) -> list[int]:
        """The seed, or all those for which the contender is the same."""
        return list(dict.fromkeys(job.seed for job in self.jobs))

    def by_target(self) -> dict[JobData, list[Job]]:
        """Group the jobs by the data set that has to be embedded for them."""
        targets: dict[JobData, list[Job]] = {}
        for job in self.jobs:
            targets.setdefault(job.target, []).append(job)
        return targets


def unique_jobs(jobs: Iterable[Job]) -> list[Job]:
    """Keep the first job of each key: suites overlap, and so do the settings of an ablation."""
    first: dict[str, Job] = {}
    for job in jobs:
        first.setdefault(job.key, job)
    return list(first.values())


def units_of(jobs: Iterable[Job]) -> list[Unit]:
    """Group jobs by what is fitted, those of one source next to each other, so that its data are loaded once."""
    groups: dict[str, list[Job]] = {}
    for job in unique_jobs(jobs):
        groups.setdefault(job.unit_key, []).append(job)
    return sorted((Unit(tuple(group)) for group in groups.values()), key=lambda unit: unit.first.source.name)
