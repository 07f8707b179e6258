"""Peak memory, measured in processes of their own, beside the size of the data."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the peak"),
]
FILES, CHANNELS, N_TIMES = 4, 128, 60_000  # 4 files of 31 MB: many channels are much data for little arithmetic


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    (folder / "r").mkdir()
    x = np.random.default_rng(0).normal(size=(CHANNELS, N_TIMES)).astype(np.float32)
    for number in range(FILES):
        np.savez(folder / "r" / f"{number}.npz", X=np.roll(x, number, axis=1), rate=100.0)
    return folder


def peak_of(*words: object) -> float:
    """The peak in MB of a process that runs a command."""
    code = (
        "import sys; from dicot.cli import app; from dicot.core.memory import peak_bytes\n"
        "app(sys.argv[1:], standalone_mode=False); print(peak_bytes() / 1e6)"
    )
    done = subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return float(done.stdout.split()[-1])


@pytest.mark.slow
def test_each_command_takes_less_memory_than_the_data(folder):
    pytest.importorskip("pyarrow")
    corpus, model, vectors = folder / "c", folder / "m", folder / "v"
    build = ["corpus", "build", folder / "r", "--out", corpus, "--window", 500, "--stride", "50%", "--workers", 1]
    assert peak_of(*build) < 600
    size = sum(file.stat().st_size for file in (corpus / "shards").iterdir()) / 1e6
    assert size > 240  # twice the recordings; in memory it would be too much for each of the others
    train = ["pretrain", corpus, "--out", model, "--method", "dicot", "--steps", 3]
    train += ["--set", "dim=4", "--set", "batch_size=8"]
    assert peak_of(*train, "--device", "cpu") < 700
    embed = ["embed", model, corpus, "--out", vectors, "--device", "cpu"]
    assert peak_of(*embed) < 700
    assert peak_of("search", vectors, "--like", "0") < 600
