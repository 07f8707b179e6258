"""A small made-up problem that needs no file: three waveforms in two channels."""

from collections.abc import Sequence
from typing import Unpack, final

import numpy as np

from dicot.data.datasets.base import Card, DataSet, Split, pick_channels
from dicot.data.policies import Array, Policies
from dicot.data.splits import check_split

CARD = Card(
    name="synthetic",
    family="synthetic",
    n_train=90,
    n_test=90,
    n_channels=2,
    n_times=64,
    n_classes=3,
    source="made by dicot.data.datasets.synthetic",
    licence="BSD-3-Clause",
    citation="none",
)


@final
class Synthetic(DataSet):
    """Sine, square and sawtooth waves of random phase, pace, size and level in noise; always the same values.

    Hard enough to tell methods apart: the values themselves say next to nothing, and an encoder must look past size
    and level.
    """

    name = CARD.name

    def is_here(self) -> bool:
        return True

    def card(self) -> Card:
        return CARD

    def load(self, *, channels: Sequence[int] | None = None, **policies: Unpack[Policies]) -> Split:
        rng = np.random.default_rng(20180)
        train, test = (_draw(rng, n) for n in (CARD.n_train, CARD.n_test))
        split = check_split(train, test, name=self.name, how="given by the data set", **policies)
        return pick_channels(split, channels)


def _draw(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    y = rng.permutation(np.arange(n) % CARD.n_classes)
    time = np.linspace(0.0, 1.0, CARD.n_times or 0, endpoint=False)
    cycles = rng.uniform(2.0, 5.0, size=(n, 1)) * time + rng.uniform(size=(n, 1))  # (n, T)
    # The second channel runs a quarter of a cycle behind the first.
    phase = np.stack([cycles, cycles - 0.25], axis=1) % 1.0  # (n, 2, T)
    waves = np.stack([np.sin(2 * np.pi * phase), np.where(phase < 0.5, 1.0, -1.0), 2 * phase - 1])  # (3, n, 2, T)
    size, level = np.exp(0.2 * rng.standard_normal((n, 1, 1))), 0.5 * rng.standard_normal((n, 2, 1))
    return size * waves[y, np.arange(n)] + level + 0.5 * rng.standard_normal(phase.shape), y


SYNTHETIC = Synthetic()
