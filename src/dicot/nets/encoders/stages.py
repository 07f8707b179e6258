"""The parameters of a network in groups from input to output."""

from collections.abc import Iterator

from torch import nn

CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


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
