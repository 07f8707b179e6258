"""Where batches come from must not change what is learned."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.methods import METHODS, build_method
from dicot.nets.encoders import FCN
from dicot.train import Checkpoint, Recipe, pretrain


class Items(Dataset):
    """Cases as tensors, with labels where there are any."""

    def __init__(self, x, y=None) -> None:
        self.x, self.y = x, y
        self.reads = 0

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, row: int):
        assert type(row) is int
        self.reads += 1
        case = torch.as_tensor(self.x[row])
        return case if self.y is None else (case, self.y[row])


def mapped(x: np.ndarray, folder: Path) -> np.memmap:
    x.tofile(folder / "cases.bin")
    return np.memmap(folder / "cases.bin", x.dtype, mode="r", shape=x.shape)


def method(name: str):
    torch.manual_seed(0)
    return build_method(name, FCN(2, dim=8), {})


def trained(name: str, train, batches: str = "auto", steps: int = 7, **more) -> tuple[list[float], dict]:
    made = method(name)
    history = pretrain(made, train, Recipe(steps, 5, **more), seed=3, device="cpu", batches=batches)
    return history.loss, made.state_dict()


def assert_same(one: tuple[list[float], dict], other: tuple[list[float], dict]) -> None:
    assert one[0] == other[0]
    assert all(torch.equal(value, other[1][name]) for name, value in one[1].items())


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_every_source_gives_the_same_weights(name, waves, tmp_path):
    expected = trained(name, waves, "device")
    assert_same(trained(name, waves, "streamed"), expected)
    assert_same(trained(name, Windows(mapped(waves.x, tmp_path), waves.y), "streamed"), expected)
    assert_same(trained(name, Items(waves.x, waves.y), "streamed"), expected)


def test_a_run_goes_on_from_a_checkpoint_of_another_source(waves, tmp_path):
    expected = trained("dicot", waves)[0]
    checkpoint = Checkpoint(tmp_path / "run", 0)
    pretrain(method("dicot"), waves, Recipe(7, 5), seed=3, device="cpu", checkpoint=checkpoint)
    history = pretrain(method("dicot"), Items(waves.x), Recipe(7, 5), seed=3, device="cpu", checkpoint=checkpoint)
    assert checkpoint.resumed and history.loss == expected, "equal cases have equal fingerprints"


def test_items_without_a_label_are_left_out_where_labels_are_needed(waves):
    some = [None if row % 4 == 1 else int(label) for row, label in enumerate(waves.y)]
    known = np.array([label is not None for label in some])
    expected = trained("supervised", waves.subset(known))
    assert_same(trained("supervised", Items(waves.x, some)), expected)
    with pytest.raises(InputError, match="24"):
        trained("supervised", Items(waves.x))


def test_no_thread_is_left_behind(waves):
    def stop(step):
        raise KeyboardInterrupt

    before = threading.active_count()
    trained("dicot", waves, "streamed")
    with pytest.raises(KeyboardInterrupt):
        pretrain(
            method("dicot"), waves, Recipe(99, 5), seed=0, device="cpu", batches="streamed", on_step=stop
        )  # fmt: skip
    assert threading.active_count() == before


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system does not tell the peak")
def test_streaming_a_memory_map_does_not_load_it(tmp_path):
    """300 MB of which every case is read."""
    shape = (3000, 100, 256)
    file = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, shape)
    file[:] = np.random.default_rng(0).normal(size=(1, *shape[1:]))
    del file
    code = """
import sys
import numpy as np
import torch
from dicot.data import Windows
from dicot.nets.encoders import Encoder
from dicot.core.device import peak_memory
from dicot.methods import build_method
from dicot.train import Recipe, pretrain

class Tiny(Encoder):  # much data for little arithmetic
    def __init__(self, n_channels, dim):
        super().__init__(n_channels, dim)
        self.project = torch.nn.Conv1d(n_channels, dim, 1)

    def forward(self, x, keep=None):
        return self.project(x)

def train(x, steps):
    pretrain(build_method("dicot", Tiny(100, 4), {}), Windows(x), Recipe(steps, 40), seed=0, device="cpu")

train(np.zeros((40, 100, 256), np.float32), 2)  # loads libraries
with peak_memory("cpu") as peak:
    train(np.load(sys.argv[1], mmap_mode="r"), 75)
print(peak() / 2**20)
"""
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "x.npy"], capture_output=True, text=True, check=True)
    assert float(done.stdout.split()[-1]) < 150
