"""dicot pretrain: train an encoder on cases without labels and save it."""

import os
import shlex
import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from dicot.cli import options as opt
from dicot.cli.sources import find_source
from dicot.core.errors import InputError
from dicot.core.processes.launcher import end_with_parent, find_place, is_launched, launch


@opt.reads
def pretrain(
    data: opt.DataArgument,
    out: Annotated[Path, typer.Option(help="Folder for the model; a killed run continues there.")],
    preset: opt.Preset = None,
    method: opt.Method = None,
    steps: opt.Steps = None,
    seed: Annotated[int, typer.Option(help="Fixes weights, batches and draws.")] = 1,
    device: opt.Device = "auto",
    overwrite: opt.Overwrite = False,
    nproc: Annotated[int | None, typer.Option(min=1, help="Processes here that train together.")] = None,
    *,
    said: opt.Settings,
) -> None:
    """Train an encoder on the training cases of DATA and save it with its provenance.

    --set takes what has no option: encoder, dim, batch_size, lr, pooling, bank, n_components, missing, unequal, scale,
    rate, memory and others, and the settings of the method, such as k=[2,5].
    """
    again = shlex.join(["dicot", *sys.argv[1:]])
    place = find_place()
    if place.world > 1 and nproc not in (None, place.world):
        raise InputError(f"This command was started as {place.world} processes already; leave out --nproc {nproc}.")
    if place.world == 1 and nproc is not None and nproc > 1:
        remedy = f"The same command, with any number of processes, goes on from the last checkpoint:\n  {again}"
        raise typer.Exit(launch(nproc, sys.argv[1:], remedy))
    if place.rank:
        warnings.simplefilter("ignore")  # the first process warns of the same
    if is_launched() or "TORCHELASTIC_RUN_ID" in os.environ:
        end_with_parent()

    from dicot.core.device import gpu_memory_of
    from dicot.core.processes.budget import memory_of
    from dicot.core.processes.ranks import join_ranks
    from dicot.methods import METHODS
    from dicot.model.estimator import TimeSeriesEmbedder
    from dicot.model.presets import find_preset, preset_name
    from dicot.model.runs import CHECKPOINT, pretrain_into

    reading, settings = said.take(*opt.READING), said.take_model()
    policies = said.take("unequal") | opt.given(missing=reading.get("missing"))
    run = said.take("checkpoint_seconds", "memory", "gpu_memory")
    trained = method or find_preset(preset_name(preset, method)).method
    params = said.rest([METHODS[trained]] if trained in METHODS else [])
    run |= {"gpu_memory": gpu_memory_of(run.get("gpu_memory"), device)}
    run |= {"memory": memory_of(run["memory"])} if "memory" in run else {}
    source = find_source(data, reading)
    name, train = data, source.corpus or (source.windows() if source.recorded else None)
    if train is None:
        split = source.split(**policies)
        train, name = split.train, split.name
        settings.setdefault("family", split.family)
    if not place.rank:
        typer.echo(f"{name}: {len(train)} cases, {train.n_channels} channel(s), {train.n_times} time steps")
    model = TimeSeriesEmbedder(
        method,
        preset=preset,
        steps=steps,
        method_params=params or None,
        random_state=seed,
        device=device,
        verbose=not place.rank,
        prepare={**policies, **opt.given(scale=source.scale)},
        **settings,
    )
    try:
        with join_ranks(device=device):
            outcome = pretrain_into(out, model, train, overwrite=overwrite, **run)
        if not place.rank:
            typer.echo(outcome)
    except KeyboardInterrupt as error:
        checkpoint = out / CHECKPOINT
        what = f"{checkpoint} keeps the run. Go on" if checkpoint.exists() else "No step was done yet. Start again"
        if not place.rank:
            typer.echo(f"Interrupted. {what} with the same command:\n  {again}", err=True)
        raise typer.Exit(opt.INTERRUPTED) from error
