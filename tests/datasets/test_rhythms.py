"""Labels of time steps from marks of rhythms."""

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.data.datasets.rhythms import OTHER, majority, rhythm_per_step


def test_a_rhythm_lasts_until_the_next() -> None:
    first, labels = rhythm_per_step([2, 4, 5], ["(N", "(VT", "(AFIB"], 8)
    assert (first, labels.tolist()) == (2, [3, 3, OTHER, 0, 0, 0])
    first, labels = rhythm_per_step(np.array([0, 3, 9]), np.array(["(J", "(AFL", "(N"]), 5)  # one after the end
    assert (first, labels.tolist()) == (0, [2, 2, 2, 1, 1])


@pytest.mark.parametrize("samples", [[], [8], [-1], [5, 3]], ids=["none", "after-the-end", "before", "backwards"])
def test_marks_that_cannot_be_used(samples: list[int]) -> None:
    with pytest.raises(InputError, match="rhythms"):
        rhythm_per_step(samples, ["(N"] * len(samples), 8)


def test_majority_with_ties_to_the_smallest() -> None:
    labels = np.array([3, 3, 0, 0, OTHER, OTHER, OTHER, 2], dtype=np.int8)
    assert majority(labels, np.array([0, 1, 4]), 4).tolist() == [0, 0, OTHER]
