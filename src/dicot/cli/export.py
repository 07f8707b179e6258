"""dicot export: a saved model as one ONNX file."""

from pathlib import Path
from typing import Annotated

import typer

from dicot.cli import options as opt
from dicot.cli.paths import check_inputs, check_model, check_outputs
from dicot.core.errors import InputError


def export(
    model: Annotated[Path, typer.Argument(help="A folder of `dicot pretrain`, a saved classifier, or dicot-base.")],
    onnx: Annotated[Path, typer.Option(help="The .onnx file to write.")],
    classifier: Annotated[Path | None, typer.Option(help="Of `dicot classify --save`: adds probabilities.")] = None,
    runner: Annotated[
        Path | None, typer.Option(help="Also write a .py that runs the file with numpy and onnxruntime alone.")
    ] = None,
    float64: Annotated[
        bool, typer.Option("--float64", help="Take windows in float64, for a small signal on a large offset.")
    ] = False,
    overwrite: opt.Overwrite = False,
) -> None:
    """Write MODEL as an ONNX file that takes raw windows (batch, channels, time) and needs neither torch nor dicot.

    Scale, missing values, encoder, bank and compression are inside. The file is compared with torch on random windows
    of several lengths before it is put in its place.
    """
    from dicot.model.box import in_box

    model = in_box(model)
    check_model(model)
    check_inputs("classifier", classifier)
    check_outputs(onnx, runner, overwrite=overwrite, inputs=(classifier,))

    from dicot.model.classifier import TimeSeriesClassifier
    from dicot.model.estimator import TimeSeriesEmbedder
    from dicot.model.export import export_onnx
    from dicot.model.export.runner import check_runner, write_runner
    from dicot.model.fewlabels import Head
    from dicot.model.files import model_hash, read_config

    if runner is not None:
        check_runner(runner)
    head = None if classifier is None else Head.load(classifier)
    if head is not None and head.model is not None and head.model != (own := model_hash(model)):
        raise InputError(
            f"{classifier} is of vectors of the model {head.model[:12]}, and {model} is {own[:12]}. Train it on "
            "vectors of this very model: dicot embed, then dicot classify --save."
        )
    kind = TimeSeriesClassifier if "classes" in read_config(model) else TimeSeriesEmbedder
    made = export_onnx(kind.from_pretrained(model, device="cpu"), onnx, classifier=head, float64=float64)
    lengths = ", ".join(map(str, made.lengths))
    typer.echo(f"onnxruntime and torch differ by {made.difference:.0e} at most, for {lengths} time steps")
    typer.echo(f"Wrote {made.path} ({made.n_bytes / 1e6:.1f} MB)")
    if runner is not None:
        write_runner(runner)
        typer.echo(f"Wrote {runner}. It needs numpy and onnxruntime: python {runner} {made.path} < samples.csv")
