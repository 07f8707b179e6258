import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicot.core.errors import InputError
from dicot.train import Recipe, lr_at, paper_recipe


@pytest.mark.parametrize(
    ("family", "n_cases", "n_times", "steps", "batch_size"),
    [
        ("large", 23025, 500, 1500, 128),
        ("large", 25612, 3000, 1500, 16),
        ("large", 1296, 2500, 1500, 16),
        ("ucr", 200, 427, 200, 8),
        ("ucr", 1000, 100, 200, 8),  # exactly 100,000 is not above it
        ("ucr", 1001, 100, 600, 8),
        ("uea", 180, 51, 200, 8),
        ("uea", 7494, 50, 600, 8),
        (None, 180, 51, 200, 8),
    ],
)
def test_the_papers_budget(family, n_cases, n_times, steps, batch_size):
    recipe = paper_recipe(family, n_cases, n_times)
    assert (recipe.steps, recipe.batch_size) == (steps, batch_size)
    assert (recipe.lr, recipe.weight_decay, recipe.betas, recipe.schedule) == (3e-4, 3e-4, (0.9, 0.99), "per_step")


@given(st.integers(1, 2000), st.integers(1, 400))
def test_per_epoch_is_the_same_curve_read_once_an_epoch(steps, steps_per_epoch):
    slow, fast = Recipe(steps, 8, schedule="per_epoch"), Recipe(steps, 8)
    for step in {0, steps // 2, steps - 1}:
        assert lr_at(step, slow, steps_per_epoch) == lr_at(step // steps_per_epoch, fast, steps_per_epoch)


def test_warm_up_then_half_cosine():
    recipe = Recipe(100, 8, lr=1.0)
    rates = [lr_at(step, recipe, 1) for step in range(100)]
    assert rates[0] == 0 and rates[5] == 0.5 and rates[10] == 1.0
    assert rates[55] == pytest.approx(0.5)
    assert rates[99] == pytest.approx(0.5 * (1 + math.cos(math.pi * 89 / 90)))
    assert all(0 <= rate <= 1 for rate in rates)


def slowly(step: int, base: float = 0.1) -> float:
    return base / (1 + step)


def test_a_function_is_named_in_files_and_has_to_be_passed_again():
    stored = json.loads(json.dumps(Recipe(5, 8, schedule=slowly).to_dict()))
    assert stored["schedule"] == f"{__name__}:slowly"
    read = Recipe(**{**stored, "betas": tuple(stored["betas"])})
    with pytest.raises(InputError, match="slowly"):
        lr_at(0, read, 1)
    assert lr_at(1, replace(read, schedule=slowly), 1) == 0.05
