"""Rows of every suite, small and made up, for the tests of the report."""

import math

import numpy as np

from bench.ledger import write_table
from dicot.judge.result import Result, canonical, key_of

METHODS = ("dicot", "catt", "ts2vec")
CONTROLS = ("random", "calibrated")
LARGE = ("ecg", "harth", "skoda-paper")
ARCHIVE = ("Beef", "Car", "BME", "Fish", "Wine", "Yoga")
KNN = ("knn_5", "knn_10", "knn_500")


def record(suite, contender, data, value, protocol="linear", metric="accuracy", seed=1, **more):
    """Make a row with believable provenance; `data` is a data set or (source, target)."""
    source, target = (data, data) if isinstance(data, str) else data
    trained = contender not in (*CONTROLS, "minirocket", "raw-mean", "raw-flat")
    usual = {
        "schedule": "per_step" if trained else "",
        "steps": 200 if trained else 0,
        "batch_size": 8 if trained else 0,
        "precision": "float32" if trained else "",
        "fit_seconds": 2.5 if trained else 0.01,
        "device": "cpu A, alone",
        "version": "0.1.0",
        "recorded": "2026-01-02T03:04:05+00:00",
    }
    row = {"suite": suite, "contender": contender, "source": source, "target": target}
    return row | {"protocol": protocol, "metric": metric, "seed": seed, "value": value} | usual | more


def failed(one, reason):
    return {**one, "value": math.nan, "error": reason}


def write_csv(path, rows):
    """Write rows as an exported ledger: those that differ in their metric alone are one result."""
    results = {}
    for row in rows:
        facts = {name: value for name, value in row.items() if name not in ("metric", "value")}
        settings = {name: row[name] for name in ("schedule", "precision", "batch_size") if row[name]}
        config = {name: row[name] for name in ("source", "target", "protocol", "seed")}
        config |= {"kind": row["contender"], "settings": settings}
        facts |= {"config": canonical(config), "key": key_of(config)}
        results.setdefault((row["suite"], facts["key"]), (facts, {}))[1][row["metric"]] = row["value"]
    write_table(path, [Result(**facts, values=values) for facts, values in results.values()])


def several(suite, contenders, sets, protocols=("linear",), metrics=("accuracy",), seeds=(1,), **more):
    rng = np.random.default_rng(len(suite))
    return [
        record(suite, c, d, _value(c, m, rng), p, m, seed, **more)
        for c in contenders
        for d in sets
        for p in protocols
        for m in metrics
        for seed in seeds
    ]


def _value(contender, metric, rng):
    value = {"dicot": 82.0, "catt": 79.0, "random": 71.0}.get(contender, 75.0) + rng.normal(0, 2)
    return value / 200 if metric in ("nmi", "ari") else value


EVERYONE = (*METHODS, *CONTROLS)
VARIANTS = ("dicot", "w/o Overlap", "InceptionTime -> FCN", *CONTROLS)
EXTENDED = ("Overlap -> 25%", "Uniform Splits Sampling (k_{max}) -> 10", *CONTROLS)
POSITIVES = ("Preceding Sub-block", "Next Sub-block", *CONTROLS)
PAIRS = (("harth", "pamap2"), ("wisdm2", "harth"))

SUITES = {
    "ucr": [
        *several("ucr", EVERYONE, ARCHIVE),
        *several("ucr", ["minirocket"], ARCHIVE, ("linear", "ridge")),
        *several("ucr", ["dicot"], ARCHIVE, schedule="per_epoch"),
    ],
    "uea": several("uea", EVERYONE, ("NATOPS", "ERing", "Libras")),
    "large": [
        *several("large", EVERYONE, LARGE, seeds=(1, 2, 3)),
        *several("large", ["end-to-end"], LARGE, ("finetune-100",), seeds=(1, 2, 3)),
    ],
    "low_label": several("low_label", EVERYONE, LARGE, ("few_1pct",), seeds=(1, 2)),
    "knn": several("knn", EVERYONE, LARGE, KNN),
    "clustering": several("clustering", EVERYONE, LARGE, ("clustering",), ("nmi", "ari")),
    "transfer": several("transfer", EVERYONE, PAIRS),
    "ablation": several("ablation", VARIANTS, (*LARGE, "Beef", "Car", "NATOPS")),
    "extended_ablation": several("extended_ablation", EXTENDED, (*LARGE, "Beef")),
    "positive_selection": [
        *several("positive_selection", POSITIVES, (*LARGE, *PAIRS)),
        *several("positive_selection", POSITIVES, LARGE, ("clustering",), ("nmi", "ari")),
    ],
    "smoke": [
        *several("smoke", METHODS, ("tiny", "small"), ("linear", "few_5", "knn_5"), trial=True, steps=10),
        *several("smoke", CONTROLS, ("tiny", "small"), ("linear", "few_5", "knn_5")),
        *several("smoke", ("dicot", *CONTROLS), ("tiny",), ("finetune-1", "finetune-100"), trial=True, steps=10),
        *several("smoke", METHODS, ("tiny",), ("clustering",), ("nmi", "ari"), trial=True, steps=10),
        *several("smoke", CONTROLS, ("tiny",), ("clustering",), ("nmi", "ari")),
    ],
    "batch_scaling": [
        record("batch_scaling", c, "harth", v * size, "cost", m, batch_size=size, steps=50)
        for c in ("dicot", "catt")
        for size in (8, 64)
        for m, v in (("step_ms", 1.5), ("peak_mib", 20.0), ("fit_seconds", 0.1))
    ]
    + several("batch_scaling", CONTROLS, ("harth",), ("cost",), ("fit_seconds",)),
    "best": [
        *several(
            "best", ("instant", *EVERYONE, "minirocket"), ("Wine", "Beef", "hapt"), ("ridge", "few_5"), seeds=(1, 2)
        ),
        *several("best", ("instant", *EVERYONE), ("hapt",), ("clustering",), ("nmi", "ari"), seeds=(1, 2)),
    ],
    "best_ablation": several("best_ablation", ("dicot", "instant", *CONTROLS), ("Beef", "hapt"), ("ridge", "few_5")),
    "of your own": several("of your own", EVERYONE, ("tiny",), ("linear", "odd")),
}
