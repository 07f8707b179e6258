"""Recordings for corpora, and what a corpus consists of."""

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np

WINDOW = {"window": 32, "stride": 16}
# Runs a call and ends the process by SIGKILL in the middle of the n-th file that is put in place.
KILLED = """
import os, signal, sys
place, left = os.replace, [int(sys.argv[1])]
def replace(source, target):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    place(source, target)
os.replace = replace
"""


def write_recordings(folder: Path, count: int = 4, n_times: int = 400) -> Path:
    """Write recordings of two channels at 50 Hz with labels, as .npz and .csv in turn."""
    folder.mkdir(parents=True)
    dice = np.random.default_rng(0)
    for number in range(count):
        n = n_times + 40 * number
        x = dice.normal(size=(2, n)).astype(np.float32)
        label = np.repeat(["rest", "walk"], [n // 2, n - n // 2])
        if number % 2:
            rows = (f"{t / 50:.2f},{a},{b},{c}" for t, (a, b, c) in enumerate(zip(*x, label, strict=True)))
            (folder / f"r{number}.csv").write_text("\n".join(["t,x,y,label", *rows]))
        else:
            np.savez(folder / f"r{number}.npz", t=np.arange(n) / 50, x=x[0], y=x[1], label=label)
    return folder


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder by the hash of its bytes; the lock is none of its content."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def killed(n: int, code: str, *words: object) -> bool:
    """Run code that is killed at its n-th write; tell whether it was."""
    command = [sys.executable, "-c", f"{KILLED}\n{code}", str(n), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, -9), done.stderr
    return done.returncode == -9
