"""One of several processes that train together: `python -m tests.train.ranks_worker OUT RUN...`."""

import sys
import warnings
from pathlib import Path

import torch
from safetensors.torch import save_file
from tests.conftest import make_waves

from dicot.encoders import build_encoder
from dicot.methods import build_method
from dicot.train import History, Recipe, join_ranks, pretrain
from dicot.train.ranks import Ranks

STEPS, BATCH = 6, 9  # shares of unequal size for 2 and 4 processes
# Method, its settings, encoder.
RUNS = {
    "across": ("across", {"queue": 12, "cross": 0.5, "vic": 0.1}, "inception_time"),
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


def train(run: str, precision: str, **options) -> tuple[History, dict[str, torch.Tensor]]:
    name, settings, encoder = RUNS[run]
    torch.manual_seed(0)
    method = build_method(name, build_encoder(encoder, {"n_channels": 2, "dim": 8}), settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recipe = Recipe(STEPS, BATCH, precision=precision, warmup=0)
        history = pretrain(method, make_waves(), recipe, seed=3, device="cpu", **options)
    return history, method.state_dict()


def main(out: str, synchronised: str, *runs: str) -> None:
    """Train the runs, "method precision" each; every process writes what it ended with."""
    with join_ranks(sync_batch_norm=synchronised == "sync", timeout=60) as ranks:
        for number, run in enumerate(runs):
            history, state = train(*run.split())
            keep(Path(out, f"{number}-{ranks.place.rank}.safetensors"), history, state, ranks)


def keep(path: Path, history: History, state: dict[str, torch.Tensor], ranks: Ranks) -> None:
    loss = torch.tensor(history.loss, dtype=torch.float64)
    save_file({"loss": loss, **{name: value.contiguous() for name, value in state.items()}}, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
