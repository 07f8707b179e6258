"""Damaged files: each gives an error of ours that names it, or the right result. Nothing else may happen.

A kind is a file or folder that a user may be handed broken: cut short, or with some bytes changed.
"""

import gzip
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat, wavfile

from bench.ledger import Ledger
from dicot import (
    Corpus,
    EmbeddingIndex,
    LabelStore,
    OnnxEmbedder,
    TimeSeriesEmbedder,
    Windows,
    load,
)
from dicot.core.errors import DicotError
from dicot.judge.evaluation import Contender
from dicot.judge.evaluation.jobs import Job, JobData
from dicot.model.head import Head
from dicot.store.vectors import read_vectors, write_vectors
from tests.commands import dicot
from tests.signal_files import write_edf, write_wfdb

FLIPS = 6  # damages by changed bytes, beside five by cutting
X = np.random.default_rng(0).normal(size=(12, 2, 24)).astype(np.float32)


@dataclass(frozen=True)
class Kind:
    """What is made in an empty folder, which of its files are damaged, and how it is read again.

    sealed: whatever is read from a damaged one must be what the sound one holds.
    """

    make: Callable[[Path], Any]
    damaged: tuple[str, ...]
    read: Callable[[Path], Any]
    sealed: bool = False


def read_folder(path: Path) -> Any:
    windows = Windows.from_folder(path, window=8)
    return windows.x, windows.y


def read_cases(path: Path) -> Any:
    return load(str(path)).train.x


def table(folder: Path) -> str:
    rows = [
        f"{i / 20:.2f},{x:.4f},{y:.4f},{'walk' if i < 30 else 'rest'}"
        for i, (x, y) in enumerate(X.reshape(2, -1).T[:60])
    ]
    return "time,x,y,what\n" + "\n".join(rows) + "\n"


def make_parquet(folder: Path) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pd.DataFrame({"time": np.arange(60) / 20, "x": X.ravel()[:60]}).to_parquet(folder / "r.parquet")


def fitted() -> TimeSeriesEmbedder:
    settings = {"preset": "paper", "encoder": "fcn", "dim": 8, "steps": 1, "device": "cpu", "verbose": False}
    return TimeSeriesEmbedder(**settings, random_state=0).fit(X)


def make_model(folder: Path) -> None:
    fitted().save_pretrained(folder / "model")


def make_onnx(folder: Path) -> None:
    pytest.importorskip("onnx")
    make_model(folder)
    dicot("export", folder / "model", "--onnx", folder / "m.onnx")
    shutil.rmtree(folder / "model")


def make_vectors(suffix: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        pytest.importorskip("pyarrow")
        make_model(folder)
        np.savez(folder / "cases.npz", X=X, y=np.arange(12) % 2)
        dicot("embed", folder / "model", folder / "cases.npz", "--out", folder / f"v.{suffix}")

    return make


def read_vector_file(path: Path) -> Any:
    held = read_vectors(path)
    return held.x, held.label


def make_corpus(folder: Path) -> None:
    (folder / "in").mkdir()
    (folder / "in" / "r.csv").write_text(table(folder))
    dicot("corpus", "build", folder / "in", "--out", folder / "corpus", "--window", "8", "--label", "what")


def read_corpus(path: Path) -> Any:
    corpus = Corpus.open(path, verify=True)
    return corpus[np.arange(len(corpus))]


def make_index(folder: Path) -> None:
    EmbeddingIndex(X[:, 0], group=np.arange(12) % 3).save(folder / "index")


def read_index(path: Path) -> Any:
    return EmbeddingIndex.load(path).query(X[:2, 0], k=3)


def make_ledger(folder: Path) -> None:
    data = JobData("Beef")
    jobs = [Job("test", Contender("random", "random", {}, {}), data, data, "linear", seed) for seed in range(3)]
    with Ledger(folder / "bench.sqlite") as ledger:
        ledger.enrol(jobs)
        ledger.record([job.result({"accuracy": 0.5}, None, source_data="a", target_data="b") for job in jobs])


def read_ledger(path: Path) -> Any:
    with Ledger(path) as ledger:
        return [(one.seed, one.values["accuracy"]) for one in ledger.results()]


def make_labels(folder: Path) -> None:
    with LabelStore(folder / "labels.sqlite") as store:
        store.set(["a", "b"], ["walk", "rest"])


def read_labels(path: Path) -> Any:
    with LabelStore(path) as store:
        return store.current()


def make_head(folder: Path) -> None:
    write_vectors(folder / "v.npz", {"": {"X": X[:, 0], "y": np.arange(12) % 2}})
    dicot("classify", folder / "v.npz", "--save", folder / "head.safetensors")


def read_head(path: Path) -> Any:
    return Head.load(path).predict_proba(X[:, 0])


def make_settings(folder: Path) -> None:
    (folder / "in").mkdir()
    (folder / "in" / "r.csv").write_text(table(folder))
    (folder / "in" / "dicot.toml").write_text('window = 8\nstride = "50%"\nlabel = "what"\n')


def read_settings(path: Path) -> Any:
    return dicot("inspect", path)


def text_of(name: str, text: str) -> Callable[[Path], Any]:
    return lambda folder: (folder / name).write_text(text)


CASES = "\n".join(",".join(f"{v:.3f}" for v in case[0]) + f":{i % 2}" for i, case in enumerate(X))
TSV = "\n".join("\t".join([str(i % 2), *(f"{v:.3f}" for v in case[0])]) for i, case in enumerate(X)) + "\n"
ARFF = (
    "".join(f"@attribute a{i} numeric\n" for i in range(24))
    + "@attribute class {0,1}\n@data\n"
    + CASES.replace(":", ",")
)
EDF = {"EEG": (np.arange(60) % 50, 20, (-250.0, 250.0, -2048, 2047))}

KINDS = {
    "csv": Kind(lambda f: text_of("r.csv", table(f))(f), ("r.csv",), lambda f: read_folder(f / "r.csv")),
    "csv.gz": Kind(
        lambda f: (f / "r.csv.gz").write_bytes(gzip.compress(table(f).encode())),
        ("r.csv.gz",),
        lambda f: read_folder(f / "r.csv.gz"),
    ),
    "npz": Kind(lambda f: np.savez(f / "r.npz", X=X[:, 0], rate=20.0), ("r.npz",), lambda f: read_folder(f / "r.npz")),
    "parquet": Kind(make_parquet, ("r.parquet",), lambda f: read_folder(f / "r.parquet")),
    "mat": Kind(
        lambda f: savemat(f / "r.mat", {"x": X.ravel(), "y": -X.ravel()}),
        ("r.mat",),
        lambda f: read_folder(f / "r.mat"),
    ),
    "wav": Kind(
        lambda f: wavfile.write(f / "r.wav", 20, X.reshape(-1, 2)), ("r.wav",), lambda f: read_folder(f / "r.wav")
    ),
    "edf": Kind(lambda f: write_edf(f / "r.edf", EDF), ("r.edf",), lambda f: read_folder(f / "r.edf")),
    "wfdb": Kind(
        lambda f: write_wfdb(f / "r", np.arange(120).reshape(60, 2)),
        ("r.hea", "r.dat"),
        lambda f: read_folder(f / "r.hea"),
    ),
    "npy cases": Kind(lambda f: np.save(f / "c.npy", X), ("c.npy",), lambda f: read_cases(f / "c.npy")),
    "npz cases": Kind(lambda f: np.savez(f / "c.npz", X=X), ("c.npz",), lambda f: read_cases(f / "c.npz")),
    "ts": Kind(
        text_of("c.ts", f"@univariate true\n@classLabel true 0 1\n@data\n{CASES}\n"),
        ("c.ts",),
        lambda f: read_cases(f / "c.ts"),
    ),
    "tsv": Kind(text_of("c.tsv", TSV), ("c.tsv",), lambda f: read_cases(f / "c.tsv")),
    "arff": Kind(text_of("c.arff", ARFF), ("c.arff",), lambda f: read_cases(f / "c.arff")),
    "dicot.toml": Kind(make_settings, ("in/dicot.toml",), lambda f: read_settings(f / "in")),
    "model": Kind(
        make_model,
        ("model/config.json", "model/model.safetensors"),
        lambda f: TimeSeriesEmbedder.from_pretrained(f / "model", device="cpu").transform(X),
        sealed=True,
    ),
    "onnx": Kind(make_onnx, ("m.onnx",), lambda f: OnnxEmbedder(f / "m.onnx", threads=1).transform(X), sealed=True),
    "head": Kind(make_head, ("head.safetensors",), lambda f: read_head(f / "head.safetensors"), sealed=True),
    "vectors.parquet": Kind(make_vectors("parquet"), ("v.parquet",), lambda f: read_vector_file(f / "v.parquet")),
    "vectors.npz": Kind(make_vectors("npz"), ("v.npz",), lambda f: read_vector_file(f / "v.npz")),
    "corpus": Kind(make_corpus, ("corpus/*",), lambda f: read_corpus(f / "corpus"), sealed=True),
    "index": Kind(make_index, ("index/*",), lambda f: read_index(f / "index"), sealed=True),
    "ledger": Kind(make_ledger, ("bench.sqlite",), lambda f: read_ledger(f / "bench.sqlite")),
    "labels": Kind(make_labels, ("labels.sqlite",), lambda f: read_labels(f / "labels.sqlite")),
}


def same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else bool(one == other)


def damages(data: bytes) -> list[bytes]:
    """Cut at five places, and with a few bytes changed at several."""
    dice = np.random.default_rng(0)
    cut = [data[: int(len(data) * share)] for share in (0, 0.01, 0.3, 0.7)] + [data[:-1]]
    for _ in range(FLIPS):
        changed, at = bytearray(data), int(dice.integers(len(data)))
        changed[at : at + 4] = dice.integers(256, size=len(changed[at : at + 4])).astype(np.uint8).tobytes()
        cut.append(bytes(changed))
    return [broken for broken in cut if broken != data]


@pytest.mark.filterwarnings("ignore")  # a damaged recording may be short, or have a gap
@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_file_gives_an_error_of_ours_or_the_right_result(name: str, tmp_path: Path) -> None:
    kind, sound, broken = KINDS[name], tmp_path / "sound", tmp_path / "broken"
    sound.mkdir()
    kind.make(sound)
    wanted, refused = kind.read(sound), 0
    files = [
        path
        for pattern in kind.damaged
        for path in sorted(sound.glob(pattern))
        for path in ([path] if path.is_file() else sorted(path.rglob("*")))
    ]
    assert files
    for file in files:
        for data in damages(file.read_bytes()):
            shutil.rmtree(broken, ignore_errors=True)
            shutil.copytree(sound, broken)
            (broken / file.relative_to(sound)).write_bytes(data)
            try:
                found = kind.read(broken)
            except DicotError as error:
                refused, said = refused + 1, str(error)
            else:
                said, found_right = file.name, not kind.sealed or same(found, wanted)
                assert found_right, f"{file.name} was read wrong"
            assert str(broken) in said or file.name in said, said
    assert refused, "no damage was noticed"
