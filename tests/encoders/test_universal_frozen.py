"""Universal's fast path: the numbers of the plain one, and the same bits in any company."""

import pytest
import torch

from dicot.nets.encoders import Universal
from dicot.nets.encoders.universal import C


def trained(n_channels, dim=192, dtype=torch.float32):
    """Make an encoder whose BatchNorms are not those of the first step."""
    torch.manual_seed(3)
    encoder = Universal(n_channels, dim).eval()
    for norm in encoder.norms:
        norm.running_mean.normal_(0, 0.3)
        norm.running_var.uniform_(0.5, 2)
        torch.nn.init.uniform_(norm.weight, 0.5, 1.5)
        torch.nn.init.normal_(norm.bias, 0, 0.3)
    return encoder.to(dtype)


def both(encoder, x):
    with torch.inference_mode():
        return encoder.frozen_embed(x.shape[2])(x), encoder.embed(x)


@pytest.mark.parametrize("n_times", [1, 9, 255, 256, 257, 512, 513, 3000])
@pytest.mark.parametrize(("n_channels", "dim"), [(1, 192), (3, 8), (7, 64), (0, 200)])
def test_the_fast_path_has_the_numbers_of_the_plain_one(n_channels, dim, n_times):
    x = torch.randn(3, n_channels or 2, n_times, generator=torch.Generator().manual_seed(0)).cumsum(dim=2)
    for dtype, atol in ((torch.float32, 2e-5), (torch.float64, 1e-10)):
        fast, plain = both(trained(n_channels, dim, dtype), x.to(dtype))
        torch.testing.assert_close(fast, plain, atol=atol, rtol=0)


@pytest.mark.parametrize(
    "values",
    [0.0, 0.1, -1e30, 1e-30, torch.linspace(0, 5, 300), torch.arange(300.0) % 2 * 1e25],
    ids=["zeros", "constant", "large", "small", "line", "beyond float32"],
)
def test_channels_without_spread_are_nothing_on_both_paths(values):
    x = torch.zeros(2, 1, 300) + values
    torch.testing.assert_close(*both(trained(1), x), atol=1e-4, rtol=1e-5)


@pytest.mark.skipif(C.library is None, reason="there is no C code here")
@pytest.mark.parametrize("n_times", [128, 500, 1200])
@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_a_case_has_the_same_bits_in_any_company(n_times, n_threads):
    network = trained(3).frozen_embed(n_times)
    x = torch.randn(11, 3, n_times, generator=torch.Generator().manual_seed(1)).cumsum(dim=2)
    before = torch.get_num_threads()
    alone = torch.cat([network(case.unsqueeze(0)) for case in x])
    try:
        torch.set_num_threads(n_threads)
        assert torch.equal(network(x), alone)
        assert torch.equal(network(x.flip(0)), alone.flip(0))
        assert torch.equal(network(x.transpose(1, 2).contiguous().transpose(1, 2)), alone)
    finally:
        torch.set_num_threads(before)
