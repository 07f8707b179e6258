"""Tables on the screen."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


def show(table: "Table") -> None:
    """Print a table whole: as wide as it is where nobody's screen ends, and nowhere so narrow that columns are lost."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console()
    wide = console.options.update(width=10_000)
    needed = Measurement.get(console, wide, table)
    console.width = max(console.width, needed.minimum) if console.is_terminal else needed.maximum
    console.print(table)


def cell(value: Any) -> str:
    """Write a number or a text; a number that is not known is empty, as such a text is."""
    if not isinstance(value, float):  # numpy's float64 is one too
        return str(value)
    return "" if value != value else f"{value:.10g}"
