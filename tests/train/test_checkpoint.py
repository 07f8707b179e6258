import random
from pathlib import Path

import numpy as np
import pytest
import torch

from dicot.core.errors import ModelFileError
from dicot.methods.dicot import DiCOT
from dicot.nets.encoders import InceptionTime, ResNet
from dicot.train import Checkpoint, History, Recipe, Step, pretrain


class Killed(BaseException):
    """Stands for a power cut: nothing of the library may catch it."""


def method(**settings) -> DiCOT:
    torch.manual_seed(0)
    return DiCOT(InceptionTime(2, dim=8), **settings)


def run_until(stop: int, path: Path, waves, recipe: Recipe) -> None:
    def on_step(step: Step) -> None:
        if step.number == stop:
            raise Killed

    with pytest.raises(Killed):
        pretrain(method(), waves, recipe, seed=3, device="cpu", on_step=on_step, checkpoint=Checkpoint(path, 0))


@pytest.mark.parametrize("schedule", ["per_step", "per_epoch"])
def test_interrupted_twice_ends_bit_equal(tmp_path, waves, schedule):
    recipe = Recipe(14, 8, schedule=schedule)
    whole = method()
    history = pretrain(whole, waves, recipe, seed=3, device="cpu")
    path = tmp_path / "run.safetensors"
    run_until(4, path, waves, recipe)
    run_until(11, path, waves, recipe)
    resumed = method()
    with torch.no_grad():
        for parameter in resumed.parameters():
            parameter.zero_()  # whatever it starts with is replaced
    after = pretrain(resumed, waves, recipe, seed=3, device="cpu", checkpoint=Checkpoint(path, 0))
    assert after.loss == history.loss
    assert after.lr == history.lr
    assert after.seconds > 0
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name


def test_another_run_is_refused_and_named(tmp_path, waves):
    path = tmp_path / "run.safetensors"
    run_until(2, path, waves, Recipe(5, 8))
    checkpoint = Checkpoint(path)
    with pytest.raises(ModelFileError, match="seed: 3 there, 4 here"):
        pretrain(method(), waves, Recipe(5, 8), seed=4, device="cpu", checkpoint=checkpoint)
    with pytest.raises(ModelFileError, match="recipe:"):
        pretrain(method(), waves, Recipe(6, 8), seed=3, device="cpu", checkpoint=checkpoint)
    with pytest.raises(ModelFileError, match="settings:.*overlap"):
        pretrain(method(overlap=0.25), waves, Recipe(5, 8), seed=3, device="cpu", checkpoint=checkpoint)
    with pytest.raises(ModelFileError, match="data:"):
        pretrain(method(), waves.subset(slice(1, None)), Recipe(5, 8), seed=3, device="cpu", checkpoint=checkpoint)


def test_written_rarely_and_without_left_overs(tmp_path, waves):
    path = tmp_path / "run.safetensors"
    checkpoint = Checkpoint(path, seconds=1000)
    writes = []
    pretrain(
        method(), waves, Recipe(4, 8), seed=3, device="cpu", checkpoint=checkpoint,
        on_step=lambda history: writes.append(path.exists()),
    )  # fmt: skip
    assert writes == [False, False, False, True]  # only the last step was due
    assert [file.name for file in tmp_path.iterdir()] == ["run.safetensors"]


def residual() -> DiCOT:
    torch.manual_seed(0)
    return DiCOT(ResNet(2, 8))


@pytest.fixture
def kept(tmp_path, waves):
    """The path of a checkpoint, and what continues its run."""
    path = tmp_path / "run.safetensors"
    pretrain(residual(), waves, Recipe(2, 8), seed=3, device="cpu", checkpoint=Checkpoint(path, 0))

    def resume(**options) -> History:
        checkpoint = Checkpoint(path, 1000, **options)
        return pretrain(residual(), waves, Recipe(2, 8), seed=3, device="cpu", checkpoint=checkpoint)

    return path, resume


def test_a_flipped_bit_anywhere_is_found(kept):
    path, resume = kept
    whole = path.read_bytes()
    resume()
    dice = random.Random(0)
    header = int.from_bytes(whole[:8], "little")
    places = [dice.randrange(8 + header) for _ in range(15)] + [dice.randrange(header, len(whole)) for _ in range(15)]
    for place in [*places, len(whole) - 1]:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << dice.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError, match=r"run\.safetensors is not a readable checkpoint.*Delete it"):
            resume()


def test_where_it_may_be_overwritten_another_run_is_replaced(kept, waves):
    path, resume = kept
    whole = resume().loss
    path.write_bytes(b"damaged")
    assert resume(overwrite=True).loss == whole
    other = pretrain(
        residual(), waves, Recipe(2, 8), seed=4, device="cpu", checkpoint=Checkpoint(path, 0, overwrite=True)
    )
    assert not np.array_equal(other.loss, whole)
    assert resume(overwrite=True).loss == whole
