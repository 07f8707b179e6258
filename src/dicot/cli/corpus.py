"""dicot corpus: windows of recordings in a folder, more of them than memory holds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.core.errors import InputError

if TYPE_CHECKING:
    from dicot.store.corpus.embedding import Embedder

corpus = typer.Typer(help="Corpora: windows of recordings, more than memory holds.", no_args_is_help=True)
CorpusArgument = Annotated[Path, typer.Argument(help="A folder that `dicot corpus build` wrote.")]


@corpus.command()
def build(
    sources: Annotated[
        list[str], typer.Argument(help="Folders, patterns or files of recordings, or URLs of such, as s3://bucket/ecg.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the corpus; a killed build continues there.")],
    window: Annotated[str | None, typer.Option(help="Time steps of a window, or a time such as 2.56s.")] = None,
    stride: Annotated[str | None, typer.Option(help="Time steps, a time, or a share; default: 50%.")] = None,
    time: opt.Time = None,
    channels: opt.Channels = None,
    label: opt.Label = None,
    group: opt.Group = None,
    rate: Annotated[
        float | None, typer.Option("--rate", help="Time steps per second; others are resampled to it.")
    ] = None,
    resample: Annotated[
        bool | None, typer.Option("--resample/--no-resample", help="Put uneven time steps on an even grid.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="Of time stamps that are numbers: s, ms, us or ns.")] = None,
    gap: Annotated[
        float | None, typer.Option(help="Steps so many times as long as usual are gaps; default: 1.5.")
    ] = None,
    missing: opt.Missing = None,
    dtype: Annotated[str, typer.Option(help="float32, or float16 for half the disk and three digits.")] = "float32",
    workers: Annotated[int | None, typer.Option(help="Processes; default: one per core, as memory allows.")] = None,
    memory: opt.Memory = None,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Leave out files that cannot be used, and list them.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is in the folder.")] = False,
) -> None:
    """Cut recordings into windows and keep these in a folder, file by file. A killed build is continued."""
    from dicot.core.processes.budget import said_bytes
    from dicot.store.corpus.build import build_corpus

    kept = _choices(sources)
    asked = opt.given(
        window=window, stride=stride, rate=rate, resample=resample, unit=unit, gap=gap, missing=missing
    ) | opt.columns(None, time, channels, label, group, None, None)
    options: dict[str, Any] = {**kept, **asked}
    if "window" not in options:
        raise InputError("Say how long a window is: --window 2.56s, or 128 for time steps.")
    done = build_corpus(
        sources,
        out,
        **options,
        dtype=dtype,
        workers=_cores() if workers is None else workers,
        memory=memory,
        skip_damaged=skip_damaged,
        overwrite=overwrite,
    )
    manifest = done.manifest
    if done.was_there:
        typer.echo(f"{out} already holds this corpus; nothing to do.")
        return
    if done.continued:
        typer.echo(f"Continued: {done.continued} of {len(manifest.sources)} files were finished before.")
    for source in manifest.damaged:
        typer.secho(f"Left out: {source.damaged}", fg="yellow", err=True)
    n_files = len(manifest.sources) - len(manifest.damaged)
    c, t = manifest.shape
    typer.echo(f"{manifest.windows} windows of {c} channel(s) and {t} time steps, of {n_files} file(s)")
    typer.echo(f"Wrote {out}: {len(manifest.shards)} shards, {said_bytes(manifest.bytes)}")


@corpus.command()
def info(
    corpus: CorpusArgument,
    verify: Annotated[bool, typer.Option("--verify", help="Read every byte and compare it with its hash.")] = False,
) -> None:
    """Describe a corpus: its windows, its files and what was left out."""
    from dicot.core.processes.budget import said_bytes
    from dicot.store.corpus import Corpus

    opened = Corpus.open(corpus, verify=verify)
    manifest, (n, c, t) = opened.manifest, opened.shape
    rate = manifest.rate
    lines = {
        "windows": f"{n:,}",
        "channels": f"{c}: {', '.join(manifest.channels)}",
        "time steps": f"{t}" + ("" if rate is None else f", {t / rate:g} s at {rate:g} per second"),
        "stride": f"{manifest.stride}" + ("" if rate is None else f", {manifest.stride / rate:g} s"),
        "stored as": f"{manifest.dtype}, {len(manifest.shards):,} shards, {said_bytes(manifest.bytes)}",
        "sources": f"{len(manifest.sources):,} files, {said_bytes(sum(s.bytes for s in manifest.sources))}, "
        f"{sum(source.recordings for source in manifest.sources):,} recordings with a window",
        "options": ", ".join(f"{key}={value}" for key, value in manifest.options.items() if value is not None),
        "fingerprint": opened.fingerprint() + (", every byte as it was written" if verify else ""),
    }
    for name, text in lines.items():
        typer.echo(f"{name:12} {text}")
    for source in manifest.damaged:
        typer.echo(f"{'left out':12} {source.damaged}")


@corpus.command()
def embed(
    corpus: CorpusArgument,
    model: Annotated[Path, typer.Option(help="A folder written by `dicot pretrain`, or an .onnx file.")],
    out: Annotated[Path, typer.Option(help="Folder for the vectors; a killed run continues there.")],
    backend: Annotated[str | None, typer.Option(help="torch or onnx; default: onnx for an .onnx file.")] = None,
    device: opt.Device = "auto",
    precision: Annotated[str | None, typer.Option(help="On a GPU: float32, tf32 or bf16.")] = None,
    dtype: Annotated[str, typer.Option(help="Of the numbers of a vector: float32 or float16.")] = "float32",
    memory: opt.Memory = None,
    gpu_memory: opt.GpuMemory = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace vectors of another corpus or model.")] = False,
    ray: opt.Ray = None,
    actors: Annotated[
        int | None, typer.Option(min=1, help="With --ray: processes that embed; default: as many as find room.")
    ] = None,
    cpus_per_actor: Annotated[int, typer.Option(min=1, help="With --ray: cores and threads of each.")] = 1,
    gpus_per_actor: opt.GpusPerActor = None,
) -> None:
    """Embed all windows of CORPUS, one .parquet for each shard. A killed run is continued by the same command."""
    from functools import partial

    from dicot.cli.embed import hash_of
    from dicot.core.gpu.memory import gpu_memory_of, limited_memory
    from dicot.core.processes.budget import TORCH, memory_of, peak_bytes, refuse_beyond
    from dicot.core.processes.cluster import joined
    from dicot.store.corpus import Corpus
    from dicot.store.corpus.embedding import embed_corpus
    from dicot.store.corpus.on_ray import embed_on

    if ray is None and not (actors is None and gpus_per_actor is None and cpus_per_actor == 1):
        raise InputError("--actors, --cpus-per-actor and --gpus-per-actor go with --ray.")
    if ray is not None and gpu_memory is not None:
        raise InputError("--gpu-memory limits this process; with --ray, --gpus-per-actor says how many share a GPU.")
    on_gpu = gpu_memory_of(gpu_memory, device)
    opened = Corpus.open(corpus)
    budget = None if memory is None else memory_of(memory)
    largest = max(shard.bytes for shard in opened.shards) * 4 // opened.dtype.itemsize
    remedy = "Build the corpus with smaller shards, or allow more."
    if budget is not None:
        refuse_beyond(budget, TORCH + 3 * largest, f"A shard of {opened.name}", remedy)

    def look(peak: int) -> None:
        if budget is not None:
            refuse_beyond(budget, peak, "Embedding a shard", remedy)

    # On Ray too it is loaded here: what cannot be used is refused before any process is started.
    embedder = _quiet(model, backend, device if ray is None else "cpu", precision)
    asked: dict[str, Any] = {"model_hash": hash_of(model), "dtype": dtype, "overwrite": overwrite}
    if ray is None:
        with limited_memory(device, on_gpu):
            done = embed_corpus(embedder, opened, out, **asked, on_shard=lambda done, total: look(peak_bytes()))
    else:
        with joined(ray, None if actors is None else actors * cpus_per_actor) as cluster:
            on = "cpu" if model.suffix == ".onnx" and device == "auto" else device
            share = cluster.share(on, cpus_per_actor, gpus_per_actor)
            make = partial(_quiet, model.absolute(), backend, share.device, precision)
            done = embed_on(cluster, make, opened, out, share=share, actors=actors, **asked, on_shard=look)
    typer.echo(f"{opened.name}: {done.rows} windows -> {done.features} features, {done.dtype}")
    typer.echo(f"Wrote {out}: {len(done.shards)} files")


def _quiet(model: Path, backend: str | None, device: str, precision: str | None) -> "Embedder":
    """Load a model that shows no bar of its own: there is one for all shards."""
    from dicot.cli.embed import load_embedder
    from dicot.model.deployed import OnnxEmbedder

    embedder = load_embedder(model, backend, device, precision)
    if not isinstance(embedder, OnnxEmbedder):
        embedder.set_params(verbose=False)
    return embedder


def _choices(sources: list[str]) -> dict[str, Any]:
    """Return what the dicot.toml beside the recordings says; two of them cannot both be followed."""
    from dicot.data.reading import read_toml, toml_of
    from dicot.store.corpus.sources import SCHEME

    paths = dict.fromkeys(toml_of(source) for source in sources if SCHEME not in source)
    there = [path for path in paths if path.is_file()]
    if len(there) > 1:
        raise InputError(f"{there[0]} and {there[1]} both say how to cut. Build a corpus of each, or remove one.")
    if not there:
        return {}
    kept = read_toml(there[0])
    kept.pop("scale", None)  # of a fit: a corpus keeps values as they are
    typer.echo(f"Options of {there[0]}: {', '.join(kept)}")
    return kept


def _cores() -> int:
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
