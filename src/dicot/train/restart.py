"""A run that is begun once more because memory did not suffice."""

import traceback

import torch

from dicot.data import Windows
from dicot.errors import DeviceMemoryError
from dicot.gpu.device import describe_device
from dicot.methods import Method
from dicot.train.recipe import Recipe


class Start:
    """A method as it was before its run.

    A step that fails halfway has changed weights and statistics: the run is begun anew, or from its checkpoint. What
    `prepare` builds is built again then.
    """

    def __init__(self, method: Method) -> None:
        self.method = method
        self.state = {name: value.detach().to("cpu", copy=True) for name, value in method.state_dict().items()}

    @torch.no_grad()
    def restore(self) -> None:
        self.method.zero_grad()
        present = self.method.cpu().state_dict()
        for name, value in self.state.items():
            if name in present and present[name].shape == value.shape:
                present[name].copy_(value)


def forget(error: BaseException) -> None:
    """Let go of what the functions that failed have in memory: an error that somebody keeps would keep it as well."""
    traceback.clear_frames(error.__traceback__)


def too_large(train: Windows, recipe: Recipe, place: torch.device) -> DeviceMemoryError:
    """The error of a run that does not fit in any way."""
    return DeviceMemoryError(
        f"Batches of {min(recipe.batch_size, len(train))} cases of {train.n_times} time steps do not fit into the "
        f"memory of {describe_device(place)}, not even without other runs and op by op. Lower batch_size, or use "
        "shorter windows."
    )
