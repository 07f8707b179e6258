"""The windows that lie farthest out, with the numbers that the library gives."""

import csv
from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot

from dicot import EmbeddingOutlierDetector
from dicot.core.errors import CalibrationWarning, InputError
from dicot.store.vectors import MadeOf, write_vectors
from dicot.use.outliers import compare_with_rest


def write(path: Path, n: int = 120, odd: tuple[int, ...] = (), recordings: int = 4, seed: int = 0) -> np.ndarray:
    """Vectors of windows of two seconds, dealt to recordings in turn; odd rows lie far out."""
    x = np.random.default_rng(seed).normal(size=(n, 6)).astype(np.float32)
    x[list(odd)] += 8
    start = np.arange(n) // recordings * 1.0
    names = np.array([f"day {i % recordings}" for i in range(n)])
    np.savez(path, X=x, recording=names, start=start, end=start + 2)
    return x


def rows(said: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]


def table(path: Path) -> dict[str, list[str]]:
    with path.open(newline="") as file:
        read = list(csv.DictReader(file))
    return {name: [row[name] for row in read] for name in read[0]}


def test_distances_and_p_values_are_those_of_the_detector(tmp_path: Path) -> None:
    normal, judged, out = tmp_path / "normal.npz", tmp_path / "judged.npz", tmp_path / "out.csv"
    z, x = write(normal, seed=1), write(judged, 40, odd=(7, 30))
    said = dicot("outliers", judged, "--reference", normal, "-k", 5, "--alarm", 0.1, "--top", 3, "--out", out)
    groups = np.load(normal)["recording"]
    detector = EmbeddingOutlierDetector(n_neighbors=5, alpha=0.1).fit(z, groups=groups)
    p, distance = detector.p_values(x), -detector.score_samples(x)
    got = table(out)
    assert list(got) == ["recording", "start", "end", "distance", "p", "alarm"]
    np.testing.assert_array_equal(np.array(got["distance"], float), distance)
    np.testing.assert_array_equal(np.array(got["p"], float), p)
    assert [cell == "True" for cell in got["alarm"]] == (detector.predict(x) == -1).tolist()
    listed = rows(said)
    assert [int(row[0]) for row in listed] == np.argsort(-distance)[:3].tolist()
    assert {int(row[0]) for row in listed[:2]} == {7, 30}
    best = int(listed[0][0])
    place = [f"day {best % 4}", f"{best // 4}", f"{best // 4 + 2}"]
    assert listed[0][1:] == [*place, f"{distance[best]:.4f}", f"{p[best]:.4f}"]
    assert f"{(p <= 0.1).sum()} of 40 windows" in said and "whole recordings" in said


def test_without_a_reference_each_part_is_compared_with_the_others(tmp_path: Path) -> None:
    x = write(tmp_path / "v.npz", odd=(5,))
    said = dicot("outliers", tmp_path / "v.npz", "--top", 1, "--out", tmp_path / "out.csv")
    assert "Normal: 120 of 120 windows" in said and "whole recordings" in said
    assert rows(said)[0][0] == "5"
    distance, p = compare_with_rest(EmbeddingOutlierDetector(), x, np.arange(120) % 4)
    got = table(tmp_path / "out.csv")
    np.testing.assert_array_equal(np.array(got["distance"], float), distance)
    np.testing.assert_array_equal(np.array(got["p"], float), p)
    assert distance.min() > 0, "no window is its own neighbour"


def test_two_recordings_are_too_few_to_keep_together(tmp_path: Path) -> None:
    write(tmp_path / "v.npz", recordings=2)
    said = dicot("outliers", tmp_path / "v.npz")
    assert "one by one" in said and "v.npz has fewer than 3 recordings" in said


def test_without_a_reference_alarms_keep_their_share_and_too_few_windows_are_said_once() -> None:
    x = np.random.default_rng(3).normal(size=(1000, 4))
    assert 0.06 < (compare_with_rest(EmbeddingOutlierDetector(), x)[1] <= 0.1).mean() < 0.14
    with pytest.warns(CalibrationWarning, match="nothing will be flagged") as said:
        compare_with_rest(EmbeddingOutlierDetector(alpha=0.01), x[:30])
    assert len(said) == 1


def test_a_parquet_has_every_column(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    x = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    np.savez(tmp_path / "v.npz", X=x, group=np.arange(60) % 6, y=np.array(["walk", ""] * 30))
    dicot("outliers", tmp_path / "v.npz", "--out", tmp_path / "out.parquet")
    read = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert read["group"] == (np.arange(60) % 6).tolist()
    assert read["label"] == ["walk", None] * 30
    assert all(0 < p <= 1 for p in read["p"])


def test_errors_name_the_file_and_nothing_is_written(tmp_path: Path) -> None:
    x = write(tmp_path / "v.npz")
    np.savez(tmp_path / "narrow.npz", X=x[:, :3])
    np.savez(tmp_path / "few.npz", X=x[:6])
    for name in ("one", "other"):
        write_vectors(tmp_path / f"{name}.npz", {"": {"X": x}}, MadeOf("name", ("a",), {}, name * 8))
    x[3, 1] = np.nan
    np.savez(tmp_path / "nan.npz", X=x)
    out = tmp_path / "out.csv"
    for words, message in (
        (["v.npz", "--reference", "narrow.npz"], r"narrow\.npz and .*v\.npz were made by different models"),
        (["one.npz", "--reference", "other.npz"], r"other\.npz and .*one\.npz were made by different models"),
        (["nan.npz"], r"nan\.npz: the vector of row 3 holds NaN"),
        (["v.npz", "--reference", "few.npz"], r"few\.npz: The reference part has 4"),
        (["v.npz", "--alarm", "2"], "between 0 and 1, such as 0.05; got 2"),
        (["gone.npz"], r"There is no file .*gone\.npz"),
    ):
        named = [str(tmp_path / word) if word.endswith(".npz") else word for word in words]
        with pytest.raises(InputError, match=message):
            dicot("outliers", *named, "--out", out)
    with pytest.raises(InputError, match=r"'\.txt'; write \.csv or \.parquet"):
        dicot("outliers", tmp_path / "v.npz", "--out", tmp_path / "out.txt")
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".npz"] * 6
