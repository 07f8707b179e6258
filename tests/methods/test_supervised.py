import numpy as np
import pytest
import torch

from dicot import TimeSeriesEmbedder
from dicot.core.errors import InputError, ModelFileError
from dicot.data import Windows
from dicot.methods import Batch, Supervised
from dicot.nets.encoders import InceptionTime
from dicot.train import Checkpoint, Recipe, pretrain


def prepared(waves, **settings) -> Supervised:
    torch.manual_seed(0)
    method = Supervised(InceptionTime(2, dim=8), **settings)
    method.prepare(waves)
    return method.eval()


@pytest.mark.parametrize("pool", ["mean", "max"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_loss_matches_a_slow_reference(waves, pool, dtype):
    method = prepared(waves, pool=pool).to(dtype)
    x, y = torch.from_numpy(waves.x).to(dtype), waves.y
    loss = method.loss(Batch(x, torch.arange(24), torch.from_numpy(y)), ())
    assert loss.dtype == dtype
    h = method.encoder(x).detach().numpy().astype(np.float64)
    weight, bias = (p.detach().numpy().astype(np.float64) for p in (method.head.weight, method.head.bias))
    expected = 0.0
    for case, label in zip(h, y, strict=True):
        z = [row.mean() if pool == "mean" else row.max() for row in case]
        scores = [w @ np.array(z) + b for w, b in zip(weight, bias, strict=True)]
        expected -= (scores[label] - np.log(np.sum(np.exp(scores)))) / len(y)
    assert loss.item() == pytest.approx(expected, rel=1e-5 if dtype == torch.float32 else 1e-12)


def test_the_head_fits_the_classes_whatever_they_are_called(waves):
    names = np.array(["walk", "run", "sit"])[waves.y]
    for labels in (names, waves.y * 10 - 5):
        method = prepared(Windows(waves.x, labels))
        assert method.logits(torch.from_numpy(waves.x)).shape == (24, 3)
        assert {id(p) for p in method.head.parameters()} <= {id(p) for p in method.param_groups()[0]["params"]}


def test_it_learns_the_labels(waves):
    method = prepared(waves)
    pretrain(method, waves, Recipe(60, 8, lr=1e-2), seed=0, device="cpu")
    with torch.no_grad():
        guess = method.logits(torch.from_numpy(waves.x)).argmax(1).numpy()
    assert (guess == waves.y).mean() > 0.9


def test_a_checkpoint_is_not_continued_with_other_labels(waves, tmp_path):
    checkpoint = Checkpoint(tmp_path / "run.safetensors", seconds=0)
    pretrain(prepared(waves), waves, Recipe(2, 8), seed=0, device="cpu", checkpoint=checkpoint)
    renamed = Windows(waves.x, np.array(["a", "b", "c"])[waves.y])  # the same classes in the same order
    pretrain(prepared(renamed), renamed, Recipe(2, 8), seed=0, device="cpu", checkpoint=checkpoint)
    other = Windows(waves.x, np.roll(waves.y, 1))
    with pytest.raises(ModelFileError, match="another run"):
        pretrain(prepared(other), other, Recipe(2, 8), seed=0, device="cpu", checkpoint=checkpoint)


@pytest.mark.parametrize("names", [[0.0, 1.0, 2.0, np.nan], ["a", "b", "c", ""]], ids=["numbers", "text"])
def test_it_learns_from_the_labelled_cases_alone(waves, names):
    partly = Windows(waves.x, np.array(names)[np.where(np.arange(24) % 4 == 1, 3, waves.y)])
    rows = np.flatnonzero(np.arange(24) % 4 != 1)
    losses = []
    for data in (partly, waves.subset(rows)):
        torch.manual_seed(0)
        method = Supervised(InceptionTime(2, dim=8))
        losses.append(pretrain(method, data, Recipe(3, 8), seed=0, device="cpu").loss)
        assert method.head.out_features == 3
    assert losses[0] == losses[1]
    with pytest.raises(InputError, match="none of the 24 cases"):
        pretrain(method, Windows(waves.x, np.full(24, np.nan)), Recipe(1, 8), seed=0, device="cpu")


def test_the_embedder_trains_it_with_labels_and_keeps_the_encoder(waves):
    settings = {"dim": 8, "steps": 2, "random_state": 0, "device": "cpu"}
    model = TimeSeriesEmbedder("supervised", **settings, method_params={"pool": "max"}).fit(waves.x, waves.y)
    assert model.transform(waves.x).shape == (24, 8)
    assert model.method_params_ == {"pool": "max"}
    with pytest.raises(InputError, match="learns from labels"):
        TimeSeriesEmbedder("supervised", **settings).fit(waves.x)
