"""Losses on their way from the device to the history, without making the host wait for them."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from dicot.errors import NonFiniteLossError
from dicot.train.history import History

EVERY = 50  # steps whose losses are fetched at once from a GPU


class LossReader:
    """Collects the losses of a run; on a CPU each is read at once, on a GPU in batches that arrive later."""

    def __init__(self, history: History, place: torch.device) -> None:
        self.history, self.on_gpu = history, place.type == "cuda"
        self.unread: list[Tensor] = []
        self.coming: tuple[Tensor, Any] | None = None  # on the host once the event has happened

    def add(self, loss: Tensor) -> None:
        self.unread.append(loss.clone())  # the next step may overwrite it

    def read(self, *, wait: bool = False) -> bool:
        """Move what has arrived, with `wait` all there is, into the history; whether there was something."""
        before = len(self.history)
        if not self.on_gpu:
            self._take(torch.stack(self.unread))
            self.unread.clear()
            return True
        full = len(self.unread) >= EVERY
        if self.coming is not None and (wait or full or self.coming[1].query()):
            self.coming[1].synchronize()
            self._take(self.coming[0])
            self.coming = None
        if self.unread and (wait or full):
            self.coming = torch.stack(self.unread).to("cpu", non_blocking=True), torch.cuda.Event()  # type: ignore[no-untyped-call]
            self.coming[1].record()
            self.unread.clear()
        if wait and self.coming is not None:
            return self.read(wait=True)
        return len(self.history) > before

    def _take(self, losses: Tensor) -> None:
        for loss in losses.tolist():
            if not np.isfinite(loss):
                raise NonFiniteLossError(
                    f"The loss of step {len(self.history)} is {loss}. "
                    "Scale the data (scale='dataset'), lower lr, or raise temperature."
                )
            self.history.loss.append(loss)
