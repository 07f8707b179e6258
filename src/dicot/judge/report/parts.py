"""Part: what a report consists of, shown alike by a page, a Markdown file and a LaTeX file."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from dicot.core.progress import Bar
from dicot.judge.report.filenames import distinct
from dicot.judge.report.tables import Table


@dataclass(frozen=True)
class Part:
    """A title with a table, figures by file name and a sentence about the figures, each if there is one."""

    title: str
    table: Table | None = None
    figures: Mapping[str, Callable[[], str]] = field(default_factory=dict)  # drawn last, because that takes time
    text: str = ""
    lead: tuple[str, ...] = ()  # paragraphs between the title and the table
    level: int = 2  # of the heading
    anchor: str = ""  # by which a page can be entered here
    drawings: Mapping[str, str] = field(default_factory=dict)  # the figures as svg, once they are drawn


def drawn(parts: Iterable[Part], *, named_only: bool = False) -> list[Part]:
    """Draw all figures, each under a file name of its own, whatever the data sets are called.

    `named_only` gives them their names and draws nothing: for a text that only refers to them.
    """
    parts = list(parts)
    names = iter(distinct(name for part in parts for name in part.figures))
    out, done = [], 0
    with Bar("report", sum(len(part.figures) for part in parts)) as bar:
        for part in parts:
            drawings = {}
            for draw in part.figures.values():
                bar.update(done, part.title)
                drawings[next(names)] = "" if named_only else draw()
                done += 1
            out.append(replace(part, drawings=drawings))
    return out
