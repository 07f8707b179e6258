"""The processes of a run, its ranks: which one this is, and what they tell each other by torch.distributed."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous

from dicot.core.errors import DicotError, InputError, LostWorkerError
from dicot.core.processes.launcher import ONLY, Place, find_place

TIMEOUT = 600.0  # seconds that a rank waits for the others
FEW = 1e-4  # relative difference of losses above which ranks compute something else: far more than rounding
T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """This process among those of a run. One that is alone exchanges nothing, and nothing is divided."""

    place: Place = ONLY

    @property
    def world(self) -> int:
        return self.place.world

    @property
    def several(self) -> bool:
        return self.world > 1

    @property
    def is_first(self) -> bool:
        """Tell whether this is the rank that writes, prints and calls back."""
        return self.place.rank == 0

    def share(self, n_cases: int, rank: int | None = None) -> slice:
        """Return the cases that a rank encodes, this one where none is named; shares differ by one case at most."""
        rank = self.place.rank if rank is None else rank
        each, more = divmod(n_cases, self.world)
        start = rank * each + min(rank, more)
        return slice(start, start + each + (rank < more))

    def gather(self, mine: Tensor) -> Tensor:
        """Stack the tensors of all ranks, which have one shape, in the order of the ranks: (ranks, ...)."""
        everybodys = [torch.empty_like(mine) for _ in range(self.world)]
        _exchange(dist.all_gather, everybodys, mine.contiguous())
        return torch.stack(everybodys)

    def total(self, mine: Tensor) -> Tensor:
        """Add up the tensors of all ranks; every rank is given the same bits."""
        total = mine.contiguous().clone()
        _exchange(dist.all_reduce, total)
        return total

    def mean(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its mean over the ranks, all by one exchange."""
        if tensors:
            flat: Tensor = self.total(torch.cat([tensor.reshape(-1) for tensor in tensors])) / self.world
            for tensor, value in zip(tensors, torch.split(flat, [tensor.numel() for tensor in tensors]), strict=True):
                tensor.copy_(value.view_as(tensor))

    def from_first(self, make: Callable[[], T]) -> T:
        """Give every rank what the first one makes; an error of ours is raised by all of them."""
        if not self.several:
            return make()
        box: list[Any] = [None]
        if self.is_first:
            try:
                box = [make()]
            except DicotError as error:
                box = [error]
        _exchange(dist.broadcast_object_list, box, device=torch.device("cpu"))
        if isinstance(box[0], DicotError):
            raise box[0]
        made: T = box[0]
        return made

    def start_equal(self, network: nn.Module) -> None:
        """Give every rank the weights and buffers of the first."""
        if self.several:
            network.load_state_dict(self.from_first(lambda: {k: v.cpu() for k, v in network.state_dict().items()}))

    def check_same(self, identity: Mapping[str, Any]) -> None:
        """Refuse ranks that are about to train other things."""
        if not self.several:
            return
        everybodys: list[Any] = [None] * self.world
        _exchange(dist.all_gather_object, everybodys, dict(identity))
        differing = [key for key in identity if any(other.get(key) != identity[key] for other in everybodys)]
        if differing:
            raise InputError(
                f"The {self.world} processes of this run were given different things to train: "
                f"{', '.join(differing)}. Give all of them the same data, settings and seed (random_state)."
            )

    def agree(self, end: bool, leave: bool, losses: Sequence[float]) -> tuple[bool, bool]:
        """Tell whether any rank wants the run to end, and whether any is to leave it; check that their losses agree."""
        if not self.several:
            return end, False
        mine = torch.tensor([end, leave, len(losses), losses[-1] if losses else 0.0], dtype=torch.float64)
        ends, leaves, counts, latest = self.gather(mine).unbind(dim=1)
        if (counts == counts[0]).all() and float(latest.max() - latest.min()) > FEW * float(latest.abs().max()):
            raise InputError(
                f"This method cannot be trained by several processes: the loss of step {int(counts[0])} is "
                f"{', '.join(f'{loss:.6g}' for loss in latest.tolist())} in them, and must be the same. A method may "
                "draw from torch's default generator alone. Train it in one process, or change the method."
            )
        return bool(ends.any()), bool(leaves.any())


ALONE = Ranks()
_current = ALONE


def current_ranks() -> Ranks:
    """Return the ranks that this process has joined; a process that has joined none is alone."""
    return _current


@contextmanager
def join_ranks(*, device: str = "auto", timeout: float = TIMEOUT) -> Iterator[Ranks]:
    """Train with the other processes that torchrun has started: inside, each `fit` and `pretrain` is one run of all.

    Every process makes the same calls with the same data and the same seed. Each encodes its share of every batch, and
    all end with the same weights. BatchNorm takes its statistics over the whole batch, so that the result does not
    depend on the number of processes. Started as a single process, nothing changes.

    Parameters
    ----------
    device : "auto", "cpu" or "cuda"; on GPUs each process takes the one of its number on its machine
    timeout : seconds to wait for the others before giving up
    """
    global _current
    place = find_place()
    if place.world == 1:
        yield ALONE
        return
    if _current.several:
        raise InputError("This process has joined the others already; call join_ranks once.")
    backend, wait = _take_device(device, place), timedelta(seconds=timeout)
    try:
        store: Any
        if place.meeting:
            store = dist.FileStore(place.meeting, place.world)  # type: ignore[attr-defined]
        else:
            store, _, _ = next(rendezvous("env://", place.rank, place.world, timeout=wait))
        # torchrun starts all again when one has died, over a store in which the addresses of the dead ones remain.
        store = dist.PrefixStore(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"), store)  # type: ignore[attr-defined]
        dist.init_process_group(backend, store=store, rank=place.rank, world_size=place.world, timeout=wait)
    except (RuntimeError, ValueError) as error:
        raise LostWorkerError(f"The {place.world} processes of this run did not find each other: {error}") from error
    _current = Ranks(place)
    try:
        yield _current
    finally:
        _current = ALONE
        dist.destroy_process_group()


def _take_device(device: str, place: Place) -> str:
    """Choose this process's GPU, and return the names of what the ranks exchange tensors by."""
    if device == "cpu" or not torch.cuda.is_available():
        return "gloo"
    n_devices = torch.cuda.device_count()
    if place.local_rank >= n_devices:
        raise InputError(
            f"Process {place.local_rank} of this machine needs a GPU of its own, and torch sees {n_devices}. "
            f"Start {n_devices} at most, or use device='cpu'."
        )
    torch.cuda.set_device(place.local_rank)
    return "cpu:gloo,cuda:nccl"


def _exchange(call: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Call a function of torch.distributed; say in words that another rank is gone."""
    try:
        call(*args, **options)
        return
    except RuntimeError as error:
        said = str(error).splitlines()[0].split(". ")[0]
    # Outside of the block, without the first error: its frames hold the group of processes, and a process that ends
    # with the threads of that group is aborted now and then, which would hide why it ended.
    raise LostWorkerError(
        "Another process of this run has ended or does not answer. The same call continues from the checkpoint, if "
        f"there is one, with any number of processes. ({said})"
    )
