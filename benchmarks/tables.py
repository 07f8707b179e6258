"""Large numbers, times and tables as a page shows them; rows as a file."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any


def said(value: float) -> str:
    """Three digits and a unit of a thousand: 1.2e13 is "12 T"."""
    power = 0 if value < 1000 else min(6, int(math.log10(value) // 3))
    return f"{value / 1000**power:.3g} {('', 'k', 'M', 'G', 'T', 'P', 'E')[power]}"


def said_time(seconds: float) -> str:
    """Two digits of seconds, hours or days."""
    for name, length, least in (("days", 86400, 3 * 86400), ("h", 3600, 3600), ("min", 60, 60)):
        if seconds >= least:
            return f"{seconds / length:,.0f} {name}" if seconds >= 10 * length else f"{seconds / length:.1f} {name}"
    return f"{seconds:.2g} s"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A table of Markdown."""
    rule = ["---"] * left + ["---:"] * (len(heads) - left)
    return "\n".join("| " + " | ".join(row) + " |" for row in (heads, rule, *rows)) + "\n"


def as_csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Rows of the same columns."""
    text = io.StringIO()
    out = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    out.writeheader()
    out.writerows(rows)
    return text.getvalue().encode()
