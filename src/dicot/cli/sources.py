"""What DATA of a command are, and what is shown of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from dicot.data.allowance import Allowance
    from dicot.store.source import DataSource


def find_source(
    data: str,
    options: dict[str, Any],
    usual_window: int | None = None,
    before: Path | None = None,
    allowance: "Allowance | None" = None,
) -> "DataSource":
    """Tell what DATA are, and show how they are read; see `dicot.store.source.find_source`."""
    from dicot.store import source

    return source.find_source(
        data,
        options,
        usual_window=usual_window,
        before=before,
        allowance=allowance,
        say=typer.echo,
    )


def say_table(data: str | list[str], options: dict[str, Any]) -> None:
    """Say which table of labels was found, where nobody named one."""
    from dicot.store import source

    source.say_table(data, options, typer.echo)
