from pathlib import Path

import pytest
import torch

from dicot.encoders import InceptionTime
from dicot.errors import ModelFileError
from dicot.methods.dicot import DiCOT
from dicot.train import Checkpoint, History, Recipe, pretrain


class Killed(BaseException):
    """Stands for a power cut: nothing of the library may catch it."""


def method(**settings) -> DiCOT:
    torch.manual_seed(0)
    return DiCOT(InceptionTime(2, dim=8), **settings)


def run_until(stop: int, path: Path, waves, recipe: Recipe) -> None:
    def on_step(history: History) -> None:
        if len(history) == stop:
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


def test_a_finished_run_has_nothing_left_to_do(tmp_path, waves):
    checkpoint = Checkpoint(tmp_path / "run.safetensors", seconds=1000)
    first = pretrain(method(), waves, Recipe(3, 8), seed=3, device="cpu", checkpoint=checkpoint)
    steps = []
    again = pretrain(method(), waves, Recipe(3, 8), seed=3, device="cpu", checkpoint=checkpoint, on_step=steps.append)
    assert again.loss == first.loss
    assert not steps


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


@pytest.mark.parametrize("damage", [b"", b"not a checkpoint", None])
def test_a_damaged_checkpoint_is_named(tmp_path, waves, damage):
    path = tmp_path / "run.safetensors"
    run_until(2, path, waves, Recipe(5, 8))
    path.write_bytes(path.read_bytes()[:-100] if damage is None else damage)
    with pytest.raises(ModelFileError, match="not a readable checkpoint.*Delete it"):
        pretrain(method(), waves, Recipe(5, 8), seed=3, device="cpu", checkpoint=Checkpoint(path))


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
