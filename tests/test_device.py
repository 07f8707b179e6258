import numpy as np
import pytest
import torch

from dicot.device import float32_convolutions, resolve_device, to_device
from dicot.errors import InputError


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


@pytest.mark.parametrize(("fast", "inside"), [(False, "ieee"), (True, "tf32")])
def test_precision_of_convolutions_is_set_and_restored(fast, inside):
    before = torch.backends.cudnn.conv.fp32_precision
    with float32_convolutions(fast):
        assert torch.backends.cudnn.conv.fp32_precision == inside
    assert torch.backends.cudnn.conv.fp32_precision == before


def test_precision_is_restored_after_an_error():
    before = torch.backends.cudnn.conv.fp32_precision
    with pytest.raises(KeyError), float32_convolutions():
        {}["nothing"]
    assert torch.backends.cudnn.conv.fp32_precision == before
