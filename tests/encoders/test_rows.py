"""BatchNorm, ReLU and pooling in C against PyTorch's operators in double precision."""

import copy
from pathlib import Path

import pytest
import torch

from dicot.core.machine_code import _openmp
from dicot.nets.encoders import InceptionTime
from dicot.nets.encoders.inception import rows
from dicot.nets.encoders.inception.rows import NativeRows, PlainRows, row_operations

compiled = pytest.mark.skipif(rows.C.library is None, reason="there is no C compiler here")
native, plain = NativeRows(), PlainRows()


def test_torch_may_lie_in_a_folder_with_a_space(monkeypatch):
    library = "/a folder with spaces/torch/lib/libgomp.so.1"
    maps = f"5600-5601 r--p 00000000 00:00 0 \n7f00-7f01 r-xp 00001000 fe:00 42                 {library}\n"
    monkeypatch.setattr(Path, "read_text", lambda self: maps)
    assert _openmp() == library


@compiled
@pytest.mark.parametrize(("n_rows", "width", "n_parts"), [(2, 4, 4), (7, 16, 4), (5431, 64, 4), (5431, 256, 1)])
def test_norm_equals_the_operators(n_rows, width, n_parts):
    torch.manual_seed(0)
    norm = torch.nn.BatchNorm1d(width * n_parts).requires_grad_(False)
    torch.nn.init.normal_(norm.weight)
    exact_norm = copy.deepcopy(norm).double()
    parts = [3 * torch.randn(n_rows, width) + 10 for _ in range(n_parts)]
    bias, dy = torch.randn(width * n_parts), torch.randn(n_rows, width * n_parts)
    added = torch.randn_like(dy) if n_parts == 1 else None
    saved = native.norm_forward(parts, norm, bias, added)
    exact_added = None if added is None else added.double()
    exact = plain.norm_forward([part.double() for part in parts], exact_norm, bias.double(), exact_added)
    torch.testing.assert_close(saved.y.double(), exact.y, rtol=1e-5, atol=1e-5)
    for mine, other in zip(norm.buffers(), exact_norm.buffers(), strict=True):
        torch.testing.assert_close(mine.double(), other.double(), rtol=1e-6, atol=1e-6)
    # The mask of ReLU is that of our own output, which may differ from the exact one where a value is nearly 0.
    exact = exact._replace(y=saved.y.double())
    for masked in (True, False):
        dparts, dweight, dshift = native.norm_backward(dy, saved, norm, masked)
        wanted = plain.norm_backward(dy.double(), exact, exact_norm, masked)
        for mine, other in zip([*dparts, dweight, dshift], [*wanted[0], *wanted[1:]], strict=True):
            torch.testing.assert_close(mine.double(), other, rtol=1e-4, atol=2e-4)


@compiled
@pytest.mark.parametrize("n_times", [1, 2, 3, 50])
def test_pooling_with_ties(n_times):
    torch.manual_seed(n_times)
    u = (2 * torch.randn(n_times, 3, 8)).relu().round()
    dy = torch.randn_like(u)
    assert torch.equal(native.pool_forward(u), plain.pool_forward(u))
    torch.testing.assert_close(native.pool_backward(dy, u), plain.pool_backward(dy.clone(), u))


@compiled
def test_training_is_the_same_as_on_the_plain_path():
    torch.manual_seed(0)
    first = InceptionTime(2, dim=16).train()
    second = copy.deepcopy(first)
    second.plain = True
    x = torch.randn(6, 2, 40)
    assert isinstance(row_operations(x, 4, first.block0.module0.bn), NativeRows)
    y, z = first(x), second(x)
    y.square().sum().backward()
    z.square().sum().backward()
    torch.testing.assert_close(y, z, rtol=1e-4, atol=1e-4)
    for mine, other in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-2, atol=1e-2)


@compiled
def test_nan_is_not_hidden():
    norm = torch.nn.BatchNorm1d(16).requires_grad_(False)
    x = torch.randn(5, 16)
    x[2, 3] = torch.nan
    y = native.norm_forward([x], norm, torch.zeros(16)).y
    assert y[:, 3].isnan().all() and not y[:, 4:].isnan().any()
