"""CaTT, Contrast All The Time: the time steps of a batch in one list, neighbours in the list are positives."""

import warnings
from collections.abc import Hashable
from typing import Any, ClassVar

from torch import Tensor

from dicot.encoders import Encoder
from dicot.errors import InputError, lookup
from dicot.losses.adjacent_step import FORMS, adjacent_step
from dicot.methods.base import Batch, Method, TrainingSet


class CaTT(Method):
    """No views and no parts beside the encoder.

    form: "two_sided", both neighbours in time are positives, or "next", only the following step.
    mask_boundaries: the last step of a window and the first of the next one in the batch are not a positive pair
    (the authors keep these B - 1 pairs).
    """

    needs_time_steps: ClassVar[bool] = True
    summary: ClassVar[str] = "pick the neighbouring time steps among all time steps of the batch"
    paper: ClassVar[str] = "Contrast All The Time, arXiv 2410.15416"
    complexity: ClassVar[str] = (
        "one encoder pass; loss O((B T)^2 F) time and O(B T F) memory, pairs in blocks of 16 MiB"
    )

    def __init__(
        self,
        encoder: Encoder,
        *,
        temperature: float = 0.5,
        form: str = "two_sided",
        mask_boundaries: bool = False,
    ) -> None:
        super().__init__(encoder)
        if not temperature > 0:
            raise InputError(f"temperature must be above 0; got {temperature}.")
        lookup(FORMS, form, "form")
        self.temperature, self.form, self.mask_boundaries = temperature, form, mask_boundaries

    @classmethod
    def paper_params(cls, family: str | None) -> dict[str, Any]:
        # D-34. The ECG set is the exception among the large ones, 0.5, which the family does not tell: set it there.
        return {"temperature": 0.1 if family == "large" else 0.5}

    def prepare(self, train: TrainingSet) -> None:
        if train.n_times > 1:
            return
        if self.mask_boundaries:
            raise InputError(
                "The cases have 1 time step, so with mask_boundaries=True no step has a neighbour. "
                "Use longer windows, or mask_boundaries=False."
            )
        warnings.warn(
            "The cases have 1 time step: the neighbours CaTT learns from are then other cases, in random order. "
            "Use longer windows.",
            stacklevel=2,
        )

    def loss(self, batch: Batch, plan: Hashable) -> Tensor:
        features: Tensor = self.encoder(batch.x)  # (B, F, T)
        return adjacent_step(
            features.transpose(1, 2), self.temperature, self.form, mask_boundaries=self.mask_boundaries
        )
