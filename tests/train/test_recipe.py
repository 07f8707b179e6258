import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicot.errors import InputError
from dicot.train import Recipe, lr_at, paper_recipe


@pytest.mark.parametrize(
    ("family", "n_cases", "n_times", "steps", "batch_size", "temperature"),
    [
        ("large", 23025, 500, 1500, 128, 0.07),
        ("large", 25612, 3000, 1500, 16, 0.07),
        ("large", 1296, 2500, 1500, 16, 0.07),
        ("ucr", 200, 427, 200, 8, 1.0),
        ("ucr", 1000, 100, 200, 8, 1.0),  # exactly 100,000 is not above it
        ("ucr", 1001, 100, 600, 8, 1.0),
        ("uea", 180, 51, 200, 8, 0.07),
        ("uea", 7494, 50, 600, 8, 0.07),
        (None, 180, 51, 200, 8, 0.07),
    ],
)
def test_the_papers_budget(family, n_cases, n_times, steps, batch_size, temperature):
    recipe = paper_recipe(family, n_cases, n_times)
    assert (recipe.steps, recipe.batch_size, recipe.temperature) == (steps, batch_size, temperature)
    assert (recipe.lr, recipe.weight_decay, recipe.betas, recipe.schedule) == (3e-4, 3e-4, (0.9, 0.99), "per_step")


def test_unknown_family():
    with pytest.raises(InputError, match="family must be one of"):
        paper_recipe("ucrr", 1, 1)


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


@pytest.mark.parametrize(("steps_per_epoch", "peak"), [(1600, 0.0), (1051, 2e-6), (399, 6e-6), (179, 1.6e-5)])
def test_the_authors_schedule_hardly_trains_the_large_sets(steps_per_epoch, peak):
    recipe = Recipe(1500, 128, schedule="per_epoch")  # D-01
    assert max(lr_at(step, recipe, steps_per_epoch) for step in range(1500)) == pytest.approx(peak)


def test_all_problems_at_once():
    with pytest.raises(InputError) as caught:
        Recipe(-1, 0, lr=float("nan"), warmup=2, schedule="daily", precision="int8")
    for name in ("steps", "batch_size", "lr", "warmup", "schedule", "precision"):
        assert f"{name} must be" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 2.5),
        ("steps", None),
        ("batch_size", True),
        ("batch_size", "8"),
        ("lr", "x"),
        ("lr", math.inf),
        ("warmup", math.nan),
        ("warmup", "half"),
        ("weight_decay", -1.0),
        ("betas", (0.9,)),
        ("betas", (0.9, 1.0)),
        ("temperature", 0.0),
    ],
)
def test_a_bad_value_is_named_with_its_parameter(name, value):
    with pytest.raises(InputError, match=rf"^{name} must be .*; got {re.escape(repr(value))}\.$"):
        Recipe(**{"steps": 1, "batch_size": 8, name: value})


def test_numbers_of_numpy_are_plain_numbers_afterwards():
    recipe = Recipe(np.int64(5), np.int32(8), lr=np.float32(0.5), warmup=0)
    assert repr(recipe) == repr(Recipe(5, 8, lr=0.5, warmup=0.0))
