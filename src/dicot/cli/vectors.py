"""dicot vectors: take some of the vectors of a file into another one."""

from pathlib import Path
from typing import Annotated

import typer

from dicot.cli import options as opt
from dicot.cli.commands import command
from dicot.cli.paths import check_inputs, check_outputs
from dicot.core.errors import WrongCallError

vectors = typer.Typer(no_args_is_help=True)


@vectors.callback()
def root() -> None:
    """Vectors: take some of them into another file."""


@command(vectors)
def select(
    vectors: opt.VectorsArgument,
    out: Annotated[Path, typer.Option(help="The .parquet or .npz to write.")],
    where: Annotated[
        list[str] | None,
        typer.Option(help="label=walk,run, label!=fall* or start>=60; repeat: all hold."),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(help="Only the windows of a .csv, such as an export of the explorer."),
    ] = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Write the windows of VECTORS that fulfil all conditions: by recording, group, label, start, end and so on.

    The new file knows its recordings, so explore, search --plot and embed --append go on from it.
    """
    check_inputs("vectors", vectors)
    check_inputs("file", rows)
    check_outputs(out, overwrite=overwrite, inputs=(vectors, rows))
    if not where and rows is None:
        raise WrongCallError("Say which windows: --where label=walk, --where 'start>=60' or --rows windows.csv.")

    from dicot.core.errors import naming
    from dicot.store.subset import select_rows, write_subset
    from dicot.store.vectors import check_out, read_vectors

    check_out(out)
    known = read_vectors(vectors)
    with naming(vectors):
        chosen = select_rows(known, where or (), rows)
    write_subset(out, known, chosen)
    typer.echo(f"Wrote {out}: {int(chosen.sum())} of {len(known)} windows")
