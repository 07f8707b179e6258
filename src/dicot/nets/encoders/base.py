"""The one interface every encoder answers."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dicot.core.errors import InputError, is_whole
from dicot.nets.encoders.inspection import Modules, home_of, in_eval_mode, layer_outputs, stages_of

FrozenNetwork = Callable[[Tensor], Tensor]  # with fixed weights, for cases of one length: (B, C, T) -> (B, F, T)
CACHE = "_cache_"  # attributes whose names begin so can be computed again; copies and pickles do without


@dataclass
class Prepared:
    """A frozen network, and whether it gives a single case the bits that it has among others; None: not known yet."""

    network: FrozenNetwork
    key: object
    same_alone: bool | None = None


class Encoder(nn.Module, ABC):
    """Map a batch of cases (B, C, T) to features per time step (B, F, T); T is free, C is fixed.

    Subclasses implement `forward`. An encoder keeps each argument of its constructor as an attribute of the same name,
    or overrides `config`.

    Attributes
    ----------
    n_channels, dim : C and F
    plain : compute module by module, as `forward` of the modules defines it, in training, inference and `embed`. An
        encoder with a faster path takes it otherwise, and skips the modules. A hook on an inner module makes it plain
        too
    per_time_step : whether there are features for each time step of the input; only a foreign module may have none
    """

    plain: bool = False
    per_time_step: bool = True
    probe_length: int = 8  # time steps of a case that every layer takes

    def __init__(self, n_channels: int, dim: int) -> None:
        super().__init__()
        for name, value in (("n_channels", n_channels), ("dim", dim)):
            if not is_whole(value, 1):
                raise InputError(f"{name} must be a whole number, 1 or more; got {value!r}.")
        self.n_channels = n_channels
        self.dim = dim

    @abstractmethod
    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """Compute (B, C, T) -> (B, F, T); where the boolean `keep` (B, T) is False, the projected input is zero."""

    @property
    def takes_length(self) -> bool:
        """Tell whether `forward` in train mode takes a third argument, `length`, a whole number in a tensor.

        It then gives features (B, F, T) whose first `length` time steps are those of the first `length` time steps of x
        and keep alone, whatever the others hold. One CUDA graph can so train on cases of changing length.
        """
        return False

    def config(self) -> Mapping[str, Any]:
        """Return the constructor arguments that make an encoder of the same shape."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def describe(self) -> str:
        """Return the full name of the class that computes the features."""
        return f"{type(self).__module__}.{type(self).__qualname__}"

    def fresh(self) -> "Encoder":
        """Return an encoder of the same shape with new weights."""
        return type(self)(**self.config())

    def embed(self, x: Tensor) -> Tensor:
        """Compute (B, C, T) -> (B, F), the mean over time of the features, in the mode the module is in."""
        features: Tensor = self(x)
        return features.mean(dim=-1)

    def features(self, x: Tensor) -> dict[str, Tensor]:
        """Return the output of every layer by name, (B, F_layer, T), from input to output.

        The last one is what `forward` gives. Takes the plain path, in the mode the module is in.
        """
        return layer_outputs(self, x, self.layers())

    def layers(self) -> Mapping[str, nn.Module]:
        """Return the modules whose outputs are the layers; here every inner module, by its name."""
        return {name: module for name, module in self.named_modules() if name}

    def stages(self) -> list[list[nn.Parameter]]:
        """Return all parameters in groups from input to output, for rates that fall towards the input.

        Here one group for each inner module, in the order in which they were made; containers are opened. An encoder
        whose modules were made in another order overrides this.
        """
        return stages_of(self)

    def layer_dims(self) -> dict[str, int]:
        """Return the width F of every layer by name."""
        modules = self.inner_modules()
        if modules.layer_dims is None:
            device, dtype = home_of(self)
            with in_eval_mode(self):
                outputs = self.features(torch.zeros(2, self.n_channels, self.probe_length, device=device, dtype=dtype))
            modules.layer_dims = {name: output.shape[1] for name, output in outputs.items()}
        return modules.layer_dims

    def out_length(self, n_times: int) -> int:
        """Return the number of time steps of the features for cases of n_times."""
        return n_times

    def frozen(self, n_times: int, dtype: torch.dtype | None = None) -> FrozenNetwork:
        """Return a function that computes `forward` with the weights as they are, for many batches of cases of n_times.

        Here the encoder itself, in the mode it is in; an encoder that can prepare its weights for inference does so.
        With a `dtype` its convolutions are computed in that type, and the features may be of that type too.
        """

        def compute(x: Tensor) -> Tensor:
            with torch.autocast(x.device.type, dtype, enabled=dtype is not None):
                features: Tensor = self(x)
                return features

        return compute

    @contextmanager
    def prepared(self, n_times: int, dtype: torch.dtype | None = None) -> Iterator[Prepared]:
        """Give what `frozen` makes, which is kept for as long as the weights stay the same.

        To prepare a network takes longer than to embed a single case. One caller at a time has it, because it works in
        memory of its own; a second one has another prepared.
        """
        modules = self.inner_modules()
        key = (n_times, dtype, self.plain, modules.have_hooks(), modules.versions())
        kept: Prepared | None = self.__dict__.pop(CACHE + "prepared", None)
        if kept is None or kept.key != key:
            kept = Prepared(self.frozen(n_times, dtype), key)
        yield kept
        self.__dict__[CACHE + "prepared"] = kept

    def forget_prepared(self) -> None:
        """Free the prepared network, with the memory it works in."""
        self.__dict__.pop(CACHE + "prepared", None)

    def is_plain(self) -> bool:
        """Tell whether to compute module by module: `plain` is set, or somebody has hooked into an inner module."""
        return self.plain or self.inner_modules().have_inner_hooks()

    def inner_modules(self) -> Modules:
        """Return the list of the modules, which is made again only after one of them was replaced."""
        modules: Modules | None = self.__dict__.get(CACHE + "modules")
        if modules is None or not modules.is_current():
            modules = self.__dict__[CACHE + "modules"] = Modules(self)
        return modules

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be computed again, and how its passes are divided among ranks at present."""
        return {
            name: value
            for name, value in vars(self).items()
            if not name.startswith(CACHE) and name not in ("forward", "embed")
        }

    def check_shape(self, shape: Sequence[int]) -> None:
        """Refuse other shapes in words before a convolution does it in numbers."""
        if len(shape) != 3 or shape[1] != self.n_channels:
            raise InputError(f"This encoder takes (batch, {self.n_channels} channels, time); got {tuple(shape)}.")
