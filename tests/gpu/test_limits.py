"""How much of a GPU a user allows: on a device that is made up, and on a real one where there is one."""

import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from dicot.core.device import CONTEXT, FIXED
from dicot.core.errors import InputError
from dicot.data import Windows
from dicot.model.estimator import TimeSeriesEmbedder
from dicot.model.runs import pretrain_into

GIB = 2**30


class Card:
    """A GPU of 24 GiB, of which torch has taken nothing yet, and the share of it that torch may take."""

    def __init__(self) -> None:
        self.share, self.said = 1.0, []

    def set_share(self, share: float, number: int) -> None:
        assert number == 0 and 0 <= share <= 1, "as torch asks for it"
        self.share = share
        self.said.append(share)


@pytest.fixture
def card(monkeypatch) -> Card:
    made = Card()
    for name, fake in {
        "is_available": lambda: True,
        "current_device": lambda: 0,
        "get_device_name": lambda device: "a card",
        "memory_reserved": lambda device: 0,
        "mem_get_info": lambda device: (24 * GIB, 24 * GIB),
        "get_per_process_memory_fraction": lambda device: made.share,
        "set_per_process_memory_fraction": made.set_share,
        "synchronize": lambda device: None,
        "empty_cache": lambda: None,
    }.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    return made


def model(**more) -> TimeSeriesEmbedder:
    return TimeSeriesEmbedder("dicot", dim=4, steps=2, random_state=0, device="cuda", verbose=False, **more)


def test_batches_that_are_larger_than_the_limit_are_refused_before_any_step(card, tmp_path):
    train = Windows(np.zeros((64, 16, 40_000), np.float32))  # 160 MB, of which the batch is all
    with pytest.raises(InputError, match=r"A batch of 40000 time steps takes about .*\(gpu_memory\)"):
        pretrain_into(tmp_path / "m", model(recipe={"batch_size": 64}), train, gpu_memory=CONTEXT + FIXED + 10**8)
    assert not card.said and not list(tmp_path.iterdir())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")
def test_eight_gibibytes_train_harths_shape_and_no_more_is_taken(tmp_path):
    """What the card itself says is taken, from another process: CUDA's own memory too. Nobody else may use it."""
    code = """
import sys, numpy as np
from pathlib import Path
from dicot.data import Windows
from dicot.model.estimator import TimeSeriesEmbedder
from dicot.model.runs import pretrain_into
x = np.random.default_rng(0).normal(size=(1024, 6, 500)).astype(np.float32)
model = TimeSeriesEmbedder("dicot", steps=60, recipe={"batch_size": 128}, random_state=0, device="cuda", verbose=False)
print(pretrain_into(Path(sys.argv[1]), model, Windows(x), gpu_memory=8 * 2**30))
model.transform(x)
"""
    before = torch.cuda.mem_get_info()[0]
    words = [sys.executable, "-c", code, str(tmp_path / "m")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        lowest = before
        while process.poll() is None:
            lowest = min(lowest, torch.cuda.mem_get_info()[0])
            time.sleep(0.002)
        said = process.stdout.read()
    print(f"{(before - lowest) / GIB:.2f} GiB taken of the card; {said}")
    assert process.returncode == 0, said
    assert before - lowest <= 8 * GIB
