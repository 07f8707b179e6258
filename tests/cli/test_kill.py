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
from tests.commands import dicot

KILLS = int(os.environ.get("DICOT_KILLS", "2"))
STEPS = 48
WAITING = 60.0  # seconds at most until a run keeps its first checkpoint


def command(out: Path) -> list[str]:
    words = ["pretrain", "synthetic", "--method", "dicot", "--out", out, "--steps", STEPS, "--set", "batch_size=4"]
    words += ["--set", "dim=32", "--device", "cpu"]
    return [
        sys.executable,
        "-c",
        "from dicot.cli import main; main()",
        *map(str, words),
        "--set",
        "checkpoint_seconds=0",
    ]


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


@pytest.mark.slow
def test_an_interrupted_command_says_how_to_go_on_and_ends_bit_equal(tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    small = ["pretrain", "synthetic", "--method", "dicot", "--set", "encoder=fcn", "--set", "dim=8", "--steps", "30"]
    small += ["--device", "cpu", "--out"]
    code = (  # tells on the screen when the third step is under way
        "from dicot.methods.dicot import DiCOT; loss = DiCOT.loss; n = []\n"
        "def told(self, *given):\n"
        "    n.append(1)\n"
        "    if len(n) == 3: print('training', flush=True)\n"
        "    return loss(self, *given)\n"
        "DiCOT.loss = told\n"
        "from dicot.cli import main; main()"
    )
    # Nothing is written unless the signal has it written.
    call = [sys.executable, "-c", code, *small, str(broken), "--set", "checkpoint_seconds=1000"]
    process = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert any(line.startswith("training") for line in process.stdout)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    checkpoint = broken / "checkpoint.safetensors"
    assert checkpoint.exists() and f"{checkpoint} keeps the run" in said
    assert "resumed and finished" in dicot(*small, broken)
    dicot(*small, whole)
    assert same_weights(broken, whole)


def same_weights(one: Path, other: Path) -> bool:
    name = "model.safetensors"
    return (one / name).read_bytes() == (other / name).read_bytes()
