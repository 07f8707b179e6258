"""One training run of several processes: `torchrun` starts them, torch.distributed carries what they exchange.

All of them draw the same batch and compute the same loss. What they divide is the work of the encoders: each encodes
its share of the cases, and the features of all shares are gathered with their gradients. BatchNorm takes its statistics
over the whole batch, dropout draws for the whole batch, and gradients are averaged before every step. So loss and
weights are those of one process but for rounding, whatever cases a method compares.
"""

import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from datetime import timedelta
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous
from torch.nn.modules.batchnorm import _BatchNorm

from dicot.core.errors import DicotError, InputError, LostWorkerError
from dicot.core.place import Place, cores, find_place
from dicot.data.cases import Cases
from dicot.nets.encoders.base import Encoder, home_of

PATCHED = ("forward", "embed")  # attributes of modules while their work is shared
FEWEST = 2  # cases of a share: one alone could leave BatchNorm a single value
T = TypeVar("T")
_place = Place()  # of this process among those that it trains with


def current_place() -> Place:
    return _place


@contextmanager
def join_ranks(*, device: str = "auto", timeout: float = 600.0) -> Iterator[Place]:
    """Train with the other processes that torchrun has started: inside, each `fit` and `pretrain` is one run of all.

    Every process makes the same calls with the same data and seed, and all end with the same weights.
    On GPUs each takes the one of its number on its machine. Started as a single process, nothing changes. `timeout` is
    in seconds: a process that waits longer for the others gives up.
    """
    global _place
    place = find_place()
    if place.world == 1:
        yield place
        return
    lost = ""
    try:
        if device != "cpu" and torch.cuda.is_available():
            torch.cuda.set_device(place.local_rank)
        dist.init_process_group(**_meeting(place, timedelta(seconds=timeout)))
        _place = place
        yield place
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and "gloo" not in str(error):
            raise
        lost = str(error).splitlines()[0].split(". ")[0]
        traceback.clear_frames(error.__traceback__)  # they hold the group, whose threads may abort a process at its end
    finally:
        _place = Place()
        if dist.is_initialized():
            dist.destroy_process_group()
    if lost:
        said = (
            "Another process of this run has ended or does not answer. The same command, with any number of processes,"
        )
        raise LostWorkerError(f"{said} continues from the checkpoint, if there is one. ({lost})")


def _meeting(place: Place, timeout: timedelta) -> dict[str, Any]:
    """Say where the processes find each other; by default they exchange by gloo on a CPU and NCCL on GPUs.

    When torchrun starts all of them again, the addresses of the dead ones remain in its store: each start has a part of
    its own there.
    """
    store, _, _ = next(rendezvous("env://", place.rank, place.world, timeout=timeout))
    store = dist.PrefixStore(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"), store)  # type: ignore[attr-defined]
    return {"store": store, "rank": place.rank, "world_size": place.world, "timeout": timeout}


def start_processes(count: int, words: Sequence[str], again: str) -> None:
    """Start `python -m WORDS` as so many processes of this machine by torchrun; `again` says how a lost run goes on."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main as torchrun

    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores() // count)))  # else each would take all cores
    try:
        torchrun(["--standalone", "--nproc-per-node", str(count), "-m", "--", *words])
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        if failure.exitcode > 0:  # and the process has said why
            raise SystemExit(failure.exitcode) from error
        raise LostWorkerError(f"Process {rank} of {count} was killed by {failure.signal_name()}. {again}") from error


def from_first(make: Callable[[], T]) -> T:
    """Give every process what the first one makes; an error of ours is raised by all of them."""
    if _place.world == 1:
        return make()
    box: list[Any] = [None]
    if _place.is_first:
        try:
            box = [make()]
        except DicotError as error:
            box = [error]
    dist.broadcast_object_list(box, device=torch.device("cpu"))
    if isinstance(box[0], DicotError):
        raise box[0]
    made: T = box[0]
    return made


def agree(ends: bool, leaves: bool, losses: Sequence[float]) -> tuple[bool, bool]:
    """Tell whether any process wants the run to end, and whether any is to leave it; refuse losses that differ."""
    if _place.world == 1:
        return ends, False
    own = torch.tensor([ends, leaves, len(losses), losses[-1] if losses else 0.0], dtype=torch.float64)
    end, leave, steps, latest = torch.stack(_from_all(own)).unbind(dim=1)
    is_same_step = bool((steps == steps[0]).all())
    if is_same_step and latest.max() - latest.min() > 1e-4 * latest.abs().max():  # more than rounding
        raise InputError(
            f"This method cannot be trained by several processes: the loss of step {int(steps[0])} is "
            f"{', '.join(f'{loss:.6g}' for loss in latest.tolist())} in them, and must be the same. A method may draw "
            "from torch's default generator alone. Train it in one process, or change the method."
        )
    return bool(end.any()), bool(leave.any())


def start_equal(method: nn.Module, identity: Mapping[str, Any]) -> None:
    """Give every process the weights of the first; refuse processes that are about to train other things."""
    if _place.world == 1:
        return
    everybodys: list[Any] = [None] * _place.world
    dist.all_gather_object(everybodys, dict(identity))
    differing = [name for name in identity if any(other.get(name) != identity[name] for other in everybodys)]
    if differing:
        raise InputError(
            f"The {_place.world} processes of this run were given different things to train: {', '.join(differing)}. "
            "Give all of them the same data, settings and seed (random_state)."
        )
    method.load_state_dict(from_first(lambda: {name: value.cpu() for name, value in method.state_dict().items()}))


@contextmanager
def shared_work(
    method: nn.Module, optimiser: torch.optim.Optimizer, train: Cases, reseed: Callable[[], None]
) -> Iterator[None]:
    """Share the passes of the method's encoders among the processes, and average gradients before each step.

    `reseed` fixes what a pass draws. With it a copy of each encoder is tried on a few cases first.
    """
    if _place.world == 1:
        yield
        return
    encoders = [module for module in method.modules() if isinstance(module, Encoder)]
    inner = {id(part) for encoder in encoders for part in encoder.modules() if part is not encoder}
    outermost = [encoder for encoder in encoders if id(encoder) not in inner]
    few = torch.from_numpy(train[slice(0, FEWEST * _place.world)].copy())
    for encoder in outermost:
        _check_divisible(encoder, few.to(*home_of(encoder)), reseed)
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    averaging = optimiser.register_step_pre_hook(lambda *_: _average(parameters))
    try:
        for encoder in outermost:
            _divide(encoder)
        yield
    finally:
        averaging.remove()
        for encoder in outermost:
            for module in encoder.modules():
                for name in PATCHED:
                    module.__dict__.pop(name, None)


@torch.no_grad()
def _check_divisible(encoder: Encoder, x: Tensor, reseed: Callable[[], None]) -> None:
    """Refuse an encoder whose features of a case depend on other cases in another way than is known here.

    A copy encodes a few cases x (B, C, T) as in training, in one piece and in shares, from the same random state.
    """
    reseed()
    whole = deepcopy(encoder)(x)
    copy = deepcopy(encoder)
    _divide(copy)
    reseed()
    difference = (whole - copy(x)).abs().max() / whole.abs().max().clamp(min=torch.finfo(whole.dtype).tiny)
    if difference > 0.01:  # far more than rounding, even in TF32; what is not finite is told by the loss
        raise InputError(
            f"{encoder.describe()} cannot be trained by several processes: encoded in {_place.world} parts, a batch "
            f"has features that differ by {float(difference):.0%} of the largest. Cases may depend on each other by "
            "BatchNorm alone, and draws may be those of nn.Dropout alone. Train it in one process, or change it."
        )


def _mean_over_processes(own: Tensor) -> Tensor:
    mean = own.contiguous() / _place.world
    dist.all_reduce(mean)
    return mean


def _average(parameters: Sequence[Tensor]) -> None:
    """Replace each gradient by its mean over the processes, all by one exchange."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    flat = _mean_over_processes(torch.cat([gradient.reshape(-1) for gradient in gradients]))
    for gradient, mean in zip(gradients, torch.split(flat, [gradient.numel() for gradient in gradients]), strict=True):
        gradient.copy_(mean.view_as(gradient))


def _from_all(own: Tensor) -> list[Tensor]:
    everybodys = [torch.empty_like(own) for _ in range(_place.world)]
    dist.all_gather(everybodys, own)
    return everybodys


def _divide(encoder: Encoder) -> None:
    """Have an encoder encode this process's share of the cases it is given, and return the features of all."""
    share = Share()
    for name in ("forward", "embed"):
        setattr(encoder, name, partial(share.encode, getattr(encoder, name)))
    for module in encoder.modules():
        if isinstance(module, _BatchNorm):
            module.__dict__["forward"] = partial(share.norm, module)
        elif isinstance(module, nn.Dropout):
            module.__dict__["forward"] = partial(share.dropout, module)


class Share:
    """What the layers of an encoder know of the pass that is under way."""

    def __init__(self) -> None:
        self.n_cases = 0  # of the whole batch; 0 while no pass is divided
        self.rows = slice(0)  # this process's share of them

    def encode(self, compute: Callable[..., Tensor], x: Tensor, keep: Tensor | None = None) -> Tensor:
        """Encode the own share of the cases x (B, C, T); a few are encoded by every process."""
        options = [] if keep is None else [keep]
        if self.n_cases or len(x) < FEWEST * _place.world:
            return compute(x, *options)
        starts = [len(x) * rank // _place.world for rank in range(_place.world + 1)]
        sizes = [stop - start for start, stop in pairwise(starts)]
        if x.requires_grad:  # of a view that is learned; as with the weights, every process has a part of the gradient
            x = x.view_as(x)
            x.register_hook(_mean_over_processes)  # type: ignore[no-untyped-call]
        self.n_cases, self.rows = len(x), slice(starts[_place.rank], starts[_place.rank + 1])
        try:
            own = compute(x[self.rows], *(option[self.rows] for option in options))
        finally:
            self.n_cases = 0
        features: Tensor = Gather.apply(own, sizes)  # type: ignore[no-untyped-call]
        return features

    def norm(self, layer: Any, x: Tensor) -> Tensor:
        """Compute BatchNorm of a share x (B, C, ...) with mean and variance of the whole batch.

        torch.nn.SyncBatchNorm does the same, on GPUs alone.
        """
        if not self.n_cases or (not layer.training and layer.running_mean is not None):
            unchanged: Tensor = type(layer).forward(layer, x)
            return unchanged
        others = [0, *range(2, x.dim())]  # all axes but that of the channels
        n_rows = x[:, 0].numel() * self.n_cases / (self.rows.stop - self.rows.start)
        mean = _total(x.sum(others, keepdim=True)) / n_rows
        centred = x - mean
        var = _total(centred.square().sum(others, keepdim=True)) / n_rows
        if layer.running_mean is not None:
            self._move_statistics(layer, mean.flatten(), var.flatten() * (n_rows / (n_rows - 1)))
        y: Tensor = centred * (var + layer.eps).rsqrt()
        if layer.affine:
            y = torch.addcmul(layer.bias.view(mean.shape), y, layer.weight.view(mean.shape))
        return y

    @staticmethod
    @torch.no_grad()
    def _move_statistics(layer: Any, mean: Tensor, var: Tensor) -> None:
        layer.num_batches_tracked += 1
        momentum = 1 / float(layer.num_batches_tracked) if layer.momentum is None else layer.momentum
        layer.running_mean.lerp_(mean.to(layer.running_mean.dtype), momentum)
        layer.running_var.lerp_(var.to(layer.running_var.dtype), momentum)

    def dropout(self, layer: nn.Dropout, x: Tensor) -> Tensor:
        """Drop what the whole batch would drop of this share of it."""
        if not self.n_cases or not layer.training:
            return type(layer).forward(layer, x)
        ones = torch.ones(self.n_cases, *x.shape[1:], dtype=x.dtype, device=x.device)
        return x * type(layer).forward(layer, ones)[self.rows]


class Total(torch.autograd.Function):
    """What the processes have in sum, and in the backward pass the sum of their gradients."""

    @staticmethod
    def forward(ctx: Any, own: Tensor) -> Tensor:
        total = own.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total

    backward = forward


def _total(own: Tensor) -> Tensor:
    total: Tensor = Total.apply(own)  # type: ignore[no-untyped-call]
    return total


class Gather(torch.autograd.Function):
    """The features of all cases, from those of every process's share.

    Every process goes on to compute the same loss of them, so the gradient of its own share is all that it needs. It is
    multiplied by the number of processes, because gradients are averaged in the end.
    """

    @staticmethod
    def forward(ctx: Any, own: Tensor, sizes: Sequence[int]) -> Tensor:
        ctx.sizes = sizes
        # What draws numbers for the features draws in their order in memory, which is to be that of one process.
        order = sorted(range(own.dim()), key=own.stride, reverse=True)
        padded = own.new_zeros(max(sizes), *own.shape[1:])  # an exchange is of equal shapes
        padded[: len(own)] = own
        whole = torch.cat([part[:size] for part, size in zip(_from_all(padded), sizes, strict=True)])
        return whole.permute(order).contiguous().permute([order.index(axis) for axis in range(own.dim())])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return torch.split(gradient, ctx.sizes)[_place.rank] * _place.world, None
