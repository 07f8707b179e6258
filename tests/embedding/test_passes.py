import tracemalloc

import numpy as np
import pytest
import torch

from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.model.embedding import embed, pooled_dim
from dicot.nets.encoders import InceptionTime


@pytest.fixture
def encoder(waves: Windows) -> InceptionTime:
    torch.manual_seed(0)
    made = InceptionTime(2, dim=32)
    with torch.no_grad():
        made.train()(torch.from_numpy(waves.x))
    return made


@pytest.mark.parametrize("n_times", [4, 32, 101])
def test_a_case_does_not_depend_on_its_company(encoder, n_times):
    x = np.random.default_rng(0).normal(size=(23, 2, n_times)).astype(np.float32)
    whole = embed(encoder, x)
    order = np.random.default_rng(1).permutation(23)
    np.testing.assert_allclose(embed(encoder, x[order]), whole[order], atol=1e-6, rtol=0)
    for batch_size in (1, 2, 5, 8, 23):
        np.testing.assert_allclose(embed(encoder, x, batch_size=batch_size), whole, atol=1e-6, rtol=0)
    for i in (0, 7, 22):
        np.testing.assert_allclose(embed(encoder, x[i : i + 1]), whole[i : i + 1], atol=1e-6, rtol=0)


def test_poolings(encoder, waves):
    h = embed(encoder, waves.x, pooling=None)
    assert h.shape == (24, 32, 32)
    np.testing.assert_allclose(embed(encoder, waves.x), h.mean(-1), atol=1e-6)
    np.testing.assert_allclose(embed(encoder, waves.x, pooling="max"), h.max(-1), atol=1e-6)
    three = np.concatenate([h.mean(-1), h.max(-1), h.std(-1)], axis=1)
    np.testing.assert_allclose(embed(encoder, waves.x, pooling="mean+max+std"), three, atol=1e-5)
    assert [pooled_dim(encoder, name) for name in ("mean", "max", "mean+max+std")] == [32, 32, 96]
    with pytest.raises(InputError, match="'mena'"):
        embed(encoder, waves.x, pooling="mena")


def test_read_only_and_strided_arrays_give_the_same_bits(encoder, waves):
    expected = embed(encoder, waves.x)
    locked = waves.x.copy()
    locked.flags.writeable = False
    assert np.array_equal(embed(encoder, locked), expected)
    assert np.array_equal(embed(encoder, np.asfortranarray(waves.x)), expected)
    assert np.array_equal(embed(encoder, np.repeat(waves.x, 2, axis=0)[::2]), expected)


class Counted:
    """Cases that note how many of them are read at a time."""

    def __init__(self, x: np.ndarray) -> None:
        self.x, self.shape, self.read = x, x.shape, []

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, rows: slice) -> np.ndarray:
        self.read.append(len(self.x[rows]))
        return self.x[rows]


def test_a_memory_map_is_read_piece_by_piece(encoder, tmp_path):
    x = np.random.default_rng(0).normal(size=(600, 2, 256)).astype(np.float32)
    x.tofile(tmp_path / "cases.bin")
    mapped = Counted(np.memmap(tmp_path / "cases.bin", np.float32, mode="r", shape=x.shape))
    expected = embed(encoder, x[:40], batch_size=40)
    tracemalloc.start()
    z = embed(encoder, mapped, batch_size=40)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(mapped.read) == 600 and max(mapped.read) <= 40
    assert peak < x.nbytes / 4, f"{peak} bytes of arrays at once; the file has {x.nbytes}"
    assert np.array_equal(z[:40], expected)


def test_long_cases_go_through_in_smaller_pieces(encoder):
    done = []
    x = np.random.default_rng(0).normal(size=(9, 2, 12_000)).astype(np.float32)
    z = embed(encoder, x, on_batch=done.append, device="cpu")
    assert done == [2, 4, 6, 8, 9]
    np.testing.assert_allclose(z[8:], embed(encoder, x[8:], device="cpu"), atol=1e-6, rtol=0)
