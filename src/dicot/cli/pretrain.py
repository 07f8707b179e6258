"""dicot pretrain: train an encoder on cases without labels and save it."""

import os
import shlex
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import exitcodes
from dicot.cli import options as opt
from dicot.cli.paths import check_data, check_model_folder
from dicot.cli.sources import find_source
from dicot.core.errors import WrongCallError
from dicot.core.processes.launcher import end_with_parent, find_place, is_launched, launch

if TYPE_CHECKING:
    from dicot.data.cases import Cases
    from dicot.model.presets import Preset


@opt.reads
def pretrain(
    data: Annotated[list[str], typer.Argument(help=f"{opt.DATA_HELP} With --universal several.")],
    out: Annotated[Path, typer.Option(help="Folder for the model; a killed run continues there.")],
    universal: Annotated[
        bool, typer.Option("--universal", help="Of all DATA, one model for series of every kind.")
    ] = False,
    preset: opt.Preset = None,
    method: opt.Method = None,
    steps: opt.Steps = None,
    minutes: Annotated[float | None, typer.Option(help="The training ends after so many; best: 2.")] = None,
    seed: Annotated[int, typer.Option(help="Fixes weights, batches and draws.")] = 1,
    device: opt.Device = "auto",
    overwrite: opt.Overwrite = False,
    nproc: Annotated[int | None, typer.Option(min=1, help="Processes here that train together.")] = None,
    *,
    said: opt.Settings,
) -> None:
    """Train an encoder on the training cases of DATA and save it with its provenance.

    With --universal it is a model as the one in the box: it takes any number of channels and time steps, and needs no
    fit. --set takes what has no option: encoder, dim, batch_size, lr, pooling, bank, n_components, missing, unequal,
    scale, rate, memory and others, the settings of the method, such as k=[2,5], and with --universal n_series and
    synthetic.
    """
    again = shlex.join(["dicot", *sys.argv[1:]])
    place = find_place()
    for one in data:
        check_data(one)
    check_model_folder(out, overwrite=overwrite)
    if universal:
        wrong = opt.given(preset=preset, method=method, nproc=nproc or (place.world if place.world > 1 else None))
        if wrong:
            raise WrongCallError(f"--universal has a method of its own, in one process. Leave out --{min(wrong)}.")
        with _interrupted(out / "training", again):
            run = {**_limits(said, device), "minutes": minutes, "overwrite": overwrite}
            _pretrain_universal(data, out, opt.given(steps=steps), seed, device, said, run)
        return
    if len(data) > 1:
        raise WrongCallError(f"A model is of one DATA; got {', '.join(data)}. Say --universal for one of all of them.")
    if place.world > 1 and nproc not in (None, place.world):
        raise WrongCallError(f"This command was started as {place.world} processes already; leave out --nproc {nproc}.")
    if place.world == 1 and nproc is not None and nproc > 1:
        remedy = f"The same command, with any number of processes, goes on from the last checkpoint:\n  {again}"
        raise typer.Exit(launch(nproc, sys.argv[1:], remedy))
    if place.rank:
        warnings.simplefilter("ignore")  # the first process warns of the same
    if is_launched() or "TORCHELASTIC_RUN_ID" in os.environ:
        end_with_parent()

    from dicot.core.processes.ranks import join_ranks
    from dicot.methods import METHODS
    from dicot.model.estimator import TimeSeriesEmbedder
    from dicot.model.presets import FROZEN, find_preset, preset_name
    from dicot.model.runs import pretrain_into

    reading, settings = said.take(*opt.READING), said.take_model()
    policies = said.take("unequal") | opt.given(missing=reading.get("missing"))
    run = _limits(said, device)
    trains = steps is not None or bool(settings.keys() & {"encoder", "dim"})
    with opt.checking_options():
        chosen = find_preset(preset_name(preset, method, trains=trains))
        trained = method or chosen.method
    params = said.rest([METHODS[trained]] if trained in METHODS else [])
    if trained == FROZEN and steps and not place.rank:
        opt.warn("This preset trains nothing, so --steps does nothing. Name a --method, or another --preset.")
    source = find_source(data[0], reading, allowance=said.allowance)
    name, train = data[0], source.corpus or (source.windows() if source.recorded else None)
    if train is None:
        split = source.split(**policies)
        train, name = split.train, split.name
        settings.setdefault("family", split.family)
    if not place.rank:
        typer.echo(f"{name}: {len(train)} cases, {train.n_channels} channel(s), {train.n_times} time steps")
        if chosen.fewest and method is None and not trains:
            typer.echo(_decision(chosen, len(train), minutes))
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
    with opt.checking_options():
        model.resolve(len(train), train.n_times)
    with _interrupted(out, again), join_ranks(device=device):
        outcome = pretrain_into(out, model, train, minutes=minutes, overwrite=overwrite, **run)
    if not place.rank:
        typer.echo(outcome)


def _decision(preset: "Preset", n_cases: int, minutes: float | None) -> str:
    """Say what a preset that goes by size does with so many cases, and why."""
    if n_cases < preset.fewest:
        return f"{preset.name}: fewer than {preset.fewest} cases are too few to learn from, so it is {preset.otherwise}"
    budget = preset.minutes if minutes is None else minutes
    return f"{preset.name}: {preset.fewest} cases are enough to learn from, so it trains for at most {budget:g} min"


@contextmanager
def _interrupted(folder: Path, again: str) -> Iterator[None]:
    """Say at Ctrl-C how the run in this folder goes on."""
    try:
        yield
    except KeyboardInterrupt as error:
        from dicot.model.runs import CHECKPOINT

        checkpoint = folder / CHECKPOINT
        what = f"{checkpoint} keeps the run. Go on" if checkpoint.exists() else "No step was done yet. Start again"
        if not find_place().rank:
            typer.echo(f"Interrupted. {what} with the same command:\n  {again}", err=True)
        raise typer.Exit(exitcodes.INTERRUPTED) from error


def _limits(said: opt.Settings, device: str) -> dict[str, Any]:
    from dicot.core.device import gpu_memory_of
    from dicot.core.processes.budget import memory_of

    run = said.take("checkpoint_seconds", "memory", "gpu_memory")
    run |= {"gpu_memory": gpu_memory_of(run.get("gpu_memory"), device)}
    return run | ({"memory": memory_of(run["memory"])} if "memory" in run else {})


def _pretrain_universal(
    data: list[str], out: Path, settings: dict[str, Any], seed: int, device: str, said: opt.Settings, run: Any
) -> None:
    """Train on the training parts of all DATA; unequal lengths are resampled and missing values interpolated."""
    from dicot.data.datasets import is_path
    from dicot.methods import METHODS
    from dicot.model.universal import METHOD, pretrain_universal

    if twice := [name for name, count in Counter(data).items() if count > 1]:
        raise WrongCallError(f"{twice[0]} is named twice. Name each DATA once: a pool takes more of what has more.")
    reading, pool = said.take(*opt.READING), said.take("n_series", "synthetic")
    missing = {"missing": reading.get("missing", "interpolate")}
    policies = {"unequal": "resample", **said.take("unequal"), **missing}
    settings = settings | said.take("dim") | {"recipe": said.take(*opt.RECIPE)}
    settings["method_params"] = said.rest([METHODS[METHOD]])
    sources: dict[str, Cases] = {}
    for name in data:
        by_name = not is_path(name) and not Path(name).is_dir()
        source = find_source(name, {} if by_name else reading, 0, allowance=said.allowance)
        if source.recorded:
            source = replace(source, options={**missing, **source.options})
        cases = source.corpus or (source.windows() if source.recorded else source.split(**policies).train)
        typer.echo(f"{name}: {len(cases)} cases, {cases.n_channels} channel(s), {cases.n_times} time steps")
        sources[name] = cases
    how: dict[str, Any] = {"settings": {**settings, "verbose": True}, "pool": pool, "seed": seed, "device": device}
    typer.echo(pretrain_universal(out, sources, **how, **run))
    typer.echo(
        f"Use it: dicot embed {shlex.quote(str(out))} DATA --out vectors.parquet; or in Python, with a bank beside it, "
        f'TimeSeriesEmbedder(preset="instant").fit(X, initial={str(out)!r})'
    )
