"""TimeSeriesEmbedder: the library as one scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from dicot.controls import CONTROLS
from dicot.device import resolve_device
from dicot.embedding import embed, pooled_dim
from dicot.encoders import build_encoder
from dicot.errors import InputError, ModelFileError, lookup
from dicot.methods import METHODS, build_method
from dicot.policies import Scale
from dicot.pretrained import from_pretrained, save_pretrained
from dicot.train import Checkpoint, History, Recipe, paper_recipe, pretrain
from dicot.train.draws import weights_seed
from dicot.windows import Windows, check_collection, split_by_length

PRESETS = ("paper",)


class TimeSeriesEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Learn from unlabelled cases in `fit`, turn cases into vectors in `transform`.

    X is (cases, channels, time), (cases, time) or a list of (channels, time) arrays. For 2-D input the number
    of time steps is fixed at fit, otherwise it may change; the number of channels may not.

    Parameters
    ----------
    method : a name of `dicot list methods`, or a control: "random", "calibrated"
    preset : "paper" takes steps, batch size and temperature from the paper's rule for `family`
    family : "ucr", "uea", "large", or None for your own data (the uea rule)
    encoder : "inception_time", "fcn" or "resnet"
    dim : features of the encoder
    method_params : arguments of the method, for example {"temperature": 0.1, "k": (2, 5)}
    encoder_params : arguments of the encoder beside dim, for example {"original": True} for "resnet"
    steps, batch_size, lr, schedule : the recipe; None leaves each to the preset
    pooling : "mean", "max" or "mean+max+std" over time
    layout : "nct" (cases, channels, time) or "ntc" for 3-D input and lists
    unequal : "error", "pad", "crop" or "resample" for cases of unequal length
    missing : "error", "interpolate" or "zero" for NaN
    scale : None, "dataset" (z-score per channel with the training set's statistics) or "case"
    random_state : an int fixes the result; None draws a fresh seed; numpy's global state is never touched
    device : "auto", "cpu", "cuda" or "cuda:N"

    Attributes
    ----------
    encoder_ : the trained encoder on the CPU; history_ : loss and rate of every step; recipe_ : the recipe used;
    seed_ : the seed used; n_channels_in_, n_times_in_ : of the training set; n_features_in_ : for 2-D input
    """

    def __init__(
        self,
        method: str = "dicot",
        *,
        preset: str = "paper",
        family: str | None = None,
        encoder: str = "inception_time",
        dim: int = 256,
        method_params: Mapping[str, Any] | None = None,
        encoder_params: Mapping[str, Any] | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        schedule: str | None = None,
        pooling: str = "mean",
        layout: str = "nct",
        unequal: str = "error",
        missing: str = "error",
        scale: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
    ) -> None:
        self.method = method
        self.preset = preset
        self.family = family
        self.encoder = encoder
        self.dim = dim
        self.method_params = method_params
        self.encoder_params = encoder_params
        self.steps = steps
        self.batch_size = batch_size
        self.lr = lr
        self.schedule = schedule
        self.pooling = pooling
        self.layout = layout
        self.unequal = unequal
        self.missing = missing
        self.scale = scale
        self.random_state = random_state
        self.device = device

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        on_step: Callable[[History], None] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> TimeSeriesEmbedder:
        """Train the encoder. Labels are used by methods that need them and ignored by all others."""
        pooled_dim_of = self._check_names()
        train = self._read_training_set(X, y)
        recipe = self._recipe(train)
        self.seed_ = _seed(self.random_state)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(weights_seed(self.seed_))
            encoder = build_encoder(
                self.encoder, {"n_channels": train.n_channels, "dim": self.dim, **(self.encoder_params or {})}
            )
            if self.method in CONTROLS:
                self.recipe_, self.history_ = replace(recipe, steps=0), History()
                lookup(CONTROLS, self.method, "control")(encoder, train, resolve_device(self.device))
            else:
                params = METHODS[self.method].paper_params(recipe.temperature) | dict(self.method_params or {})
                method = build_method(self.method, encoder, params)
                self.recipe_ = recipe
                self.history_ = pretrain(
                    method, train, recipe, seed=self.seed_, device=self.device, on_step=on_step, checkpoint=checkpoint
                )
                encoder = method.trained_encoder()
        self.encoder_ = encoder.cpu().eval()
        self.data_ = {"name": train.name, "fingerprint": train.fingerprint(), "n_cases": len(train)}
        self._n_features_out = pooled_dim_of(self.encoder_)
        return self
