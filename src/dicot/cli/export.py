"""dicot export: a saved model as one ONNX file."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dicot.cli import options as opt
from dicot.cli.paths import check_inputs, check_model, check_outputs
from dicot.core.errors import InputError, ModelFileError

if TYPE_CHECKING:
    from dicot.model.head import Head


def export(
    model: Annotated[
        Path,
        typer.Argument(help="A folder of `dicot pretrain`, a saved classifier, or dicot-base."),
    ],
    onnx: Annotated[Path, typer.Option(help="The .onnx file to write.")],
    classifier: Annotated[
        Path | None,
        typer.Option(help="A file of `dicot classify --save`: adds probabilities of its classes."),
    ] = None,
    runner: Annotated[
        Path | None,
        typer.Option(help="Also write a .py that runs the file with numpy and onnxruntime alone."),
    ] = None,
    float64: Annotated[
        bool,
        typer.Option("--float64", help="Take windows in float64, for a small signal on a large offset."),
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
    from dicot.model.files import model_hash, read_config
    from dicot.model.head import Head

    if runner is not None:
        check_runner(runner)
    head = None
    if classifier is not None:
        head = Head.load(classifier)
        if head.model not in (None, model_hash(model)):
            options = ["--onnx", str(onnx), "--classifier", str(classifier)]
            options += [] if runner is None else ["--runner", str(runner)]
            options += ["--float64"] if float64 else []
            raise InputError(_other_model(classifier, head, model, options))

    kind = TimeSeriesClassifier if "classes" in read_config(model) else TimeSeriesEmbedder
    opened = kind.from_pretrained(model, device="cpu")
    exported = export_onnx(opened, onnx, classifier=head, float64=float64)
    lengths = ", ".join(map(str, exported.lengths))
    typer.echo(f"onnxruntime and torch differ by {exported.difference:.0e} at most, for {lengths} time steps")
    typer.echo(f"Wrote {exported.path} ({exported.n_bytes / 1e6:.1f} MB)")
    if runner is not None:
        write_runner(runner)
        typer.echo(f"Wrote {runner}. It needs numpy and onnxruntime: python {runner} {exported.path} < samples.csv")


def _other_model(classifier: Path, head: "Head", model: Path, options: list[str]) -> str:
    """Say which model a classifier belongs to, and the commands that export it with that one or train it for MODEL."""
    from dicot.core.errors import naming
    from dicot.store.vectors import MadeOf

    with naming(classifier):
        source = None if head.source is None else MadeOf.from_dict(head.source)
    place = "" if source is None else source.at
    embed = f"dicot embed {shlex.quote(str(model))} DATA --out vectors.parquet"
    classify = f"dicot classify vectors.parquet --save {shlex.quote(str(classifier))} --overwrite --no-accuracy"
    retrain = f"{embed}, then {classify}"

    if not place:
        return (
            f"{classifier} was trained with vectors of another model than {model}, and does not say of which. Name "
            f"that model, or train it again with vectors of this one: {retrain}"
        )
    if not _is_model(place, head.model):
        return (
            f"{classifier} was trained with vectors of a model that was at {place} and is not there now; {model} is "
            f"another one. Name the folder it was moved to, or train it again with vectors of this one: {retrain}"
        )
    ready = shlex.join(["dicot", "export", place, *options])
    return (
        f"{classifier} was trained with vectors of the model {place}, and {model} is another model. Export it with "
        f"its own model: {ready}\nOr train it again with vectors of this one: {retrain}"
    )


def _is_model(place: str, made: str | None) -> bool:
    """Tell whether the model with this hash is still at a place: a folder, or a name in the box."""
    from dicot.model.box import in_box
    from dicot.model.files import model_hash

    folder = in_box(place)
    try:
        return folder.is_dir() and model_hash(folder) == made
    except ModelFileError:
        return False  # damaged, or a folder of something else
