"""Rows of one rank, where BatchNorm looks at those of all ranks."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dicot.core.processes.ranks import Ranks
from dicot.nets.encoders.division import DIVISION, Division, Normalised, norm_gradients, normalise
from dicot.nets.encoders.inception.rows import Normed, RowOperations

aten = torch.ops.aten


class DividedRows:
    """The functions of `rows` for the rows of one rank; `pooling` has those that no other case changes."""

    def __init__(self, ranks: Ranks, pooling: RowOperations) -> None:
        self.ranks, self.pool_forward, self.pool_backward = ranks, pooling.pool_forward, pooling.pool_backward

    def norm_forward(
        self, parts: Sequence[Tensor], norm: nn.BatchNorm1d, bias: Tensor, added: Tensor | None = None
    ) -> Normed:
        """See `rows.norm_forward`."""
        x = torch.cat(list(parts), dim=1) if len(parts) > 1 else parts[0]
        centred, rstd, n_rows = normalise(x, norm, self.ranks, bias)
        y = torch.addcmul(norm.bias, centred, norm.weight * rstd)
        y = y if added is None else y.add_(added)
        return Normed([centred], y.relu_(), torch.stack([rstd, n_rows.expand_as(rstd)]))

    def norm_backward(
        self, dy: Tensor, saved: Normed, norm: nn.BatchNorm1d, widths: Sequence[int], masked: bool = True
    ) -> tuple[Sequence[Tensor], Tensor, Tensor]:
        """See `rows.norm_backward`; the gradients of scale and shift are this rank's part of them."""
        dpre = aten.threshold_backward(dy, saved.y, 0) if masked else dy
        (centred,), (rstd, n_rows) = saved.x, saved.statistics
        dx, dweight, dbias = norm_gradients(dpre, Normalised(centred, rstd, n_rows), norm.weight, self.ranks)
        return torch.split(dx, list(widths), dim=1), dweight, dbias


def divided_rows(norm: nn.Module, pooling: RowOperations) -> RowOperations:
    """Return the operations on rows for the pass that is under way: `pooling`, those of one process, if undivided."""
    division: Division | None = norm.__dict__.get(DIVISION)
    return pooling if division is None or division.part is None else DividedRows(division.ranks, pooling)
