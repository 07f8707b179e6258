import numpy as np
import pytest
import torch

from dicot.embedding import embed, pooled_dim
from dicot.encoders import InceptionTime
from dicot.errors import InputError
from dicot.windows import Windows


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
    with pytest.raises(InputError, match="Unknown pooling 'mena'"):
        embed(encoder, waves.x, pooling="mena")


def test_leaves_the_encoder_as_it_was(encoder, waves):
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    encoder.train()
    embed(encoder, waves.x)
    assert encoder.training
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())


def test_read_only_and_strided_arrays_give_the_same_bits(encoder, waves):
    expected = embed(encoder, waves.x)
    locked = waves.x.copy()
    locked.flags.writeable = False
    assert np.array_equal(embed(encoder, locked), expected)
    assert np.array_equal(embed(encoder, np.asfortranarray(waves.x)), expected)
    assert np.array_equal(embed(encoder, np.repeat(waves.x, 2, axis=0)[::2]), expected)


def test_counts_what_is_done(encoder, waves):
    done = []
    embed(encoder, waves.x, batch_size=10, on_batch=done.append)
    assert done == [10, 20, 24]
