"""Result: the one row of an evaluation, in memory, in a ledger, in a table and in a report."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dicot.core import __version__
from dicot.core.errors import InputError
from dicot.judge.protocols import every_protocol
from dicot.judge.protocols.base import AUTHORS

# What a contender stands for in a comparison.
PRETRAINED, SUPERVISED, CONTROL, BASELINE = "pretrained", "supervised", "control", "baseline"
# One number of a result as a row of a tidy table.
TIDY = (
    *("suite", "contender", "source", "target", "protocol", "metric", "seed", "draw", "value", "error"),
    *("schedule", "steps", "batch_size", "precision", "trial", "subsets", "target_data"),
    *("fit_seconds", "embed_seconds", "score_seconds", "peak_memory", "device", "version", "recorded", "key"),
)


@dataclass(frozen=True)
class Result:
    """What became of one job, for one draw of labelled cases. A failure is a result too: NaN, and the reason."""

    suite: str
    contender: str  # its name in tables
    source: str  # the data set it was fitted on
    target: str  # the data set it was scored on; another one in transfer
    protocol: str
    seed: int
    draw: int = 1  # of the labelled cases, where a protocol draws them several times
    values: Mapping[str, float] = field(default_factory=dict)  # by the name of the metric; NaN where the job failed
    error: str | None = None
    schedule: str = ""  # of the learning rate; empty for what is not trained
    steps: int = 0  # optimiser steps; 0 for what is not trained
    batch_size: int = 0
    precision: str = ""  # of the training; empty for what is not trained
    trial: bool = False  # fewer steps than the recipe asks for: shows that the code runs, is not a result
    recipe: str = "{}"  # the rest of the recipe as the training used it, with the method's settings, in JSON
    source_data: str = ""  # fingerprint
    target_data: str = ""
    version: str = __version__
    device: str = ""
    fit_seconds: float = math.nan
    embed_seconds: float = math.nan
    score_seconds: float = math.nan
    peak_memory: int = 0  # bytes of the device while fitting; 0 where it was not measured
    recorded: str = ""  # date and time, ISO 8601, UTC
    key: str = ""  # of the job: a hash of `config`
    config: str = ""  # everything that the values depend on by choice, in JSON
    # Which labelled test cases were classified right (N,), where a protocol tells; kept in no file.
    right: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for metric, value in self.values.items():
            if self.error is None and not math.isfinite(value):
                raise InputError(f"{metric} must be finite where there is no error; got {value}. Say why in `error`.")
            if self.error is not None and not math.isnan(value):
                raise InputError(f"{metric} of a failed job must be NaN; got {value}.")

    @property
    def subsets(self) -> str:
        """Which labelled cases were drawn for it: the authors', per-seed, or empty where every draw counts or none."""
        chosen = json.loads(self.config or "{}")
        known = every_protocol().get(self.protocol)
        if chosen.get("draws") or known is None or not known().draws_labels:
            return ""
        return str(chosen.get("subsets", AUTHORS))

    def tidy(self) -> list[dict[str, Any]]:
        """Give one plain row for each metric, with the columns of `TIDY`."""
        row = {name: getattr(self, name, None) for name in TIDY}
        chosen = json.loads(self.config or "{}")
        for part in ("source", "target"):  # scaled values are other data
            if scale := chosen.get(f"{part}_scale"):
                row[part] = f"{row[part]} (scale {scale})"
        return [{**row, "metric": metric, "value": value} for metric, value in self.values.items()]


def canonical(config: Mapping[str, Any]) -> str:
    """Write a configuration as the same text whatever the order of its entries."""
    return json.dumps(config, sort_keys=True, separators=(",", ":"))


def key_of(config: Mapping[str, Any]) -> str:
    """Hash the canonical text by SHA-256."""
    return hashlib.sha256(canonical(config).encode()).hexdigest()
