"""Tables on the screen."""

from typing import TYPE_CHECKING

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
