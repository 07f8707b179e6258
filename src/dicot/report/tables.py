"""One table, three looks: terminal, Markdown, HTML; and the bare scores as CSV."""

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import astuple, fields
from html import escape

import rich.table
import rich.text

from dicot.protocols.base import Score
from dicot.report.comparison import NOT_RUN, Cell, Table

NUMBER = re.compile(r"[-+±]?\s?\d")  # how a cell begins that belongs at the right
LONG_TEXT = 40  # letters from which a cell may break into lines


def to_rich(table: Table, title: str | None = None) -> rich.table.Table:
    """For the terminal; the note is the caption."""
    # Text, not str: brackets in an error message are no markup
    note = rich.text.Text(table.note, style="table.caption")
    out = rich.table.Table(title=title, caption=note, caption_justify="left")
    out.add_column(table.corner, no_wrap=True)
    for column in table.columns:
        out.add_column(rich.text.Text(column), justify="right", overflow="fold", min_width=len(column))
    for name, row in zip(table.names, table.rows, strict=True):
        styles = ("bold" if c.best else "red" if c.failed else "" for c in row)
        out.add_row(rich.text.Text(name), *(rich.text.Text(c.label, s) for c, s in zip(row, styles, strict=True)))
    return out


def markdown_text(text: str) -> str:
    """The text as Markdown shows it, also inside a table."""
    for plain, shown in (("\\", "\\\\"), ("|", "\\|"), ("&", "&amp;"), ("<", "&lt;"), ("\n", " ")):
        text = text.replace(plain, shown)
    return text


def to_markdown(table: Table) -> str:
    """A pipe table followed by the note."""

    def shown(cell: Cell) -> str:
        text = markdown_text(cell.text)
        return (f"**{text}**" if cell.best else text) + (" (tie)" if cell.tie else "")

    def line(cells: list[str]) -> str:
        return f"| {' | '.join(cells)} |"

    lines = [
        line([table.corner, *map(markdown_text, table.columns)]),
        line(["---", *["---:"] * len(table.columns)]),
        *(line([markdown_text(name), *map(shown, row)]) for name, row in zip(table.names, table.rows, strict=True)),
    ]
    return "\n".join([*lines, "", markdown_text(table.note), ""])


def to_csv(scores: Iterable[Score]) -> str:
    """Every score as a row, so that nothing a table leaves out is lost."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([field.name for field in fields(Score)])
    writer.writerows(astuple(score) for score in scores)
    return out.getvalue()


def _classes(*names: str) -> str:
    joined = " ".join(names)
    return f' class="{joined}"' if names else ""


def to_html(table: Table) -> str:
    """A fragment with every text escaped; the classes of a cell carry its look."""

    def shown(cell: Cell, words: bool) -> str:
        absent, long = cell.text == NOT_RUN, len(cell.label) > LONG_TEXT
        failed = cell.failed and not absent
        kinds = {"best": cell.best, "failed": failed, "absent": absent, "long": long, "words": words}
        return f"<td{_classes(*(name for name, holds in kinds.items() if holds))}>{escape(cell.label)}</td>"

    words = [not any(NUMBER.match(cell.text) for cell in column) for column in zip(*table.rows, strict=True)]
    looks = [_classes("words") if said else "" for said in words]
    head = f'<th scope="col">{escape(table.corner)}</th>'
    head += "".join(f'<th scope="col"{k}>{escape(c)}</th>' for k, c in zip(looks, table.columns, strict=True))
    body = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th>' + "".join(map(shown, row, words)) + "</tr>"
        for name, row in zip(table.names, table.rows, strict=True)
    )
    return (
        f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>\n'
        f'<p class="note">{escape(table.note)}</p>'
    )
