"""dicot export: a saved model as one ONNX file."""

from pathlib import Path
from typing import Annotated

import typer

from dicot.cli import options as opt


def export(
    model: opt.ModelArgument,
    onnx: Annotated[Path, typer.Option(help="The .onnx file to write.")],
    classifier: Annotated[
        Path | None,
        typer.Option(help="A file of `dicot classify --save`: class probabilities become a second output."),
    ] = None,
) -> None:
    """Write MODEL as an ONNX file that takes raw windows (batch, channels, time) and needs neither torch nor dicot.

    Scale, missing values, encoder, bank and compression are inside. The file is compared with torch on random windows
    of several lengths before it is put in its place.
    """
    from dicot.estimator import TimeSeriesEmbedder
    from dicot.export import export_onnx
    from dicot.heads import Head

    head = None if classifier is None else Head.load(classifier)
    made = export_onnx(TimeSeriesEmbedder.from_pretrained(model, device="cpu"), onnx, classifier=head)
    lengths = ", ".join(map(str, made.lengths))
    typer.echo(f"onnxruntime and torch differ by {made.difference:.0e} at most, for {lengths} time steps")
    typer.echo(f"Wrote {made.path} ({made.n_bytes / 1e6:.1f} MB)")
