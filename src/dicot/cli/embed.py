"""dicot embed: turn cases into vectors with a saved model."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.core.errors import InputError, lookup

if TYPE_CHECKING:
    from dicot.model.deployed import OnnxEmbedder
    from dicot.model.estimator import TimeSeriesEmbedder
    from dicot.store.corpus import Corpus

BACKENDS = ("torch", "onnx")


def embed(
    model: Annotated[
        Path, typer.Argument(help="A folder written by `dicot pretrain`, or an .onnx file written by `dicot export`.")
    ],
    data: opt.RecordedArgument,
    out: Annotated[Path, typer.Option(help="Where to write: .parquet or .npz.")],
    backend: Annotated[
        str | None, typer.Option(help="torch or onnx, which needs no torch; default: onnx for an .onnx file.")
    ] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Recordings: keep what the file has, and embed only what is new.")
    ] = False,
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
    resample: opt.Resample = None,
    unit: opt.Unit = None,
    gap: opt.Gap = None,
    missing: opt.Missing = None,
) -> None:
    """Embed all cases of DATA (training and test part, where it has both) with MODEL's own policies.

    Recordings are embedded one file after the other. A run that was killed is continued by the same command.
    """
    from dicot.store.vectors import check_vector_file

    check_vector_file(out)
    embedder = load_embedder(model, backend, device, precision)
    table = opt.columns(case, time, channels, label, group, ignore, header)
    cut: dict[str, Any] = {
        "window": window,
        "stride": stride,
        "rate": rate,
        "resample": resample,
        "unit": unit,
        "gap": gap,
    }
    corpus = opt.corpus_at(data, {**cut, **table, "missing": missing})
    if corpus is not None:
        if append:
            raise InputError(f"--append is for recordings; {data} is a corpus. Leave it out.")
        _embed_corpus(embedder, model, corpus, out)
        return
    recordings = opt.recorded(data, table, missing=missing, usual=embedder.preparation_.n_times, **cut)
    if recordings is not None:
        _embed_recordings(embedder, model, data, out, recordings.options, append)
    elif append:
        raise InputError(f"--append is for recordings; {data} is read as cases. Give --window, or leave it out.")
    else:
        _embed_cases(embedder, model, data, out, {**table, **({"layout": layout} if layout != "nct" else {})})


def _embed_recordings(
    embedder: "TimeSeriesEmbedder | OnnxEmbedder",
    model: Path,
    data: str,
    out: Path,
    options: dict[str, Any],
    append: bool,
) -> None:
    from dicot.model.deployed import OnnxEmbedder
    from dicot.store.recordings import embed_recordings

    options = opt.as_fitted(options, embedder)
    if not isinstance(embedder, OnnxEmbedder):
        embedder.set_params(verbose=False)  # one bar for all recordings
    done = embed_recordings(embedder.transform, hash_of(model), out, data, options, append=append)
    opt.show_recordings(data, done.recordings, done.channels, done.rate)
    if done.continued:
        typer.echo(f"Continued: {done.continued} of {done.files} files were finished before.")
    if append and not done.added:
        typer.echo(f"Nothing is new: {out} has all {done.there} windows of {data}")
        return
    typer.echo(f"{data}: {done.added} cases -> {done.n_features} features")
    typer.echo(f"Wrote {out}" + (f", {done.there} windows before and {done.added} new ones" if done.there else ""))


def _embed_corpus(embedder: "TimeSeriesEmbedder | OnnxEmbedder", model: Path, corpus: "Corpus", out: Path) -> None:
    """Embed a corpus into one file; `dicot corpus embed` writes one for each shard, and continues when killed."""
    from dicot.store.embedding import made_of_corpus
    from dicot.store.vectors import COLUMNS, row_files, write_vectors

    with row_files(out) as make:
        vectors = embedder.transform_into(corpus, make, layout="nct").read()
        about = {COLUMNS[name]: values for name, values in corpus.columns().items()}
        write_vectors(out, {"": {"X": vectors, **about}}, made_of_corpus(corpus, hash_of(model)))
    typer.echo(f"{corpus.name}: {vectors.shape[0]} cases -> {vectors.shape[1]} features")
    typer.echo(f"Wrote {out}")


def _embed_cases(
    embedder: "TimeSeriesEmbedder | OnnxEmbedder", model: Path, data: str, out: Path, columns: dict[str, Any]
) -> None:
    from dicot.core.storage.locks import only_writer
    from dicot.data.datasets import load_parts
    from dicot.store.made_of import MadeOf
    from dicot.store.vectors import row_files, write_vectors

    columns = opt.as_fitted(columns, embedder) if "case" in columns else columns  # of a long table
    contents = load_parts(data, **columns)
    with only_writer(out), row_files(out) as make:
        parts = {}
        for part, cases in contents.items():
            opt.show_read(data, cases.about)
            order = None if cases.channels is None else embedder.preparation_.channel_order(cases.channels)
            X = cases.X if order is None else [case[order] for case in cases.X]
            # Files are read into (channels, time), whatever layout the model was fitted with.
            vectors = embedder.transform_into(X, make, layout="nct").read()
            typer.echo(f"{data}{part and ' '}{part}: {vectors.shape[0]} cases -> {vectors.shape[1]} features")
            parts[part] = {"X": vectors, **opt.given(y=cases.y, group=cases.group)}
        channels = next(iter(contents.values())).channels
        write_vectors(out, parts, MadeOf.of_cases(data, columns, channels, hash_of(model)))
    typer.echo(f"Wrote {out}")


def load_embedder(
    model: Path, backend: str | None, device: str, precision: str | None
) -> "TimeSeriesEmbedder | OnnxEmbedder":
    """Load the model with what computes it; only torch takes a device and a precision."""
    lookup(dict.fromkeys(BACKENDS), backend or "torch", "backend")
    is_file = model.suffix == ".onnx"
    if backend is not None and is_file != (backend == "onnx"):
        remedy = f"Leave --backend {backend} out" if is_file else f"Write one: dicot export {model} --onnx model.onnx"
        raise InputError(f"--backend onnx goes with an .onnx file and torch with a folder; got {model}. {remedy}.")
    if not is_file:
        from dicot.model.estimator import TimeSeriesEmbedder

        embedder = TimeSeriesEmbedder.from_pretrained(model, device=device)
        embedder.features = {**(embedder.features or {}), **opt.given(precision=precision)}
        return embedder
    if device not in ("auto", "cpu") or precision is not None:
        raise InputError("--device and --precision are torch's; an .onnx file runs on the CPU. Leave them out.")
    from dicot.model.deployed import OnnxEmbedder

    return OnnxEmbedder(model)


def hash_of(model: Path) -> str:
    """Tell models apart. An .onnx file is not the model that it was made of: their vectors differ in rounding."""
    if model.suffix == ".onnx":
        return hashlib.sha256(model.read_bytes()).hexdigest()

    from dicot.model.files import model_hash

    return model_hash(model)
