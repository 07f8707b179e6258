"""TrainingRun: everything that decides what a training run does."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dicot import __version__
from dicot.core.errors import InputError
from dicot.data.cases import Cases
from dicot.data.labels import label_fingerprint
from dicot.methods import Method
from dicot.train.batches import AHEAD, as_training_set, is_streamed
from dicot.train.checkpoint import Checkpoint
from dicot.train.history import OnStep
from dicot.train.recipe import Recipe

DTYPES = {"float32": torch.float32, "tf32": torch.float32, "float64": torch.float64}
# Settings of an optimiser that change how it computes, not what; the rate of each step comes from the schedule.
HOW_IT_COMPUTES = {"lr", "capturable", "differentiable", "foreach", "fused"}

OptimiserFactory = Callable[[list[dict[str, Any]]], torch.optim.Optimizer]


@dataclass
class TrainingRun:
    """Hold what `pretrain` is told about one run, by the names it describes."""

    method: Method
    train: Cases
    recipe: Recipe
    seed: int
    checkpoint: Checkpoint | None = None
    optimiser: OptimiserFactory | None = None
    on_step: OnStep | Sequence[OnStep] | None = None
    initial: Mapping[str, Tensor] | None = None
    batches: str = "auto"

    def __post_init__(self) -> None:
        self.train = as_training_set(self.train)
        self.checkpoint = Checkpoint.of(self.checkpoint)

    @property
    def dtype(self) -> torch.dtype:
        return DTYPES[self.recipe.precision]

    def size(self, device: torch.device) -> tuple[int, int]:
        """What its memory depends on: bytes of the data on the device, and time steps of a batch."""
        batch_size = min(self.recipe.batch_size, len(self.train))
        n_cases = AHEAD * batch_size if is_streamed(self.train, self.batches, device, self.dtype) else len(self.train)
        per_case = self.train.n_channels * self.train.n_times * self.dtype.itemsize
        return n_cases * per_case, batch_size * self.train.n_times

    def build_optimiser(self, device: torch.device) -> torch.optim.Optimizer:
        """Make the run's own optimiser, or fused AdamW.

        On a GPU the rate of an optimiser that a CUDA graph can capture is a tensor, so that the graph reads the current
        one.
        """
        groups = self.method.param_groups()
        on_gpu = device.type == "cuda"
        if self.optimiser is None:
            optimiser: Any = torch.optim.AdamW(
                groups,
                lr=self.recipe.lr,
                betas=self.recipe.betas,
                weight_decay=self.recipe.weight_decay,
                fused=True,
                capturable=on_gpu,
            )
        else:
            optimiser = self.optimiser(groups)
        if not isinstance(optimiser, torch.optim.Optimizer):
            raise InputError(f"optimiser must make a torch.optim.Optimizer; it made a {type(optimiser).__name__}.")
        for group in optimiser.param_groups:
            # A tensor for each group: one that was given as the default would be shared, and rates may differ.
            if on_gpu and group.get("capturable"):
                group["lr"] = torch.tensor(float(group["lr"]), device=device)
        return optimiser

    def load_initial(self) -> None:
        """Load the weights to continue from into the encoder, and into the one that is evaluated if that is another."""
        if self.initial is None:
            return
        encoder, trained = self.method.encoder, self.method.trained_encoder()
        try:
            encoder.load_state_dict(self.initial)
        except RuntimeError as error:
            raise InputError(f"initial does not fit the encoder: {error}") from error
        if trained is not encoder:
            trained.load_state_dict(self.initial)

    def identity(self, train: Cases, optimiser: torch.optim.Optimizer) -> dict[str, Any]:
        """What decides the result, rounding aside, and so must agree for a checkpoint to be continued."""
        method = self.method
        return {
            "library": f"dicot {__version__}",
            "method": type(method).__name__,
            "settings": repr(dict(sorted(method.settings().items()))),
            "encoder": f"{type(method.encoder).__name__} {dict(method.encoder.config())}",
            "layers": hashlib.sha256(repr(method).encode()).hexdigest()[:16],  # and what they are set to
            "recipe": repr(self.recipe.to_dict()),
            "optimiser": "" if self.optimiser is None else _described(optimiser),
            "initial": weights_hash(self.initial),
            "seed": self.seed,
            "data": train.fingerprint(),
            "labels": label_fingerprint(train.labels()) if method.needs_labels else "",
        }


def _described(optimiser: torch.optim.Optimizer) -> str:
    """Its class and what it was made with."""
    kind = type(optimiser)
    defaults = {name: value for name, value in optimiser.defaults.items() if name not in HOW_IT_COMPUTES}
    plain = {name: value.tolist() if isinstance(value, Tensor) else value for name, value in sorted(defaults.items())}
    return f"{kind.__module__}.{kind.__qualname__} {plain}"


def weights_hash(weights: Mapping[str, Tensor] | None) -> str:
    if weights is None:
        return ""
    digest = hashlib.sha256()
    for name in sorted(weights):
        value = weights[name].detach().cpu().contiguous()
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]
