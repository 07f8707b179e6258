"""dicot pretrain: train an encoder on cases without labels and save it."""

import os
import shlex
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.core.errors import InputError
from dicot.core.processes.launcher import end_with_parent, find_place, is_launched, launch


def pretrain(
    data: opt.RecordedArgument,
    out: Annotated[Path, typer.Option(help="Folder for the model; a killed run continues from the checkpoint there.")],
    preset: opt.Preset = None,
    method: opt.Method = None,
    encoder: opt.Encoder = "inception_time",
    dim: opt.Dim = 256,
    steps: opt.Steps = None,
    batch_size: opt.BatchSize = None,
    lr: opt.Rate = None,
    schedule: opt.Schedule = None,
    precision: opt.Precision = None,
    pooling: opt.Pooling = None,
    calibrate: opt.Calibrate = None,
    difference: opt.Difference = None,
    bank: opt.Bank = None,
    n_components: opt.Components = None,
    family: opt.Family = None,
    set_: opt.Setting = None,
    seed: Annotated[int, typer.Option(help="Fixes weights, batches and draws.")] = 1,
    device: opt.Device = "auto",
    layout: opt.Layout = "nct",
    unequal: opt.Unequal = None,
    missing: opt.Missing = None,
    scale: opt.Scale = None,
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
    checkpoint_seconds: Annotated[float, typer.Option(help="Seconds between checkpoints; 0: after every step.")] = 10.0,
    memory: opt.Memory = None,
    gpu_memory: opt.GpuMemory = None,
    overwrite: Annotated[
        bool, typer.Option(help="Replace another model that is in the folder, or its checkpoint.")
    ] = False,
    nproc: Annotated[
        int | None,
        typer.Option(
            min=1, help="Processes of this machine that train together, each on a GPU of its own, or on CPU cores."
        ),
    ] = None,
) -> None:
    """Train an encoder on the training cases of DATA and save it with its provenance."""
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

    from dicot.core.gpu.memory import gpu_memory_of
    from dicot.core.processes.budget import memory_of
    from dicot.data.pieces import Cases
    from dicot.data.splits import Split
    from dicot.model.estimator import TimeSeriesEmbedder
    from dicot.model.runs import CHECKPOINT, pretrain_into
    from dicot.train import join_ranks

    on_gpu = gpu_memory_of(gpu_memory, device)
    policies = opt.given(unequal=unequal, missing=missing)
    table = opt.columns(case, time, channels, label, group, ignore, header)
    cut: dict[str, Any] = {
        "window": window,
        "stride": stride,
        "rate": rate,
        "resample": resample,
        "unit": unit,
        "gap": gap,
    }
    train: Cases | None = opt.corpus_at(data, {**cut, **table, **policies})
    name = data
    if train is None:
        recordings = opt.recorded(data, table, scale=scale, missing=missing, **cut)
        if recordings is not None:
            scale = recordings.scale
            split = Split(opt.load_recordings(data, recordings.options), name=data)
        else:
            split = opt.load_data(data, layout, policies, table)
        train, name, family = split.train, split.name, family or split.family
    if not place.rank:
        typer.echo(f"{name}: {len(train)} cases, {train.n_channels} channel(s), {train.n_times} time steps")
    recipe = opt.given(batch_size=batch_size, lr=lr, schedule=schedule, precision=precision)
    features = opt.given(
        pooling=pooling, calibrate=calibrate, difference=difference, bank=opt.bank(bank), n_components=n_components
    )
    model = TimeSeriesEmbedder(
        method,
        preset=preset,
        encoder=encoder,
        dim=dim,
        family=family,
        method_params=opt.settings(set_),
        recipe=recipe,
        steps=steps,
        features=features,
        prepare={**policies, **opt.given(scale=scale)},
        random_state=seed,
        device=device,
        verbose=not place.rank,
    )
    try:
        with join_ranks(device=device):
            outcome = pretrain_into(
                out,
                model,
                train,
                checkpoint_seconds=checkpoint_seconds,
                overwrite=overwrite,
                memory=None if memory is None else memory_of(memory),
                gpu_memory=on_gpu,
            )
        if not place.rank:
            typer.echo(outcome)
    except KeyboardInterrupt as error:
        checkpoint = out / CHECKPOINT
        what = f"{checkpoint} keeps the run. Go on" if checkpoint.exists() else "No step was done yet. Start again"
        if not place.rank:
            typer.echo(f"Interrupted. {what} with the same command:\n  {again}", err=True)
        raise typer.Exit(opt.INTERRUPTED) from error
