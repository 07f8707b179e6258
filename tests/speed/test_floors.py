"""Floors: the count from the architecture must be what runs."""

import statistics

import pytest
import torch
from torch import nn

from dicot.encoders import InceptionTime
from dicot.speed.floors import Ceilings, kept_values, matrix_precision, measure_ceilings, multiply_adds, step_work
from dicot.speed.plain import PlainEncoder
from dicot.speed.shapes import Shape


def counted(n_channels: int, n_cases: int, n_times: int) -> tuple[int, int]:
    """Multiply-adds and values put out by the convolutions of a pass through the definition."""
    encoder, found = InceptionTime(n_channels).eval(), [0, 0]

    def count(conv, args, y):
        found[0] += y.numel() * conv.in_channels * conv.kernel_size[0]
        found[1] += y.numel()

    for module in encoder.modules():
        if isinstance(module, nn.Conv1d):
            module.register_forward_hook(count)
    with torch.no_grad():
        encoder(torch.zeros(n_cases, n_channels, n_times))
    return found[0], found[1]


def test_the_count_equals_that_of_hooks():
    encoder = InceptionTime(3)
    assert counted(3, 2, 50) == (100 * multiply_adds(encoder), 100 * kept_values(encoder))


def test_the_plain_network_has_the_same_convolutions():
    linear = 3 * 128  # its input projection is no convolution
    assert multiply_adds(PlainEncoder(3)) + linear == multiply_adds(InceptionTime(3))


def test_a_step_is_a_pass_over_the_sub_blocks_three_times():
    # k = 2 .. 10 at T = 100 by the paper's rule: length, stride and count
    layouts = []
    for k in range(2, 11):
        length = 2 * round(100 / (1 + (k - 1) / 2) / 2)
        layouts.append(length * ((100 - length) // round(length / 2) + 1))
    rows = 4 * statistics.fmean(layouts)
    work = step_work(Shape(4, 100, 2))
    assert work.operations == pytest.approx(2 * 3 * rows * multiply_adds(InceptionTime(2)))
    assert work.bytes == pytest.approx(16 * rows * kept_values(InceptionTime(2)))


def test_ceilings_are_measured_and_the_precision_is_restored(monkeypatch):
    monkeypatch.setattr("dicot.speed.floors.SIDE", {"cpu": 64})
    monkeypatch.setattr("dicot.speed.floors.COPIED", {"cpu": 2**16})
    before = torch.backends.cuda.matmul.fp32_precision
    found = measure_ceilings("cpu", "tf32")
    assert isinstance(found, Ceilings) and found.operations > 1e6 and found.bytes > 1e6
    with matrix_precision("tf32"):
        assert torch.backends.cuda.matmul.fp32_precision == "tf32"
    assert torch.backends.cuda.matmul.fp32_precision == before
