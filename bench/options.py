"""Options that several commands take."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ... or auto.")]
Out = Annotated[Path, typer.Option(help="File of rows; rows that are not measured again stay.")]
Seconds = Annotated[float, typer.Option(help="Seconds for which each call is repeated.")]
Threads = Annotated[int, typer.Option(min=1, help="Threads of PyTorch and onnxruntime.")]


def names(text: str, allowed: Collection[str]) -> list[str]:
    """Read names separated by commas, each of which must be allowed."""
    chosen = [part.strip() for part in text.split(",")]
    for name in chosen:
        if name not in allowed:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(allowed)}.")
    return chosen


def shape(text: str, separator: str = ",") -> tuple[int, ...]:
    """Read whole numbers, as in "8,150,1"."""
    try:
        return tuple(int(part) for part in text.split(separator))
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} are not whole numbers separated by {separator!r}.") from error
