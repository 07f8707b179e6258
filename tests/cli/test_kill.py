"""kill -9 during `dicot pretrain`, again and again: the run that is finished at last has the bits of one left alone.

DICOT_KILLS sets how often it is killed (default 2).
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

KILLS = int(os.environ.get("DICOT_KILLS", "2"))
STEPS = 48
WAITING = 60.0  # seconds at most until a run keeps its first checkpoint


def command(out: Path) -> list[str]:
    words = ["pretrain", "synthetic", "--out", out, "--steps", STEPS, "--batch-size", 4, "--dim", 32, "--device", "cpu"]
    return [sys.executable, "-c", "from dicot.cli import main; main()", *map(str, words), "--checkpoint-seconds", "0"]


@pytest.mark.slow
def test_killed_and_resumed_runs_end_bit_equal(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run(command(whole), check=True, capture_output=True)
    dice = random.Random(0)
    checkpoint = killed / "checkpoint.safetensors"
    for number in range(KILLS):
        process = subprocess.Popen(command(killed), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # The first time while it trains, then at any moment: while importing, between steps, inside a write.
        given_up = time.monotonic() + WAITING
        while not number and not checkpoint.exists() and time.monotonic() < given_up:
            time.sleep(0.01)
        time.sleep(dice.uniform(0, 0.3) if number == 0 else dice.uniform(0.2, 4))
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert number or checkpoint.exists(), "the run was killed before it trained, or after"
    subprocess.run(command(killed), check=True, capture_output=True)
    assert same_weights(killed, whole)
    assert not checkpoint.exists()


def same_weights(one: Path, other: Path) -> bool:
    name = "model.safetensors"
    return (one / name).read_bytes() == (other / name).read_bytes()
