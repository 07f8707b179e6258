"""dicot embed: turn cases into vectors with a saved model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.errors import InputError, lookup

if TYPE_CHECKING:
    from dicot.deployed import OnnxEmbedder
    from dicot.estimator import TimeSeriesEmbedder

BACKENDS = ("torch", "onnx")


def embed(
    model: Annotated[
        Path, typer.Argument(help="A folder written by `dicot pretrain`, or an .onnx file written by `dicot export`.")
    ],
    data: opt.RecordedArgument,
    out: Annotated[Path, typer.Option(help="Where to write: .parquet, .npz, .npy or .csv.")],
    backend: Annotated[
        str | None, typer.Option(help="torch or onnx, which needs no torch; default: onnx for an .onnx file.")
    ] = None,
    device: opt.Device = "auto",
    precision: Annotated[
        str | None, typer.Option(help="On a GPU: float32, tf32 (faster, three digits) or bf16 (faster still, two).")
    ] = None,
    layout: opt.Layout = "nct",
    case: opt.Case = None,
    time: opt.Time = None,
    channels: opt.Channels = None,
    label: opt.Label = None,
    group: opt.Group = None,
    ignore: opt.Ignore = None,
    header: opt.Header = None,
    window: opt.Window = None,
    stride: opt.Stride = None,
    rate: opt.SamplingRate = None,
    resample: opt.Resample = False,
    missing: opt.Missing = None,
) -> None:
    """Embed all cases of DATA (training and test part, where it has both) with MODEL's own policies."""
    from dicot.data.files import Content
    from dicot.datasets import load_parts
    from dicot.vectors import check_vector_file, row_files, write_vectors

    check_vector_file(out)
    embedder = _embedder(model, backend, device, precision)
    table = opt.columns(case, time, channels, label, group, ignore, header)
    opt.check_recording_options(window, stride, rate, resample)
    windows, places = None, dict[str, Any]()  # of recordings, and where they lie
    if window is not None:
        windows = opt.load_recordings(data, window, stride, rate, resample, missing, table)
        contents = {"": Content(windows.x, windows.y, windows.group)}
        places = opt.given(recording=windows.recording, start=windows.start, end=windows.end)
    else:
        contents = load_parts(data, **table, **({"layout": layout} if layout != "nct" else {}))
    check_vector_file(out, len(contents))
    with row_files(out) as make:
        parts = {}
        for part, cases in contents.items():
            opt.show_read(data, cases.about)
            # Files are read into (channels, time), whatever layout the model was fitted with.
            known = cases.X if windows is None else windows  # which know their channels and rate
            vectors = embedder.transform_into(known, make, layout="nct").read()
            typer.echo(f"{data}{part and ' '}{part}: {vectors.shape[0]} cases -> {vectors.shape[1]} features")
            parts[part] = {"X": vectors, **opt.given(y=cases.y, group=cases.group), **places}
        write_vectors(out, parts)
    typer.echo(f"Wrote {out}")


def _embedder(
    model: Path, backend: str | None, device: str, precision: str | None
) -> "TimeSeriesEmbedder | OnnxEmbedder":
    """Load the model with what computes it; only torch takes a device and a precision."""
    lookup(dict.fromkeys(BACKENDS), backend or "torch", "backend")
    is_file = model.suffix == ".onnx"
    if backend is not None and is_file != (backend == "onnx"):
        remedy = f"Leave --backend {backend} out" if is_file else f"Write one: dicot export {model} --onnx model.onnx"
        raise InputError(f"--backend onnx goes with an .onnx file and torch with a folder; got {model}. {remedy}.")
    if not is_file:
        from dicot.estimator import TimeSeriesEmbedder

        embedder = TimeSeriesEmbedder.from_pretrained(model, device=device)
        embedder.set_params(**opt.given(embed_precision=precision))
        return embedder
    if device not in ("auto", "cpu") or precision is not None:
        raise InputError("--device and --precision are torch's; an .onnx file runs on the CPU. Leave them out.")
    from dicot.deployed import OnnxEmbedder

    return OnnxEmbedder(model)
