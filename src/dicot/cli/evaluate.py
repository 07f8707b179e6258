"""dicot evaluate: score a method or a saved model beside the controls."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot import __version__
from dicot.cli import options as opt
from dicot.errors import InputError, lookup

if TYPE_CHECKING:
    from dicot.evaluation import Contender, Evaluation, Run
    from dicot.windows import Split


def evaluate(
    data: opt.DataArgument,
    model: Annotated[Path | None, typer.Option(help="Score this saved model instead of training one.")] = None,
    method: Annotated[
        str,
        typer.Option(help="Names from `dicot list methods`, separated by commas, or all; pictures: the first."),
    ] = "dicot",
    out: Annotated[Path | None, typer.Option(help="Folder for report.html, scores.csv and the model.")] = None,
    features: Annotated[
        Path | None, typer.Option(help="A .npz for everybody's test embeddings; `dicot report --features` maps them.")
    ] = None,
    protocols: Annotated[
        str, typer.Option(help="Names from `dicot list protocols`, separated by commas, or all.")
    ] = "all",
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas.")] = "1",
    holdout: Annotated[float, typer.Option(help="Share of cases to hold out where DATA has no test part.")] = 0.3,
    encoder: opt.Encoder = "inception_time",
    dim: opt.Dim = 256,
    steps: opt.Steps = None,
    batch_size: opt.BatchSize = None,
    lr: opt.Rate = None,
    schedule: opt.Schedule = None,
    precision: opt.Precision = None,
    pooling: opt.Pooling = "mean",
    family: opt.Family = None,
    set_: opt.Setting = None,
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
) -> None:
    """Train each METHOD (or take MODEL), embed, and score it beside both controls and both raw features."""
    from dicot.windows import hold_out

    policies = opt.given(unequal=unequal, missing=missing)
    split = opt.load_data(data, layout, policies, opt.columns(case, time, channels, label, group, ignore, header))
    split = split if split.test is not None else hold_out(split.train, holdout)
    settings = {
        "encoder": encoder,
        "dim": dim,
        "pooling": pooling,
        "family": family or split.family,
        "scale": scale,
        "device": device,
        **opt.given(steps=steps, batch_size=batch_size, lr=lr, schedule=schedule, precision=precision),
    }
    _score(split, _subjects(model, method, settings, opt.settings(set_)), settings, protocols, seeds, out, features)


def _subjects(
    model: Path | None, methods: str, settings: dict[str, Any], params: dict[str, Any] | None
) -> "list[Contender]":
    """What is evaluated: a saved model as it is, or methods trained here."""
    from dicot.estimator import TimeSeriesEmbedder
    from dicot.evaluation import Contender, Frozen, contender
    from dicot.methods import METHODS

    if model is not None:
        fitted = TimeSeriesEmbedder.from_pretrained(model, device=settings["device"])
        return [Contender(model.name, lambda seed: Frozen(fitted))]
    names = list(METHODS) if methods == "all" else [name.strip() for name in methods.split(",")]
    if params and len(names) > 1:
        raise InputError(f"--set is for one method; got {', '.join(names)}.")
    return [contender(name, method_params=params, **settings) for name in names]


def _score(
    split: "Split",
    subjects: "list[Contender]",
    settings: dict[str, Any],
    protocols: str,
    seeds: str,
    out: Path | None,
    features: Path | None,
) -> None:
    from rich.console import Console

    from dicot.evaluation import BESIDE, contender, evaluate
    from dicot.protocols import PROTOCOLS
    from dicot.report.comparison import SHOWN, comparison
    from dicot.report.tables import to_rich

    names = list(PROTOCOLS) if protocols == "all" else protocols.split(",")
    chosen = [lookup(PROTOCOLS, name.strip(), "protocol")() for name in names]
    numbers = opt.whole_numbers(seeds, "--seeds")
    known = {one.name for one in subjects}
    beside = [contender(name, **settings) for name in BESIDE if name not in known]
    if features is not None:
        from dicot.report.maps import check_features_file

        check_features_file(features, [one.name for one in (*subjects, *beside)])
    assert split.test is not None
    train, test = split.train, split.test
    typer.echo(
        f"{split.name}: {len(train)} training and {len(test)} test cases, {train.n_channels} channel(s), "
        f"{train.n_times} time steps"
    )
    result = evaluate(split, [*subjects, *beside], chosen, numbers, on_run=_say)
    Console().print(to_rich(comparison(result.scores, metrics=SHOWN).turned("protocol, metric")))
    if features is not None:
        _write_features(features, split, result)
    if out is not None:
        _write(out, split, subjects[0].name, result)


def _say(run: "Run") -> None:
    steps = getattr(getattr(run.transformer, "recipe_", None), "steps", 0)
    what = run.error or f"{f'{steps} steps, ' if steps else ''}{run.seconds:.1f} s to fit"
    typer.echo(f"  {run.contender}, seed {run.seed}: {what}")


def _write_features(path: Path, split: "Split", result: "Evaluation") -> None:
    """The test embeddings of each contender's first run that did not fail."""
    from dicot.report.maps import write_features

    held: dict[str, Any] = {}
    for run in result.runs:
        if run.test is not None:
            held.setdefault(run.contender, run.test)
    assert split.test is not None and split.test.y is not None
    if not held:
        raise InputError(f"Every contender failed, so there are no embeddings for {path}.")
    write_features(path, split.name, split.test.y, held)
    typer.echo(f"Wrote the test embeddings of {', '.join(held)} to {path}")


def _write(out: Path, split: "Split", hero: str, result: "Evaluation") -> None:
    """report.html, scores.csv and the model into the folder."""
    from dicot.estimator import TimeSeriesEmbedder
    from dicot.report.page import evaluation_page
    from dicot.report.tables import to_csv
    from dicot.storage import write_atomic

    write_atomic(out / "scores.csv", to_csv(result.scores).encode())
    typer.echo(f"Wrote {out / 'scores.csv'}")
    run = result.run(hero)
    if run.error is not None:
        raise InputError(f"{hero} failed, so there is no report: {run.error}")
    model = run.transformer
    facts = _facts(split, result)
    history: tuple[list[float], list[float]] = ([], [])
    if isinstance(model, TimeSeriesEmbedder):
        history = (model.history_.loss, model.history_.lr)
        facts |= {"recipe": model.recipe_, "settings": model.method_params_ or "none"}
        typer.echo(f"Wrote {model.save_pretrained(out / 'model')}")
    page = evaluation_page(f"{hero} on {split.name}", facts, result.scores, hero, *run.features(split), history)
    write_atomic(out / "report.html", page.encode())
    typer.echo(f"Wrote {out / 'report.html'}")


def _facts(split: "Split", result: "Evaluation") -> dict[str, object]:
    assert split.test is not None
    train = split.train
    return {
        "data set": f"{split.name}, {len(train)} training and {len(split.test)} test cases, "
        f"{train.n_channels} channel(s), {train.n_times} time steps (fingerprint {train.fingerprint()})",
        "seconds to fit": ", ".join(f"{run.contender} {run.seconds:.1f}" for run in result.runs if run.error is None),
        "version": f"dicot {__version__}",
        "command": shlex.join(["dicot", *sys.argv[1:]]),
    }
