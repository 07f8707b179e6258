"""python -m benchmarks.trials [--sets A,B] [--variants X,Y] [--seeds 1,2,3]: how to train, what a vector should hold.

Every variant of the training is fitted once per set and seed; its encoder then makes vectors of several kinds, and each
is scored by several protocols. The sets are those that may be chosen on, DEVELOPMENT; the others are only reported.
Rows go to a file of JSON lines, one per training, and what it has is not run again; `--table` shows the means over
sets. What came of a trial belongs into docs/log.md, whether it helped or not.
"""

import argparse
import json
import multiprocessing
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.datasets.names import DEVELOPMENT
from benchmarks.arguments import some_of
from dicot.core.device import resolve_device
from dicot.data import Windows
from dicot.data.datasets import load
from dicot.judge.protocols import PROTOCOLS, Features
from dicot.model.embedding import embed, fit_composition
from dicot.model.estimator import TimeSeriesEmbedder
from dicot.model.presets import grouped
from dicot.model.vector.compression import Compression
from dicot.nets.encoders import Encoder

SCORES = {"ridge": "accuracy", "linear": "accuracy", "few_5": "accuracy", "semi_5": "accuracy", "clustering": "nmi"}
DRAWS = {"few_5": 10, "semi_5": 3}  # of labelled cases, in each of the seeds
MOST_FITTED = 3_000  # cases that a compression, `ridge` and `linear` are fitted on; all of HAPT would take minutes
POOLING = "mean+max+std"


@dataclass(frozen=True)
class Variant:
    """A way to train: a method or a control, its settings, those of the estimator, and whose recipe it is."""

    method: str
    params: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    preset: str = "best"


def across(batch_size: int | None = None, steps: int | None = None, lr: float | None = None, **params: Any) -> Variant:
    given = {"batch_size": batch_size, "steps": steps, "lr": lr}
    return Variant("across", params, {name: value for name, value in given.items() if value is not None})


# No name has a comma, so that --variants takes it.
VARIANTS: dict[str, Variant] = {
    "random": Variant("random"),
    "calibrated": Variant("calibrated"),
    "dicot": Variant("dicot", preset="paper"),
    "whole by the paper's recipe": Variant("across", preset="paper"),
    "whole": across(),
    "whole at rate 0.001": across(lr=1e-3),
    "whole at rate 0.003": across(lr=3e-3),
    "whole by 8": across(batch_size=8),
    "whole by 32": across(batch_size=32),
    "whole by 64": across(batch_size=64),
    "whole by 32 in 750 steps": across(batch_size=32, steps=750),
    "whole by 128 in 1500 steps": across(batch_size=128, steps=1500),
    "whole in 3000 steps": across(steps=3000),
    "whole at tau 0.1": across(temperature=0.1),
    "whole at tau 0.5": across(temperature=0.5),
    "whole with a head of 64": across(width=64),
    "whole without a head": across(width=0),
    "whole to crop 0.3": across(crop=0.3),
    "whole to noise 0.6": across(noise=0.6),
    "whole to scale 0.6": across(scale=0.6),
    **{
        f"whole - {part}": Variant("across", {part: 0.0})
        for part in ("noise", "scale", "offset", "mask", "crop", "channel_drop")
    },
}


@dataclass(frozen=True)
class Kind:
    """What a vector holds: its parts, compressed to n_components numbers unless that is 0.

    A part is one of "mean", "max" and "std" of the encoder's features, "bank" and "contests", or several of
    them joined by "+". All parts of a vector weigh the same; one that is named twice weighs twice as much.
    """

    parts: tuple[str, ...]
    n_components: int = 0
    protocols: tuple[str, ...] = ("few_5", "clustering")


EVERY, LAST = tuple(SCORES), "mean+max+std"
KINDS: dict[str, Kind] = {
    "mean": Kind(("mean",), 0, EVERY),
    "last layer": Kind((LAST,), 0, ("ridge", "few_5", "clustering")),
    "bank and contests": Kind(("bank", "contests"), 2048, EVERY),
    "last layer, bank, contests": Kind((LAST, "bank", "contests"), 2048, EVERY),
    "the same, not compressed": Kind((LAST, "bank", "contests"), 0, EVERY),
    "twice the last layer, bank, contests": Kind((LAST, LAST, "bank", "contests"), 2048, EVERY),
    "256 of last layer, bank, contests": Kind((LAST, "bank", "contests"), 256),
}


@dataclass(frozen=True, eq=False)
class Parts:
    """All columns that vectors are made of, for training and test cases, and where each part lies."""

    train: Any
    test: Any
    columns: dict[str, slice]

    @classmethod
    def of(cls, encoder: Encoder, train: Windows, test: Windows, seed: int, device: str) -> "Parts":
        composition = fit_composition(encoder, train.x, pooling=POOLING, bank="mixed", seed=seed, device=device)
        assert composition.bank is not None and composition.contests is not None
        dim = encoder.dim
        sizes = {"mean": dim, "max": dim, "std": dim}
        sizes |= {"bank": composition.bank.n_features, "contests": composition.contests.n_features}
        ends = np.cumsum(list(sizes.values())).tolist()
        columns = {name: slice(end - sizes[name], end) for name, end in zip(sizes, ends, strict=True)}
        one, other = (
            embed(encoder, cases.x, pooling=POOLING, composer=composition, device=device) for cases in (train, test)
        )
        return cls(one, other, columns)

    def vectors(self, kind: Kind, device: str) -> tuple[Any, Any]:
        """Return the vectors of training and test cases."""
        parts = [[self.columns[name] for name in part.split("+")] for part in kind.parts]
        chosen = [np.concatenate([np.r_[column] for column in part]) for part in parts]
        index = np.concatenate(chosen)
        one, other = self.train[:, index], self.test[:, index]
        if not kind.n_components:
            return one, other
        here = resolve_device(device)
        compression = Compression.fit(
            one[_some(one, 0)], kind.n_components, here, parts=[(len(c), 1.0) for c in chosen]
        )
        compressed = []
        for z in (one, other):
            tensor = torch.from_numpy(z).to(here)
            compressed.append(compression.to(tensor)(tensor).cpu().numpy())
        return compressed[0], compressed[1]


def _some(cases: Any, seed: int) -> Any:
    """Return the rows of MOST_FITTED cases that the seed draws, or of all."""
    if len(cases) <= MOST_FITTED:
        return np.arange(len(cases))
    return np.sort(np.random.default_rng(seed).choice(len(cases), MOST_FITTED, replace=False))


def trial(name: str, variant: str, seed: int, device: str, protocols: list[str]) -> dict[str, Any]:
    """Fit one variant on one set and score all its vectors."""
    split, chosen = load(name), VARIANTS[variant]
    assert split.test is not None
    model = TimeSeriesEmbedder(
        chosen.method,
        preset=chosen.preset,
        family=split.family,
        method_params=chosen.params,
        features={"pooling": "mean", "bank": 0, "n_components": 0},
        random_state=seed,
        device=device,
        verbose=False,
        **grouped({"precision": "tf32", **chosen.settings}),
    )
    started = time.perf_counter()
    model.fit(split.train)
    seconds = time.perf_counter() - started
    parts = Parts.of(model.encoder_, split.train, split.test, seed, device)
    scores = {}
    for name_of_kind, kind in KINDS.items():
        asked = [one for one in protocols if one in kind.protocols]
        if (kind.parts[0] == "bank" and variant != "calibrated") or not asked:
            continue  # without a learned part all variants have the same vectors
        one, other = parts.vectors(kind, device)
        train, test = Features(one, split.train.y), Features(other, split.test.y)
        scores[name_of_kind] = {protocol: scored(protocol, train, test, seed) for protocol in asked}
    return {"set": name, "variant": variant, "seed": seed, "seconds": seconds, "scores": scores}


def scored(protocol: str, train: Features, test: Features, seed: int) -> float:
    """Score by a protocol: percent of the test cases, or NMI."""
    one = PROTOCOLS[protocol]()
    if protocol in DRAWS:
        drawn, seeds = one.on_subset("run"), [100 * seed + draw for draw in range(DRAWS[protocol])]
    else:
        drawn, seeds = one, [seed]
        if protocol in ("ridge", "linear"):
            train = train.rows(_some(train.y, seed))
    return float(np.mean([drawn.score(train, test, seed=seed)[SCORES[protocol]] for seed in seeds]))


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(options: argparse.Namespace) -> None:
    """Run what the file lacks, several trainings at once, and append each as it is done."""
    done = {(row["set"], row["variant"], row["seed"]) for row in read(options.out)}
    wanted = [(name, variant, seed) for seed in options.seeds for variant in options.variants for name in options.sets]
    todo = [one for one in wanted if one not in done]
    print(f"{len(todo)} of {len(wanted)} trainings to run", flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(options.workers, multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(trial, *one, options.device, options.protocols): one for one in todo}
        for number, future in enumerate(as_completed(futures), 1):
            name, variant, seed = futures[future]
            error = future.exception()
            if error is not None:
                print(f"[{number}/{len(todo)}] {variant} on {name}, seed {seed}: {error!r}", flush=True)
                continue
            row = future.result()
            with options.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"[{number}/{len(todo)}] {variant} on {name}, seed {seed}: {row['seconds']:.1f} s", flush=True)


def table(path: Path) -> None:
    """Print, for every group of sets, the mean over those sets and seeds that all variants have."""
    rows = read(path)
    by_set: dict[tuple[str, int], set[str]] = defaultdict(set)
    for row in rows:
        by_set[row["set"], row["seed"]].add(row["variant"])
    everyone = {row["variant"] for row in rows}
    common = {place for place, variants in by_set.items() if variants == everyone}
    for group, members in (("archives", lambda n: n[0].isupper()), ("sensors", lambda n: not n[0].isupper())):
        chosen = [row for row in rows if (row["set"], row["seed"]) in common and members(row["set"])]
        if not chosen:
            continue
        print(f"\n## {group}: {len({(row['set'], row['seed']) for row in chosen})} sets and seeds")
        sums: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for row in chosen:
            for kind, scores in row["scores"].items():
                for name, value in {"seconds": row["seconds"], **scores}.items():
                    sums[row["variant"], kind][name].append(value)
        columns = ["seconds", *(name for name in SCORES if any(name in values for values in sums.values()))]
        print(f"{'':80}" + "".join(f"{name:>11}" for name in columns))
        for (variant, kind), values in sums.items():
            cells = (f"{np.mean(values[name]):11.2f}" if name in values else f"{'':11}" for name in columns)
            print(f"{variant + ' | ' + kind:80}" + "".join(cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=some_of(DEVELOPMENT), default=list(DEVELOPMENT))
    parser.add_argument("--variants", type=some_of(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--protocols", type=some_of(SCORES), default=list(SCORES))
    parser.add_argument("--seeds", type=lambda text: [int(part) for part in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/trials.jsonl"))
    parser.add_argument("--table", action="store_true", help="show what the file has instead of running anything")
    options = parser.parse_args()
    if options.table:
        table(options.out)
    else:
        run(options)


if __name__ == "__main__":
    main()
