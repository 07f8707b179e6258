"""What a page about the whole paper is made of: the newest rows of every suite, and the file of maps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from dicot.judge.protocols import PROTOCOLS
from dicot.judge.protocols.base import AUTHORS
from dicot.judge.report.frame import latest

SIZED = "batch_scaling"  # the suite whose contenders differ in their batch size too


@dataclass(frozen=True, eq=False)
class Records:
    """The newest rows of all suites, and the file of maps where there is one."""

    data: pd.DataFrame
    maps: Path | None = None
    outdated: Mapping[str, str] = field(default_factory=dict)  # by key: what differs from a row made today, in words

    def of(self, *suites: str) -> pd.DataFrame:
        """The rows of these suites; a job that several of them share counts once."""
        own = self.data[self.data.suite.isin(suites)]
        return own if len(suites) == 1 else latest(own)


def newest(data: pd.DataFrame, maps: Path | None = None, outdated: Mapping[str, str] | None = None) -> Records:
    """Keep the newest row of every cell of every suite."""
    data = _on_the_papers_subsets(data)
    parts = [latest(own, ["batch_size"] if suite == SIZED else []) for suite, own in data.groupby("suite", sort=False)]
    there = maps if maps is not None and maps.is_file() else None
    return Records(pd.concat(parts) if parts else data, there, outdated or {})


def _on_the_papers_subsets(data: pd.DataFrame) -> pd.DataFrame:
    """Where a protocol was run on both choices of labelled cases, keep the one that the paper's tables are on."""
    both = data.groupby(["suite", "protocol"]).subsets.transform("nunique") > 1
    theirs = data.protocol.map(lambda name: PROTOCOLS[name]().subsets if name in PROTOCOLS else AUTHORS)
    return data[~both | (data.subsets == theirs)]
