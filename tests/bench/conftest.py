"""A small data set in a file, and jobs on it that take a fraction of a second."""

import multiprocessing
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from dicot.data import Windows
from dicot.judge.evaluation import Contender
from dicot.judge.evaluation.jobs import Job, JobData
from dicot.methods import METHODS, Method

TINY = {"dim": 8, "steps": 2, "batch_size": 4, "schedule": "per_step", "precision": "float32"}
LOADED = [
    "dicot.cli",
    "bench.executor",
    "bench.suites",
    "dicot.judge.evaluation",
    "torch._dynamo",
]


@pytest.fixture(scope="session")
def processes():
    """New processes fork from a server that has imported everything: they begin with their work at once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    first = context.Process(target=len, args=("",))  # starts the server
    first.start()
    first.join()
    return context


@pytest.fixture
def data(tmp_path: Path, waves: Windows) -> str:
    """The path of a labelled file with a training and a test part."""
    path = tmp_path / "waves.npz"
    x, y = waves.x, waves.y
    np.savez(path, X_train=x[::2], y_train=y[::2], X_test=x[1::2], y_test=y[1::2])
    return str(path)


@pytest.fixture
def job(data):
    """A job on that data set with other settings where they are given."""

    def make(kind: str = "dicot", protocol: str = "linear", seed: int = 1, **more) -> Job:
        trained = kind not in ("random", "calibrated", "raw-mean", "raw-flat")
        settings = TINY if trained else {"dim": 8} if kind in ("random", "calibrated") else {}
        contender = more.pop("contender", None) or Contender(kind, kind, {}, settings)
        source = more.pop("source", JobData(data))
        return Job("test", contender, source, more.pop("target", source), protocol, seed, **more)

    return make


class Toy(Method):
    """Brings the embeddings of a batch together."""

    summary: ClassVar[str] = "a toy"
    paper: ClassVar[str] = "none"
    complexity: ClassVar[str] = "nothing"

    def loss(self, batch, plan):
        return self.encoder.embed(batch.x).var(dim=0).mean()


@pytest.fixture
def toy(monkeypatch):
    """A method that was added by one class and one line."""
    monkeypatch.setitem(METHODS, "toy", Toy)
