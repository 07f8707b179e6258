"""python -m benchmarks.alone --device cuda --out results/times.csv: what a training step costs, one run at a time.

Three questions, a row for each run: every method of the paper with the same number of steps on three data sets
(Figure 1, Tables 1 and 2); Di-COT with other numbers of sub-blocks and with both neighbours (Figure 7, Table 7); Di-COT
and CaTT with batches of 8 to 512 windows of 500 time steps (Figure 6). Nothing else of the command runs beside a run.
The first steps are a warm-up that is not timed: they load libraries and capture CUDA graphs. Rows of other runs that
the file has stay in it. Needs torch, numpy and the data sets (DICOT_DATA). `dicot paper` shows the file.
"""

import argparse
import csv
import dataclasses
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import torch

from bench.datasets.cutting import cut, runs
from bench.datasets.standins import HAPT
from benchmarks.arguments import some_of
from benchmarks.tables import as_csv
from benchmarks.timing.walk import timing
from dicot.core.device import describe_device, load_optimisers, resolve_device
from dicot.core.errors import DicotError, brief
from dicot.core.storage import write_atomic
from dicot.data import Windows
from dicot.data.datasets import card, load
from dicot.data.npyfile import load_npz
from dicot.methods import METHODS, build_method
from dicot.nets.encoders import InceptionTime
from dicot.train.encoded import encoded
from dicot.train.recipe import Recipe, paper_recipe

PAPERS = ("dicot", "catt", "cost", "infots", "simmtm", "soft", "tfc", "tnc", "ts2vec", "tstcc")
SETS = ("hapt", "OSULeaf", "Epilepsy")  # of each family one
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
LENGTH = 500
STEPS, WARM_UP = 400, 100
BATCH_STEPS, BATCH_SECONDS = 100, 2.0  # that are timed, and at most so long
KEY = ("question", "contender", "data_set", "batch_size", "device")  # of a row
BATCH_WARM_UP = {"dicot": 60, "catt": 3}  # until every k was drawn; CaTT draws nothing


class Run(NamedTuple):
    """What is timed."""

    question: str  # "methods", "splits" or "batches"
    contender: str
    method: str
    params: Mapping[str, Any]
    data: Windows
    recipe: Recipe
    warm_up: int
    limit: float = float("inf")


def planned(options: argparse.Namespace) -> Iterator[Run]:
    """List all runs, data set by data set."""
    for name in options.sets:
        split = load(name)
        recipe = paper_recipe(split.family, len(split.train), split.train.n_times)
        precision = PRECISION.get(split.family or "", "float32")
        recipe = Recipe(options.steps, recipe.batch_size, precision=precision)
        if "methods" in options.questions:
            for method in options.methods:
                params = METHODS[method].paper_params(split.family)
                yield Run("methods", method, method, params, split.train, recipe, options.warm_up)
        if "splits" in options.questions:
            usual = METHODS["dicot"].paper_params(split.family)
            for words, params in SPLITS.items():
                yield Run("splits", words, "dicot", usual | params, split.train, recipe, options.warm_up)
    if "batches" in options.questions:
        data = long_windows()
        for contender, (method, params) in SCALED.items():
            for size in options.batches:
                warm_up = min(BATCH_WARM_UP[method], options.warm_up)
                recipe = Recipe(min(BATCH_STEPS, options.steps) + warm_up, size, precision=PRECISION["large"])
                usual = METHODS[method].paper_params("large")
                yield Run("batches", contender, method, usual | params, data, recipe, warm_up, BATCH_SECONDS)


def long_windows() -> Windows:
    """Cut HAPT's recordings into windows as long as HARTH's, of which the next begins in the middle."""
    arrays = load_npz(HAPT.path())
    user = arrays["user"].astype("int64")
    inside = runs(arrays["experiment"], user)
    return cut(arrays["X"].T, user, user, LENGTH, LENGTH // 2, inside=inside, name=f"hapt, windows of {LENGTH}")


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
        **dict.fromkeys(("warm_up", "timed", "step_ms", "host_ms", "seconds", "peak_mib", "passes", "encoded"), ""),
        "error": "",
    }
    torch.manual_seed(1)
    try:
        method = build_method(run.method, InceptionTime(data.n_channels), run.params)
        taken = timing(method, data, recipe, device, run.warm_up, run.limit)
        work = encoded(run.method, run.params, data, seed=1, steps=recipe.steps)
    except (RuntimeError, MemoryError) as error:  # torch.OutOfMemoryError is one
        return row | {"error": brief(error)}
    row |= {name: _short(value) for name, value in dataclasses.asdict(taken).items()}
    return row | {"passes": _short(work.passes), "encoded": _short(work.per_time_step)}


def _short(value: float) -> str:
    return "" if value != value else f"{value:.5g}"


def sizes_in(text: str) -> list[int]:
    """Read sizes of batches."""
    sizes = [int(one) for one in text.split(",")]
    if min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"a batch has 1 case or more; got {text!r}")
    return sizes


def rows_of(path: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    """Read the rows that a file has, by what they are about; none where there is no file."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {key_of(row): row for row in csv.DictReader(file)}


def key_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    """What a row is about; one that was measured anew takes the place of the one before."""
    return tuple(str(row[name]) for name in KEY)


def main() -> None:
    """Time all runs, one after the other, and write the file after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--questions", type=some_of(("methods", "splits", "batches")), default=["methods", "splits", "batches"]
    )
    parser.add_argument("--methods", type=some_of(PAPERS), default=list(PAPERS))
    parser.add_argument("--sets", type=lambda text: list(map(str.strip, text.split(","))), default=list(SETS))
    parser.add_argument("--batches", type=sizes_in, default=list(BATCHES))
    parser.add_argument("--steps", type=int, default=STEPS, help=f"of a run, warm-up included; default {STEPS}")
    parser.add_argument("--warm-up", type=int, default=WARM_UP, help=f"steps that are not timed; default {WARM_UP}")
    options = parser.parse_args()
    if not 1 <= options.warm_up < options.steps:
        parser.error(f"--warm-up must be 1 or more and below --steps {options.steps}; got {options.warm_up}.")
    try:
        device = resolve_device(options.device)
        for name in options.sets if {"methods", "splits"} & set(options.questions) else ():
            card(name)  # an error now rather than after the runs before it
    except DicotError as error:
        parser.error(str(error))
    started, rows, done = time.perf_counter(), rows_of(options.out), 0
    load_optimisers()
    for run in planned(options):
        if not done:
            measured(run, device)  # libraries load at first use, and the first run would be charged for it
        row, done = measured(run, device), done + 1
        rows[key_of(row)] = row
        write_atomic(options.out, as_csv(list(rows.values())))
        told = row["error"] or f"{row['step_ms']} ms a step"
        print(
            f"{time.perf_counter() - started:6.1f} s  {run.question}: {run.contender}, {run.data.name}, "
            f"batches of {run.recipe.batch_size}: {told}",
            flush=True,
        )
    print(f"Measured {done} of the {len(rows)} rows of {options.out}")


if __name__ == "__main__":
    main()
