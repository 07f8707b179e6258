"""Several estimators fitted in one call end as they do alone."""

import numpy as np
import pytest
import torch

from dicot.core.errors import InputError
from dicot.model.estimator import TimeSeriesEmbedder, fit_many
from dicot.train import Checkpoint


def model(method: str = "dicot", seed: int = 0, **more) -> TimeSeriesEmbedder:
    recipe = {"batch_size": 4, **more.pop("recipe", {})}
    return TimeSeriesEmbedder(method, dim=8, steps=3, recipe=recipe, random_state=seed, device="cpu", **more)


def test_every_model_is_as_fitted_alone(waves):
    makers = [
        lambda: model(),
        lambda: model("ts2vec", 1, prepare={"scale": "dataset"}, recipe={"precision": "float64"}),
        lambda: model("random", 2),
        lambda: model("calibrated", 2),
        lambda: model("supervised", 3, family="ucr"),
    ]
    together = [make() for make in makers]
    fit_many(together, [(waves.x, waves.y)] * len(makers))
    for one, make in zip(together, makers, strict=True):
        alone = make().fit(waves.x, waves.y)
        assert np.array_equal(one.transform(waves.x), alone.transform(waves.x))
        assert one.history_.loss == alone.history_.loss and one.history_.lr == alone.history_.lr
        assert (one.recipe_, one.method_params_, one.data_) == (alone.recipe_, alone.method_params_, alone.data_)
        for mine, other in zip(one.encoder_.parameters(), alone.encoder_.parameters(), strict=True):
            assert torch.equal(mine, other)
    assert together[1].recipe_.precision == "float64"


def test_failures_are_told_and_the_others_go_on(waves):
    models = [model(method_params={"k": 1}), model(), model(recipe={"lr": 1e30}), model(seed=1)]
    told = {}
    fit_many(models, [(waves.x, None)] * 4, on_error=lambda number, error: told.update({number: str(error)}))
    assert told.keys() == {0, 2} and "k must be" in told[0] and "loss of step" in told[2]
    assert models[1].transform(waves.x).shape == models[3].transform(waves.x).shape == (24, 8)
    with pytest.raises(InputError, match="k must be"):
        fit_many(models[:2], [(waves.x, None)] * 2)


def test_checkpoints_and_devices(tmp_path, waves):
    checkpoint = Checkpoint(tmp_path / "run.safetensors", 0)
    for _ in range(2):
        fit_many([model()], [(waves.x, None)], checkpoints=[checkpoint])
        assert checkpoint.path.exists()
    with pytest.raises(InputError, match="one device"):
        fit_many([model(), TimeSeriesEmbedder(device="auto")], [(waves.x, None)] * 2)
    fit_many([], [])
