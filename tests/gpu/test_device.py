from pathlib import Path

import numpy as np
import pytest
import torch

from dicot.core.errors import InputError
from dicot.core.gpu.device import (
    describe_device,
    float32_arithmetic,
    peak_memory,
    resolve_device,
    to_device,
)


def test_auto_is_a_gpu_where_there_is_one():
    assert resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert resolve_device(torch.device("cpu")).type == "cpu"
    with pytest.raises(InputError, match="Unknown device 'gpu0'"):
        resolve_device("gpu0")


@pytest.mark.parametrize("change", [lambda x: x, lambda x: x.T.copy().T, lambda x: x[:, None][:, 0], lambda x: x[::2]])
def test_tensors_have_plain_strides_whatever_the_array_had(change):
    array = change(np.arange(24.0).reshape(4, 6))
    tensor = to_device(array, torch.device("cpu"))
    assert tensor.is_contiguous() and tensor.shape == array.shape
    assert np.array_equal(tensor.numpy(), array)


def test_a_read_only_array_is_copied():
    array = np.zeros(3)
    array.flags.writeable = False
    to_device(array, torch.device("cpu")).add_(1)
    assert array.sum() == 0


GPU = torch.device("cuda")


def precisions() -> tuple[str, str]:
    return torch.backends.cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision


@pytest.mark.parametrize(("fast", "inside"), [(False, "ieee"), (True, "tf32")])
def test_precision_is_set_and_restored(fast, inside):
    before = precisions()
    with float32_arithmetic(GPU, fast):
        assert precisions() == (inside, inside)
    assert precisions() == before


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the system does not tell how large a process was"
)
def test_peak_memory_is_that_of_what_happens_inside():
    with peak_memory("cpu") as peak:
        np.ones(2**24)  # 128 MiB, and gone again
        assert 0.9 * 2**27 <= peak() < 2**28
    with peak_memory("cpu") as peak:
        assert peak() < 2**26
    assert describe_device("cpu") == "cpu"
