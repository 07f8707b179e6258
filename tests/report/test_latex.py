"""LaTeX tables: nothing in a text is taken for a command, and every row has its columns."""

import re

import pytest

from dicot.report.comparison import Cell, Table
from dicot.report.latex import SPECIAL, escape_latex, to_latex

EVIL = 'a_b & 5 % of $x^2 {k} \\tau ~ #1 <->|"\n±…'


def table(rows):
    cells = tuple(
        (Cell(EVIL, best=True), Cell("1.0 ± 0.1", best=True, tie=True), Cell("no", failed=True)) for _ in range(rows)
    )
    return Table("contender", ("w/o %", "k_{max}", "c"), tuple(f"row_{i}" for i in range(rows)), cells, EVIL)


def test_special_letters_are_escaped_once():
    assert escape_latex("100 % of k_{max} & \\tau") == r"100 \% of k\_\{max\} \& \textbackslash{}tau"
    assert escape_latex("1 ± 2") == r"1 $\pm$ 2"
    plain = re.sub("|".join(re.escape(shown) for shown in SPECIAL.values() if shown.strip()), "", escape_latex(EVIL))
    assert not set(plain) & set('\\{}$&%#_~^<>|"±…\n')


@pytest.mark.parametrize("rows", [3, 60])
def test_every_row_has_its_columns_and_braces_match(rows):
    text = to_latex(table(rows), EVIL)
    kind = "longtable" if rows > 40 else "tabular"
    assert rf"\begin{{{kind}}}{{lrrr}}" in text and rf"\end{{{kind}}}" in text
    body = text[text.index(r"\midrule") : text.rindex(r"\bottomrule") if rows <= 40 else text.index(r"\end{longtable}")]
    lines = [line for line in body.splitlines() if line.startswith("row")]
    assert len(lines) == rows
    assert all(len(re.findall(r"(?<!\\)&", line)) == 3 and line.endswith(r"\\") for line in lines)
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    assert text.count("$") - text.count(r"\$") == 2 * text.count(r"$\pm$")


def test_the_best_is_bold_and_a_failure_is_slanted():
    text = to_latex(table(1), "caption")
    assert r"\textbf{1.0 $\pm$ 0.1 (tie)}" in text and r"\textit{no}" in text and r"\toprule" in text
