"""dicot evaluate: score a method or a saved model beside the controls."""

from pathlib import Path
from typing import Annotated

import typer

from dicot.cli import options as opt


def evaluate(
    data: opt.DataArgument,
    model: Annotated[Path | None, typer.Option(help="Score this saved model instead of training one.")] = None,
    method: opt.Method = "dicot",
    out: Annotated[Path | None, typer.Option(help="Folder for report.html, scores.csv and the model.")] = None,
    protocols: Annotated[str, typer.Option(help="Names from `dicot list protocols`, separated by commas, or all.")] = "all",
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas.")] = "1",
    holdout: Annotated[float, typer.Option(help="Share of cases to hold out where DATA has no test part.")] = 0.3,
    encoder: opt.Encoder = "inception_time",
    dim: opt.Dim = 256,
    steps: opt.Steps = None,
    batch_size: opt.BatchSize = None,
    lr: opt.Rate = None,
    schedule: opt.Schedule = None,
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
) -> None:
    """Train METHOD (or take MODEL), embed, and score it beside both controls and both raw features."""
    from dicot.scoring import Request, score_and_report

    policies = opt.given(unequal=unequal, missing=missing)
    table = opt.columns(case, time, channels, label, group)
    split = opt.load_data(data, layout, policies, table)
    settings = {
        "encoder": encoder,
        "dim": dim,
        "pooling": pooling,
        "family": family or split.family,
        "scale": scale,
        "device": device,
        **opt.given(steps=steps, batch_size=batch_size, lr=lr, schedule=schedule),
    }
    request = Request(
        method=method,
        model=model,
        settings=settings,
        method_params=opt.settings(set_),
        protocols=tuple(protocols.split(",")),
        seeds=tuple(seeds.split(",")),
        holdout=holdout,
        out=out,
    )
    score_and_report(request, split, typer.echo)
