"""python -m benchmarks.trials [--sets A,B] [--variants X,Y] [--seeds 1,2,3]: how to train, what a vector should hold.

Every variant of the training is fitted once per set and seed; its encoder, as trained and with BatchNorm calibrated
anew, then makes vectors of several kinds, and each is scored by several protocols. The sets are those that may be
chosen on, DEVELOPMENT; the others are only reported. Rows go to a file of JSON lines, one per training, and what it has
is not run again; `--table` shows the means over sets. What came of a trial belongs into docs/log.md, whether it helped
or not.
"""

import argparse
import json
import multiprocessing
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dicot.controls import CONTROLS, calibrated_control
from dicot.data import Windows
from dicot.datasets import load
from dicot.datasets.development import DEVELOPMENT
from dicot.embedding import embed, fit_composition
from dicot.encoders import Encoder
from dicot.estimator import TimeSeriesEmbedder
from dicot.protocols import PROTOCOLS
from dicot.protocols.base import Features

SCORES = {"ridge": "accuracy", "linear": "accuracy", "few_5": "accuracy", "semi_5": "accuracy", "clustering": "nmi"}
DRAWS = 3  # of labelled cases, in each of the seeds


@dataclass(frozen=True)
class Variant:
    """A way to train: a method or a control, its settings, and those of the estimator."""

    method: str
    params: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


def across(batch_size: int | None = None, steps: int | None = None, **params: Any) -> Variant:
    given = {"batch_size": batch_size, "steps": steps}
    return Variant("across", params, {name: value for name, value in given.items() if value is not None})


VARIANTS: dict[str, Variant] = {
    "random": Variant("random"),
    "calibrated": Variant("calibrated"),
    "dicot": Variant("dicot"),
    "whole": across(),
    "cross": across(whole=0.0, cross=1.0),
    "vic": across(whole=0.0, vic=1.0),
    "whole + cross": across(cross=1.0),
    "whole + vic": across(vic=0.04),
    "cross + vic": across(whole=0.0, cross=1.0, vic=0.04),
    "whole, batches of 32": across(batch_size=32),
    "whole, batches of 64": across(batch_size=64),
    "whole, queue of 256": across(queue=256),
    "whole, tau 0.1": across(temperature=0.1),
    "whole, tau 0.5": across(temperature=0.5),
    "whole, around zero": across(centred=False),
    "whole + frequency": across(frequency=0.3),
    "whole + warp": across(warp=0.5),
    "whole, head of 64": across(width=64),
    **{
        f"whole - {part}": Variant("across", {part: 0.0})
        for part in ("noise", "scale", "offset", "mask", "crop", "channel_drop")
    },
}
# What a vector holds: pooling, and the arguments of `fit_composition`.
VECTORS: dict[str, tuple[str, dict[str, Any]]] = {
    "mean": ("mean", {}),
    "mean, max, std": ("mean+max+std", {}),
    "shares": ("shares+mean+max", {}),
    "shares, 2048": ("shares+mean+max", {"n_components": 2048}),
    "shares, bank, 2048": ("shares+mean+max", {"bank": "mixed", "n_components": 2048}),
    "shares, bank, 256": ("shares+mean+max", {"bank": "mixed", "n_components": 256}),
}


def vectors(encoder: Encoder, train: Windows, test: Windows, seed: int, device: str) -> Iterator[tuple[str, Any]]:
    """Yield every kind of vector, (name, (training, test, seconds to embed the test cases))."""
    for name, (pooling, given) in VECTORS.items():
        composition = fit_composition(encoder, train.x, pooling=pooling, seed=seed, device=device, **given)
        composer = composition if composition.tensors() else None
        first = embed(encoder, train.x, pooling=pooling, composer=composer, device=device)
        started = time.perf_counter()
        second = embed(encoder, test.x, pooling=pooling, composer=composer, device=device)
        yield name, (first, second, time.perf_counter() - started)


def trial(name: str, variant: str, seed: int, device: str, protocols: list[str]) -> dict[str, Any]:
    """Fit one variant on one set and score all its vectors."""
    split, chosen = load(name), VARIANTS[variant]
    assert split.test is not None
    model = TimeSeriesEmbedder(
        chosen.method,
        preset="paper",
        family=split.family,
        method_params=chosen.params,
        precision="tf32",
        random_state=seed,
        device=device,
        verbose=False,
        **chosen.settings,
    )
    started = time.perf_counter()
    model.fit(split.train)
    seconds = time.perf_counter() - started
    encoders = {"as trained": model.encoder_}
    if chosen.method not in CONTROLS:
        encoders["calibrated"] = deepcopy(model.encoder_)
        calibrated_control(encoders["calibrated"], split.train, device)
    scores = {}
    for state, encoder in encoders.items():
        for kind, (x, z, embedding) in vectors(encoder, split.train, split.test, seed, device):
            train, test = Features(x, split.train.y), Features(z, split.test.y)
            scores[f"{state} | {kind}"] = {"embed": embedding} | {
                protocol: scored(protocol, train, test, seed) for protocol in protocols
            }
    return {"set": name, "variant": variant, "seed": seed, "seconds": seconds, "scores": scores}


def scored(protocol: str, train: Features, test: Features, seed: int) -> float:
    """Score by a protocol: percent of the test cases, or NMI."""
    one = PROTOCOLS[protocol]()
    drawn = one.on_subset("run")
    seeds = [seed] if drawn is one else [100 * seed + draw for draw in range(DRAWS)]
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
        columns = list(next(iter(sums.values())))
        print(f"{'':58}" + "".join(f"{name:>11}" for name in columns))
        for (variant, kind), values in sums.items():
            print(f"{variant + ' | ' + kind:58}" + "".join(f"{np.mean(values[name]):11.2f}" for name in columns))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)

    def names(known: Any) -> Any:
        def parse(text: str) -> list[str]:
            chosen = [part.strip() for part in text.split(",")]
            for part in chosen:
                if part not in known:
                    raise argparse.ArgumentTypeError(f"{part!r} is none of {', '.join(known)}")
            return chosen

        return parse

    parser.add_argument("--sets", type=names(DEVELOPMENT), default=list(DEVELOPMENT))
    parser.add_argument("--variants", type=names(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--protocols", type=names(SCORES), default=list(SCORES))
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
