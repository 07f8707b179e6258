"""Rows as pictures: the form in which PyTorch's BatchNorm and pooling are fast on rows of channels."""

from torch import Tensor


def as_picture(rows: Tensor) -> Tensor:
    """(M, C) as one picture (1, C, M, 1) whose channels are stored last; no copy."""
    return rows.view(1, len(rows), 1, -1).permute(0, 3, 1, 2)


def as_rows(picture: Tensor) -> Tensor:
    """The inverse of `as_picture`."""
    return picture.permute(0, 2, 3, 1).flatten(0, 2)
