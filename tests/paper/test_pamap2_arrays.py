"""PAMAP2 from arrays of the form that Series2Vec's authors share, converted by the line that the library gives."""

import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bench.datasets.large import CONVERT_PAMAP2
from bench.paper.raw.movement import PAMAP2_EVERY as EVERY
from bench.paper.raw.movement import read_pamap2_arrays
from dicot.core.errors import InputError, MissingDataError
from dicot.data.datasets.base import Sizes

SMALL = Sizes(40, 20, 5, 8, 18)


def arrays(seed: int = 0, **more: np.ndarray) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = np.array(list(EVERY))
    return {
        "train_data": rng.normal(size=(40, 5, 8)),
        "train_label": codes[np.arange(40) % 18],
        "test_data": rng.normal(size=(20, 5, 8)),
        "test_label": codes[np.arange(20) % 3],
        **more,
    }


def read(folder: Path, given: dict[str, np.ndarray], name: str = "PAMAP2.npz"):
    np.savez(folder / name, **given)
    return read_pamap2_arrays(folder, SMALL)


def test_a_pickled_file_is_converted_by_the_user_and_then_imported(tmp_path: Path) -> None:
    given = arrays()
    np.save(tmp_path / "PAMAP2.npy", np.array({**given, "max_len": 8}, dtype=object), allow_pickle=True)
    with pytest.raises(MissingDataError, match=r"PAMAP2\.npy, which is pickled.*allow_pickle"):
        read_pamap2_arrays(tmp_path, SMALL)
    subprocess.run([sys.executable, *shlex.split(CONVERT_PAMAP2)[1:]], cwd=tmp_path, check=True)
    parts = read_pamap2_arrays(tmp_path, SMALL)
    assert np.array_equal(parts.train.x, given["train_data"].astype("f4")) and parts.train.x.flags.c_contiguous
    assert parts.train.y.tolist() == [i % 18 for i in range(40)] and parts.test.y.tolist() == [i % 3 for i in range(20)]
    assert set(parts.train.group) == {"subjects 1 to 7"} and set(parts.test.group) == {"subjects 8 and 9"}
    assert parts.labels[:2] == ("lying", "sitting") and parts.labels[7] == "watching TV" and len(parts.labels) == 18


def test_time_before_channels_and_a_validation_part_are_understood(tmp_path: Path) -> None:
    given = arrays()
    turned = {name: x.transpose(0, 2, 1) if x.ndim == 3 else x for name, x in given.items()}
    assert np.array_equal(read(tmp_path, turned).train.x, given["train_data"].astype("f4"))
    cut = {**given, "train_data": given["train_data"][:30], "train_label": given["train_label"][:30]}
    cut |= {"val_data": given["train_data"][30:], "val_label": given["train_label"][30:]}
    parts = read(tmp_path, cut)
    assert np.array_equal(parts.train.x, given["train_data"].astype("f4"))
    assert "Training windows are train_data and val_data." in parts.notes
    parts = read(tmp_path, {**given, "val_data": given["train_data"][:5], "val_label": given["train_label"][:5]})
    assert len(parts.train) == 40, "train_data alone is as long as the paper's"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"train_data": np.zeros((41, 5, 8)), "train_label": np.arange(41) % 18}, "41 training cases instead of 40"),
        ({"train_label": np.arange(40) % 12, "test_label": np.arange(20) % 12}, "12 classes instead of 18"),
        ({"test_data": np.zeros((20, 5, 9))}, "shape"),
        ({"test_label": np.full(20, 1.5)}, "19 classes instead of 18"),
        ({"test_label": np.full(20, "a")}, "19 classes instead of 18"),
        ({"train_data": np.full((40, 5, 8), np.nan)}, "NaN or inf"),
        ({"train_label": np.arange(39)}, "a label each"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, change: dict[str, np.ndarray], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(tmp_path, {**arrays(), **change})
