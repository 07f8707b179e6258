"""dicot evaluate: score a method or a saved model beside the controls."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot import __version__
from dicot.cli import options as opt
from dicot.cli.tables import show
from dicot.errors import InputError
from dicot.storage import check_writable

if TYPE_CHECKING:
    from dicot.data import Split
    from dicot.estimator import TimeSeriesEmbedder
    from dicot.evaluation import Contender, Evaluation, Run
    from dicot.protocols import Protocol

NO_GROUPS = (
    "the data name no groups (people, devices, recordings), so windows of one recording may be in both parts and "
    "scores too high. Name the column with --group, or store an array `group` in the .npz."
)


def evaluate(
    ctx: typer.Context,
    data: opt.DataArgument,
    model: Annotated[
        Path | None,
        typer.Option(help="Score this saved model instead of training one; the controls take its settings."),
    ] = None,
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
    seeds: Annotated[
        str, typer.Option(help="Seeds of training and of the draws of labelled cases, separated by commas.")
    ] = "1",
    holdout: Annotated[float, typer.Option(help="Share of cases to hold out where DATA has no test part.")] = 0.3,
    split_seed: Annotated[int, typer.Option(help="Which of them are held out: one split for all seeds.")] = 0,
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
    from dicot.data import hold_out
    from dicot.evaluation import BESIDE, beside, contender, saved

    chosen = _protocols(protocols)
    numbers = opt.whole_numbers(seeds, "--seeds")
    _check_outputs(out, features)
    policies = opt.given(unequal=unequal, missing=missing)
    settings = {"encoder": encoder, "dim": dim, "pooling": pooling, "family": family, "scale": scale}
    settings |= opt.given(steps=steps, batch_size=batch_size, lr=lr, schedule=schedule, precision=precision)
    params = opt.settings(set_)
    fitted = None if model is None else _saved_model(model, device)
    if fitted is not None:
        _refuse_contradictions(ctx, fitted, {**settings, **policies, "method": method, "set_": params})
        policies = {**_policies(fitted), **policies}
    split = opt.load_data(data, layout, policies, opt.columns(case, time, channels, label, group, ignore, header))
    warning = ""
    if split.test is None:
        split = replace(hold_out(split.train, holdout, split_seed), family=split.family)
        warning = NO_GROUPS if split.train.group is None else ""
    if fitted is not None and model is not None:
        name = model.resolve().name
        subjects, others = [saved(f"{name} (saved)" if name in BESIDE else name, fitted)], beside(fitted)
    else:
        settings |= {"family": family or split.family, "device": device}
        subjects, others = _trained(method, settings, params), [contender(name, **settings) for name in BESIDE]
    known = {one.name for one in subjects}
    everyone = [*subjects, *(one for one in others if one.name not in known)]
    if features is not None:
        from dicot.report.maps import check_features_file

        check_features_file(features, [one.name for one in everyone])
    warning = _announce(split, warning)
    result = _score(split, everyone, chosen, numbers)
    if features is not None:
        _write_features(features, split, result)
    if out is not None:
        _write(out, split, subjects[0].name, result, warning)


def _protocols(text: str) -> "list[Protocol]":
    from dicot.protocols import PROTOCOLS, find_protocol

    names = list(PROTOCOLS) if text == "all" else [name.strip() for name in text.split(",")]
    return [find_protocol(PROTOCOLS, name)() for name in names]


def _check_outputs(out: Path | None, features: Path | None) -> None:
    """Whatever the results need, before anything is trained for them."""
    import dicot.report  # noqa: F401  (says what to install where a table cannot be made)

    if out is not None:
        from dicot.report.figures import need_matplotlib
        from dicot.report.page import need_jinja2

        need_matplotlib()
        need_jinja2()
    for path in (out, features):
        if path is not None:
            check_writable(path)


def _saved_model(model: Path, device: str) -> "TimeSeriesEmbedder":
    from dicot.estimator import TimeSeriesEmbedder

    fitted = TimeSeriesEmbedder.from_pretrained(model, device=device)
    # Files are read into (channels, time), whatever layout the model was fitted with.
    fitted.preparation_ = replace(fitted.preparation_, layout="nct")
    fitted.set_params(layout="nct")
    return fitted


def _policies(fitted: "TimeSeriesEmbedder") -> dict[str, Any]:
    """How the data are made what the model takes, by the model's own rules."""
    own = {name: value for name in ("unequal", "missing") if (value := getattr(fitted, name)) != "error"}
    return own | ({"length": fitted.preparation_.n_times} if fitted.unequal == "resample" else {})


def _refuse_contradictions(ctx: typer.Context, fitted: "TimeSeriesEmbedder", flags: dict[str, Any]) -> None:
    """A saved model and its controls have the model's settings: no flag may say otherwise."""
    own = {**fitted.get_params(deep=False), "set_": fitted.method_params}
    wrong = []
    for name, value in flags.items():
        source = ctx.get_parameter_source(name)
        given = source is not None and source.name == "COMMANDLINE"
        undecided = name in ("unequal", "missing") and own[name] == "error"
        if given and value != own[name] and not undecided:
            wrong.append(f"--{name.strip('_').replace('_', '-')} {value} (the model has {own[name]})")
    if wrong:
        raise InputError(
            f"A saved model brings its own settings, and its controls take them too; got {', '.join(wrong)}. "
            "Leave that out, or leave out --model to train one."
        )


def _trained(methods: str, settings: dict[str, Any], params: dict[str, Any] | None) -> "list[Contender]":
    """Methods that are trained here."""
    from dicot.evaluation import contender
    from dicot.methods import METHODS

    names = list(METHODS) if methods == "all" else [name.strip() for name in methods.split(",")]
    if params and len(names) > 1:
        raise InputError(f"--set is for one method; got {', '.join(names)}.")
    return [contender(name, method_params=params, **settings) for name in names]


def _announce(split: "Split", warning: str) -> str:
    """Say what is scored and how it was split; the warnings come back for the report."""
    from dicot.data.splits import shared_groups, short_list

    typer.echo(f"{split.name}: {_sizes(split)}")
    typer.echo(f"  training and test part: {split.how}")
    if both := shared_groups(split):
        warning = f"{len(both)} group(s) have cases in both parts, so scores may be too high: {short_list(both)}."
    if warning:
        typer.secho(f"Warning: {warning}", fg="yellow", err=True)
    return warning


def _sizes(split: "Split") -> str:
    from dicot.data.collection import labelled

    assert split.test is not None
    train, test = split.train, split.test
    text = (
        f"{len(train)} training and {len(test)} test cases, {train.n_channels} channel(s), {train.n_times} time steps"
    )
    counts = [len(part) - int(labelled(part.y).sum()) for part in (train, test) if part.y is not None]
    if any(counts):
        text += f"; {counts[0]} training and {counts[-1]} test cases have no label and are not scored"
    return text


def _score(
    split: "Split", contenders: "Sequence[Contender]", protocols: "Sequence[Protocol]", seeds: Sequence[int]
) -> "Evaluation":
    from dicot.evaluation import distinct, evaluate
    from dicot.report.page import score_frame
    from dicot.report.scores import comparison
    from dicot.report.tables import to_rich

    kept, same = distinct(protocols, split)
    for name, others in same.items():
        typer.echo(f"  {', '.join(others)}: the same as {name}, because no class has more training cases than that")
    result = evaluate(split, contenders, kept, seeds, on_run=_say)
    table = comparison(score_frame(result.scores, split.name), result.fixed)
    show(to_rich(table.turned("protocol, metric")))
    return result


def _say(run: "Run") -> None:
    steps = getattr(getattr(run.transformer, "recipe_", None), "steps", 0)
    what = run.error or f"{f'{steps} steps, ' if steps else ''}{run.seconds:.1f} s to fit"
    typer.echo(f"  {run.contender}, seed {run.seed}: {what}")


def _write_features(path: Path, split: "Split", result: "Evaluation") -> None:
    """The embeddings of the labelled test cases, of each contender's first run that did not fail."""
    from dicot.data.collection import labelled
    from dicot.report.maps import write_features

    assert split.test is not None and split.test.y is not None
    rows = labelled(split.test.y)
    held: dict[str, Any] = {}
    for run in result.runs:
        if run.test is not None:
            held.setdefault(run.contender, run.test[rows])
    if not held:
        raise InputError(f"Every contender failed, so there are no embeddings for {path}.")
    write_features(path, split.name, split.test.y[rows], held)
    typer.echo(f"Wrote the test embeddings of {', '.join(held)} to {path}")


def _write(out: Path, split: "Split", hero: str, result: "Evaluation", warning: str) -> None:
    """report.html, scores.csv and the model into the folder."""
    from dicot.estimator import TimeSeriesEmbedder
    from dicot.report.frame import to_csv
    from dicot.report.page import evaluation_page, score_frame
    from dicot.storage import write_atomic

    data = score_frame(result.scores, split.name)
    columns = ("contender", "protocol", "metric", "seed", "value", "error", "draw")
    write_atomic(out / "scores.csv", to_csv(data, columns).encode())
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
    page = evaluation_page(
        f"{hero} on {split.name}",
        facts,
        data,
        hero,
        *run.features(split),
        history,
        fixed=result.fixed,
        warning=warning,
    )
    write_atomic(out / "report.html", page.encode())
    typer.echo(f"Wrote {out / 'report.html'}")


def _facts(split: "Split", result: "Evaluation") -> dict[str, object]:
    return {
        "data set": f"{split.name}, {_sizes(split)} (fingerprint {split.train.fingerprint()})",
        "training and test part": split.how,
        "seconds to fit": ", ".join(f"{run.contender} {run.seconds:.1f}" for run in result.runs if run.error is None),
        "version": f"dicot {__version__}",
        "command": shlex.join(["dicot", *sys.argv[1:]]),
    }
