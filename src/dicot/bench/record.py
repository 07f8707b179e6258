"""One number of a benchmark with where it comes from: what the ledger hands to a report."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Record:
    """A contender's value on a data set by one metric of a protocol, or why there is none."""

    suite: str
    contender: str  # its name in tables
    source: str  # the data set it was fitted on
    target: str  # the data set it was scored on; another one in transfer
    protocol: str
    metric: str
    seed: int
    value: float  # NaN where the job failed
    error: str | None = None
    schedule: str = ""  # of the learning rate; empty for what is not trained
    steps: int = 0  # optimiser steps; 0 for what is not trained
    batch_size: int = 0
    precision: str = ""  # of the training; empty for what is not trained
    trial: bool = False  # fewer steps than the recipe asks for: shows that the code runs, is not a result
    fit_seconds: float = math.nan
    peak_memory: int = 0  # bytes of the device while fitting; 0 where it was not measured
    device: str = ""
    version: str = ""
    recorded: str = ""  # date and time, ISO 8601, UTC
    key: str = ""  # of the job: a hash of everything its result depends on

    @property
    def failed(self) -> bool:
        return self.error is not None
