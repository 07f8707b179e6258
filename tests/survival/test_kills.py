"""kill -9 at random moments, once for each way to go on: training, ledger, store. The same command ends the same.

DICOT_KILLS sets how often each command is killed (default 2).
"""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.ledger import Ledger
from tests.commands import dicot

KILLS = int(os.environ.get("DICOT_KILLS", "2"))
ROOT = Path(__file__).resolve().parents[2]
SMALL = ["--method", "dicot", "--set", "encoder=fcn", "--set", "dim=8", "--device", "cpu"]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")]


def start(words: list[object]) -> "subprocess.Popen[bytes]":
    module = "dicot"
    if words[0] == "bench":
        module, words = "bench", words[1:]
    command = [sys.executable, "-m", module, *map(str, words)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(words: list[object]) -> float:
    """Run a command to its end; return its seconds."""
    began, process = time.monotonic(), start(words)
    _, said = process.communicate()
    assert process.returncode == 0, said.decode()
    return time.monotonic() - began


def survives(words: Callable[[Path], list[object]], state: Callable[[Path], Any], tmp_path: Path) -> None:
    """Compare what is left after kills and a last run with what an undisturbed run leaves."""
    whole, killed, dice = tmp_path / "whole", tmp_path / "killed", random.Random(0)
    whole.mkdir()
    killed.mkdir()
    usual, kills = finish(words(whole)), 0
    for _ in range(10 * KILLS):
        if kills == KILLS:
            break
        process, began = start(words(killed)), time.monotonic()
        try:
            process.communicate(timeout=usual * dice.uniform(0.5, 1))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1
        else:  # it was quicker this time: begin again
            usual = min(usual, time.monotonic() - began)
            shutil.rmtree(killed)
            killed.mkdir()
    finish(words(killed))
    assert kills == KILLS and state(killed) == state(whole)


def files_in(folder: Path) -> dict[str, str]:
    """Every file below a folder by its hash: nothing may be lost, and nothing left behind."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def recordings(folder: Path, count: int) -> Path:
    folder.mkdir()
    for number in range(count):
        values = np.random.default_rng(number).normal(size=(400, 2))
        rows = [f"{i / 20:.2f},{x:.4f},{y:.4f},{'walk' if i % 60 < 30 else 'rest'}" for i, (x, y) in enumerate(values)]
        (folder / f"{number}.csv").write_text("time,x,y,activity\n" + "\n".join(rows) + "\n")
    return folder


def test_training(tmp_path: Path) -> None:
    def words(folder: Path) -> list[object]:
        return [
            "pretrain",
            "synthetic",
            *SMALL,
            "--steps",
            60,
            "--out",
            folder / "model",
            "--set",
            "checkpoint_seconds=0",
        ]

    def state(folder: Path) -> Any:
        held = files_in(folder)
        held.pop("model/config.json")  # it says how many seconds it took
        return held

    survives(words, state, tmp_path)


def test_an_interrupted_training_says_how_to_go_on(tmp_path: Path) -> None:
    words = ["pretrain", "synthetic", *SMALL, "--steps", 2000, "--out", tmp_path / "model"]
    process = start(words)
    checkpoint = tmp_path / "model" / "checkpoint.safetensors"
    time.sleep(1)
    while not checkpoint.exists() and process.poll() is None:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130 and str(checkpoint) in said.decode()


def test_a_ledger(tmp_path: Path) -> None:
    def words(folder: Path) -> list[object]:
        chosen = ["--only", "dicot", "--protocols", "linear,knn_5", "--seeds", "1,2", "--steps", 4, "--device", "cpu"]
        return [
            "bench",
            "run",
            "smoke",
            "--sets",
            "synthetic",
            *chosen,
            "--ledger",
            folder / "b.sqlite",
            "--workers",
            1,
        ]

    def state(folder: Path) -> Any:
        with Ledger(folder / "b.sqlite") as ledger:
            rows = [row for result in ledger.results() for row in result.tidy()]
        assert not any(row["error"] for row in rows)
        values = {(row["key"], row["metric"]): row["value"] for row in rows if "seconds" not in row["metric"]}
        assert not list(folder.glob("b.work/*.safetensors")), "checkpoints of finished fits"
        return values

    survives(words, state, tmp_path)


@pytest.mark.parametrize("kind", ["vectors", "corpus"])
def test_a_store(tmp_path: Path, kind: str) -> None:
    source = recordings(tmp_path / "recordings", 12)
    if kind == "vectors":
        dicot("pretrain", source, "--window", "20", *SMALL, "--steps", 1, "--out", tmp_path / "model")

    def words(folder: Path) -> list[object]:
        cut = ["--window", "20", "--label", "activity", "--out"]
        if kind == "vectors":
            return ["embed", tmp_path / "model", source, *cut, folder / "v.parquet"]
        return ["corpus", "build", source, *cut, folder / "corpus"]

    survives(words, files_in, tmp_path)


def test_predictions_and_a_page(tmp_path: Path) -> None:
    source, head = recordings(tmp_path / "recordings", 12), tmp_path / "h.safetensors"
    dicot("embed", source, "--window", "20", "--label", "activity", "--out", tmp_path / "v.parquet")
    dicot("classify", tmp_path / "v.parquet", "--save", head)
    survives(lambda folder: ["predict", head, source, "--out", folder / "p.parquet"], files_in, tmp_path)
    for name in ("whole", "killed"):
        shutil.rmtree(tmp_path / name)
    call = ["monitor", tmp_path / "v.parquet", tmp_path / "v.parquet", "--out"]
    survives(lambda folder: [*call, folder / "page.html"], lambda folder: [*files_in(folder)], tmp_path)
