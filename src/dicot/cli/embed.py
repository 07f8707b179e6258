"""dicot embed: turn cases into vectors, with a saved model or one that is fitted on them."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from dicot.cli import options as opt
from dicot.cli.exitcodes import end
from dicot.cli.paths import check_data, check_model
from dicot.cli.settings import Settings
from dicot.cli.sources import find_source
from dicot.core.errors import WrongCallError

if TYPE_CHECKING:
    from dicot.store.folder import Corpus
    from dicot.store.source import DataSource
    from dicot.store.vectors import MadeOf
    from dicot.use.modelchoice import ChosenModel

ON_RAY = ("actors", "cpus_per_actor", "gpus_per_actor")


@final
@dataclass(frozen=True)
class ModelOptions:
    """Which model embeds, and where it runs."""

    model: Annotated[str | None, typer.Option(help="Another way to name MODEL, such as --model dicot-base.")] = None
    device: opt.Device = "auto"


@final
@dataclass(frozen=True)
class OutputOptions:
    """What happens to vectors that are there."""

    append: Annotated[bool, typer.Option("--append", help="Recordings: embed only what is new.")] = False
    overwrite: opt.Overwrite = False

    def check(self) -> None:
        if self.append and self.overwrite:
            raise WrongCallError("--append adds to the file, and --overwrite replaces it. Give one of them.")


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
    out: Annotated[
        Path,
        typer.Option(help="A .parquet or .npz; of a corpus also a folder, written shard by shard."),
    ],
    models: ModelOptions,
    output: OutputOptions,
    reading: opt.ReadingOptions,
    ray: opt.Ray = None,
) -> None:
    """Embed all cases of DATA (training and test part, where it has both) with MODEL's own policies.

    Without MODEL the preset instant is fitted on DATA, on the training part where there is one. The fitted model is
    kept beside the vectors: v.parquet has the folder v.model. --append uses it and fits nothing.

    Recordings are embedded one file after the other, a corpus into a folder shard by shard. Windows that nobody says
    are those of MODEL, or what `dicot inspect` suggests. A run that was killed is continued by the same command. --set
    takes precision (tf32 or bf16 on a GPU), and with --ray actors, cpus_per_actor, gpus_per_actor.
    """
    named, data = _model_and_data(what, models.model)
    output.check()
    settings = reading.by_group(own=("precision", *ON_RAY))
    _check_inputs(data, named)
    on_ray = {name: value for name, value in settings.own.items() if name in ON_RAY}
    into_folder = not out.suffix and _is_corpus(data)
    there = None if into_folder else _check_file(out, data, output, [*on_ray, *(["ray"] if ray else [])])

    # On Ray too the model is loaded here: what cannot be used is refused before any process is started.
    model = _chosen_model(named, data, out, "cpu" if ray else models.device, output, settings)
    before = out if output.append else None
    source = find_source(data, settings.reading, model.usual_window, before, reading.allowance)
    if into_folder and source.corpus is not None:
        embed_shards(model, source.corpus, out, models.device, ray, output.overwrite, on_ray)
    elif there is not None:
        _check_up_to_date(out, there, source, model)
    else:
        _embed(out, source, model, output.append)
    end(reading.allowance)


def _model_and_data(what: list[str], option: str | None) -> tuple[str | None, str]:
    """Tell MODEL, where one is named, from DATA."""
    if len(what) > 2:
        raise WrongCallError(
            f"This takes MODEL and DATA; got {len(what)} names. Put a pattern such as '*.csv' in quotes."
        )
    if len(what) == 2 and option is not None:
        raise WrongCallError(f"The model is named twice: {what[0]} and --model {option}. Leave one out.")
    return (what[0] if len(what) == 2 else option), what[-1]


def _check_inputs(data: str, model: str | None) -> None:
    from dicot.model.box import in_box

    check_data(data)
    if model is not None:
        check_model(in_box(model))


def _is_corpus(data: str) -> bool:
    from dicot.store.source import corpus_at

    return corpus_at(data) is not None


def _check_file(out: Path, data: str, output: OutputOptions, of_folder: list[str]) -> "MadeOf | None":
    """Refuse a name that cannot be written, and settings that only a folder takes.

    Of vectors that are there and may be up to date, it returns what they were made of.
    """
    from dicot.core.storage import refuse_existing
    from dicot.store.source import vectors_to_compare
    from dicot.store.vectors import check_out

    check_out(out)
    if of_folder:
        raise WrongCallError(f"{', '.join(of_folder)}: these are for a corpus and a folder as --out.")
    if output.append or output.overwrite:
        return None
    made_of = vectors_to_compare(data, out)
    if made_of is None:
        refuse_existing(out, overwrite=False)
    return made_of


def _chosen_model(
    named: str | None, data: str, out: Path, device: str, output: OutputOptions, settings: Settings
) -> "ChosenModel":
    """Choose the model that is named, or that of the vectors which are appended to, or else the default."""
    from dicot.model.box import in_box
    from dicot.use.modelchoice import (
        ChosenModel,
        EmbedderOptions,
        default_model,
        model_to_append_with,
    )

    options = EmbedderOptions(
        device,
        precision=settings.own.get("precision"),
        missing=settings.reading.get("missing"),
        verbose=Path(data).is_file(),
    )
    path = None if named is None else in_box(named)
    if path is None and output.append:
        path = model_to_append_with(out)
    if path is None:
        return default_model(out, options, overwrite=output.overwrite, say=typer.echo)
    return ChosenModel(path, options, say=typer.echo)


def _check_up_to_date(out: Path, there: "MadeOf", source: "DataSource", model: "ChosenModel") -> None:
    """Say that vectors are what this call would write, or refuse to replace them."""
    from dicot.core.storage import refuse_existing
    from dicot.store.embedding import is_current
    from dicot.use.modelchoice import hash_at

    options = source.as_fitted(model.embedder) if model.is_there else source.options
    wanted = hash_at(model.path) or ""
    if not is_current(there, wanted, source.data, options, source.allowance):
        refuse_existing(out, False, "--append to add what is new, or choose another name")
    typer.echo(f"{out} is up to date: these recordings, this model and these options gave it.")


def _embed(out: Path, source: "DataSource", model: "ChosenModel", append: bool) -> None:
    from dicot.use.embedfiles import embed_into

    if append and not source.recorded:
        raise WrongCallError(
            f"--append is for recordings; {source.data} is not read as such. Give --window, or leave it out."
        )
    embed_into(out, source, model, append=append, say=typer.echo)


def embed_shards(
    model: "ChosenModel",
    corpus: "Corpus",
    out: Path,
    device: str,
    ray: str | None,
    overwrite: bool,
    run: dict[str, Any],
) -> None:
    """Embed a corpus into a folder, shard by shard, here or on a Ray cluster."""
    from dicot.store.onray import GPU_SHARE, RayCluster
    from dicot.store.shards import Embedder, OnRay, embed_corpus

    if ray is None and run:
        raise WrongCallError(f"{', '.join(run)}: these go with --ray.")
    if device == "cpu" and run.get("gpus_per_actor"):
        raise WrongCallError("Processes with a GPU do not run on the CPU. Leave out --device cpu or gpus_per_actor.")
    embedder: Embedder | OnRay = model.fit_to_corpus(corpus)
    if ray is not None:
        gpus = run.get("gpus_per_actor", GPU_SHARE if device.startswith("cuda") else None)
        if device == "cpu" or model.path.suffix == ".onnx":
            gpus = 0.0
        cluster = RayCluster(ray, run.get("actors"), run.get("cpus_per_actor", 1), gpus)
        load = partial(replace(model.options, device=device).load, model.path.absolute())
        embedder = OnRay(cluster, load)
    done = embed_corpus(embedder, corpus, out, model_hash=model.hash, overwrite=overwrite)
    typer.echo(f"{corpus.name}: {len(done)} windows -> {done.shape[1]} features")
    typer.echo(f"Wrote {out}: {len(done.shards)} shards")
