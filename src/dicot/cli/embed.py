"""dicot embed: turn cases into vectors, with a saved model or one that is fitted on them."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from dicot.cli import options as opt
from dicot.cli.models import ChosenModel, default_model, hash_at, model_to_append_with
from dicot.cli.paths import check_data, check_model
from dicot.cli.sources import DataSource, corpus_at, find_source, show_recordings
from dicot.core.errors import WrongCallError

if TYPE_CHECKING:
    from dicot.model.deployed import OnnxEmbedder
    from dicot.model.estimator import TimeSeriesEmbedder
    from dicot.store.embedding import EmbeddingRun
    from dicot.store.folder import Corpus
    from dicot.store.vectors import MadeOf

ON_RAY = ("actors", "cpus_per_actor", "gpus_per_actor")


@opt.reads
def embed(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] DATA",
            help="MODEL: what `dicot pretrain` wrote, an .onnx of `dicot export`, or a name of `dicot list models`; by "
            f"default instant, fitted on DATA in seconds. DATA: {opt.DATA} a folder, a pattern or, with --window, a "
            "file of recordings.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="A .parquet or .npz; of a corpus also a folder, written shard by shard.")],
    model: Annotated[str | None, typer.Option(help="Another way to name MODEL, such as --model dicot-base.")] = None,
    append: Annotated[bool, typer.Option("--append", help="Recordings: embed only what is new.")] = False,
    device: opt.Device = "auto",
    overwrite: opt.Overwrite = False,
    ray: opt.Ray = None,
    *,
    said: opt.Settings,
) -> None:
    """Embed all cases of DATA (training and test part, where it has both) with MODEL's own policies.

    Without MODEL the preset instant is fitted on DATA, on the training part where there is one. The fitted model is
    kept beside the vectors: v.parquet has the folder v.model. --append uses it and fits nothing.

    Recordings are embedded one file after the other, a corpus into a folder shard by shard. Windows that nobody says
    are those of MODEL, or what `dicot inspect` suggests. A run that was killed is continued by the same command. --set
    takes precision (tf32 or bf16 on a GPU), memory, gpu_memory, and with --ray actors, cpus_per_actor, gpus_per_actor.
    """
    from dicot.core.storage import refuse_existing
    from dicot.model.box import in_box
    from dicot.store.embedding import is_current
    from dicot.store.vectors import check_out

    named, data = _model_and_data(what, model)
    if append and overwrite:
        raise WrongCallError("--append adds to the file, and --overwrite replaces it. Give one of them.")
    reading, how, run = said.take(*opt.READING), said.take("precision"), said.take("memory", "gpu_memory", *ON_RAY)
    said.rest()
    check_data(data)
    if named is not None:
        check_model(in_box(named))
    into_folder = not out.suffix and corpus_at(data) is not None  # a folder knows itself whether it may be replaced
    if not into_folder:
        check_out(out)
        if run or ray:
            settings = ", ".join([*run, *(["ray"] if ray else [])])
            raise WrongCallError(f"{settings}: these are for a corpus and a folder as --out.")
    # What is there may be what this call would write.
    there = None
    if not (into_folder or append or overwrite):
        there = _vectors_of(data, out)

    missing = reading.get("missing")
    how |= opt.given(missing=missing)
    load: Callable[..., Any] = partial(load_embedder, verbose=Path(data).is_file(), **how)
    # On Ray too it is loaded here: what cannot be used is refused before any process is started.
    here = "cpu" if ray else device
    path = model_to_append_with(out) if named is None and append else None
    path = in_box(named) if named is not None else path
    if path is None:
        chosen = default_model(out, load, device=here, missing=missing, overwrite=overwrite)
        usual_window = 0
    else:
        embedder = load(path.absolute(), device=here)
        chosen = ChosenModel(path, lambda device: embedder, here)
        usual_window = embedder.preparation_.n_times
    source = find_source(data, reading, usual_window, out if append else None, said.allowance)
    if source.corpus is not None and into_folder:
        embed_shards(chosen, partial(load, chosen.path.absolute()), source.corpus, out, device, ray, overwrite, run)
        return
    if append and not source.recorded:
        raise WrongCallError(f"--append is for recordings; {data} is not read as such. Give --window, or leave it out.")
    if there is not None:
        options = source.options if path is None else source.as_fitted(embedder)
        model_hash = hash_at(chosen.path) or ""
        if not is_current(there, model_hash, data, options, said.allowance):
            refuse_existing(out, overwrite, "--append to add what is new, or choose another name")
        typer.echo(f"{out} is up to date: these recordings, this model and these options gave it.")
        return
    embed_source(chosen, source, out, append)


def _model_and_data(what: list[str], option: str | None) -> tuple[str | None, str]:
    """Tell MODEL, where one is named, from DATA."""
    if len(what) > 2:
        raise WrongCallError(
            f"This takes MODEL and DATA; got {len(what)} names. Put a pattern such as '*.csv' in quotes."
        )
    if len(what) == 2 and option is not None:
        raise WrongCallError(f"The model is named twice: {what[0]} and --model {option}. Leave one out.")
    return (what[0] if len(what) == 2 else option), what[-1]


def _vectors_of(data: str, out: Path) -> "MadeOf | None":
    """Say what the file that is there was made of, if it may be up to date; any other file is refused at once."""
    from dicot.core.storage import refuse_existing
    from dicot.store.vectors import source_of

    made_of = source_of(out) if out.exists() else None
    if made_of is None or made_of.kind != "recordings" or not made_of.is_of(data):
        refuse_existing(out, overwrite=False)
        return None
    return made_of


def embed_source(model: ChosenModel, source: DataSource, out: Path, append: bool = False) -> None:
    if source.corpus is not None:
        _embed_corpus(model, source.corpus, out)
    elif not source.recorded:
        _embed_cases(model, source, out)
    elif model.is_there:
        embed_recorded(model.load(device=model.device), model.path, source, out, append)
    else:
        embed_recorded(None, model.path, source, out, append, fit=model.fit_to_stream)


def embed_recorded(
    embedder: "TimeSeriesEmbedder | OnnxEmbedder | None",
    model: Path,
    source: DataSource,
    out: Path,
    append: bool,
    **how: Any,
) -> "EmbeddingRun":
    """Embed recordings and say what was done; `how` goes to `embed_recordings`: `fit` where there is no model yet."""
    from dicot.store.embedding import embed_recordings

    data = source.data
    recordings = data if source.files is None else source.files
    how |= {"append": append, "allowance": source.allowance}
    if embedder is None:
        done = embed_recordings(None, "", out, recordings, source.options, **how)
    else:
        how["model_at"] = place_of(model)
        done = embed_recordings(embedder.transform, hash_of(model), out, recordings, source.as_fitted(embedder), **how)
    show_recordings(data, done.recordings, done.channels, done.rate)
    if done.continued:
        typer.echo(f"Continued: {done.continued} of {done.files} files were finished before.")
    if append and not done.added:
        typer.echo(f"Nothing is new: {out} has all {done.there} windows of {data}")
        return done
    typer.echo(f"{data}: {done.added} cases -> {done.n_features} features")
    typer.echo(f"Wrote {out}" + (f", {done.there} windows before and {done.added} new ones" if done.there else ""))
    return done


def _embed_corpus(model: ChosenModel, corpus: "Corpus", out: Path) -> None:
    from dicot.store.embedding import made_of_corpus
    from dicot.store.vectors import COLUMNS, RowFile, write_vectors

    embedder = model.for_corpus(corpus)
    vectors = embedder.transform_into(corpus, partial(RowFile, out), layout="nct").read()
    about = {COLUMNS[name]: values for name, values in corpus.columns().items()}
    made = made_of_corpus(corpus, hash_of(model.path))
    if made is not None:
        made = replace(made, at=place_of(model.path))
    write_vectors(out, {"": {"X": vectors, **about}}, made)
    typer.echo(f"{corpus.name}: {vectors.shape[0]} cases -> {vectors.shape[1]} features")
    typer.echo(f"Wrote {out}")


def embed_shards(
    model: ChosenModel,
    load: "Callable[..., TimeSeriesEmbedder | OnnxEmbedder]",
    corpus: "Corpus",
    out: Path,
    device: str,
    ray: str | None,
    overwrite: bool,
    run: dict[str, Any],
) -> None:
    """Embed a corpus into a folder, shard by shard, here or on a Ray cluster."""
    from dicot.core.device import gpu_memory_of, limited_memory
    from dicot.core.processes.budget import TORCH, memory_of, refuse_beyond
    from dicot.core.processes.cluster import joined
    from dicot.store.embedding import OnCluster, embed_corpus

    if ray is None and (wrong := [name for name in ON_RAY if name in run]):
        raise WrongCallError(f"{', '.join(wrong)}: these go with --ray.")
    if ray is not None and "gpu_memory" in run:
        raise WrongCallError("gpu_memory limits this process; with --ray, gpus_per_actor says how many share a GPU.")
    on_gpu = gpu_memory_of(run.get("gpu_memory"), device)
    budget = memory_of(run["memory"]) if "memory" in run else None
    remedy = "Build the corpus with smaller shards, or allow more."

    def look(need: int, what: str = "Embedding a shard") -> None:
        if budget is not None:
            refuse_beyond(budget, need, what, remedy)

    look(TORCH + 3 * max(shard.bytes for shard in corpus.shards), f"A shard of {corpus.name}")
    embedder = model.for_corpus(corpus)
    asked: dict[str, Any] = {"model_hash": hash_of(model.path), "overwrite": overwrite, "on_shard": look}
    if ray is None:
        with limited_memory(device, on_gpu):
            done = embed_corpus(embedder, corpus, out, **asked)
    else:
        actors, cpus = run.get("actors"), run.get("cpus_per_actor", 1)
        with joined(ray, None if actors is None else actors * cpus) as cluster:
            on = "cpu" if model.path.suffix == ".onnx" and device == "auto" else device
            share = cluster.share(on, cpus, run.get("gpus_per_actor"))
            make = partial(load, device=share.device)
            done = embed_corpus(OnCluster(cluster, make, share, actors), corpus, out, **asked)
    typer.echo(f"{corpus.name}: {len(done)} windows -> {done.shape[1]} features")
    typer.echo(f"Wrote {out}: {len(done.shards)} shards")


def _embed_cases(model: ChosenModel, source: DataSource, out: Path) -> None:
    from dicot.core.storage import only_writer
    from dicot.data.datasets import load_parts
    from dicot.store.vectors import MadeOf, RowFile, write_vectors

    data, options = source.data, source.options
    embedder = model.load(device=model.device) if model.is_there else None
    if embedder is not None:
        options = source.as_fitted(embedder)
    contents = load_parts(data, **options)
    with only_writer(out):
        if embedder is None:
            embedder = model.fit_to_cases(next(iter(contents.values())))
        parts = {}
        for part, cases in contents.items():
            if cases.about:
                typer.echo(f"Read {data}: {cases.about}")
            order = None if cases.channels is None else embedder.preparation_.channel_order(cases.channels)
            X = cases.X if order is None else [case[order] for case in cases.X]
            # Files are read into (channels, time), whatever layout the model was fitted with.
            vectors = embedder.transform_into(X, partial(RowFile, out), layout="nct").read()
            typer.echo(f"{data}{part and ' '}{part}: {vectors.shape[0]} cases -> {vectors.shape[1]} features")
            parts[part] = {"X": vectors, **opt.given(y=cases.y, group=cases.group)}
        channels = next(iter(contents.values())).channels
        made = MadeOf.of_cases(data, options, channels, hash_of(model.path))
        write_vectors(out, parts, replace(made, at=place_of(model.path)))
    typer.echo(f"Wrote {out}")


def place_of(model: Path) -> str:
    """Say where a model is, for what is made by it: its name in the box, or its path."""
    from dicot.model.box import BOX

    return next((name for name, path in BOX.items() if path == model), str(model.absolute()))


def load_embedder(
    model: Path, device: str, precision: str | None = None, missing: str | None = None, verbose: bool = False
) -> "TimeSeriesEmbedder | OnnxEmbedder":
    """Load the model with what computes it; only torch takes a device and a precision."""
    embedder: Any
    if model.suffix != ".onnx":
        from dicot.model.estimator import TimeSeriesEmbedder

        embedder = TimeSeriesEmbedder.from_pretrained(model, device=device)
        features = {**(embedder.features or {}), **opt.given(precision=precision)}
        embedder.set_params(verbose=verbose, features=features)
    elif device not in ("auto", "cpu") or precision is not None:
        raise WrongCallError("A device and a precision are torch's; an .onnx file runs on the CPU. Leave them out.")
    else:
        from dicot.model.deployed import OnnxEmbedder

        embedder = OnnxEmbedder(model)
    embedder.preparation_ = replace(embedder.preparation_, **opt.given(missing=missing))
    return cast("TimeSeriesEmbedder | OnnxEmbedder", embedder)


def hash_of(model: Path) -> str:
    from dicot.model import deployed

    return deployed.hash_of(model)
