"""A table as LaTeX with booktabs, every text escaped."""

import re

from dicot.report.comparison import Cell, Table

LONG = 40  # rows that fit on a page
PACKAGES = "% Needs the packages booktabs, longtable and graphicx.\n"
SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "±": r"$\pm$",
    "…": r"\dots{}",
    "\n": " ",
}
_ANY = re.compile("|".join(map(re.escape, SPECIAL)))


def escape_latex(text: str) -> str:
    """The text as LaTeX prints it, letter by letter."""
    return _ANY.sub(lambda found: SPECIAL[found.group()], text)


def _shown(cell: Cell) -> str:
    text = escape_latex(cell.label)
    return rf"\textbf{{{text}}}" if cell.best else rf"\textit{{{text}}}" if cell.failed else text


def to_latex(table: Table, caption: str) -> str:
    """A table with its caption and note: scaled to the width of the text, or over several pages where it is long."""
    head = " & ".join(map(escape_latex, (table.corner, *table.columns))) + r" \\"
    body = [
        " & ".join([escape_latex(name), *map(_shown, row)]) + r" \\"
        for name, row in zip(table.names, table.rows, strict=True)
    ]
    columns = "l" + "r" * len(table.columns)
    note = rf"\par\smallskip\footnotesize {escape_latex(table.note)}"
    if len(body) > LONG:
        lines = [r"{\scriptsize", rf"\begin{{longtable}}{{{columns}}}", rf"\caption{{{escape_latex(caption)}}}\\"]
        lines += [r"\toprule", head, r"\midrule", r"\endhead", r"\bottomrule", r"\endlastfoot", *body]
        return "\n".join([*lines, r"\end{longtable}", note, "}", ""])
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{escape_latex(caption)}}}", r"\resizebox{\textwidth}{!}{%"]
    lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}}", note, r"\end{table}", ""])
