"""Any nn.Module as an encoder."""

import copy
from collections.abc import Mapping
from typing import Any, final

import torch
from torch import Tensor, nn

from dicot.core.errors import InputError
from dicot.nets.encoders.base import Encoder, home_of, in_eval_mode

N_PROBE = 2  # cases; one alone would pass for a module that mixes up its axes


def as_encoder(module: nn.Module, n_channels: int, n_times: int) -> Encoder:
    """Return a module as an encoder for cases of n_channels and, at first, n_times; an Encoder stays what it is.

    The module maps (B, C, T) to features (B, F, T'), or to one vector per case (B, F). It is asked once, with a small
    batch of zeros in eval mode, and is not changed.
    """
    return module if isinstance(module, Encoder) else ForeignEncoder(module, n_channels, n_times)


@final
class ForeignEncoder(Encoder):
    """A module that was not written for this library; `features` has its modules' names.

    A vector per case, (B, F), counts as features of one time step, (B, F, 1). `keep` sets time steps of the input to
    zero: where a foreign module projects its input is not known. Cases of other lengths than n_times are handed to the
    module as they are.
    """

    def __init__(self, module: nn.Module, n_channels: int, n_times: int) -> None:
        if not isinstance(module, nn.Module):
            raise InputError(f"An encoder must be an nn.Module (an instance, not its class); got {module!r}.")
        device, _ = home_of(module)
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):  # it may draw in eval mode too
            shape = _shape_out(module, n_channels, n_times)
        super().__init__(n_channels, shape[1])
        self.module = module
        self.n_times = self.probe_length = n_times
        self.per_time_step = shape[2:] == (n_times,)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        self.check_shape(x.shape)
        y: Tensor = self.module(x if keep is None else x * keep.unsqueeze(1))
        y = y.unsqueeze(-1) if y.dim() == 2 else y
        if y.shape[:2] != (len(x), self.dim) or (self.per_time_step and y.shape[2] != x.shape[2]):
            raise InputError(
                f"{self.describe()} gives {tuple(y.shape)} for cases {tuple(x.shape)}; for {self.n_times} time steps "
                f"it gave {self.dim} features{' per time step' if self.per_time_step else ''}."
            )
        return y.float() if y.dtype in (torch.float16, torch.bfloat16) else y  # losses are too coarse in half precision

    def layers(self) -> Mapping[str, nn.Module]:
        return {name: part for name, part in self.module.named_modules() if name}

    def out_length(self, n_times: int) -> int:
        if self.per_time_step:
            return n_times
        return (*_shape_out(self.module, self.n_channels, n_times), 1)[2]

    def fresh(self) -> "ForeignEncoder":
        """Return a copy whose parts have drawn new weights, each by its `reset_parameters`."""
        encoder = copy.deepcopy(self)
        # Parts before the whole: nn.MultiheadAttention sets weights of its parts.
        for name, part in reversed(list(encoder.module.named_modules())):
            reset = getattr(part, "reset_parameters", None) or getattr(part, "_reset_parameters", None)
            if reset is not None:
                reset()
            elif next(part.parameters(recurse=False), None) is not None:
                whole = f"{name!r} of {self.describe()}" if name else self.describe()
                raise InputError(
                    f"{whole}, a {type(part).__name__}, has weights and no reset_parameters() to draw new ones. Add it."
                )
        return encoder

    def config(self) -> Mapping[str, Any]:
        """Say which module it is; it cannot be made from that alone."""
        return {"module": self.describe(), "n_channels": self.n_channels, "n_times": self.n_times, "dim": self.dim}

    def describe(self) -> str:
        kind = type(self.module)
        return f"{kind.__module__}.{kind.__qualname__}"


def _shape_out(module: nn.Module, n_channels: int, n_times: int) -> tuple[int, ...]:
    """Return (B, F, T') or (B, F), the shape of what the module gives for a small batch."""
    device, dtype = home_of(module)
    shape = (N_PROBE, n_channels, n_times)
    with in_eval_mode(module):
        y = module(torch.zeros(shape, device=device, dtype=dtype))
    got = tuple(y.shape) if isinstance(y, Tensor) and y.is_floating_point() else type(y).__name__
    if isinstance(got, str) or len(got) not in (2, 3) or got[0] != N_PROBE or 0 in got:
        raise InputError(
            f"{type(module).__name__} must give floats (B, F, T) or (B, F), with B = {N_PROBE} for cases {shape}; "
            f"got {got}."
        )
    return got
