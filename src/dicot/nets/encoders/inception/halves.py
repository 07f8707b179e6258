"""Products of float32 by the matrix units of a GPU, which multiply halves: numbers of 16 bits (halves.cu).

A value is the sum of two halves, what one can hold and the rest of it, which keep 22 of its 24 bits; of the four
products of two such sums that of the rests is too small to matter. Where there are many, the small products are taken
first: the units cut off what is below the last bit of a sum. Halves have a small range: a case is multiplied by a power
of two that suits its largest value, which changes no bit of it, whatever the other cases are.

Where the kernels cannot be compiled, and on other devices, PyTorch's operators do the work.
"""

import math

import torch
from torch import Tensor

from dicot.core.gpu.kernels import KernelFile
from dicot.nets.encoders.inception.scratch import Scratch

ARGUMENTS = {"split": "PPiiiiiiifPPP", **dict.fromkeys(("pooled", "narrow_and_pooled"), "PPPPfiiiPPP")}
NARROW, POOLED = 32, 64  # columns of projections
CHANNELS = 16  # that they read at a time
N_WARPS, N_CASES = 4, 16  # of a block: time steps, and cases of each
LONG = 1000  # time steps
OLDEST = (8, 0)  # GPUs that have such matrix units
FILE = KernelFile("dicot.nets.encoders.inception", "halves.cu", ARGUMENTS)


def serve(like: Tensor, n_times: int) -> bool:
    """Tell whether to multiply tensors of this type and device so, for cases of so many time steps.

    It costs two of seven digits, because the units do not round, and pays for long cases.
    """
    fit = like.is_cuda and like.dtype == torch.float32 and n_times > LONG
    return fit and torch.cuda.get_device_capability(like.device) >= OLDEST and FILE.on(like.device) is not None


def in_parts(weight: Tensor) -> tuple[Tensor, Tensor, float]:
    """Return weights (float64) divided by a power of two, as halves and the rests, and the power."""
    unit = 2.0 ** (math.frexp(float(weight.abs().max()))[1] - 10)  # the largest is then 2^9 or more
    whole = (weight / unit).half()
    return whole, (weight / unit - whole).half(), unit


def largest_of_cases(u: Tensor) -> Tensor:
    """Return the largest absolute value of each case, (T, B, C) -> (B,)."""
    largest: Tensor = torch.linalg.vector_norm(u, float("inf"), dim=(0, 2))
    return largest


def split_into(
    v: Tensor, largest: Tensor, unit: float, both: Tensor, whole: Tensor, factors: Tensor, *, left: int | None = None
) -> None:
    """Write v (T, B, C) as halves that are multiplied by a power of two that suits the `largest` value of each case.

    both (T, B, 2 C) gets what a half can hold of the values and then the rests, whole (T, B, C) the first of these,
    factors (B,) what takes the power of two back, times `unit`. With `left` cases come first, (B, more than T, ...),
    and the ends are repeated: the first one so often.
    """
    n_times, n_cases, width = v.shape
    n_padded, order = (n_times, (1, n_cases)) if left is None else (whole.shape[1], (whole.shape[1], 1))
    grid, block = (min(-(-whole.numel() // (4 * 256)), 65535), 1, 1), (256, 1, 1)
    sizes = n_times, n_cases, width, left or 0, n_padded, *order
    FILE.launch("split", v.device, grid, block, v, largest, *sizes, unit, both, whole, factors)


def multiply_into(y: Tensor, a: Tensor, b: Tensor, *, add: bool = False) -> None:
    """Write the product of matrices of halves, or of a batch of them, into y, which is float32; or add it."""
    aten, single = torch.ops.aten, a.dim() == 2
    if add:
        (aten.addmm if single else aten.baddbmm).dtype_out(y, a, b, torch.float32, out=y)
    else:
        (aten.mm if single else aten.bmm).dtype_out(a, b, torch.float32, out=y)


class HalvedMap:
    """A linear map of each time step, with weights (C, O)."""

    def __init__(self, weight: Tensor) -> None:
        whole, rest, self.unit = in_parts(weight.double())
        self.small, self.large = torch.cat([rest, whole]), whole

    def __call__(self, u: Tensor, largest: Tensor, out: Tensor, factors: Tensor, scratch: Scratch) -> None:
        """Write what u (T, B, C) is mapped to into out (T, B, O), up to `factors` (B,) to multiply cases by."""
        n_times, n_cases, width = u.shape
        both = scratch.take("both rows", n_times * n_cases, 2 * width, dtype=torch.float16)
        whole = scratch.take("whole rows", n_times * n_cases, width, dtype=torch.float16)
        split_into(u, largest, self.unit, both, whole, factors)
        y = out.flatten(0, 1)
        multiply_into(y, both, self.small)
        multiply_into(y, whole, self.large, add=True)


class Projections:
    """The maps of a module that take one time step each: u * narrow + bias, and (largest of three time steps) * pooled.

    u is read once for both, and what is pooled is never written. The weights are (C, 32), or None, and (C, 64).
    """

    def __init__(self, narrow: Tensor | None, bias: Tensor, pooled: Tensor) -> None:
        self.name = "pooled" if narrow is None else "narrow_and_pooled"
        joint = pooled if narrow is None else torch.cat([narrow, pooled], dim=1)
        whole, rest, self.unit = in_parts(joint.double())
        self.weights, self.bias = torch.cat([_in_tiles(whole), _in_tiles(rest)], dim=3).contiguous(), bias

    @staticmethod
    def serve(like: Tensor, n_times: int, narrow: Tensor | None, pooled: Tensor) -> bool:
        """Tell whether there is a kernel for such weights (see the function `serve`)."""
        widths = pooled.shape[1] == POOLED and (narrow is None or narrow.shape[1] == NARROW)
        return widths and len(pooled) % CHANNELS == 0 and serve(like, n_times)

    def __call__(self, u: Tensor, largest: Tensor, v: Tensor, largest_of_v: Tensor, z: Tensor) -> None:
        """Write both for u (T, B, C) into v (T, B, 32), which is left as it is if there is no `narrow`, and z.

        largest (B,) are the largest absolute values of u's cases; largest_of_v become those of v's.
        """
        if self.name == "pooled":
            torch.amax(v.abs(), dim=(0, 2), out=largest_of_v)
        else:
            largest_of_v.zero_()
        n_times, n_cases, width = u.shape
        grid = -(-n_times // N_WARPS), -(-n_cases // N_CASES), 1
        numbers = self.unit, n_times, n_cases, width
        given = u, largest, self.weights, self.bias, *numbers, v, largest_of_v, z
        FILE.launch(self.name, u.device, grid, (32 * N_WARPS, 1, 1), *given)


def _in_tiles(weight: Tensor) -> Tensor:
    """Order weights (C, O) as threads read them: (C / 16, O / 8, thread, four channels)."""
    tiles = weight.view(len(weight) // CHANNELS, 4, 4, -1, 8)  # (C / 16, q, four channels, O / 8, column)
    return tiles.permute(0, 3, 4, 1, 2).flatten(2, 3)
