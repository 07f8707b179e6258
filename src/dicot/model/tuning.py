"""Fine-tuning that starts from the frozen probe, and is kept where held-out cases say that it is better."""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from dicot.data import Windows
from dicot.data.splits import validation_rows
from dicot.methods.gradual import GradualTuning, StandardisedHead
from dicot.model.embedding import embed, pooled
from dicot.model.fitting import train_with_bar
from dicot.nets.encoders import Encoder
from dicot.train import History, Recipe, TrainingRun
from dicot.train.history import OnStep
from dicot.train.run import OptimiserFactory

log = logging.getLogger(__name__)

SHARE = 0.2  # of the labelled cases of a class, held out for validation
FEWEST = 5  # cases that a class must have for some to be held out
MAX_STEPS = 1_000_000  # of the solver, which ends by its tolerance


@dataclass(frozen=True)
class Tuned:
    """What became of a gradual fine-tuning.

    kept: "tuned" weights, or the "probe": the encoder as it was, and a head fitted on all labelled cases.
    step: how many steps of training the kept weights have had; 0 for the probe.
    held_out: labelled cases that were held out for this choice.
    probe_accuracy, tuned_accuracy: on these, of the probe that saw the others, and of the best weights that training
        passed through; NaN where nothing was held out or trained.
    accuracies: of the probe and of every state that was looked at, by step.
    reason: for the choice, in words.
    """

    kept: str
    step: int
    held_out: int
    probe_accuracy: float
    tuned_accuracy: float
    accuracies: dict[int, float]
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as a file has it, which knows no NaN."""
        return {name: None if value != value else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Tuned":
        """Return what `to_dict` wrote down."""
        accuracies = {int(step): float(accuracy) for step, accuracy in values["accuracies"].items()}
        read: dict[str, Any] = {name: math.nan if value is None else value for name, value in values.items()}
        return cls(**{**read, "accuracies": accuracies})


class Tuning(NamedTuple):
    """The networks that a fine-tuning ends with, and how it came to them."""

    encoder: Encoder
    head: nn.Linear
    history: History
    recipe: Recipe
    tuned: Tuned


def tune(
    encoder: Encoder,
    train: Windows,
    recipe_for: Callable[[int], Recipe],
    *,
    pooling: str,
    seed: int,
    device: str,
    verbose: bool,
    optimiser: OptimiserFactory | None = None,
    on_step: OnStep | Sequence[OnStep] | None = None,
) -> Tuning:
    """Fit a head on the frozen encoder, train both on a part of the cases, and keep what is best on the others.

    train : cases with labels 0, 1, ..., K - 1; where they have groups, whole groups are held out
    recipe_for : the recipe for a number of training cases
    """
    assert train.y is not None
    y = train.y.astype(np.intp)
    frozen = embed(encoder, train.x, pooling=pooling, device=device)
    held = validation_rows(y, train.group, SHARE, FEWEST, seed)
    recipe = recipe_for(int(np.count_nonzero(~held)))
    if not held.any() or not recipe.steps:
        reason = "no step was asked for" if held.any() else _why_not(y)
        return _as_it_was(encoder, frozen, y, History(), recipe, Tuned("probe", 0, 0, np.nan, np.nan, {}, reason))

    method = GradualTuning(encoder, fit_head(frozen[~held], y[~held]), partial(pooled, pooling=pooling))
    start = _copied(method)
    run = TrainingRun(method, train.subset(~held), recipe, seed, optimiser=optimiser, on_step=on_step)
    history = train_with_bar("tune", run, device=device, verbose=verbose)
    method.cpu().float()
    if not method.states or len(history) < recipe.steps:  # a callback has ended it
        method.keep(len(history) / recipe.steps)

    states = {0: start} | {round(progress * recipe.steps): state for progress, state in method.states}
    accuracies: dict[int, float] = {}
    for step, state in states.items():
        method.load_state_dict(state)
        vectors = embed(encoder, train.x[held], pooling=pooling, device=device) if step else frozen[held]
        accuracies[step] = _accuracy(method.head, vectors, y[held])
    # Of equals the last: it was trained at the lowest rate, and a probe that ties is on average the worse one.
    best = max(accuracies, key=lambda step: (accuracies[step], step))
    reached = max(accuracy for step, accuracy in accuracies.items() if step)
    shares = f"{reached:.1%} right at best, the frozen probe {accuracies[0]:.1%}"
    reason = f"of {held.sum()} held-out cases training gets {shares}"
    tuned = Tuned("tuned" if best else "probe", best, int(held.sum()), accuracies[0], reached, accuracies, reason)
    method.load_state_dict(states[best])
    if not best:
        return _as_it_was(encoder, frozen, y, history, recipe, tuned)
    log.info("kept the weights of step %d: %s", best, reason)
    return Tuning(encoder, method.head.folded(), history, recipe, tuned)


def _why_not(y: NDArray[np.intp]) -> str:
    if np.bincount(y).max() < FEWEST:
        return f"no class has {FEWEST} cases, so none are held out"
    return "none of the groups can be held out: a class would have too few cases left"


def _as_it_was(
    encoder: Encoder, frozen: NDArray[np.float32], y: NDArray[np.intp], history: History, recipe: Recipe, tuned: Tuned
) -> Tuning:
    log.info("kept the frozen probe: %s", tuned.reason)
    return Tuning(encoder, fit_head(frozen, y).folded(), history, recipe, tuned)


def fit_head(z: NDArray[np.float32], y: NDArray[np.intp]) -> StandardisedHead:
    """Fit logistic regression on standardised vectors (N, F), whose labels are 0, 1, ..., K - 1."""
    scaler = StandardScaler()
    model = LogisticRegression(max_iter=MAX_STEPS).fit(scaler.fit_transform(z.astype(np.float64)), y)
    weights, intercepts = model.coef_, model.intercept_
    if len(weights) == 1:  # two classes have one score; the difference of these two is the same
        weights, intercepts = (np.concatenate([-one, one]) / 2 for one in (weights, intercepts))
    return StandardisedHead(scaler.mean_, scaler.scale_, weights, intercepts)


def _copied(method: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in method.state_dict().items()}


def _accuracy(head: StandardisedHead, z: NDArray[np.float32], y: NDArray[np.intp]) -> float:
    with torch.inference_mode():
        scores = head.folded().double()(torch.from_numpy(z).double())
    return float((scores.argmax(dim=1).numpy() == y).mean())
