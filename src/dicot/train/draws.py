"""Every random choice of a run as a pure function of (seed, position).

No generator is carried from step to step, so a resumed run needs no random state to be bit-equal to an
uninterrupted one, and a run trained beside others draws what it draws alone (D-70).
"""

import numpy as np
import torch
from torch import Tensor

from dicot.core.gpu.device import PROCESS_WIDE

# The first number after the seed says what is drawn, so that no two streams coincide.
WEIGHTS, ORDER, PLAN, DEVICE, PREPARE, WINDOW = range(6)


def weights_seed(seed: int) -> int:
    """The seed of the initial weights, which do not depend on the data or the method's settings."""
    return _word(seed, WEIGHTS)


def epoch_order(seed: int, epoch: int, n_cases: int) -> np.ndarray:
    """The order in which an epoch visits the cases."""
    return np.random.default_rng([seed, ORDER, epoch]).permutation(n_cases)


def batch_rows(seed: int, first: int, stop: int, n_cases: int, batch_size: int) -> np.ndarray:
    """(steps, B): the cases of steps first .. stop - 1; the incomplete last batch of an epoch is dropped."""
    per_epoch = n_cases // batch_size
    rows = np.empty((stop - first, batch_size), np.int64)
    order = np.empty(0)
    for number, step in enumerate(range(first, stop)):
        epoch, position = divmod(step, per_epoch)
        if position == 0 or number == 0:
            order = epoch_order(seed, epoch, n_cases)
        rows[number] = order[position * batch_size : (position + 1) * batch_size]
    return rows


def window_starts(seed: int, first: int, rows: np.ndarray, n_cases: int, n_starts: int) -> np.ndarray:
    """(steps, B): where the windows of `rows`, those of steps first, first + 1, ..., begin in their segments.

    Each epoch draws one window of every segment, any of `n_starts` with equal chance.
    """
    per_epoch = n_cases // rows.shape[1]
    starts = np.empty_like(rows)
    drawn = np.empty(0, np.int64)
    for number, cases in enumerate(rows):
        epoch, position = divmod(first + number, per_epoch)
        if position == 0 or number == 0:
            drawn = np.random.default_rng([seed, WINDOW, epoch]).integers(n_starts, size=n_cases)
        starts[number] = drawn[cases]
    return starts


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
            cpu = torch.get_rng_state()
            if self.own is None:
                self.callers = cpu, None
                return
            shared = _generator(self.device)
            self.callers = cpu, shared.graphsafe_get_state()
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
