"""dicot pretrain: train an encoder on cases without labels and save it."""

import shlex
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from dicot.cli import exitcodes
from dicot.cli import options as opt
from dicot.cli.paths import check_data, check_model_folder
from dicot.cli.settings import Settings, checking_options
from dicot.cli.sources import find_source
from dicot.core.errors import WrongCallError
from dicot.core.place import find_place

if TYPE_CHECKING:
    from dicot.data.cases import Cases
    from dicot.model.estimator import TimeSeriesEmbedder
    from dicot.model.presets import Preset
    from dicot.store.source import DataSource

OF_RUN = ("unequal", "checkpoint_seconds")
OF_POOL = ("n_series", "synthetic")


@final
@dataclass(frozen=True)
class TrainingOptions:
    """What is trained, and how."""

    universal: Annotated[bool, typer.Option("--universal", help="Of all DATA, one model for series of every kind.")] = (
        False
    )
    preset: opt.Preset = None
    method: opt.Method = None
    steps: opt.Steps = None
    minutes: Annotated[
        float | None, typer.Option(help="Maximum minutes of training; default: 2 with best, else none.")
    ] = None
    seed: Annotated[int, typer.Option(help="Fixes weights, batches and draws.")] = 1
    device: opt.Device = "auto"
    nproc: Annotated[
        int | None, typer.Option(min=1, help="Processes of this machine that train together, by torchrun.")
    ] = None


def pretrain(
    data: Annotated[list[str], typer.Argument(help=f"{opt.DATA_HELP} With --universal several.")],
    out: Annotated[Path, typer.Option(help="Folder for the model; a killed run continues there.")],
    training: TrainingOptions,
    reading: opt.ReadingOptions,
    overwrite: opt.Overwrite = False,
) -> None:
    """Train an encoder on the training cases of DATA and save it with its provenance.

    With --universal it is a model as the one in the box: it takes any number of channels and time steps, and needs no
    fit. --set takes what has no option: encoder, dim, batch_size, lr, pooling, bank, n_components, missing, unequal,
    scale, rate, checkpoint_seconds and others, the settings of the method, such as k=[2,5], and with --universal
    n_series and synthetic.
    """
    for name in data:
        check_data(name)
    check_model_folder(out, overwrite=overwrite)
    _refuse_contradictions(data, training)
    again = shlex.join(["dicot", *sys.argv[1:]])
    place = find_place()
    if place.world == 1 and (training.nproc or 1) > 1:
        _start_processes(training.nproc or 1, again)
        return
    if not place.is_first:
        warnings.simplefilter("ignore")  # the first process warns of the same

    if training.universal:
        with _interrupted(out / "training", again):
            _pretrain_universal(data, out, training, reading, overwrite)
    else:
        _pretrain(data[0], out, training, reading, overwrite, again)
    exitcodes.end(reading.allowance)


def _refuse_contradictions(data: list[str], training: TrainingOptions) -> None:
    world = find_place().world
    if training.universal:
        several = training.nproc or (world if world > 1 else None)
        wrong = opt.given(preset=training.preset, method=training.method, nproc=several)
        if wrong:
            raise WrongCallError(f"--universal has a method of its own, in one process. Leave out --{min(wrong)}.")
    elif len(data) > 1:
        raise WrongCallError(f"A model is of one DATA; got {', '.join(data)}. Say --universal for one of all of them.")
    if world > 1 and training.nproc not in (None, world):
        raise WrongCallError(
            f"This command was started as {world} processes already; leave out --nproc {training.nproc}."
        )


def _start_processes(count: int, again: str) -> None:
    """Have torchrun start this command as so many processes, and end as they did."""
    from dicot.train.together import start_processes

    start_processes(
        count,
        ["dicot", *sys.argv[1:]],
        f"The same command, with any number of processes, goes on from the last checkpoint:\n  {again}",
    )


def _pretrain(
    data: str, out: Path, training: TrainingOptions, reading: opt.ReadingOptions, overwrite: bool, again: str
) -> None:
    """Train on one DATA."""
    from dicot.methods import METHODS
    from dicot.model.presets import FROZEN, find_preset, preset_name
    from dicot.model.runs import pretrain_into
    from dicot.train.together import join_ranks

    settings = reading.by_group(own=OF_RUN, of_model=True)
    trains = training.steps is not None or bool(settings.encoder.keys() & {"encoder", "dim"})
    with checking_options():
        preset = find_preset(preset_name(training.preset, training.method, trains=trains))
    method = training.method or preset.method
    params = settings.of_method([METHODS[method]] if method in METHODS else [])

    is_first = find_place().is_first
    if method == FROZEN and training.steps and is_first:
        opt.warn("This preset trains nothing, so --steps does nothing. Name a --method, or another --preset.")
    source = find_source(data, settings.reading, allowance=reading.allowance)
    cases, family = _training_cases(data, source, settings)
    if is_first and preset.fewest and training.method is None and not trains:
        typer.echo(_decision(preset, len(cases), training.minutes))
    model = _new_model(training, settings, params, source, family)
    with checking_options():
        model.resolve(len(cases), cases.n_times)

    run: dict[str, Any] = {"minutes": training.minutes, "overwrite": overwrite}
    if "checkpoint_seconds" in settings.own:
        run["checkpoint_seconds"] = settings.own["checkpoint_seconds"]
    with _interrupted(out, again), join_ranks(device=training.device):
        outcome = pretrain_into(out, model, cases, **run)
    if is_first:
        typer.echo(outcome)


def _decision(preset: "Preset", n_cases: int, minutes: float | None) -> str:
    """Say what a preset that goes by size does with so many cases, and why."""
    if n_cases < preset.fewest:
        return f"{preset.name}: fewer than {preset.fewest} cases are too few to learn from, so it is {preset.otherwise}"
    most = preset.minutes if minutes is None else minutes
    return f"{preset.name}: {preset.fewest} cases are enough to learn from, so it trains for at most {most:g} min"


def _policies(settings: Settings) -> dict[str, Any]:
    """Return what becomes of missing values and of unequal lengths, where it was said."""
    return opt.given(unequal=settings.own.get("unequal"), missing=settings.reading.get("missing"))


def _training_cases(data: str, source: "DataSource", settings: Settings) -> "tuple[Cases, str | None]":
    """Return what is learnt from, and the family of a data set by name; say how much it is."""
    name, family = data, None
    cases: Cases
    if source.corpus is not None:
        cases = source.corpus
    elif source.recorded:
        cases = source.windows()
    else:
        split = source.split(**_policies(settings))
        cases, name, family = split.train, split.name, split.family
    if find_place().is_first:
        _show_size(name, cases)
    return cases, family


def _show_size(name: str, cases: "Cases") -> None:
    typer.echo(f"{name}: {len(cases)} cases, {cases.n_channels} channel(s), {cases.n_times} time steps")


def _new_model(
    training: TrainingOptions,
    settings: Settings,
    params: dict[str, Any],
    source: "DataSource",
    family: str | None,
) -> "TimeSeriesEmbedder":
    from dicot.model.estimator import TimeSeriesEmbedder

    return TimeSeriesEmbedder(
        training.method,
        preset=training.preset,
        steps=training.steps,
        method_params=params or None,
        random_state=training.seed,
        device=training.device,
        verbose=find_place().is_first,
        prepare={**_policies(settings), **opt.given(scale=source.scale)},
        **{**opt.given(family=family), **settings.of_model()},
    )


@contextmanager
def _interrupted(folder: Path, again: str) -> Iterator[None]:
    """Say at Ctrl-C how the run in this folder goes on."""
    try:
        yield
    except KeyboardInterrupt as error:
        from dicot.model.runs import CHECKPOINT

        checkpoint = folder / CHECKPOINT
        what = f"{checkpoint} keeps the run. Go on" if checkpoint.exists() else "No step was done yet. Start again"
        if find_place().is_first:
            typer.echo(f"Interrupted. {what} with the same command:\n  {again}", err=True)
        raise typer.Exit(exitcodes.INTERRUPTED) from error


def _pretrain_universal(
    data: list[str], out: Path, training: TrainingOptions, reading: opt.ReadingOptions, overwrite: bool
) -> None:
    """Train on the training parts of all DATA; unequal lengths are resampled and missing values interpolated."""
    from dicot.methods import METHODS
    from dicot.model.universal import METHOD, pretrain_universal

    twice = [name for name, count in Counter(data).items() if count > 1]
    if twice:
        raise WrongCallError(f"{twice[0]} is named twice. Name each DATA once: a pool takes more of what has more.")
    settings = reading.by_group(own=(*OF_RUN, *OF_POOL), of_model=True)
    refused = settings.features.keys() | settings.encoder.keys() - {"dim"}
    if refused:
        raise WrongCallError(f"--universal has a {min(refused)} of its own. Leave the setting out.")
    model = {
        **opt.given(steps=training.steps, dim=settings.encoder.get("dim")),
        "recipe": settings.recipe,
        "method_params": settings.of_method([METHODS[METHOD]]),
        "verbose": True,
    }
    sources = {name: _cases_of_pool(name, settings, reading) for name in data}
    outcome = pretrain_universal(
        out,
        sources,
        settings=model,
        pool={name: settings.own[name] for name in OF_POOL if name in settings.own},
        seed=training.seed,
        device=training.device,
        minutes=training.minutes,
        overwrite=overwrite,
        **opt.given(checkpoint_seconds=settings.own.get("checkpoint_seconds")),
    )
    typer.echo(outcome)
    typer.echo(
        f"Use it: dicot embed {shlex.quote(str(out))} DATA --out vectors.parquet; or in Python, with a bank beside it, "
        f'TimeSeriesEmbedder(preset="instant").fit(X, initial={str(out)!r})'
    )


def _cases_of_pool(name: str, settings: Settings, reading: opt.ReadingOptions) -> "Cases":
    """Return the training part of one DATA of several."""
    from dicot.data.datasets import is_path

    policies = {"unequal": "resample", "missing": "interpolate", **_policies(settings)}
    by_name = not is_path(name) and not Path(name).is_dir()
    source = find_source(name, {} if by_name else settings.reading, 0, allowance=reading.allowance)
    cases: Cases
    if source.corpus is not None:
        cases = source.corpus
    elif source.recorded:
        recorded = replace(source, options={"missing": policies["missing"], **source.options})
        cases = recorded.windows()
    else:
        cases = source.split(**policies).train
    _show_size(name, cases)
    return cases
