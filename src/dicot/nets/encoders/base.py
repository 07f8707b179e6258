"""The one interface every encoder answers, and what can be asked of any network."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from threading import get_ident
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

from dicot.core.errors import InputError, is_whole

FrozenNetwork = Callable[[Tensor], Tensor]  # with fixed weights, for cases of one length: (B, C, T) -> (B, F, T)
CACHE = "_cache_"  # attributes whose names begin so can be computed again; copies and pickles do without
CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


def same_margins(kernel: int) -> tuple[int, int]:
    """Return how many samples to add on the left and on the right; an even kernel takes the extra one on the right."""
    left = (kernel - 1) // 2
    return left, kernel - 1 - left


def is_exporting() -> bool:
    """Tell whether torch records a graph that has to take cases of any number and length: nothing may branch on them.

    While it does, sizes are tensors.
    """
    return torch.compiler.is_exporting() or torch.onnx.is_in_onnx_export()


def larger(size: Any, other: Any) -> Any:
    """Return the larger of two sizes."""
    if isinstance(size, Tensor) or isinstance(other, Tensor):
        return torch.maximum(torch.as_tensor(size), torch.as_tensor(other))
    return torch.sym_max(size, other)  # type: ignore[no-untyped-call]


def smaller(size: Any, other: Any) -> Any:
    """Return the smaller of two sizes."""
    return -larger(-size, -other)


def as_number(size: Any) -> Tensor:
    """Return a size as a whole number in a tensor."""
    return size if isinstance(size, Tensor) else torch.full((), size)


def repeat_edges(x: Tensor, left: int, right: int) -> Tensor:
    """Repeat the outermost values, (..., T) -> (..., left + T + right).

    As torch's replicate padding, whose backward pass on a GPU adds up in an order that changes from run to run.
    """
    edges = x[..., :1].expand(*x.shape[:-1], left), x[..., -1:].expand(*x.shape[:-1], right)
    return torch.cat([edges[0], x, edges[1]], dim=-1)


def home_of(network: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Return the device and the type that a network computes in; one without weights takes float32 on the CPU."""
    tensors = chain(network.parameters(), network.buffers())
    first = next((tensor for tensor in tensors if tensor.is_floating_point()), torch.empty(0))
    return first.device, first.dtype


def exact(parameter: Tensor) -> Tensor:
    """Copy a parameter in double precision, on a GPU or else on the host: not every device has it."""
    device = parameter.device if parameter.is_cuda else "cpu"
    return parameter.detach().to(device, torch.float64, copy=True)


def scale_and_shift(norm: nn.BatchNorm1d) -> tuple[Tensor, Tensor]:
    """Return BatchNorm in eval mode as scale * x + shift."""
    assert norm.running_mean is not None and norm.running_var is not None
    scale = exact(norm.weight) / (exact(norm.running_var) + norm.eps).sqrt()
    return scale, exact(norm.bias) - scale * exact(norm.running_mean)


def folded(conv: nn.Conv1d, norm: nn.BatchNorm1d) -> tuple[Tensor, Tensor]:
    """Return weight and bias of a convolution with the BatchNorm behind it, in eval mode, folded in."""
    scale, shift = scale_and_shift(norm)
    bias = shift if conv.bias is None else shift + scale * exact(conv.bias)
    return (exact(conv.weight) * scale[:, None, None]).to(conv.weight), bias.to(conv.weight)


@contextmanager
def in_eval_mode(network: nn.Module) -> Iterator[None]:
    """Put the network into eval mode without gradients; afterwards every module is in its own mode again."""
    modes = [(module, module.training) for module in network.modules()]
    network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training


class Modules:
    """The modules of a network, listed once: walking through them takes longer than what is asked of them."""

    def __init__(self, network: nn.Module) -> None:
        self.all = tuple(network.modules())  # the network itself comes first
        self.layer_dims: dict[str, int] | None = None  # what `Encoder.layer_dims` returns, once it has been asked
        self._children = [(module._modules, tuple(module._modules.values())) for module in self.all]
        self._own_hooks, *inner = [
            (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
            for module in self.all
        ]
        self._inner_hooks = [*chain(*inner)]

    def is_current(self) -> bool:
        """Tell whether no module has been added, removed or replaced since."""
        return all(tuple(now.values()) == then for now, then in self._children)

    def have_inner_hooks(self) -> bool:
        """Tell whether any module inside the network has a hook; takes microseconds, since every pass asks."""
        return any(self._inner_hooks) or bool(_has_any_global_hook())  # type: ignore[no-untyped-call]

    def have_hooks(self) -> bool:
        """Tell whether the network itself or any module inside it has a hook."""
        return any(self._own_hooks) or self.have_inner_hooks()

    def versions(self) -> list[object]:
        """Return values that change with the weights as autograd counts it: writing to `weight.data` is not noticed."""
        tensors = [t for m in self.all for t in (*m._parameters.values(), *m._buffers.values()) if t is not None]
        return [(t.device, t.dtype, t.data_ptr(), 0 if t.is_inference() else t._version) for t in tensors]


def layer_outputs(network: nn.Module, x: Tensor, layers: Mapping[str, nn.Module]) -> dict[str, Tensor]:
    """Call the network, and return the outputs (B, F, T) of these modules in the order they came.

    The network's own output comes last, and is called "output" unless a layer gives it. A module that is called again
    gets another entry, "name:2". One that hands on what a module inside it gave, such as nn.Sequential, gets none.
    """
    outputs: dict[str, Tensor] = {}
    latest, source = x, ""  # the output that came last, and the name of its entry
    thread = get_ident()

    def add(name: str, output: Tensor) -> None:
        nonlocal latest, source
        calls = 1 + sum(key == name or key.startswith(f"{name}:") for key in outputs)
        latest, source = output, name if calls == 1 else f"{name}:{calls}"
        outputs[source] = output.clone()  # the network may go on to change it in place

    def read(name: str, module: nn.Module, inputs: object, output: object) -> None:
        is_layer = isinstance(output, Tensor) and output.dim() == 3 and len(output) == len(x)
        handed_on = output is latest and source.startswith(f"{name}.")
        if is_layer and not handed_on and get_ident() == thread:  # else another thread is using the network too
            add(name, cast(Tensor, output))

    handles = [module.register_forward_hook(partial(read, name)) for name, module in layers.items()]
    try:
        y: Tensor = network(x)
    finally:
        for handle in handles:
            handle.remove()
    if y is not latest:
        add("output", y)
    outputs[source] = y
    return outputs


def stages_of(network: nn.Module) -> list[list[nn.Parameter]]:
    """Return all parameters, one group for each inner module in the order in which they were made.

    Containers are opened, and so is a module that holds all the others. A parameter that is used in several places
    belongs to the first of them.
    """
    own = list(network.parameters(recurse=False))
    parts = [part for part in network.children() if any(True for _ in part.parameters())]
    groups = [own]
    for part in parts:
        holds_all = len(parts) == 1 and not own and any(True for _ in part.children())
        groups += stages_of(part) if holds_all or isinstance(part, CONTAINERS) else [list(part.parameters())]
    seen: set[nn.Parameter] = set()
    stages = []
    for group in groups:
        stages.append([parameter for parameter in group if parameter not in seen])
        seen.update(group)
    return [stage for stage in stages if stage]


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
    needs_levels: bool = True
    probe_length: int = 8  # time steps of a case that every layer takes
    fewest_channels: int = 1

    def __init__(self, n_channels: int, dim: int) -> None:
        super().__init__()
        for name, value, least in (("n_channels", n_channels, self.fewest_channels), ("dim", dim, 1)):
            if not is_whole(value, least):
                raise InputError(f"{name} must be a whole number, {least} or more; got {value!r}.")
        self.n_channels, self.dim = n_channels, dim

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

    @property
    def embed_dim(self) -> int:
        """Return the length of the vectors that `embed` makes."""
        return self.dim

    def pass_width(self, n_channels: int) -> int:
        """Return how many numbers a pass holds for each time step of a case, in the widest of its layers."""
        return max(self.dim, n_channels)

    def features(self, x: Tensor) -> dict[str, Tensor]:
        """Return the output of every layer by name, (B, F_layer, T), by the plain path; the last is `forward`'s."""
        return layer_outputs(self, x, self.layers())

    def layers(self) -> Mapping[str, nn.Module]:
        """Return the modules whose outputs are the layers; here every inner module, by its name."""
        return {name: module for name, module in self.named_modules() if name}

    def stages(self) -> list[list[nn.Parameter]]:
        """Return all parameters in groups from input to output; modules made in another order need an override."""
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

    def frozen_embed(self, n_times: int, dtype: torch.dtype | None = None) -> FrozenNetwork:
        """Return the same for `embed`, (B, C, T) -> (B, embed_dim)."""
        network = self.frozen(n_times, dtype)
        return lambda x: network(x).mean(dim=-1, dtype=torch.promote_types(x.dtype, torch.float32))

    @contextmanager
    def prepared(self, n_times: int, dtype: torch.dtype | None = None, *, pooled: bool = False) -> Iterator[Prepared]:
        """Give what `frozen`, or where it is `pooled` `frozen_embed`, makes; kept while the weights stay the same.

        To prepare a network takes longer than to embed a single case. One caller at a time has it, because it works in
        memory of its own; a second one has another prepared.
        """
        modules = self.inner_modules()
        key = (n_times, dtype, pooled, self.plain, modules.have_hooks(), modules.versions())
        kept: Prepared | None = self.__dict__.pop(CACHE + "prepared", None)
        if kept is None or kept.key != key:
            kept = Prepared((self.frozen_embed if pooled else self.frozen)(n_times, dtype), key)
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
        left_out = ("forward", "embed")
        return {name: v for name, v in vars(self).items() if not name.startswith(CACHE) and name not in left_out}

    def check_shape(self, shape: Sequence[int]) -> None:
        """Refuse other shapes in words before a convolution does it in numbers."""
        if len(shape) != 3 or shape[1] != self.n_channels:
            raise InputError(f"This encoder takes (batch, {self.n_channels} channels, time); got {tuple(shape)}.")
