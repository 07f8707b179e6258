import pytest
import torch

from dicot.core.device import (
    float32_arithmetic,
    resolve_device,
)
from dicot.core.errors import InputError


def test_auto_is_a_gpu_where_there_is_one():
    assert resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert resolve_device(torch.device("cpu")).type == "cpu"
    with pytest.raises(InputError, match="Unknown device 'gpu0'"):
        resolve_device("gpu0")


GPU = torch.device("cuda")


def precisions() -> tuple[str, str]:
    return torch.backends.cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision


@pytest.mark.parametrize(("fast", "inside"), [(False, "ieee"), (True, "tf32")])
def test_precision_is_set_and_restored(fast, inside):
    before = precisions()
    with float32_arithmetic(GPU, fast):
        assert precisions() == (inside, inside)
    assert precisions() == before
