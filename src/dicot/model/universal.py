"""A model for series of every kind: pretrained once on a pool of many sources, used frozen on others.

Its encoder sees one channel at a time, and its vectors are compressed by components that were found in the pool. So
they need no fit, always have the same length, and those of different data sets compare.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dicot.core.errors import InputError
from dicot.core.storage import write_atomic
from dicot.data.cases import Array, Cases
from dicot.data.preparation import Preparation
from dicot.model.embedding import embed
from dicot.model.estimator import TimeSeriesEmbedder
from dicot.model.files import CONFIG, WEIGHTS
from dicot.model.pool import make_pool, read_cases
from dicot.model.runs import pretrain_into
from dicot.model.vector.compression import Compression
from dicot.model.vector.levels import Levels
from dicot.model.vector.module import Composition
from dicot.model.vector.poolings import pooled_dim
from dicot.nets.encoders import Universal
from dicot.nets.encoders.universal import ANY, POINTS
from dicot.train.record import History

LENGTH = 512  # numbers of a vector
DIM = 192  # of the encoder
REFERENCE = 200  # cases of each source that the components are found in
CARD = "card.md"
TRAINING = "training"  # the folder of the run, inside that of the model
METHOD = "across"
SETTINGS: dict[str, Any] = {
    "method_params": {
        "temperature": 0.15, "noise": 0.2, "scale": 0.0, "offset": 0.0, "mask": (0.05, 0.3), "crop": 0.4,
        "channel_drop": 0.0, "lengths": POINTS,
    },
    "recipe": {"batch_size": 1024, "lr": 1e-3, "weight_decay": 0.01, "betas": (0.9, 0.95), "warmup": 0.04},
    "steps": 20000,
    "features": {"pooling": "own"},
}  # fmt: skip


def pretrain_universal(
    folder: Path,
    sources: Mapping[str, Cases],
    *,
    settings: Mapping[str, Any],
    pool: Mapping[str, Any] | None = None,
    seed: int,
    device: str,
    **run: Any,
) -> str:
    """Train an encoder on a pool, find the components of its vectors, and save a model that needs no fit.

    A run that was killed goes on from its checkpoint. `settings` are arguments of the estimator that win over SETTINGS,
    those that are mappings entry by entry; `pool` are those of `make_pool`, `run` those of `pretrain_into`. Return a
    sentence on what happened.
    """
    if (folder / CONFIG).exists() and not (folder / TRAINING).exists() and not run.get("overwrite"):
        raise InputError(f"{folder} holds another model. Choose another folder, or overwrite it (--overwrite).")
    chosen = {**SETTINGS, **settings, "random_state": seed, "device": device}
    chosen |= {name: {**SETTINGS[name], **settings.get(name, {})} for name in ("method_params", "recipe", "features")}
    chosen |= {"encoder": Universal(1, chosen.pop("dim", DIM))}
    model = TimeSeriesEmbedder(METHOD, **chosen)
    said = pretrain_into(folder / TRAINING, model, make_pool(sources, seed=seed, **(pool or {})), **run)
    trained = TimeSeriesEmbedder.from_pretrained(folder / TRAINING, device=device)
    made = universal_model(trained, sources)
    made.save_pretrained(folder, half=True)
    digest = hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()
    write_atomic(folder / CARD, _card(made, trained.history_, sources, digest).encode())
    return f"{said}\nWrote {folder}: vectors of {LENGTH} numbers for any number of channels"


def universal_model(trained: TimeSeriesEmbedder, sources: Mapping[str, Cases]) -> TimeSeriesEmbedder:
    """Make a model that takes any cases of a trained encoder."""
    encoder = Universal(ANY, trained.encoder_.dim).eval()
    encoder.load_state_dict(trained.encoder_.state_dict())
    beside = Composition(levels=Levels(ANY, squashed=True))
    found = [
        embed(encoder, _some(cases), pooling="own", composer=beside, device=trained.device)
        for cases in sources.values()
    ]
    sizes = beside.sizes(pooled_dim(encoder, "own"))
    compression = Compression.fit(np.concatenate(found), LENGTH, parts=sizes, exactly=True)
    model = TimeSeriesEmbedder(**trained.get_params(deep=False))
    features = {**trained.features_, "levels": True, "length": LENGTH}
    about = {name: getattr(trained, name) for name in ("method_", "method_params_", "recipe_", "seed_", "origin_")}
    model._become(
        {
            **about,
            "encoder_": encoder,
            "history_": History(seconds=trained.history_.seconds),  # the losses stay with the run
            "features_": features,
            "composition_": Composition(levels=beside.levels, compression=compression),
            "preparation_": Preparation(unequal="pad", fingerprint=trained.preparation_.fingerprint),
            "data_": {**trained.data_, "name": "a pool", "sources": list(sources)},
        }
    )
    model._n_features_out = LENGTH
    return model


def _some(cases: Cases) -> Array:
    rows = np.linspace(0, len(cases) - 1, min(len(cases), REFERENCE)).astype(int)
    return np.stack(list(read_cases(cases, rows))).astype(np.float32)


def _card(model: TimeSeriesEmbedder, history: History, sources: Mapping[str, Cases], digest: str) -> str:
    template = Path(__file__).with_name("universal.md").read_text(encoding="utf-8")
    rows = [f"| {name} | {len(c):,} | {c.n_channels} | {c.n_times:,} |" for name, c in sources.items()]
    count = sum(parameters.numel() for parameters in model.encoder_.parameters())
    told = {"seconds": history.seconds, "losses": (history.loss[0], history.loss[-1]), "rows": "\n".join(rows)}
    fixed = {"length": LENGTH, "method": METHOD, "weights": WEIGHTS}
    return template.format(model=model, parameters=count, digest=digest, **told, **fixed)
