"""dicot evaluate: score a method or a saved model beside the controls."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.cli.advice import VECTORS, next_steps
from dicot.cli.evaluated import (
    PageTexts,
    cases_source,
    descriptions,
    identity,
    is_embedder,
    recordings_source,
    sizes,
    write_features_file,
    write_report,
    write_vectors_file,
)
from dicot.cli.tables import say, show_blocks
from dicot.core.errors import InputError, lookup
from dicot.core.storage import check_writable

if TYPE_CHECKING:
    import pandas as pd

    from dicot.cli.advice import Step
    from dicot.data import Split
    from dicot.judge.evaluation import Contender, Evaluation, Fitted, Unit
    from dicot.judge.protocols.base import AnyProtocol
    from dicot.judge.report.verdict import Trial, Verdict
    from dicot.model.estimator import TimeSeriesEmbedder

NO_GROUPS = (
    "the data name no groups (people, devices, recordings), so windows of one recording may be in both parts and "
    "scores too high. Name the column with --group, or store an array `group` in the .npz."
)


def evaluate(
    ctx: typer.Context,
    data: opt.RecordedArgument,
    model: Annotated[
        Path | None,
        typer.Option(help="Score this saved model instead of training one; the controls take its settings."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="Names from `dicot list methods`, separated by commas, or all; pictures: the first. Default: those of "
            "the presets."
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Names from `dicot list presets`, separated by commas; with several, no --method. Default: "
            "best,paper, or paper with --method."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for report.html, scores.csv, model and vectors.npz.")] = None,
    features: Annotated[
        Path | None, typer.Option(help="A .npz for everybody's test embeddings; `dicot report --features` maps them.")
    ] = None,
    protocols: Annotated[
        str, typer.Option(help="Names from `dicot list protocols`, separated by commas, or all.")
    ] = "all",
    seeds: Annotated[
        str, typer.Option(help="Seeds of training and of the draws of labelled cases, separated by commas.")
    ] = "1",
    subsets: Annotated[
        str,
        typer.Option(
            help="Labelled cases where few are drawn: per-seed once with each seed, authors theirs; default: 10 times."
        ),
    ] = "",
    holdout: Annotated[float, typer.Option(help="Share of cases to hold out where DATA has no test part.")] = 0.3,
    split_seed: Annotated[int, typer.Option(help="Which of them are held out: one split for all seeds.")] = 0,
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
) -> None:
    """Train each PRESET or METHOD (or take MODEL), embed, and score it beside both controls and both raw features."""
    from dicot.data import hold_out
    from dicot.data.collection import name_of_groups
    from dicot.judge.evaluation import saved, with_controls
    from dicot.judge.report.verdict import verdict

    chosen = _protocols(protocols)
    numbers = opt.whole_numbers(seeds, "--seeds")
    _check_outputs(out, features)
    policies = opt.given(unequal=unequal, missing=missing)
    table = opt.columns(case, time, channels, label, group, ignore, header)
    cut: dict[str, Any] = {"window": window, "stride": stride, "rate": rate, "resample": resample}
    recordings = opt.recorded(data, table, scale=scale, missing=missing, unit=unit, gap=gap, **cut)
    if recordings is not None and model is None:
        scale = recordings.scale
    settings = {"encoder": encoder, "dim": dim, "pooling": pooling, "scale": scale}
    settings |= {"calibrate": calibrate, "difference": difference, "bank": opt.bank(bank), "n_components": n_components}
    settings |= opt.given(
        steps=steps, batch_size=batch_size, lr=lr, schedule=schedule, precision=precision, family=family
    )
    params = opt.settings(set_)
    if model is None:
        subjects = _trained(method, preset, settings, params)
    else:
        from dicot.model.estimator import TimeSeriesEmbedder

        fitted = TimeSeriesEmbedder.from_pretrained(model, device=device)
        flags = {**settings, **policies, "family": family, "method": method, "preset": preset, "set_": params}
        _refuse_contradictions(ctx, fitted, flags)
        policies = {**_policies(fitted), **policies}
        subjects = [saved(_free_name(model.resolve().name), fitted)]
    cutting: dict[str, Any] | None = None
    if recordings is None:
        split = opt.load_data(data, layout, policies, table, (holdout, split_seed))
    else:
        cutting = recordings.options if model is None else opt.as_fitted(recordings.options, fitted)
        split = _labelled_recordings(data, cutting)
    column = group if cutting is None else cutting.get("group")
    warning, whole = "", split
    if split.test is None:
        split = replace(hold_out(split.train, holdout, split_seed, column=column), family=split.family, name=split.name)
        warning = NO_GROUPS if split.train.group is None else ""
    everyone = with_controls(subjects)
    if features is not None:
        from dicot.judge.report.maps import check_features_file

        check_features_file(features, [one.name for one in everyone])
    named = name_of_groups(split.train.group, split.train.recording, column)
    warning = _announce(split, warning, named)
    result = _score(split, everyone, chosen, numbers, subsets, device)
    trial = _trial(split, everyone, result, named)
    found = verdict(trial)
    hero = subjects[0].name
    kept = out / "model" if out is not None and is_embedder(result.models.get(hero)) else model
    advice = next_steps(ctx, found, everyone, numbers, kept)
    _show(found, trial, result.fixed)
    if features is not None:
        write_features_file(features, split, result)
    if out is not None:
        page = PageTexts(advice, {one.name: one.about for one in everyone}, _class_names(data, split), warning)
        write_report(out, split, hero, result, trial, found, page)
        if hero in result.models:
            maker = identity(hero, result.models[hero], out / "model")
            if cutting is None:
                source = cases_source(data, layout, policies, table, whole, maker)
            else:
                source = recordings_source(data, cutting, whole, maker)
            write_vectors_file(out / VECTORS, whole, result.models[hero], source)
    _show_steps(advice)


def _labelled_recordings(data: str, options: dict[str, Any]) -> "Split":
    """Cut recordings, which must have labels to be scored by, into one part; groups are held out of it."""
    from dicot.data import Split

    if "label" not in options:
        raise InputError(f"Recordings of {data} are scored by labels. Name their column with --label.")
    return Split(opt.load_recordings(data, options), name=Path(data).expanduser().resolve().name)


def _protocols(text: str) -> "list[AnyProtocol]":
    from dicot.judge.evaluation import every_protocol
    from dicot.judge.protocols import PROTOCOLS

    names = list(PROTOCOLS) if text == "all" else [name.strip() for name in text.split(",")]
    return [lookup(every_protocol(), name, "protocol")() for name in names]


def _free_name(name: str) -> str:
    """The name of a saved model in the table, which must not be that of a control or of raw features."""
    from dicot.judge.evaluation.contenders import registered

    return f"{name} (saved)" if name in registered() else name


def _check_outputs(out: Path | None, features: Path | None) -> None:
    """Check whatever the results need, before anything is trained for them."""
    if out is not None:
        from dicot.judge.report.figures import need_matplotlib
        from dicot.judge.report.page import need_jinja2

        need_matplotlib()
        need_jinja2()
    for path in (out, features):
        if path is not None:
            check_writable(path, folder=path == out)


def _policies(fitted: "TimeSeriesEmbedder") -> dict[str, Any]:
    """How the data are made what the model takes, by the model's own rules."""
    how = fitted.preparation_
    own = {name: value for name in ("unequal", "missing") if (value := getattr(how, name)) != "error"}
    return own | ({"length": how.n_times} if how.unequal == "resample" else {})


def _refuse_contradictions(ctx: typer.Context, fitted: "TimeSeriesEmbedder", flags: dict[str, Any]) -> None:
    """A saved model and its controls have the model's settings: no flag may say otherwise."""
    from dicot.model.arguments import flat
    from dicot.model.presets import preset_name

    own = {
        **flat(fitted.get_params(deep=False)),
        **fitted.features_,
        "method": fitted.method_,
        "set_": fitted.method_params,
    }
    own["preset"] = preset_name(fitted.preset, fitted.method)
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


def _trained(
    methods: str | None, wanted: str | None, settings: dict[str, Any], params: dict[str, Any] | None
) -> "list[Contender]":
    """Methods that are trained here, with what a preset says, or presets with their own methods."""
    from dicot.judge.evaluation import contender
    from dicot.methods import METHODS
    from dicot.model.presets import PAPER, find_preset, preset_name

    usual = [preset_name(None, methods)]
    if methods is None:  # the default is shown beside what it is measured by
        usual.append(PAPER.name)
    presets = [find_preset(name.strip()) for name in (wanted.split(",") if wanted else usual)]
    if methods is None:  # the paper's is called by its method, as ever
        names = [one.method if one.name == PAPER.name else one.name for one in presets]
    elif len(presets) > 1:
        raise InputError(f"--method is for one preset; got {', '.join(one.name for one in presets)}. Leave one out.")
    else:
        names = list(METHODS) if methods == "all" else [name.strip() for name in methods.split(",")]
        settings = {**settings, "preset": presets[0].name}
    if params and len(names) > 1:
        raise InputError(f"--set is for one method; got {', '.join(names)}. Name one with --method or --preset.")
    return [contender(name, method_params=params, **settings) for name in names]


def _announce(split: "Split", warning: str, unit: str) -> str:
    """Say what is scored and how it was split; the warnings come back for the report."""
    from dicot.data.splits import shared_groups, short_list

    typer.echo(f"{split.name}: {sizes(split)}")
    typer.echo(f"  training and test part: {split.how}")
    if both := shared_groups(split):
        warning = f"{len(both)} {unit}(s) have cases in both parts, so scores may be too high: {short_list(both)}."
    if warning:
        typer.secho(f"Warning: {warning}", fg="yellow", err=True)
    return warning


def _score(
    split: "Split",
    contenders: "Sequence[Contender]",
    protocols: "Sequence[AnyProtocol]",
    seeds: Sequence[int],
    subsets: str,
    device: str,
) -> "Evaluation":
    from dicot.judge.evaluation import distinct, evaluate

    different, same = distinct(protocols, split)
    for name, others in same.items():
        typer.echo(f"  {', '.join(others)}: the same as {name}, because no class has more training cases than that")
    return evaluate(split, contenders, different, seeds, controls=False, subsets=subsets, device=device, on_fit=_say)


def _trial(split: "Split", contenders: "Sequence[Contender]", result: "Evaluation", unit: str) -> "Trial":
    """What a verdict is about."""
    from dicot.data.collection import labelled_cases
    from dicot.judge.report.verdict import Trial

    assert split.test is not None
    test = labelled_cases(split.test)
    together = test.group if test.group is not None else test.recording
    return Trial(_frame(result), {one.name: one.role for one in contenders}, result.right, together, len(test), unit)


def _show(found: "Verdict", trial: "Trial", fixed: Sequence[str]) -> None:
    """Print the verdict, then the scores and what every protocol is."""
    from dicot.judge.report.frame import shown_metrics
    from dicot.judge.report.scores import evaluation_table

    typer.echo()
    say(found.sentence, bold=True)
    for sentence in found.more:
        say(sentence)
    typer.echo()
    data = trial.data
    names = shown_metrics(data)
    show_blocks(evaluation_table(data[data.metric.isin(names)], fixed))
    if others := [name for name in data.metric.unique() if name not in names]:
        say(f"In scores.csv of --out: {', '.join(others)}.")
    for name, text in descriptions(data).items():
        say(f"{name}: {text}", indent="  ")


def _show_steps(steps: "Sequence[Step]") -> None:
    """Print what to do next; a command in one line, to be copied."""
    typer.secho("What to do next", bold=True)
    for why, command in steps:
        typer.echo(f"  {why}:\n    {command}")


def _class_names(data: str, split: "Split") -> dict[object, str]:
    """What the classes of a data set by name are called, where its card says so; other labels are names themselves."""
    from dicot.data.datasets import card, is_path

    y = split.train.y
    if is_path(data) or y is None or y.dtype.kind not in "iu":
        return {}
    return dict(enumerate(card(data).labels))


def _frame(result: "Evaluation") -> "pd.DataFrame":
    from dicot.judge.report.frame import frame

    return frame(row for one in result.results for row in one.tidy())


def _say(unit: "Unit", fitted: "Fitted | Exception") -> None:
    if isinstance(fitted, Exception):
        what = f"{type(fitted).__name__}: {fitted}"
    else:
        steps = getattr(getattr(fitted.model, "recipe_", None), "steps", 0)
        what = f"{f'{steps} steps, ' if steps else ''}{fitted.seconds:.1f} s to fit"
    for seed in unit.seeds:
        typer.echo(f"  {unit.first.contender.name}, seed {seed}: {what}")
