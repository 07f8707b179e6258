"""Every call into the library. When a name moves or an option is renamed, this is the file to change."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import dicot
from bench.suites import SUITES, SuiteOptions, suite_jobs
from dicot.data import inspect_recordings, suggest_windows
from dicot.data.allowance import Allowance
from dicot.judge.classical import CLASSICAL
from dicot.methods import METHODS, build_method
from dicot.model.controls import CONTROLS
from dicot.model.embedding import POOLINGS
from dicot.model.files import grouped
from dicot.model.presets import PRESETS
from dicot.nets.encoders import ENCODERS, build_encoder
from dicot.store.build import build_corpus
from dicot.store.embedding import embed_recordings

Array = np.ndarray
Facts = dict[str, Any]
FAMILIES = ("large", "ucr", "uea")
QUIET: Facts = {"device": "cpu", "verbose": False}
# The suite "best" runs on the sets that a machine has, and keys change with the weights in the box: frozen are these.
RECORDED: dict[str, Facts] = {
    "best": {
        "sets": ("Adiac", "ArticularyWordRecognition", "harth", "ecg"),
        "contenders": ("best-2026.11", "dicot", "tstcc", "cost", "tnc", "minirocket"),
    },
    "best_ablation": {"contenders": ("best-2026.11", "dicot", "minirocket")},
}
PROTOCOLS = ("linear", "ridge", "few_5", "semi_5", "forest_1pct", "knn_5", "clustering")  # one of each kind
# Settings that lead through code which the defaults do not reach.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "dicot": [
        {"overlap": 0.0},
        {"k": 5, "temperature": 1.0},
        {"positive": "next"},
        {"positive": "shuffled"},
        {"positive": "both"},
        {"projection": True},
        {"rounding": "exact"},
    ],
    "across": [
        {"noise": 0.0, "scale": 0.0, "offset": 0.0},
        {"mask": 0.0, "crop": 0.0, "channel_drop": 0.0},
    ],
    "catt": [{"chunked": False}, {"mask_boundaries": True}],
    "infots": [{"average_weights": False}, {"first_only": True}],
    "soft": [{"average_weights": False}],
    "tfc": [{"consistency": True}, {"absolute_noise": True, "per_sample_maximum": True}],
    "tnc": [{"adf": True}],
    "ts2vec": [{"temporal_unit": 1}],
    "tstcc": [{"per_step": True}, {"absolute_noise": True}],
}


class Steady(torch.optim.AdamW):
    """AdamW that makes no full step of a gradient that is only rounding, as is that of a bias in front of BatchNorm."""

    def __init__(self, params: Any, **settings: Any) -> None:
        super().__init__(params, **settings, eps=1e-3)


def steadily() -> None:
    """Compute so that another processor comes to the same but for rounding; sums of several threads have no order."""
    torch.set_num_threads(1)
    torch.optim.AdamW = Steady  # type: ignore[assignment, misc]


def method_names() -> list[str]:
    return list(METHODS)


def encoder_names() -> list[str]:
    return list(ENCODERS)


def preset_names() -> list[str]:
    return [name for name, preset in PRESETS.items() if not preset.otherwise]  # that leaves few cases to another one


def control_names() -> list[str]:
    return list(CONTROLS)


def classical_names() -> list[str]:
    return list(CLASSICAL)


def pooling_names() -> list[str]:
    return list(POOLINGS)


def suite_names() -> list[str]:
    return list(SUITES)


def cases(x: Array, y: Array | None = None) -> Any:
    return dicot.Windows(x, y, name="waves")


def pretrained(
    method: str, x: Array, y: Array, params: Mapping[str, Any] | None = None, *, encoder: str = "inception_time"
) -> Facts:
    """Pretrain a method for three steps, and return its weights, losses and embeddings."""
    torch.manual_seed(0)
    built = build_method(method, build_encoder(encoder, {"n_channels": x.shape[1], "dim": 16}), params or {})
    recipe = dicot.Recipe(steps=3, batch_size=8, warmup=0.0)
    history = dicot.pretrain(built, cases(x, y), recipe, seed=0, device="cpu")
    trained = built.trained_encoder()
    return {
        "settings": built.settings(),
        "names": sorted(built.state_dict()),
        "weights": _flat(built.state_dict()),
        "losses": np.array(history.loss),
        "embeddings": dicot.embed(trained, x, pooling="mean", device="cpu"),
    }


def paper_params(method: str) -> Facts:
    return {family: METHODS[method].paper_params(family) for family in FAMILIES}


def recipes(preset: str) -> Facts:
    """Return the recipe of a preset for a few sizes of training sets."""
    sizes = ((100, 100), (1000, 500), (5000, 300), (1000, 3000))
    return {
        f"{family} {n} x {length}": PRESETS[preset].recipe(family, n, length).to_dict()
        for family in (None, *FAMILIES)
        for n, length in sizes
    }


def embedder(x: Any, y: Any = None, **options: Any) -> Any:
    """Fit an embedder for a few steps; in place of the encoder in the box there is one with weights of a seed."""
    few: Facts = {"dim": 16, "steps": 2, "batch_size": 8, "random_state": 0, **QUIET}
    preset, initial = PRESETS.get(options.get("preset", "")), None
    if preset is not None and preset.initial:
        few["dim"], initial = preset.encoder[1], seeded_encoder(*preset.encoder)
    return dicot.TimeSeriesEmbedder(**grouped({**few, **options})).fit(x, y, initial=initial)


def seeded_encoder(name: str, dim: int) -> Any:
    torch.manual_seed(0)
    return build_encoder(name, {"n_channels": 2, "dim": dim})


def transform(model: Any, x: Any) -> Array:
    return np.asarray(model.transform(x))


def time_steps(model: Any, x: Any) -> Array:
    return np.asarray(model.transform_time_steps(x))


def embedder_weights(model: Any) -> Array:
    return _flat(model.encoder_.state_dict())


def kept(model: Any, folder: Path) -> Any:
    """Return a model after it was saved and loaded again."""
    model.save_pretrained(folder)
    return dicot.TimeSeriesEmbedder.from_pretrained(folder, device="cpu")


def classical(name: str, x: Array) -> Array:
    return np.asarray(CLASSICAL[name]().fit(x).transform(x))


def classifier_probabilities(x: Array, y: Array, tuning: str) -> Array:
    """Fine-tune a pretrained model with labels; "gradual" is the default way."""
    model = embedder(x, method="dicot")
    few: Facts = {"steps": 4, "recipe": {"batch_size": 8}, "random_state": 0, **QUIET}
    return np.asarray(dicot.TimeSeriesClassifier(model, tuning=tuning, **few).fit(x, y).predict_proba(x))


def windows_of_recordings(source: Path, window: str | int, stride: str | int = "50%", **options: Any) -> Facts:
    return facts_of_windows(dicot.Windows.from_folder(source, window, stride, **options))


def windows_of_file(path: Path, **options: Any) -> Facts:
    """Return the cases of a file, those of the training part first."""
    split = dicot.load(path, **options)
    parts = {"train": split.train, "test": split.test}
    return {
        f"{part} {what}": value
        for part, windows in parts.items()
        if windows is not None
        for what, value in facts_of_windows(windows).items()
    }


def windows_of_table(table: Mapping[str, Any], **options: Any) -> Facts:
    return facts_of_windows(dicot.Windows.from_table(dict(table), **options))


def windows_of_arrays(recordings: Sequence[Array], length: int, stride: int, **options: Any) -> Facts:
    return facts_of_windows(dicot.Windows.from_array(list(recordings), window=length, stride=stride, **options))


def windows_of_cases(x: Any, **options: Any) -> Facts:
    return facts_of_windows(dicot.Windows.from_array(x, **options))


def facts_of_windows(windows: Any) -> Facts:
    """Return the values, and all else that is known of them, as one list."""
    names = {"labels": "y", "groups": "group", "recordings": "recording", "starts": "start", "ends": "end"}
    found = {what: getattr(windows, name) for what, name in names.items()}
    known = {what: {"dtype": v.dtype.kind, "values": v.tolist()} for what, v in found.items() if v is not None}
    return {"values": windows.x, "facts": {**known, "channels": windows.channels, "rate": windows.rate}}


def suggested(source: Path) -> Facts:
    """Return what an inspection of recordings suggests."""
    found = suggest_windows(inspect_recordings(source))
    names = ("window", "stride", "scale", "rate", "missing")
    return {what: getattr(found.reading, what) if what in found.reasons else None for what in names}


def job_keys(suite: str, **options: Any) -> tuple[list[str], list[str]]:
    """Return the keys of all jobs of a suite, and those of the fits that they share."""
    jobs = suite_jobs([suite], SuiteOptions(**options))
    return [job.key for job in jobs], [job.unit_key for job in jobs]


def exported_outputs(model: Any, path: Path, x: Array, classifier: Any = None) -> dict[str, Array]:
    """Export a model, and return what onnxruntime computes of these cases."""
    dicot.export_onnx(model, path, classifier=classifier)
    made = dicot.OnnxEmbedder(path, threads=1)
    outputs = {"embeddings": made.transform(x)}
    return outputs | ({"probabilities": made.predict_proba(x)} if classifier is not None else {})


def neighbours(x: Array, queries: Array, k: int, metric: str, **options: Any) -> dict[str, Array]:
    distances, rows = _index(x, metric).query(queries, k, **options)
    return {"distances": distances, "rows": rows}


def neighbours_of_place(x: Array, time: float, k: int) -> dict[str, Array]:
    distances, rows = _index(x, "euclidean").like("b", time, k)
    return {"distances": distances, "rows": rows}


def neighbours_after_saving(x: Array, more: Array, queries: Array, folder: Path) -> dict[str, Array]:
    """Return neighbours in an index that was saved, loaded and appended to."""
    dicot.EmbeddingIndex(x).save(folder)
    index = dicot.EmbeddingIndex.load(folder)
    index.append(more)
    distances, rows = index.query(queries, 5)
    return {"distances": distances, "rows": rows}


def write_vectors(model: Any, source: Path, out: Path, **options: Any) -> None:
    # One of the made recordings is shorter than a window.
    embed_recordings(model.transform, "model", out, source, options, allowance=Allowance(partial=True))


def corpus(source: Path, out: Path, **options: Any) -> Any:
    build_corpus(source, out, allowance=Allowance(partial=True), **options)
    return dicot.Corpus.open(out)


def facts_of_corpus(found: Any) -> Facts:
    about = {name: values.tolist() for name, values in found.columns().items()}
    counts = {
        "shards": [shard.rows for shard in found.shards],
        "sources": [(source.name, source.windows) for source in found.sources],
    }
    known = {**about, **counts, "channels": found.channels, "rate": found.rate, "dtype": str(found.dtype)}
    return {"values": found[:], "facts": known, "fingerprint": found.fingerprint()}


def exported_labels(folder: Path, keys: Sequence[Any], labels: Sequence[Any]) -> tuple[str, list[Any]]:
    """Label, relabel, remove and undo; return the exported table and the names of the labels."""
    with dicot.LabelStore(folder / "labels.sqlite") as store:
        store.set(keys, labels, by="ann")
        store.set(keys[:2], "other", by="bob")
        store.remove(keys[3:4], by="bob")
        store.set(keys[4:5], "wrong", by="bob")
        store.undo(by="bob")
        store.export(folder / "labels.csv")
        return (folder / "labels.csv").read_text(), store.names()


def outlier_scores(x: Array, new: Array, groups: Any = None, **options: Any) -> dict[str, Array]:
    detector = dicot.EmbeddingOutlierDetector(**options).fit(x, groups=groups)
    return {"scores": detector.score_samples(new), "p-values": detector.p_values(new), "flags": detector.predict(new)}


def few_label_classifier(x: Array, y: Array, **options: Any) -> Any:
    return dicot.FewLabelClassifier(**options).fit(x, y)


def probabilities(classifier: Any, x: Array) -> Array:
    return np.asarray(classifier.predict_proba(x))


def transduction(classifier: Any) -> Array:
    return np.asarray(classifier.transduction_)


def accuracy(x: Array, y: Array, groups: Array | None) -> Array:
    found = dicot.honest_accuracy(x, y, groups, repeats=2)
    return np.array([found.accuracy, found.low, found.high, found.macro_f1, found.n_scored, found.n_groups])


def next_to_label(x: Array, y: Array | None) -> Array:
    return np.asarray(dicot.suggest(x, y, 6))


def scores(train: tuple[Array, Array], test: tuple[Array, Array]) -> Facts:
    """Return by protocol the scores of a method and its controls: all contenders, draws and numbers."""
    model = dicot.TimeSeriesEmbedder("dicot", dim=8, steps=2, recipe={"batch_size": 8}, **QUIET)
    results = dicot.evaluate((cases(*train), cases(*test)), {"few steps": model}, PROTOCOLS, **QUIET).results
    found: Facts = {"names": [f"{one.contender} {one.protocol} {one.draw} {one.error}" for one in results]}
    for name in dict.fromkeys(one.protocol for one in results):
        own = [one.values for one in results if one.protocol == name]
        found[name] = np.array([value for values in own for _, value in sorted(values.items())])
    return found


def _index(x: Array, metric: str) -> Any:
    n = len(x)
    places: Facts = {"recording": np.repeat(["a", "b"], [n // 2, n - n // 2]), "start": np.arange(n) * 1.0}
    return dicot.EmbeddingIndex(x, metric=metric, **places, end=np.arange(n) + 2.0, group=np.arange(n) % 4)


def _flat(weights: Mapping[str, torch.Tensor]) -> Array:
    """Return all weights as one array, by their names."""
    parts = [weights[name].detach().double().numpy().ravel() for name in sorted(weights)]
    return np.concatenate(parts)
