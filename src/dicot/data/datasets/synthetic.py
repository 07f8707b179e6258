"""A small made-up problem that needs no file: three waveforms in two channels."""

from collections.abc import Sequence
from typing import Unpack, final

import numpy as np

from dicot.data.datasets.base import Card, DataSet, Split, pick_channels
from dicot.data.policies import Array, Policies
from dicot.data.splits import check_split

N, T, CLASSES = 90, 64, 3  # cases of each part, time steps, classes


@final
class Synthetic(DataSet):
    """Sine, square and sawtooth waves of random phase, pace, size and level in noise; always the same values.

    Hard enough to tell methods apart: the values themselves say next to nothing, and an encoder must look past size
    and level.
    """

    name = "synthetic"

    def is_here(self) -> bool:
        return True

    def card(self) -> Card:
        about = ("made by dicot.data.datasets.synthetic", "BSD-3-Clause", "none")
        return Card(self.name, "synthetic", N, N, 2, T, CLASSES, *about)

    def load(self, *, channels: Sequence[int] | None = None, **policies: Unpack[Policies]) -> Split:
        rng = np.random.default_rng(20180)
        train, test = _draw(rng), _draw(rng)
        split = check_split(train, test, name=self.name, how="given by the data set", **policies)
        return pick_channels(split, channels)


def _draw(rng: np.random.Generator) -> tuple[Array, Array]:
    y = rng.permutation(np.arange(N) % CLASSES)
    time = np.linspace(0.0, 1.0, T, endpoint=False)
    cycles = rng.uniform(2.0, 5.0, size=(N, 1)) * time + rng.uniform(size=(N, 1))  # (N, T)
    # The second channel runs a quarter of a cycle behind the first.
    phase = np.stack([cycles, cycles - 0.25], axis=1) % 1.0  # (N, 2, T)
    waves = np.stack([np.sin(2 * np.pi * phase), np.where(phase < 0.5, 1.0, -1.0), 2 * phase - 1])  # (3, N, 2, T)
    size, level = np.exp(0.2 * rng.standard_normal((N, 1, 1))), 0.5 * rng.standard_normal((N, 2, 1))
    return size * waves[y, np.arange(N)] + level + 0.5 * rng.standard_normal(phase.shape), y
