"""What to do after an evaluation: commands that run, with the data and options of the one that was given."""

import json
import shlex
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from dicot.judge.evaluation import Contender
    from dicot.judge.report.verdict import Verdict

MORE_SEEDS = (1, 2, 3, 4, 5)
HARDER = "few_1,few_5"  # protocols for data on which all labels leave nothing to tell
STRONGEST = "minirocket"  # of the baselines
# Options that say how DATA are read, the same for `dicot pretrain` and, but for one, `dicot embed`.
CUTTING = ("window", "stride", "rate", "resample", "unit", "gap")  # of recordings
READING = ("layout", "unequal", "missing", "case", "time", "channels", "label", "group", "ignore", "header", *CUTTING)
ALONE = dict.fromkeys(("model", "preset", "set_", "out", "features"))  # what a baseline has no use for
# Settings of a contender that `dicot pretrain` has an option for.
TYPED = {"preset", "encoder", "dim", "steps", "batch_size", "lr", "schedule", "precision", "family", "scale", "pooling"}
TYPED |= {"calibrate", "difference", "bank", "n_components", "unequal", "missing"}
UNSAID = {"schedule": "per_step", "precision": "float32"}  # said of every method, and the default

VECTORS = "vectors.npz"  # of the first contender, in --out

Step = tuple[str, str]  # why, and the command


def next_steps(
    ctx: typer.Context,
    found: "Verdict",
    contenders: "Sequence[Contender]",
    seeds: Sequence[int],
    folder: Path | None,
) -> list[Step]:
    """Say whom to go on with, and what would settle the question where it is open.

    `folder` is where the first contender's model is, if it is anywhere.
    """
    known = {one.name: one for one in contenders}
    data = str(ctx.params["data"])
    order = [known[name] for name in dict.fromkeys((*found.use, *found.ranked))]
    steps = _embedding(ctx, data, order, contenders[0].name, folder)
    if found.level and ctx.params["protocols"] != HARDER:
        steps.append(("Ask harder: with few labels", _again(ctx, protocols=HARDER, out=None)))
    elif (not found.settled or len(seeds) == 1) and len(known) > 1 and len(seeds) < len(MORE_SEEDS):
        steps.append(("Be surer: more seeds", _again(ctx, seeds=",".join(map(str, MORE_SEEDS)))))
    if STRONGEST not in known and find_spec("aeon") is not None:
        why = "Compare with the strongest baseline without a network"
        steps.append((why, _again(ctx, **ALONE, method=STRONGEST, protocols="ridge")))
    if ctx.params["out"] is not None:
        vectors = Path(ctx.params["out"]) / VECTORS
        why = f"See, search and label the cases on a map, by {contenders[0].name}"
        steps.append((why, _command("explore", [vectors], {})))
    return steps


def _embedding(
    ctx: typer.Context, data: str, order: "Sequence[Contender]", hero: str, folder: Path | None
) -> list[Step]:
    """Embed with the first of these that can be a model: the one that is there already, or one to be made."""
    reading = _given(ctx, READING)
    vectors = "vectors.parquet" if find_spec("pyarrow") is not None else "vectors.npz"
    possible = [one for one in order if (one.name == hero and folder) or _is_made(one)]
    if not possible:
        return []
    first = possible[0]
    steps = []
    if first.name != hero or folder is None:
        folder, made = Path("model"), {**_settings(first), **reading, **_given(ctx, ["device"]), "out": "model"}
        beside = "" if first is order[0] else f"; {order[0].name} cannot be one"
        steps.append((f"Make {first.name} a model{beside}", _command("pretrain", [data], made)))
    embed = {name: value for name, value in reading.items() if name != "unequal"}  # the model's own
    steps.append((f"Embed with {first.name}", _command("embed", [str(folder), data], {**embed, "out": vectors})))
    steps.append(("Find the cases most like the first one", _command("search", [vectors], {"like": "0"})))
    return steps


def _is_made(one: "Contender") -> bool:
    """Whether `dicot pretrain` can make it: a method or control whose settings can be typed."""
    from dicot.methods import METHODS
    from dicot.model.controls import CONTROLS

    typed = all(name in TYPED and isinstance(value, str | int | float) for name, value in one.settings.items())
    return typed and (one.kind in CONTROLS or (one.kind in METHODS and one.own is None))


def _settings(one: "Contender") -> dict[str, Any]:
    """The options of `dicot pretrain` that make this contender."""
    from dicot.model.presets import PRESETS, preset_name

    settings = {name: value for name, value in one.settings.items() if UNSAID.get(name) != value}
    out: dict[str, Any] = {"preset": settings.pop("preset", None), "method": one.kind}
    if out["preset"] in PRESETS and PRESETS[out["preset"]].method == one.kind:
        del out["method"]
    elif out["preset"] in (None, preset_name(None, one.kind)):
        del out["preset"]
    return out | settings | {"set": [f"{name}={json.dumps(value)}" for name, value in one.method_params.items()]}


def _given(ctx: typer.Context, names: Sequence[str]) -> dict[str, Any]:
    """Those of the options that were on the command line, in the order in which the command declares them."""
    told = {}
    for parameter in ctx.command.params:
        name = parameter.name or ""
        source = ctx.get_parameter_source(name)
        if name in names and source is not None and source.name == "COMMANDLINE":
            told[name] = ctx.params[name]
    return told


def _again(ctx: typer.Context, **changed: Any) -> str:
    """The command that was given, with some options changed, or left out where they are None."""
    own = _given(ctx, [parameter.name or "" for parameter in ctx.command.params])
    data = own.pop("data")
    return _command("evaluate", [data], {**own, **changed})


def _command(name: str, words: Sequence[object], options: Mapping[str, Any]) -> str:
    """Write a command as it is typed; an option that is None or empty is left out."""
    line = ["dicot", name, *map(str, words)]
    for option, value in options.items():
        flag = option.strip("_").replace("_", "-")
        if isinstance(value, bool):
            line.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, list | tuple):
            line += [word for one in value for word in (f"--{flag}", str(one))]
        elif value is not None:
            line += [f"--{flag}", str(value)]
    return shlex.join(line)
