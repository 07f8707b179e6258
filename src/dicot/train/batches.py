"""What each step is given: a batch of the training set, on the device or streamed to it, and its random numbers.

Every random choice is a pure function of (seed, position). No generator is carried from step to step, so a resumed run
needs no random state to be bit-equal to an uninterrupted one, and a run trained beside others draws what it draws alone
(D-70).

A stepper asks a source for the tensors on the device that each step of `rows` (steps, B) starts from (`inputs`, an
iterator that is to be closed), and for the batch they make (`batch`). The second part belongs to the step itself: a
CUDA graph contains it, and reads the first part from memory of its own. Inputs last until those of the next step.
"""

from collections import deque
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dicot.core.device import PROCESS_WIDE, free_bytes, to_device
from dicot.core.errors import InputError, lookup
from dicot.data import Windows, check_collection
from dicot.data.cases import Cases, blocks, release
from dicot.data.conversion import Conversion, look
from dicot.data.labels import check_labels, labelled
from dicot.methods import Batch

WAYS = ("auto", "device", "streamed")
SHARE = 0.5  # of the free memory of a GPU that a training set may take
SMALL = 64 * 2**20  # bytes that are copied without a second thought
AHEAD = 4  # batches that are read before they are needed

# The first number after the seed says what is drawn, so that no two streams coincide.
WEIGHTS, ORDER, PLAN, DEVICE, PREPARE, WINDOW = range(6)

Inputs = tuple[Tensor, ...]


class Items(Cases):
    """The items of a map-style torch Dataset, a case or (case, label) each, read when they are needed."""

    def __init__(self, dataset: Any, rows: np.ndarray | None = None) -> None:
        self.dataset = dataset
        self._labels: np.ndarray | None = None
        self.rows = np.arange(len(dataset)) if rows is None else rows
        first = _split(self._item(0))[0]
        if first.ndim != 2 or not first.size:
            raise InputError(f"Item {self.rows[0]} must have shape (channels, time); got {first.shape}.")
        self.shape = (len(self.rows), first.shape[0], first.shape[1])
        self.dtype = first.dtype if first.dtype in (np.float32, np.float64) else np.dtype(np.float32)

    def __getitem__(self, rows: slice | np.ndarray, /) -> np.ndarray:
        numbers = np.arange(len(self))[rows]
        cases = np.empty((len(numbers), *self.shape[1:]), self.dtype)
        for case, number in zip(cases, numbers.tolist(), strict=True):
            case[...] = self._read(number)[0]
        return cases

    def labels(self) -> np.ndarray | None:
        """Return the labels of all items, for which each is read once; None where the first has no label."""
        if self._labels is None and _split(self._item(0))[1] is not None:
            given = [self._read(number)[1] for number in range(len(self))]
            self._labels = check_labels(given, len(self), "y", "items")
        return self._labels

    def subset(self, rows: np.ndarray) -> "Items":
        """Return the items at these positions, or where this mask is True."""
        chosen = Items(self.dataset, self.rows[rows])
        chosen._labels = None if self._labels is None else self._labels[rows]
        return chosen

    def _read(self, number: int) -> tuple[np.ndarray, Any]:
        """Return a case and its label; None where the item has no label."""
        case, label = _split(self._item(number))
        where = f"Item {self.rows[number]} of the training set"
        if case.shape != self.shape[1:] or case.dtype.kind not in "biuf":
            raise InputError(f"{where} is {case.dtype} of shape {case.shape}; the first one has {self.shape[1:]}.")
        if not np.isfinite(case).all():
            raise InputError(f"{where} contains NaN or inf. Fill or drop it.")
        return case, label

    def _item(self, number: int) -> Any:
        row = int(self.rows[number])
        try:
            return self.dataset[row]
        except Exception as error:
            error.add_note(f"This happened when item {row} of the training set was read.")
            raise


def _split(item: Any) -> tuple[np.ndarray, Any]:
    """Return the case and the label of an item; None where it is a case alone."""
    pair = isinstance(item, tuple | list) and len(item) == 2 and getattr(item[0], "ndim", None) == 2
    case, label = item if pair else (item, None)
    return case.detach().cpu().numpy() if isinstance(case, Tensor) else np.asarray(case), label


Training = Windows | Conversion | Items  # what may be chosen from


def as_training_set(train: Any) -> Training:
    """Take cases as they are, check arrays as `check_collection` does, and read any other sequence item by item."""
    if isinstance(train, Windows | Conversion | Items):
        return train
    if isinstance(train, Cases):
        return look(train)
    return check_collection(train) if isinstance(train, np.ndarray) else Items(train)


def with_labels(train: Cases) -> Training:
    """Return the cases that a method which needs labels can learn from; labelled windows are not drawn (D-92)."""
    given, y = as_training_set(train), train.labels()
    if isinstance(given, Windows):
        given = replace(given, segments=None)
    known = np.zeros(len(train), dtype=bool) if y is None else labelled(y)
    if not known.any():
        raise InputError(f"This method learns from labels, and none of the {len(train)} cases has one. Pass y.")
    return given if known.all() else given.subset(known)


def visited(train: Cases, seed: int, first: int, stop: int, batch_size: int) -> np.ndarray:
    """Return (steps, B): the rows of the batches of steps first .. stop - 1; what is left of an epoch is dropped.

    Where windows are drawn, each epoch draws one of every segment: window `start` of segment `row` of N is number
    `row + N * start`.
    """
    n_cases, segments = len(train), train.segments
    rows = np.empty((stop - first, batch_size), np.int64)
    order = np.empty(0, np.int64)
    for number, step in enumerate(range(first, stop)):
        epoch, position = divmod(step, n_cases // batch_size)
        if position == 0 or number == 0:
            order = epoch_order(seed, epoch, n_cases)
            if segments is not None:
                n_starts = segments.shape[2] - train.n_times + 1
                order += n_cases * np.random.default_rng([seed, WINDOW, epoch]).integers(n_starts, size=n_cases)[order]
        rows[number] = order[position * batch_size : (position + 1) * batch_size]
    return rows


class DeviceBatches:
    """The whole training set lies on the device, and a step picks its rows there."""

    def __init__(self, x: Tensor, y: Tensor | None) -> None:
        self.x, self.y, self.device = x, y, x.device  # (N, C, T) and class numbers (N,)

    def inputs(self, rows: np.ndarray) -> Generator[Inputs, None, None]:
        # All at once: each copy to a GPU would wait for the steps that are under way there.
        for index in to_device(rows, self.device):
            yield (index,)

    def batch(self, inputs: Inputs) -> Batch:
        (index,) = inputs
        return Batch(self.x[index], index, None if self.y is None else self.y[index])


class StreamedBatches:
    """A thread reads the rows of the next steps on the host while the device works on the present one.

    For cases that are larger than the device, or that are drawn. On a GPU the batches wait in page-locked memory and
    are copied on a stream of their own.
    """

    def __init__(self, train: Cases, y: np.ndarray | None, device: torch.device, dtype: torch.dtype) -> None:
        self.train, self.y, self.device, self.dtype = train, y, device, dtype

    def inputs(self, rows: np.ndarray) -> Generator[Inputs, None, None]:
        shape = (rows.shape[1], *self.train.shape[1:])
        slots = [_Slot(shape, self.dtype, self.y is not None, self.device) for _ in range(min(AHEAD, len(rows)))]
        copies = None
        if self.device.type == "cuda":
            copies = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
            copies.wait_stream(torch.cuda.current_stream(self.device))  # the slots' memory may have been in use there
        left = iter(rows)
        with ThreadPoolExecutor(1, "batches") as reader:
            coming = deque(reader.submit(self._read, slot, next(left), copies) for slot in slots)
            try:
                while coming:
                    slot = coming.popleft().result()
                    if copies is not None:
                        torch.cuda.current_stream(self.device).wait_event(slot.arrived)
                    yield slot.inputs
                    if copies is not None:
                        slot.used.record(torch.cuda.current_stream(self.device))
                    if (numbers := next(left, None)) is not None:
                        coming.append(reader.submit(self._read, slot, numbers, copies))
            finally:
                reader.shutdown(cancel_futures=True)
                if copies is not None:
                    copies.synchronize()  # before the slots' memory is given back

    def batch(self, inputs: Inputs) -> Batch:
        return Batch(*inputs)

    def _read(self, slot: "_Slot", numbers: np.ndarray, copies: Any) -> "_Slot":
        """Read a batch into a slot, and start its copy to a GPU."""
        if copies is not None:
            slot.arrived.synchronize()  # the last copy out of this memory
        self._fill(slot, numbers)
        if copies is not None:
            with torch.cuda.stream(copies):
                copies.wait_event(slot.used)
                for there, here in zip(slot.inputs, slot.host, strict=True):
                    there.copy_(here, non_blocking=True)
                slot.arrived.record(copies)
        return slot

    def _fill(self, slot: "_Slot", numbers: np.ndarray) -> None:
        x, rows, *labels = (tensor.numpy() for tensor in slot.host)
        np.remainder(numbers, len(self.train), out=rows)
        if self.y is not None:
            labels[0][...] = self.y[rows]
        segments, array = self.train.segments, self.train.array
        if segments is not None:
            starts, n_times = numbers // len(self.train), self.train.n_times
            for case, row, start in zip(x, rows.tolist(), starts.tolist(), strict=True):
                case[...] = segments[row, :, start : start + n_times]
            release(segments)
        elif array is not None and array.dtype == x.dtype:
            np.take(array, rows, axis=0, out=x, mode="clip")  # any other mode goes through a buffer
        else:
            x[...] = self.train[rows]
        if array is not None and array.nbytes > SMALL:
            release(array)  # every time: a single row may make 2 MiB of a memory map resident


class _Slot:
    """The memory of one batch on its way to the device."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype, with_labels: bool, device: torch.device) -> None:
        on_gpu = device.type == "cuda"
        numbers = [torch.empty(shape[0], dtype=torch.int64, pin_memory=on_gpu) for _ in range(1 + with_labels)]
        self.host = (torch.empty(shape, dtype=dtype, pin_memory=on_gpu), *numbers)
        self.inputs: Inputs = self.host
        if on_gpu:
            self.inputs = tuple(torch.empty_like(tensor, device=device) for tensor in self.host)
            self.arrived, self.used = torch.cuda.Event(), torch.cuda.Event()  # type: ignore[no-untyped-call]


BatchSource = DeviceBatches | StreamedBatches


def is_streamed(train: Cases, way: str, device: torch.device, dtype: torch.dtype) -> bool:
    """Tell whether a training set is streamed: "auto" does so where it would not fit, or be copied without need.

    On a GPU it may take half of the memory that is free. On a CPU an array is used as it is; one that would have to be
    copied, because it is read-only or of another type, is streamed unless it is small, and what is no array always.
    Windows that are drawn are streamed in any case.
    """
    lookup(dict.fromkeys(WAYS), way, "way to read batches")
    if train.segments is not None:
        return True
    if way != "auto":
        return way == "streamed"
    n_bytes = int(np.prod(train.shape)) * dtype.itemsize
    if device.type == "cuda":
        return n_bytes > SHARE * free_bytes(device)
    x = train.array
    if x is None:
        return True
    in_place = x.flags.writeable and x.flags.c_contiguous and x.itemsize == dtype.itemsize
    return not in_place and n_bytes > SMALL


def open_batches(train: Cases, way: str, device: torch.device, dtype: torch.dtype, *, with_labels: bool) -> BatchSource:
    """Make the source of the batches of a run; class numbers come with them where labels are asked for."""
    y = None
    if with_labels:
        y = np.unique(np.asarray(train.labels()), return_inverse=True)[1].astype(np.int64, copy=False)
    if is_streamed(train, way, device, dtype):
        return StreamedBatches(train, y, device, dtype)
    return DeviceBatches(_on_device(train, device, dtype), None if y is None else to_device(y, device))


def _on_device(train: Cases, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Copy all cases to the device; what cannot be copied at once goes there piece by piece."""
    if train.array is not None and (train.array.flags.writeable or train.array.nbytes <= SMALL):
        return to_device(train.array, device, dtype)
    whole = torch.empty(train.shape, dtype=dtype, device=device)
    for rows, block in blocks(train):
        whole[rows] = to_device(block, device, dtype)
    return whole


def weights_seed(seed: int) -> int:
    """The seed of the initial weights, which do not depend on the data or the method's settings."""
    return _word(seed, WEIGHTS)


def epoch_order(seed: int, epoch: int, n_cases: int) -> np.ndarray:
    return np.random.default_rng([seed, ORDER, epoch]).permutation(n_cases)


def plan_generator(seed: int, step: int) -> np.random.Generator:
    """The generator of the host's choices for one step."""
    return np.random.default_rng([seed, PLAN, step])


def seed_prepare(seed: int) -> None:
    """Fix what a method draws when it looks at the training set."""
    torch.default_generator.manual_seed(_word(seed, PREPARE))


def seed_step(seed: int, step: int, device: torch.device) -> None:
    """Fix what one step draws on the device (masks, noise, dropout), on that device and the CPU alone."""
    word = _word(seed, DEVICE, step)
    torch.default_generator.manual_seed(word)
    if device.type == "cuda":
        _generator(device).manual_seed(word)


class OwnDraws:
    """A context, entered and left any number of times, in which random numbers come from the state of one run.

    On a GPU, CUDA graphs read the seed of their draws from memory that belongs to the state of the generator, and every
    replay writes to it, whether it draws or not. Runs that are under way at once must not share one.
    A CPU has one generator for all threads: while one thread is inside, the others wait.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.own = torch.Generator(device) if device.type == "cuda" else None
        self.callers: tuple[Tensor, torch.Generator | None] | None = None

    def __enter__(self) -> None:
        PROCESS_WIDE.acquire()
        try:
            self.callers = torch.get_rng_state(), None
            if self.own is not None:
                shared = _generator(self.device)
                self.callers = self.callers[0], shared.graphsafe_get_state()
                shared.graphsafe_set_state(self.own)
        except BaseException:
            PROCESS_WIDE.release()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            assert self.callers is not None
            cpu, state = self.callers
            torch.set_rng_state(cpu)
            if state is not None:
                shared = _generator(self.device)
                self.own = shared.graphsafe_get_state()  # another one after a capture that failed
                shared.graphsafe_set_state(state)
        finally:
            PROCESS_WIDE.release()


def renew_generator(device: torch.device) -> None:
    """Replace the state of the GPU's generator after a capture that failed: it would believe to be part of it still."""
    generator = _generator(device)
    seed = generator.initial_seed()
    generator.graphsafe_set_state(torch.Generator(device))
    generator.manual_seed(seed)


def _generator(device: torch.device) -> torch.Generator:
    torch.cuda.init()  # type: ignore[no-untyped-call]  # else there is none yet
    return torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index]


def _word(*entropy: int) -> int:
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0] >> 1)
