"""One table, four looks: terminal, Markdown, CSV, HTML."""

import csv
import io
from html import escape

import rich.table
import rich.text

from dicot.report.comparison import Cell, Table, comparison

__all__ = ["Table", "comparison", "to_csv", "to_html", "to_markdown", "to_rich"]


def to_rich(table: Table, title: str | None = None) -> rich.table.Table:
    """For the terminal; the note is the caption."""
    out = rich.table.Table(title=title, caption=table.note, caption_justify="left")
    out.add_column(table.corner, no_wrap=True)
    for column in table.columns:
        out.add_column(column, justify="right", overflow="fold")
    for name, row in zip(table.names, table.rows, strict=True):
        styles = ("bold" if c.best else "red" if c.failed else "" for c in row)
        # Text, not str: brackets in an error message are no markup
        out.add_row(rich.text.Text(name), *(rich.text.Text(c.label, s) for c, s in zip(row, styles, strict=True)))
    return out


def _markdown_text(text: str) -> str:
    for plain, shown in (("\\", "\\\\"), ("|", "\\|"), ("&", "&amp;"), ("<", "&lt;"), ("\n", " ")):
        text = text.replace(plain, shown)
    return text


def to_markdown(table: Table) -> str:
    """A pipe table followed by the note."""

    def shown(cell: Cell) -> str:
        text = _markdown_text(cell.text)
        return (f"**{text}**" if cell.best else text) + (" (tie)" if cell.tie else "")

    def line(cells: list[str]) -> str:
        return f"| {' | '.join(cells)} |"

    lines = [
        line([table.corner, *map(_markdown_text, table.columns)]),
        line(["---", *["---:"] * len(table.columns)]),
        *(
            line([_markdown_text(name), *map(shown, row)])
            for name, row in zip(table.names, table.rows, strict=True)
        ),
    ]
    return "\n".join([*lines, "", table.note, ""])


def to_csv(table: Table) -> str:
    """Texts as printed, without marks, so that it opens in a spreadsheet."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([table.corner, *table.columns])
    for name, row in zip(table.names, table.rows, strict=True):
        writer.writerow([name, *(c.text for c in row)])
    return out.getvalue()


def to_html(table: Table) -> str:
    """A fragment with every text escaped; classes `best` and `failed` carry the look."""

    def shown(cell: Cell, span: str = "") -> str:
        kind = ' class="best"' if cell.best else ' class="failed"' if cell.failed else ""
        return f"<td{kind}{span}>{escape(cell.label)}</td>"

    def cells(row: tuple[Cell, ...]) -> str:
        if row[0].failed and len(row) > 1 and len(set(row)) == 1:  # one reason for the whole row is said once
            return shown(row[0], f' colspan="{len(row)}"')
        return "".join(map(shown, row))

    head = "".join(f'<th scope="col">{escape(c)}</th>' for c in (table.corner, *table.columns))
    body = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th>{cells(row)}</tr>'
        for name, row in zip(table.names, table.rows, strict=True)
    )
    return (
        f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>\n'
        f'<p class="note">{escape(table.note)}</p>'
    )
