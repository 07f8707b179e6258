"""What a report consists of: parts that a page, a Markdown file and a LaTeX file show alike."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dicot.report.comparison import Table

if TYPE_CHECKING:
    from dicot.bench.record import Record


@dataclass(frozen=True)
class Part:
    """A title with a table, figures (svg text by file stem) and a sentence about the figures, each if there is one."""

    title: str
    table: Table | None = None
    figures: Mapping[str, str] = field(default_factory=dict)
    text: str = ""


Draft = Callable[[], list[Part]]  # a part that is made when its turn comes, because drawing takes time


@dataclass(frozen=True)
class Request:
    """What to report: the records of one suite, and how."""

    suite: str
    records: "tuple[Record, ...]"
    against_paper: bool = False
    baseline: str | None = None
    features: Path | None = None
