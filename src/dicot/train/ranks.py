"""The processes of a run, its ranks: which one this is, and what they tell each other by torch.distributed."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from traceback import walk_tb
from typing import Any
from uuid import uuid4

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from dicot.core.errors import DicotError, InputError, LostWorkerError, ModelFileError
from dicot.core.processes.launcher import ONLY, Place, find_place
from dicot.methods import Method
from dicot.nets.encoders.division import LEAST, check_divisible, divided, outermost_encoders
from dicot.train.batches import Training
from dicot.train.draws import seed_step
from dicot.train.history import History

TIMEOUT = 600.0  # seconds that a rank waits for the others
LOOK = 0.02  # seconds between two looks for them
NOTHING, FAILED = -1, -2  # in place of the number of bytes of a file
FEW = 1e-4  # relative difference of losses above which ranks compute something else: far more than rounding


@dataclass(frozen=True)
class Ranks:
    """This process among those of a run. One that is alone exchanges nothing, and nothing is divided."""

    place: Place = ONLY
    synchronised: bool = True  # BatchNorm looks at the cases of all ranks

    @property
    def world(self) -> int:
        return self.place.world

    @property
    def several(self) -> bool:
        return self.world > 1

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that writes, prints and calls back."""
        return self.place.rank == 0

    def stepper(self, name: str) -> str:
        """Return the name of the stepper to use: what ranks exchange is no part of a CUDA graph."""
        if self.several and name not in ("auto", "eager"):
            raise InputError(f"With several processes steps are taken op by op; got stepper={name!r}. Use 'auto'.")
        return "eager" if self.several else name

    def identity(self) -> dict[str, Any]:
        """Say what decides the result; the number of ranks does not, where BatchNorm looks at all cases."""
        return {"batch_norm": "over the cases of each rank"} if self.several and not self.synchronised else {}

    def share(self, n_cases: int, rank: int | None = None) -> slice:
        """Return the cases that a rank encodes, this one where none is named; shares differ by one case at most."""
        rank = self.place.rank if rank is None else rank
        each, more = divmod(n_cases, self.world)
        start = rank * each + min(rank, more)
        return slice(start, start + each + (rank < more))

    def gather(self, mine: Tensor) -> Tensor:
        """Stack the tensors of all ranks, which have one shape, in the order of the ranks: (ranks, ...)."""
        everybodys = [torch.empty_like(mine) for _ in range(self.world)]
        with _told_apart():
            dist.all_gather(everybodys, mine.contiguous())
        return torch.stack(everybodys)

    def total(self, mine: Tensor) -> Tensor:
        """Add up the tensors of all ranks; every rank is given the same bits."""
        total = mine.clone()
        with _told_apart():
            dist.all_reduce(total)
        return total

    def from_first(self, make: Callable[[], bytes | None]) -> bytes | None:
        """Give every rank what the first one reads from a file; the others need not have it."""
        if not self.several:
            return make()
        data = None
        try:
            data = make() if self.is_first else None
        except DicotError:
            self._from_first(torch.tensor([FAILED]))
            raise
        size = int(self._from_first(torch.tensor([NOTHING if data is None else len(data)])))
        if size == FAILED:
            raise ModelFileError("The first process of this run has failed; it says why.")
        if size == NOTHING:
            return None
        content = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(size, dtype=torch.uint8)
        return self._from_first(content).numpy().tobytes()

    def _from_first(self, tensor: Tensor) -> Tensor:
        """Overwrite a tensor by the first rank's."""
        if tensor.numel():
            with _told_apart():
                dist.broadcast(tensor, 0)
        return tensor

    def start_equal(self, method: Method) -> None:
        """Give every rank the weights and buffers of the first."""
        if not self.several:
            return
        for tensor in method.state_dict().values():
            plain = tensor.contiguous().reshape(-1)
            self._from_first(plain.view(torch.uint8))
            tensor.copy_(plain.view_as(tensor))

    def check_same(self, identity: Mapping[str, Any]) -> None:
        """Refuse ranks that are about to train other things."""
        if not self.several:
            return
        keys = sorted(identity)
        words = [hashlib.sha256(json.dumps(identity[key], default=str).encode()).digest()[:6] for key in keys]
        mine = torch.tensor([int.from_bytes(word) for word in words])
        everybodys = self.gather(mine)
        differing = [key for key, column in zip(keys, everybodys.T, strict=True) if len(set(column.tolist())) > 1]
        if differing:
            raise InputError(
                f"The {self.world} processes of this run were given different things to train: "
                f"{', '.join(differing)}. Give all of them the same data, settings and seed (random_state)."
            )

    def check_batch(self, batch_size: int) -> None:
        """Refuse batches that cannot be divided."""
        if self.several and batch_size < LEAST * self.world:
            raise InputError(
                f"Batches of {batch_size} cases cannot be divided among {self.world} processes, of which each needs "
                f"{LEAST}. Use {max(1, batch_size // LEAST)} at most, or a larger batch_size."
            )

    def dividing(self, method: Method, train: Training, seed: int, device: torch.device, dtype: torch.dtype) -> Any:
        """Return a context in which the passes of the method's encoders are divided among the ranks."""
        if not self.several:
            return nullcontext()
        cases = torch.from_numpy(train.x[slice(0, LEAST * self.world)].copy()).to(device, dtype)
        reseed: Callable[[], None] = partial(seed_step, seed, 0, device)
        for encoder in outermost_encoders(method):
            if encoder.training:
                check_divisible(encoder, cases, replace(self, synchronised=True), reseed)
        return divided(method, self)

    def agree(self, end: bool, leave: bool, history: History, method: Method) -> tuple[bool, bool]:
        """Tell whether any rank wants the run to end, and whether any is to leave it; check that their losses agree."""
        if not self.several:
            return end, False
        latest = history.loss[-1] if history.loss else 0.0
        mine = torch.tensor([end, leave, len(history.loss), latest], dtype=torch.float64)
        ends, leaves, counts, losses = self.gather(mine).unbind(dim=1)
        if (counts == counts[0]).all() and float(losses.max() - losses.min()) > FEW * float(losses.abs().max()):
            raise InputError(
                f"{type(method).__name__} cannot be trained by several processes: the loss of step {int(counts[0])} is "
                f"{', '.join(f'{loss:.6g}' for loss in losses.tolist())} in them, and must be the same. A method may "
                "draw from torch's default generator alone. Train it in one process, or change the method."
            )
        return bool(ends.any()), bool(leaves.any())


ALONE = Ranks()
_current = ALONE


def current_ranks() -> Ranks:
    """Return the ranks that this process has joined; a process that has joined none is alone."""
    return _current


@contextmanager
def join_ranks(*, device: str = "auto", sync_batch_norm: bool = True, timeout: float = TIMEOUT) -> Iterator[Ranks]:
    """Train with the other processes that torchrun has started: inside, each `fit` and `pretrain` is one run of all.

    Every process makes the same calls with the same data and the same seed. Each encodes its share of every batch, and
    all end with the same weights. Started as a single process, nothing changes.

    Parameters
    ----------
    device : "auto", "cpu" or "cuda"; on GPUs each process takes the one of its number on its machine
    sync_batch_norm : BatchNorm takes its statistics over the whole batch, so that the result does not depend on the
        number of processes; False: each over its own share, with less to exchange and another result
    timeout : seconds to wait for the others before giving up
    """
    global _current
    place = find_place()
    if place.world == 1:
        yield ALONE
        return
    if _current.several:
        raise InputError("This process has joined the others already; call join_ranks once.")
    backend = _take_device(device, place)
    wait = timedelta(seconds=timeout)
    try:
        store = _meet(place, wait)
        dist.init_process_group(backend, store=store, rank=place.rank, world_size=place.world, timeout=wait)
    except (RuntimeError, ValueError) as error:
        raise LostWorkerError(f"The {place.world} processes of this run did not find each other: {error}") from error
    _current = Ranks(place, sync_batch_norm)
    try:
        yield _current
    except BaseException as error:
        _let_go(error)
        raise
    finally:
        _current = ALONE
        dist.destroy_process_group()


def _let_go(error: BaseException | None) -> None:
    """Empty the frames of torch that an error keeps, and the errors behind it.

    They hold the group of processes, whose threads would live as long as the error does; a process that ends with them
    is aborted now and then, and SIGABRT would hide why it ended.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        for frame, _ in walk_tb(error.__traceback__):
            if frame.f_globals.get("__name__", "").startswith("torch.distributed"):
                with suppress(RuntimeError):  # one that is still at work
                    frame.clear()
        error = error.__cause__ or error.__context__


def _take_device(device: str, place: Place) -> str:
    """Choose this process's GPU, and return the names of what the ranks exchange tensors by."""
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(
            "With several processes each takes a GPU of its own: device must be 'auto', 'cpu' or 'cuda'; got "
            f"{device!r}."
        )
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


def _meet(place: Place, wait: timedelta) -> Any:
    """Return a store of keys and values that the processes of this start of the run share, and no earlier one.

    torchrun starts all processes again when one has died, over a store in which the addresses of the dead ones remain.
    So every process asks under a name that is new, the first answers with the name of the store, and asks again until
    all have had its answer.
    """
    found: Any
    if place.meeting:
        found = dist.FileStore(place.meeting, place.world)  # type: ignore[attr-defined]
    else:
        found, _, _ = next(rendezvous("env://", place.rank, place.world, timeout=wait))
    deadline, me = time.monotonic() + wait.total_seconds(), uuid4().hex
    if place.rank:
        found.set(f"asks/{place.rank}", me)
        _wait_for(found, [f"answer/{me}"], deadline)
        start = found.get(f"answer/{me}").decode()
        found.set(f"came/{start}/{place.rank}", "1")
    else:
        start, others = me, range(1, place.world)
        _wait_for(found, [f"asks/{rank}" for rank in others], deadline)
        while not found.check([f"came/{start}/{rank}" for rank in others]):
            for rank in others:
                found.set(f"answer/{found.get(f'asks/{rank}').decode()}", start)
            _pause(deadline)
    return dist.PrefixStore(start, found)  # type: ignore[attr-defined]


def _wait_for(store: Any, keys: list[str], deadline: float) -> None:
    while not store.check(keys):
        _pause(deadline)


def _pause(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise RuntimeError("some have not come in time")
    time.sleep(LOOK)


@contextmanager
def _told_apart() -> Iterator[None]:
    """Say in words that another rank is gone; what torch says depends on the backend."""
    try:
        yield
    except RuntimeError as error:
        raise LostWorkerError(
            "Another process of this run has ended or does not answer. The same call continues from the checkpoint, if "
            f"there is one, with any number of processes. ({str(error).splitlines()[0].split('. ')[0]})"
        ) from error
