"""Every random choice of a run as a pure function of (seed, position).

No generator is carried from step to step, so a resumed run needs no random state to be bit-equal to an
uninterrupted one, and a run trained beside others draws what it draws alone (D-70).
"""

import numpy as np
import torch

# The first number after the seed says what is drawn, so that no two streams coincide.
WEIGHTS, ORDER, PLAN, DEVICE, PREPARE = range(5)


def weights_seed(seed: int) -> int:
    """For the initial weights; they do not depend on the data or the method's settings."""
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


def plan_generator(seed: int, step: int) -> np.random.Generator:
    """For the host's choices of one step."""
    return np.random.default_rng([seed, PLAN, step])


def seed_prepare(seed: int) -> None:
    """Fix what a method draws when it looks at the training set."""
    torch.default_generator.manual_seed(_word(seed, PREPARE))


def seed_step(seed: int, step: int, place: torch.device) -> None:
    """Fix what one step draws on the device (masks, noise, dropout), on that device and the CPU alone."""
    word = _word(seed, DEVICE, step)
    torch.default_generator.manual_seed(word)
    if place.type == "cuda":
        _generator(place).manual_seed(word)


def drawn_on_device(place: torch.device) -> bool:
    """Whether a GPU has drawn random numbers since its generator was seeded."""
    return place.type == "cuda" and _generator(place).get_offset() > 0


def renew_generator(place: torch.device) -> None:
    """After a recording that failed: the GPU's generator would go on believing that it is part of one."""
    generator = _generator(place)
    seed = generator.initial_seed()
    generator.graphsafe_set_state(torch.Generator(place).graphsafe_get_state())
    generator.manual_seed(seed)


def _generator(place: torch.device) -> torch.Generator:
    return torch.cuda.default_generators[torch.cuda.current_device() if place.index is None else place.index]


def _word(*entropy: int) -> int:
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0] >> 1)
