"""What can be asked of any network: its device, its layers' outputs, hooks of a user, parameters by depth."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from threading import get_ident
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


def home_of(network: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Return the device and the type that a network computes in; one without weights takes float32 on the CPU."""
    tensors = chain(network.parameters(), network.buffers())
    first = next((tensor for tensor in tensors if tensor.is_floating_point()), torch.empty(0))
    return first.device, first.dtype


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
    """The modules of a network, listed once: walking through them takes longer than what is asked of them.

    layer_dims: what `Encoder.layer_dims` returns, once it has been asked.
    """

    def __init__(self, network: nn.Module) -> None:
        self.all = tuple(network.modules())  # the network itself comes first
        self.layer_dims: dict[str, int] | None = None
        self._children = [(module._modules, tuple(module._modules.values())) for module in self.all]
        self._own_hooks = _hooks_of(network)
        self._inner_hooks = [hooks for module in self.all[1:] for hooks in _hooks_of(module)]

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


def has_hooks(network: nn.Module) -> bool:
    """Tell whether the network or any module inside it has a hook."""
    return Modules(network).have_hooks()


def _hooks_of(module: nn.Module) -> tuple[Mapping[int, Callable[..., object]], ...]:
    return module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks


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
    stages: list[list[nn.Parameter]] = []
    seen: set[int] = set()
    for group in _groups(network):
        new = [parameter for parameter in group if id(parameter) not in seen]
        seen |= {id(parameter) for parameter in new}
        if new:
            stages.append(new)
    return stages


def _groups(network: nn.Module) -> Iterator[list[nn.Parameter]]:
    own = list(network.parameters(recurse=False))
    parts = [part for part in network.children() if any(True for _ in part.parameters())]
    if own:
        yield own
    for part in parts:
        holds_all = len(parts) == 1 and not own and any(True for _ in part.children())
        if holds_all or isinstance(part, CONTAINERS):
            yield from _groups(part)
        else:
            yield list(part.parameters())
