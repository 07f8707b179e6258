"""dicot embed: turn cases into vectors with a saved model."""

from pathlib import Path
from typing import Annotated

import typer

from dicot.cli import options as opt


def embed(
    model: Annotated[Path, typer.Argument(help="A folder written by `dicot pretrain`.")],
    data: opt.DataArgument,
    out: Annotated[Path, typer.Option(help="Where to write: .npz, .npy or .csv.")],
    device: opt.Device = "auto",
    layout: opt.Layout = "nct",
    case: opt.Case = None,
    time: opt.Time = None,
    channels: opt.Channels = None,
    label: opt.Label = None,
    group: opt.Group = None,
) -> None:
    """Embed all cases of DATA (training and test part, where it has both) with MODEL's own policies."""
    from dicot.datasets import raw_parts
    from dicot.estimator import TimeSeriesEmbedder
    from dicot.vectors import check_vector_file, write_vectors

    check_vector_file(out)
    embedder = TimeSeriesEmbedder.from_pretrained(model, device=device)
    table = opt.columns(case, time, channels, label, group)
    parts = raw_parts(data, **table, **({"layout": layout} if layout != "nct" else {}))
    arrays = {}
    for part, cases in parts.items():
        vectors = embedder.transform(cases.X)
        typer.echo(f"{part or data}: {vectors.shape[0]} cases -> {vectors.shape[1]} features")
        suffix = f"_{part}" if part else ""
        arrays[f"X{suffix}"] = vectors
        arrays |= {f"{name}{suffix}": value for name, value in (("y", cases.y), ("group", cases.group)) if value is not None}
    write_vectors(out, arrays)
    typer.echo(f"Wrote {out}")
