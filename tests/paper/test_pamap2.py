"""PAMAP2 from files of its publisher's form, beside a second way of doing it in pandas and plain loops."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench.paper.raw.movement import PAMAP2_ACTIVITIES as ACTIVITIES
from bench.paper.raw.movement import read_pamap2

NAN = np.nan


def write(folder: Path, subject: int, activities: list[float], seed: int = 0) -> Path:
    """54 columns between single spaces; heart rate is there in every tenth row only, as in the real files."""
    rng = np.random.default_rng(100 * subject + seed)
    table = rng.normal(10, 3, size=(len(activities), 54))
    table[:, 0] = 5.64 + 0.01 * np.arange(len(table))
    table[:, 1] = activities
    table[np.arange(len(table)) % 10 != 4, 2] = NAN
    table[rng.random(table.shape) < 0.02] = NAN
    table[:, 1] = activities
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / f"subject10{subject}.dat"
    lines = [" ".join("NaN" if np.isnan(v) else f"{v:.6g}" for v in row) for row in table]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    folder = tmp_path / "PAMAP2_Dataset"
    write(folder / "Protocol", 1, [0] * 7 + [1] * 130 + [0] * 5 + [24] * 60)
    write(folder / "Protocol", 2, [12] * 175)
    write(folder / "Protocol", 8, [3] * 110 + [0] * 3 + [4] * 90)
    write(folder / "Protocol", 9, [24] * 45)
    write(folder / "Optional", 1, [20] * 40 + [0] * 2, seed=1)
    return folder


def by_hand(raw: Path, fit_on: str) -> dict[str, list[np.ndarray]]:
    """Windows and labels of both parts, by pandas and a loop."""
    tables = []
    for path in sorted(raw.rglob("*.dat")):
        table = pd.read_csv(path, sep=" ", header=None)
        tables.append(table.assign(who=int(path.stem[-1])))
    joined = pd.concat(tables, ignore_index=True)
    joined = joined[joined[1] != 0].interpolate()
    joined = joined.fillna(joined.mean())
    joined = joined[joined[1].isin(list(ACTIVITIES))]
    x, code, who = joined.iloc[:, 2:54].to_numpy(), joined[1].to_numpy(), joined["who"].to_numpy()
    in_test = who >= 8
    seen = x[in_test] if fit_on == "test" else x[~in_test]
    x = (x - seen.min(0)) / (seen.max(0) - seen.min(0))
    out: dict[str, list[np.ndarray]] = {"x": [], "y": [], "group": []}
    for part in (~in_test, in_test):
        starts = range(0, part.sum() - 99, 50)
        labels = np.searchsorted(list(ACTIVITIES), code[part])
        out["x"].append(np.stack([x[part][s : s + 100].T for s in starts]))
        out["y"].append(np.array([np.bincount(labels[s : s + 100]).argmax() for s in starts]))
        out["group"].append(np.array([np.bincount(who[part][s : s + 100]).argmax() for s in starts]))
    return out


@pytest.mark.parametrize("scaling", ["test", "train"])
def test_as_pandas_and_a_loop(raw: Path, scaling: str) -> None:
    prepared = read_pamap2(raw, scaling=scaling)
    wanted = by_hand(raw, scaling)
    for number, part in enumerate((prepared.train, prepared.test)):
        np.testing.assert_allclose(part.x, wanted["x"][number], atol=2e-5)
        assert part.y is not None and part.group is not None
        assert part.y.tolist() == wanted["y"][number].tolist()
        assert part.group.tolist() == wanted["group"][number].tolist()
    assert prepared.train.x.shape == (6, 52, 100) and prepared.test.x.shape == (3, 52, 100)
    fitted = (prepared.test if scaling == "test" else prepared.train).x
    assert fitted.min() == 0 and fitted.max() == 1
    assert not set(prepared.train.group) & set(prepared.test.group)  # type: ignore[arg-type]
    assert len(prepared.labels) == 12
