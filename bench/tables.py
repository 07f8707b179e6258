"""Tables and numbers as a page or a terminal shows them."""

import math
from collections.abc import Mapping, Sequence

Value = float | str
Row = Mapping[str, Value]

THOUSANDS = ("", "k", "M", "G", "T", "P", "E")


def markdown(rows: Sequence[Row]) -> str:
    """A pipe table, one column for each key of the first row; numbers stand to the right."""
    heads = list(rows[0])
    rules = ["---" if isinstance(rows[0][head], str) else "---:" for head in heads]
    lines = [heads, rules]
    lines += [[shown(row[head]) for head in heads] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def shown(value: Value) -> str:
    """A number with three significant digits; text as it is."""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    size = abs(value)
    if size != 0 and (size < 1e-3 or size >= 1e6):
        return f"{value:.1e}"
    for least, digits in ((100, 0), (10, 1), (0.1, 2)):
        if size >= least:
            return f"{value:.{digits}f}"
    return f"{value:.4f}"


def with_unit(value: float) -> str:
    """Three digits and a unit of a thousand: 1.2e13 is "12 T"."""
    power = 0
    if value >= 1000:
        power = min(len(THOUSANDS) - 1, int(math.log10(value) // 3))
    return f"{value / 1000**power:.3g} {THOUSANDS[power]}"


def duration(seconds: float) -> str:
    """Two digits of seconds, minutes, hours or days."""
    for name, length, least in (("days", 86400, 3 * 86400), ("h", 3600, 3600), ("min", 60, 60)):
        if seconds >= 10 * length:
            return f"{seconds / length:,.0f} {name}"
        if seconds >= least:
            return f"{seconds / length:.1f} {name}"
    return f"{seconds:.2g} s"
