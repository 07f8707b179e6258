"""A part of a report: what a page, a Markdown file and a LaTeX file show alike."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dicot.report.comparison import Table


@dataclass(frozen=True)
class Part:
    """A title with a table, figures (svg text by file stem) and a sentence about the figures, each if there is one."""

    title: str
    table: Table | None = None
    figures: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
