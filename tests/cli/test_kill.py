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
STEPS = 96  # about as long as the imports


def command(out: Path) -> list[str]:
    words = ["pretrain", "synthetic", "--out", out, "--steps", STEPS, "--batch-size", 4, "--device", "cpu"]
    return [sys.executable, "-c", "from dicot.cli import main; main()", *map(str, words), "--checkpoint-seconds", "0"]


@pytest.mark.slow
def test_killed_and_resumed_runs_end_bit_equal(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    started = time.monotonic()
    subprocess.run(command(whole), check=True, capture_output=True)
    usual = time.monotonic() - started
    dice = random.Random(0)
    interrupted = resumed = 0
    while interrupted < KILLS or (not resumed and interrupted < KILLS + 10):  # at least one while it trains
        process = subprocess.Popen(command(killed), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            # Any moment counts: while importing, between steps, inside a write.
            process.communicate(timeout=dice.uniform(0.4, 0.9) * usual)
            finished = True
        except subprocess.TimeoutExpired:
            finished = False
            process.send_signal(signal.SIGKILL)
            process.communicate()
        interrupted += not finished
        resumed += (killed / "checkpoint.safetensors").exists()
        if finished:  # it came through before the axe fell: start over, to be killed as often as wanted
            assert process.returncode == 0
            assert same_weights(killed, whole)
            for file in killed.iterdir():
                file.unlink()
    subprocess.run(command(killed), check=True, capture_output=True)
    assert same_weights(killed, whole)
    assert resumed, "no run was killed while it trained"
    assert not (killed / "checkpoint.safetensors").exists()


def same_weights(one: Path, other: Path) -> bool:
    name = "model.safetensors"
    return (one / name).read_bytes() == (other / name).read_bytes()
