"""Small made data, and files of recordings and cases; nothing here knows the library."""

import gzip
import wave
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.io import savemat

from tests.signal_files import write_edf, write_wfdb

RATE = 50
Columns = dict[str, np.ndarray]


def cases(n: int = 24, channels: int = 2, length: int = 64, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy waves (n, channels, length) of three frequencies, and which each has."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    phase = rng.uniform(0, 6, size=(n, channels, 1))
    waves = np.sin(2 * np.pi * (2 + 3 * y[:, None, None]) * np.linspace(0, 1, length) + phase)
    return (waves + 0.1 * rng.normal(size=waves.shape)).astype(np.float32), y


def unequal_cases() -> list[np.ndarray]:
    """Return cases of four lengths."""
    x, _ = cases(12)
    return [one[:, : 64 - 8 * (number % 4)] for number, one in enumerate(x)]


def holed_cases() -> np.ndarray:
    """Return cases with a few values missing: single ones, a run, and an end."""
    x, _ = cases(12)
    x[1, 0, 5] = x[2, 1, 10:17] = x[3, 0, 60:] = np.nan
    return x


def vectors(n: int = 60, width: int = 12) -> np.ndarray:
    """Return vectors of three clouds, with some that are there twice and one of zeros."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(n, width)) + 3 * rng.normal(size=(3, width))[np.arange(n) % 3]
    x[10], x[30], x[45], x[50] = x[4], x[4], x[7], 0
    rounded: np.ndarray = x.astype(np.float32)
    return rounded


def columns(n: int = 300, seed: int = 0) -> Columns:
    """Return a recording as columns: time stamps, two channels, labels and the person."""
    rng = np.random.default_rng(seed)
    t = np.arange(n) / RATE
    return {
        "t": t,
        "x": np.round(np.sin(7 * t) + 0.1 * rng.normal(size=n), 5),
        "y": np.round(np.cos(3 * t) + 0.1 * rng.normal(size=n), 5),
        "activity": np.repeat(["rest", "walk", "run"], [n // 3, n // 3, n - 2 * (n // 3)]),
        "person": np.repeat(["ann", "bob"], [n // 2, n - n // 2]),
    }


def write_csv(path: Path, table: Columns) -> Path:
    """Write columns as a table; NaN is an empty cell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    lines = [",".join(table), *(",".join("" if cell != cell else str(cell) for cell in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def without(table: Columns, *names: str) -> Columns:
    return {name: column for name, column in table.items() if name not in names}


def write_stamped(folder: Path) -> Path:
    """Write time stamps as dates."""
    start = datetime(2024, 3, 1, 12, tzinfo=UTC)
    table = columns()
    stamps = [(start + timedelta(seconds=t)).isoformat() for t in table["t"].tolist()]
    return write_csv(folder / "stamped.csv", {"time": np.array(stamps), **without(table, "t")})


def write_gap(folder: Path) -> Path:
    """Write a recording with two gaps, of ten seconds and of a fifth of one."""
    table = without(columns(), "person")
    table["t"] = np.round(table["t"] + 10 * (np.arange(300) >= 110) + 0.2 * (np.arange(300) >= 230), 3)
    return write_csv(folder / "gap.csv", table)


def write_uneven(folder: Path) -> Path:
    """Write time stamps in milliseconds that are not even, some values missing."""
    table = without(columns(), "person", "activity")
    steps = np.random.default_rng(5).integers(12, 29, size=300)
    table["x"][[20, 21, 22, 150]] = np.nan
    return write_csv(folder / "uneven.csv", {"clock": np.cumsum(steps), **without(table, "t")})


def write_holes(folder: Path) -> Path:
    table = without(columns(), "person")
    table["x"][[20, 21, 22, 150]] = np.nan
    table["y"][0] = np.nan
    return write_csv(folder / "holes.csv", table)


def write_gz(folder: Path) -> Path:
    path = folder / "packed.csv.gz"
    plain = write_csv(folder / "unpacked.txt", columns())
    path.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    return path


def write_ids(folder: Path) -> Path:
    """Write persons called 007 and 010, and labels 01 and 02, which are text and no numbers."""
    table = columns()
    table["person"] = np.repeat(["007", "010"], 150)
    table["activity"] = np.tile(np.repeat(["01", "02"], 75), 2)
    return write_csv(folder / "ids.csv", table)


def write_npz(folder: Path) -> Path:
    arrays: dict[str, Any] = dict(columns())
    np.savez(folder / "arrays.npz", **arrays)
    return folder / "arrays.npz"


def write_mat(folder: Path) -> Path:
    table = columns()
    savemat(folder / "matlab.mat", {**without(table, "activity", "person"), "activity": np.repeat([1.0, 2.0], 150)})
    return folder / "matlab.mat"


def write_wav(folder: Path) -> Path:
    table = columns(600)
    with wave.open(str(folder / "sound.wav"), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(100)
        file.writeframes((np.stack([table["x"], table["y"]], axis=1) * 8000).astype("<i2").tobytes())
    return folder / "sound.wav"


def write_parquet(folder: Path) -> Path:
    pq.write_table(pa.table({name: pa.array(column) for name, column in columns().items()}), folder / "table.parquet")
    return folder / "table.parquet"


def write_night(folder: Path) -> Path:
    rng = np.random.default_rng(6)
    tracks = {
        name: (rng.integers(-2000, 2000, size=300), 50, (-200.0, 200.0, -2048, 2047)) for name in ("EEG Fpz-Cz", "EOG")
    }
    return write_edf(folder / "night.edf", tracks)


def write_heart(folder: Path, name: str = "100", gain: str = "200(10)/mV") -> Path:
    """Write a WFDB record; a gain of 0 means that the usual one is to be taken."""
    write_wfdb(folder / name, np.random.default_rng(7).integers(-2000, 2000, size=(600, 2)), gain=gain)
    return folder / f"{name}.hea"


def write_tree(folder: Path) -> Path:
    """Write a folder of two levels, with one recording that is too short."""
    for number, (name, n) in enumerate(
        {"ann/day": 200, "ann/late/night": 230, "bob/day": 180, "bob/brief": 20}.items()
    ):
        write_csv(folder / "tree" / f"{name}.csv", without(columns(n, number), "person"))
    return folder / "tree"


def write_long(folder: Path) -> Path:
    """Write cases one below the other, one of them shorter, rows not in order."""
    x, y = cases(6, 2, 10)
    rows = [
        (f"{100 + i}", t, *x[i, :, t].tolist(), f"c{y[i]}", f"00{i % 2}") for i in range(6) for t in range(10 - i // 5)
    ]
    order = np.random.default_rng(8).permutation(len(rows))
    names = ("case", "t", "x", "y", "kind", "person")
    return write_csv(folder / "long.csv", {n: np.array([rows[i][at] for i in order]) for at, n in enumerate(names)})


def write_wide(folder: Path) -> Path:
    """Write a case per row, its label last."""
    x, y = cases(6, 1, 10)
    table = {f"t{t}": x[:, 0, t] for t in range(10)}
    return write_csv(folder / "wide.csv", {**table, "kind": np.array([f"c{one}" for one in y])})


def write_npy(folder: Path) -> Path:
    np.save(folder / "cases.npy", cases(6, 2, 10)[0].transpose(0, 2, 1))
    return folder / "cases.npy"


def write_split(folder: Path) -> Path:
    (x, y), (v, w) = cases(6, 2, 10), cases(4, 2, 10, seed=1)
    np.savez(folder / "split.npz", X_train=x, y_train=y, X_test=v, y_test=w)
    return folder / "split.npz"


def write_ts(folder: Path) -> Path:
    """Write training and test cases of unequal length in two channels."""
    head = "@problemName Toy\n@timeStamps false\n@missing false\n@univariate false\n@dimensions 2\n@equalLength false\n"
    for part, seed in (("TRAIN", 0), ("TEST", 1)):
        x, y = cases(6, 2, 10, seed)
        lines = [
            ":".join(",".join(f"{v:.5f}" for v in track[: 10 - i % 3]) for track in one) + f":c{y[i]}"
            for i, one in enumerate(x)
        ]
        (folder / f"Toy_{part}.ts").write_text(head + "@classLabel true c0 c1 c2\n@data\n" + "\n".join(lines) + "\n")
    return folder / "Toy_TRAIN.ts"


def write_tsv(folder: Path) -> Path:
    x, y = cases(6, 1, 10)
    lines = ["\t".join([str(y[i]), *(f"{v:.5f}" for v in x[i, 0])]) for i in range(6)]
    (folder / "Flat_TRAIN.tsv").write_text("\n".join(lines) + "\n")
    return folder / "Flat_TRAIN.tsv"


def write_arff(folder: Path) -> Path:
    x, y = cases(6, 1, 10)
    head = [
        "@relation Toy",
        *(f"@attribute att{t} numeric" for t in range(10)),
        "@attribute target {c0,c1,c2}",
        "@data",
    ]
    lines = [",".join([*(f"{v:.5f}" for v in x[i, 0]), f"c{y[i]}"]) for i in range(6)]
    (folder / "Old_TRAIN.arff").write_text("\n".join([*head, *lines]) + "\n")
    return folder / "Old_TRAIN.arff"
