"""One of several processes that train together: `torchrun -m tests.train.ranks_worker FOLDER TASK...`.

It leaves what each run ended with, or the error, in the folder. See test_ranks.py.
"""

import os
import shutil
import signal
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from tests.conftest import make_waves
from torch import nn

from dicot.core.errors import InputError
from dicot.methods import Method, build_method
from dicot.nets.encoders import as_encoder, build_encoder
from dicot.train import Checkpoint, History, Recipe, join_ranks, pretrain

STEPS, BATCH = 5, 9  # shares of unequal size for 2 and 4 processes
DIES_AT = 3  # step
# Method, its settings, encoder.
RUNS = {
    "across": ("across", {}, "inception_time"),
    "dicot": ("dicot", {}, "inception_time"),
    "plain": ("dicot", {}, "fcn"),
    "dropout": ("dicot", {"projection": True}, "resnet"),
    "catt": ("catt", {}, "inception_time"),
    "cost": ("cost", {"queue_size": 20}, "inception_time"),
    "infots": ("infots", {"meta_steps": 2}, "inception_time"),
    "simmtm": ("simmtm", {}, "inception_time"),
    "soft": ("soft", {}, "inception_time"),
    "supervised": ("supervised", {}, "inception_time"),
    "tfc": ("tfc", {}, "inception_time"),
    "tnc": ("tnc", {}, "inception_time"),
    "ts2vec": ("ts2vec", {}, "inception_time"),
    "tstcc": ("tstcc", {}, "inception_time"),
}
RECIPE = Recipe(STEPS, BATCH, warmup=0)


def build(run: str) -> Method:
    name, settings, encoder = RUNS[run]
    torch.manual_seed(0)
    return build_method(name, build_encoder(encoder, {"n_channels": 2, "dim": 8}), settings)


def train(method: Method, precision: str = "float64", **options) -> History:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recipe = replace(RECIPE, precision=precision)
        return pretrain(method, make_waves(), recipe, **{"seed": 3, "device": "cpu", **options})


class Restless(Method):
    """Draws what no seed decides."""

    summary = paper = complexity = ""

    def loss(self, batch, plan):
        return self.encoder.embed(batch.x).square().mean() * float(np.random.default_rng().random())


class Mixing(nn.Module):
    """Looks at the other cases of the batch."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Conv1d(2, 8, 1)

    def forward(self, x):
        y = self.layer(x)
        return y - y.mean(dim=0)


def refused(what: str) -> str:
    """The sentence that a run is refused with."""
    method, options = build("dicot"), {}
    if what == "method":
        method = Restless(method.encoder)
    elif what == "encoder":
        method = type(method)(as_encoder(Mixing(), 2, 32))
    elif what == "seed":
        options = {"seed": int(os.environ["RANK"])}
    try:
        train(method, **options)
    except InputError as error:
        return str(error)
    return ""


def dying(folder: Path, rank: int) -> tuple[Method, History]:
    """A run of which the second process is killed, the first time that it is started."""
    path, method, steps = folder / "checkpoint", build("across"), iter(range(1, STEPS + 1))
    is_first_time = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    if not is_first_time and rank == 0:
        shutil.copy(path, folder / "checkpoint-killed")

    def die(batch, progress) -> None:
        if next(steps) == DIES_AT and rank == 1 and is_first_time:
            os.kill(os.getpid(), signal.SIGKILL)

    method.after_step = die
    return method, train(method, "float32", checkpoint=Checkpoint(path, 0))


def main(folder: Path, tasks: list[str]) -> None:
    with join_ranks(timeout=300) as here:
        rank = here.rank
        for task in tasks:
            kind, run, precision = task.split()
            path = folder / f"{task.replace(' ', '-')}-{rank}"
            if path.exists():  # of the first time
                continue
            if kind == "refuse":
                path.write_text(refused(run))
                continue
            if kind == "die":
                method, history = dying(folder, rank)
            else:
                method = build(run)
                history = train(method, precision)
            loss = torch.tensor(history.loss, dtype=torch.float64)
            save_file({"loss": loss, **{k: v.contiguous() for k, v in method.state_dict().items()}}, path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
