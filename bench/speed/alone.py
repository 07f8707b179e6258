"""python -m bench alone --device cuda --out results/times.csv: what a training step costs, one run at a time.

Three questions, a row for each run: every method of the paper with the same number of steps on three data sets
(Figure 1, Tables 1 and 2); Di-COT with other numbers of sub-blocks and with both neighbours (Figure 7, Table 7); Di-COT
and CaTT with batches of 8 to 512 windows of 500 time steps (Figure 6). Nothing else of the command runs beside a run.
The first steps are a warm-up that is not timed: they load libraries and capture CUDA graphs. Rows of other runs that
the file has stay in it. The paper's page shows the file.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pandas as pd
import torch
import typer

from bench.datasets.cutting import cut, runs
from bench.datasets.standins import HAPT
from bench.options import Device, Out, names
from bench.speed.walk import timing
from dicot.core.device import describe_device, load_optimisers, resolve_device
from dicot.core.errors import brief
from dicot.core.storage import write_atomic
from dicot.data import Windows
from dicot.data.datasets import card, load
from dicot.data.npyfile import load_npz
from dicot.methods import METHODS, build_method
from dicot.nets.encoders import InceptionTime
from dicot.train.encoded import encoded
from dicot.train.recipe import Recipe, paper_recipe

QUESTIONS = ("methods", "splits", "batches")
PAPERS = ("dicot", "catt", "cost", "infots", "simmtm", "soft", "tfc", "tnc", "ts2vec", "tstcc")
SETS = "hapt,OSULeaf,Epilepsy"  # of each family one
PRECISION = {"large": "tf32"}  # as the paper's suites have it; float32 on the archives
SPLITS: dict[str, dict[str, Any]] = {
    **{f"k = {k}": {"k": k} for k in (2, 5, 10, 15)},
    **{f"k from 2 to {k}": {"k": (2, k)} for k in (5, 10, 15, 20)},
    "both neighbours": {"positive": "both"},
}
SCALED: dict[str, tuple[str, dict[str, Any]]] = {
    "dicot": ("dicot", {}),
    "catt": ("catt", {}),
    "catt without chunks": ("catt", {"chunked": False}),
}
BATCHES = (8, 16, 32, 64, 128, 256, 512)
BATCH_LENGTH = 500  # time steps
BATCH_STEPS, BATCH_SECONDS = 100, 2.0  # that are timed, and at most so long
BATCH_WARM_UP = {"dicot": 60, "catt": 3}  # until every k was drawn; CaTT draws nothing
KEY = ["question", "contender", "data_set", "batch_size", "device"]  # a row is measured anew in its place


class Run(NamedTuple):
    """What is timed."""

    question: str
    contender: str
    method: str
    params: Mapping[str, Any]
    data: Windows
    recipe: Recipe
    warm_up: int
    limit: float = float("inf")


def alone(
    out: Out,
    device: Device = "auto",
    questions: Annotated[str, typer.Option(help="Some of methods, splits and batches.")] = "methods,splits,batches",
    methods: Annotated[str, typer.Option(help="Methods of the first question.")] = ",".join(PAPERS),
    sets: Annotated[str, typer.Option(help="Data sets of the first two questions.")] = SETS,
    steps: Annotated[int, typer.Option(help="Steps of a run, warm-up included.")] = 400,
    warm_up: Annotated[int, typer.Option(min=1, help="Steps that are not timed.")] = 100,
) -> None:
    """Time a training step of every method, one run at a time."""
    if warm_up >= steps:
        raise typer.BadParameter(f"--warm-up must be below --steps {steps}; got {warm_up}.")
    resolved = resolve_device(device)
    asked = names(questions, QUESTIONS)
    planned: list[Iterator[Run]] = []
    for name in sets.split(",") if asked != ["batches"] else ():
        card(name)  # an unknown name is an error now rather than after the runs before it
        planned.append(runs_on(name, asked, names(methods, PAPERS), steps, warm_up))
    if "batches" in asked:
        planned.append(runs_by_batch(steps, warm_up))

    load_optimisers()
    is_first = True
    for plan in planned:
        for run in plan:
            if is_first:
                measured(run, resolved)  # libraries load at first use, and the first run would be charged for it
                is_first = False
            row = measured(run, resolved)
            put(out, row)
            outcome = row["error"] or f"{row['step_ms']} ms a step"
            typer.echo(f"{row['question']}: {run.contender}, {row['data_set']}, {row['batch_size']}: {outcome}")


def put(path: Path, row: Mapping[str, Any]) -> None:
    """Put a row into a file, in the place of the one with the same key."""
    rows: list[Mapping[str, Any]] = [row]
    if path.exists():
        rows = [*pd.read_csv(path, dtype=str, keep_default_na=False).to_dict("records"), row]
    by_key = {tuple(str(row[name]) for name in KEY): row for row in rows}
    write_atomic(path, pd.DataFrame(list(by_key.values())).to_csv(index=False).encode())


def runs_on(name: str, questions: list[str], methods: list[str], steps: int, warm_up: int) -> Iterator[Run]:
    """The runs of the first two questions on a data set."""
    split = load(name)
    recipe = paper_recipe(split.family, len(split.train), split.train.n_times)
    recipe = Recipe(steps, recipe.batch_size, precision=PRECISION.get(split.family or "", "float32"))
    if "methods" in questions:
        for method in methods:
            params = METHODS[method].paper_params(split.family)
            yield Run("methods", method, method, params, split.train, recipe, warm_up)
    if "splits" in questions:
        usual = METHODS["dicot"].paper_params(split.family)
        for contender, params in SPLITS.items():
            yield Run("splits", contender, "dicot", usual | params, split.train, recipe, warm_up)


def runs_by_batch(steps: int, warm_up: int) -> Iterator[Run]:
    """The runs of the third question."""
    data = long_windows()
    for contender, (method, params) in SCALED.items():
        for size in BATCHES:
            warm = min(BATCH_WARM_UP[method], warm_up)
            recipe = Recipe(min(BATCH_STEPS, steps) + warm, size, precision=PRECISION["large"])
            params = METHODS[method].paper_params("large") | params
            yield Run("batches", contender, method, params, data, recipe, warm, BATCH_SECONDS)


def long_windows() -> Windows:
    """Cut HAPT's recordings into windows as long as HARTH's, of which the next begins in the middle."""
    arrays = load_npz(HAPT.path())
    user = arrays["user"].astype("int64")
    inside = runs(arrays["experiment"], user)
    name = f"hapt, windows of {BATCH_LENGTH}"
    return cut(arrays["X"].T, user, user, BATCH_LENGTH, BATCH_LENGTH // 2, inside=inside, name=name)


def measured(run: Run, device: torch.device) -> dict[str, Any]:
    """Time a run; one that fails is a row with its error."""
    data, recipe = run.data, run.recipe
    row: dict[str, Any] = {
        "question": run.question,
        "contender": run.contender,
        "data_set": data.name,
        "channels": data.n_channels,
        "time_steps": data.n_times,
        "batch_size": recipe.batch_size,
        "precision": recipe.precision,
        "device": describe_device(device, alone=True),
        "torch": torch.__version__,
        "threads": torch.get_num_threads() if device.type == "cpu" else 0,
        "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    row |= dict.fromkeys(("warm_up", "timed", "step_ms", "host_ms", "seconds", "peak_mib", "passes", "encoded"), "")
    torch.manual_seed(1)
    try:
        method = build_method(run.method, InceptionTime(data.n_channels), run.params)
        taken = timing(method, data, recipe, device, run.warm_up, run.limit)
        work = encoded(run.method, run.params, data, seed=1, steps=recipe.steps)
    except (RuntimeError, MemoryError) as error:  # torch.OutOfMemoryError is one
        return row | {"error": brief(error)}
    numbers = {**dataclasses.asdict(taken), "passes": work.passes, "encoded": work.per_time_step}
    for name, value in numbers.items():
        row[name] = "" if value != value else f"{value:.5g}"
    return row | {"error": ""}
