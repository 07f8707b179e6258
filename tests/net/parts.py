"""The parts of the net: each returns what the library computes of made data, by name."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from dicot.data import Allowance
from tests.net import calls, made
from tests.net.records import hash_of

Found = dict[str, Any]
CUT = {"label": "activity"}


def methods(folder: Path) -> Found:
    """Every method trained for three steps, also with other settings; every encoder; both ways of fine-tuning."""
    x, y = made.cases()
    found: Found = {}
    for name in calls.method_names():
        found |= _under(name, calls.pretrained(name, x, y))
        found[f"{name} paper"] = calls.paper_params(name)
    for name, variants in calls.VARIANTS.items():
        for params in variants:
            trained = calls.pretrained(name, x, y, params)
            found |= _under(f"{name} {params}", {what: trained[what] for what in ("weights", "losses")})
    for name in calls.encoder_names():
        found |= _under(f"dicot {name}", calls.pretrained("dicot", x, y, encoder=name))
    for tuning in ("gradual", "all"):
        found[f"classifier {tuning}"] = calls.classifier_probabilities(x, y, tuning)
    return found


def presets(folder: Path) -> Found:
    """Every preset, control and classical transformer; cases of unequal length and with missing values."""
    x, new = made.cases()[0], made.cases(8, 2, 50, seed=1)[0]
    found: Found = {f"{name} recipes": calls.recipes(name) for name in calls.preset_names()}
    for name in calls.preset_names():
        model = calls.embedder(x, preset=name)
        found[f"{name} weights"] = calls.embedder_weights(model)
        found[f"{name} fitted"] = calls.transform(model, x)
        found[f"{name} new"] = calls.transform(model, new)
        found[f"{name} kept"] = calls.transform(calls.kept(model, folder / name), new)
        found[f"{name} time steps"] = calls.time_steps(model, new[:2])
        found[f"{name} unequal"] = _fitted(made.unequal_cases(), preset=name, unequal="pad", scale="dataset")
        found[f"{name} missing"] = _fitted(made.holed_cases(), preset=name, missing="interpolate", scale="case")
    found["best-2026.11 with more"] = _fitted(x, preset="best-2026.11", calibrate=True, bank=168, n_components=8)
    found["paper in float64"] = _fitted(x, preset="paper", precision="float64", schedule="per_epoch")
    found |= {f"pooling {name}": _fitted(x, method="dicot", pooling=name) for name in calls.pooling_names()}
    found |= {f"control {name}": _fitted(x, method=name) for name in calls.control_names()}
    found |= {f"classical {name}": calls.classical(name, x) for name in calls.classical_names()}
    return found


def readers(folder: Path) -> Found:
    """Files of every kind as windows."""
    cut = calls.windows_of_recordings
    gap, holes, uneven = made.write_gap(folder), made.write_holes(folder), made.write_uneven(folder)
    found = {
        "csv stamped": cut(made.write_stamped(folder), "1s", **CUT, group="person"),
        "csv gap": cut(gap, "1s", **CUT),
        "csv gap joined": cut(gap, 40, 20, gap=20.0),
        "csv tail": cut(gap, "1s", "100%", keep_tail=True, channels=["y"]),
        "csv interpolated": cut(holes, "1s", missing="interpolate"),
        "csv zeros": cut(holes, "1s", missing="zero", channels=["y", "x"]),
        "csv resampled": cut(uneven, "1s", time="clock", unit="ms", resample=True, missing="interpolate", gap=3.0),
        "csv at a rate": cut(uneven, "800ms", "200ms", time="clock", unit="ms", rate=25, missing="zero", gap=3.0),
        "csv.gz": cut(made.write_gz(folder), 64, 32, **CUT, group="person"),
        "csv ids": cut(made.write_ids(folder), 50, **CUT, group="person"),
        "npz": cut(made.write_npz(folder), "1.28s", **CUT, group="person"),
        "mat": cut(made.write_mat(folder), 64, label="activity"),
        "wav": cut(made.write_wav(folder), "0.5s"),
        "parquet": cut(made.write_parquet(folder), 64, **CUT, group="person"),
        "edf": cut(made.write_night(folder), "1s"),
        "wfdb": cut(made.write_heart(folder), "0.5s"),
        "wfdb usual gain": cut(made.write_heart(folder, "101", "0"), 125, channels=["ECG2"]),
        "tree": cut(made.write_tree(folder), "1s", allowance=Allowance(partial=True), **CUT),
        **_case_files(folder),
        **_arrays(),
    }
    flat = {f"{kind} {what}": value for kind, facts in found.items() for what, value in facts.items()}
    return {**flat, "tree suggested": calls.suggested(folder / "tree")}


def ledger(folder: Path) -> Found:
    """Keys of all jobs: results that were recorded before must be found again."""
    found: Found = {}
    for name in calls.suite_names():
        keys, fits = calls.job_keys(name, **calls.RECORDED.get(name, {}))
        found[name] = {"jobs": len(keys), "hash": hash_of(keys), "first": keys[:3], "fits": hash_of(fits)}
    options = {"schedules": ("per_step", "per_epoch"), "steps": 5, "scale": "dataset", "subsets": "per-seed"}
    found["smoke with options"] = hash_of(calls.job_keys("smoke", **options)[0])
    found["large with options"] = hash_of(calls.job_keys("large", seeds=(7,), precision="tf32")[0])
    return found


def onnx(folder: Path) -> Found:
    """Exported models, one of them with a classifier."""
    (x, y), (new, _) = made.cases(), made.cases(5, 2, 50, seed=1)
    found: Found = {}
    for name in calls.preset_names():
        model = calls.embedder(x, preset=name, scale="dataset")
        classifier = calls.few_label_classifier(calls.transform(model, x), y) if name == "paper" else None
        outputs = calls.exported_outputs(model, folder / f"{name}.onnx", new, classifier)
        found |= _under(name, outputs)
    return found


def search(folder: Path) -> Found:
    """Exact neighbours, ties and filters among them."""
    x = made.vectors()
    queries = np.concatenate([x[[4, 7, 20]], x[:2] + np.float32(0.25)])
    found: Found = {}
    for metric in ("euclidean", "cosine"):
        found |= _under(metric, calls.neighbours(x, queries, 8, metric))
        some = calls.neighbours(x, queries, 5, metric, groups=[1, 2], after=5.0, before=50.0, leave_out=[7, 10])
        found |= _under(f"{metric} some", some)
    found |= _under("place", calls.neighbours_of_place(x, 41.5, 5))
    found |= _under("saved", calls.neighbours_after_saving(x[:40], x[40:], queries, folder / "index"))
    return found


def exports(folder: Path) -> Found:
    """Vector files, corpora, labels, outliers, few labels and scores."""
    return {**_written(folder), **_labels(folder), **_outliers(), **_few_labels(), **_scores()}


PARTS: dict[str, Callable[[Path], Found]] = {
    part.__name__: part for part in (methods, presets, readers, ledger, onnx, search, exports)
}


def compute(name: str, folder: Path) -> Found:
    """Return what a part finds; what the library warns of is no result."""
    calls.steadily()
    folder.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PARTS[name](folder)


def _under(name: str, found: Found) -> Found:
    return {f"{name} {what}": value for what, value in found.items()}


def _fitted(x: Any, **options: Any) -> np.ndarray:
    return calls.transform(calls.embedder(x, **options), x)


def _case_files(folder: Path) -> dict[str, Found]:
    read = calls.windows_of_file
    long = {"case": "case", "time": "t", "label": "kind", "group": "person"}
    return {
        "long": read(made.write_long(folder), **long, unequal="pad"),
        "wide": read(made.write_wide(folder), label="last"),
        "npy": read(made.write_npy(folder), layout="ntc"),
        "npz split": read(made.write_split(folder), scale="dataset"),
        "ts": read(made.write_ts(folder), unequal="resample"),
        "tsv": read(made.write_tsv(folder)),
        "arff": read(made.write_arff(folder), scale="case"),
    }


def _arrays() -> dict[str, Found]:
    table = {name: column[:40] for name, column in made.columns().items()}
    table |= {"case": np.repeat([3, 1, 2, 0], 10)}
    x = [np.stack([track["x"], track["y"]]) for track in (made.columns(150, 1), made.columns(90, 2))]
    labels = [np.repeat(["a", "b", ""], 50), np.repeat(["b", "c"], 45)]
    roles = {"case": "case", "time": "t", "channels": ["x", "y"], "label": "activity", "group": "person"}
    return {
        "table": calls.windows_of_table(table, **roles),
        "slide": calls.windows_of_arrays(x, 32, 12, y=labels, rate=50.0, names=["one", "two"]),
        **{
            f"cases {how}": calls.windows_of_cases(made.unequal_cases(), unequal=how)
            for how in ("pad", "crop", "resample")
        },
        "cases interpolated": calls.windows_of_cases(made.holed_cases(), missing="interpolate"),
    }


def _written(folder: Path) -> Found:
    source = made.write_tree(folder)
    model = calls.embedder(made.cases()[0], method="dicot")
    out = folder / "vectors.parquet"
    calls.write_vectors(model, source, out, window="1s", label="activity")
    table = pq.read_table(out)
    vectors = np.array(table.column("vector").to_pylist(), np.float32)
    corpus = calls.corpus(source, folder / "corpus", window="1s", label="activity", shard_bytes=2000)
    return {
        "vectors": vectors,
        "vectors schema": [f"{field.name} {field.type}" for field in table.schema],
        "vectors rows": table.drop_columns(["vector"]).to_pylist(),
        **_under("corpus", calls.facts_of_corpus(corpus)),
        "corpus trained on": calls.transform(calls.embedder(corpus, method="dicot"), corpus),
    }


def _labels(folder: Path) -> Found:
    keys = [("ann/day", 0.5 * i, 0.5 * i + 1) for i in range(5)] + ["an id"]
    text, names = calls.exported_labels(folder, keys, ["rest", "walk", "walk", "run", 3, "rest"])
    return {"labels": [line.rpartition(",")[0] for line in text.splitlines()], "labels names": names}


def _outliers() -> Found:
    x = made.vectors()
    new = x[1::4] + np.linspace(0, 2, 15, dtype=np.float32)[:, None]
    found: Found = {}
    for distance in ("relative", "kth", "mean"):
        found |= _under(f"outliers {distance}", calls.outlier_scores(x, new, distance=distance, alpha=0.2))
    people = np.arange(len(x)) % 6
    return found | _under("outliers of groups", calls.outlier_scores(x, new, people, metric="cosine", alpha=0.2))


def _few_labels() -> Found:
    x, y = made.vectors(), np.arange(60) % 3
    some = np.where(np.arange(60) % 4 == 0, y, -1)
    found: Found = {}
    for name, options in {"auto": {}, "none": {"C": 30.0}}.items():
        fitted = calls.few_label_classifier(x, some, **options)
        found[f"few labels {name}"] = calls.probabilities(fitted, x)
        found[f"few labels {name} chosen"] = calls.transduction(fitted)
    found["honest accuracy"] = calls.accuracy(x, some, None)
    found["honest accuracy of groups"] = calls.accuracy(x, some, np.arange(60) % 5)
    found["next to label"] = calls.next_to_label(x, some)
    found["first to label"] = calls.next_to_label(x, None)
    return found


def _scores() -> Found:
    return _under("evaluate", calls.scores(made.cases(45), made.cases(30, seed=1)))
