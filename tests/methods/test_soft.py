import numpy as np
import pytest
import torch

from dicot.data import Windows
from dicot.methods import Batch, Soft, TS2Vec
from dicot.methods import soft as similarity_module
from dicot.methods.cropping import Crops
from dicot.methods.soft import sharpen
from dicot.nets.encoders import InceptionTime
from dicot.nets.hierarchy import hierarchical_contrast
from dicot.train import Checkpoint, Recipe, pretrain

WHOLE = Crops(n_times=32, left=0, right=32, outer_left=0, outer_right=32)


def make(**settings) -> Soft:
    torch.manual_seed(0)
    return Soft(InceptionTime(2, dim=16), **settings)


def batch_of(waves: Windows, index: list[int]) -> Batch:
    return Batch(torch.from_numpy(waves.x[index]), torch.tensor(index))


def test_loss_by_hand(waves):
    method = make(tau_inst=5.0, tau_temp=0.5, alpha=0.4, lambda_=0.3).eval()
    method.prepare(waves)
    index = [7, 2, 19]
    batch = batch_of(waves, index)
    h = method.encoder(batch.x)
    flat = waves.x.reshape(24, -1).astype(np.float64)
    unit = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    distance = -unit @ unit.T
    np.fill_diagonal(distance, distance[~np.eye(24, dtype=bool)].min())
    similarity = 1 - (distance - distance.min(0)) / (distance.max(0) - distance.min(0))
    weights = sharpen(torch.from_numpy(similarity[np.ix_(index, index)]), 5.0, 0.4)
    expected = hierarchical_contrast(h, h, case_weights=weights, tau_temp=0.5, alpha=0.3)
    torch.testing.assert_close(method.loss(batch, WHOLE), expected, rtol=1e-5, atol=1e-6)


def test_both_parts_off_is_ts2vec(waves):
    soft = make(tau_inst=0, tau_temp=0)
    torch.manual_seed(0)
    hard = TS2Vec(InceptionTime(2, dim=16))
    losses = [pretrain(method, waves, Recipe(3, 8), seed=3, device="cpu").loss for method in (soft, hard)]
    assert losses[0] == losses[1]
    assert soft.similarity is None


def test_weights_follow_the_index_and_not_the_labels(waves):
    """D-13: the authors' code looked up the class label."""
    losses = []
    for y in (waves.y, np.zeros(24), None):
        losses.append(pretrain(make(), Windows(waves.x, y), Recipe(2, 8), seed=1, device="cpu").loss)
    assert losses[0] == losses[1] == losses[2]
    method = make()
    method.prepare(waves)
    similarity = method.similarity
    assert similarity is not None
    x = torch.from_numpy(waves.x[[3, 4]])
    assert not torch.equal(similarity(x, torch.tensor([3, 4])), similarity(x, torch.tensor([0, 1])))


@pytest.mark.filterwarnings("ignore:The range of similarities")
def test_a_resumed_run_is_the_same_run_even_with_an_estimate(waves, tmp_path, monkeypatch):
    monkeypatch.setattr(similarity_module, "EXACT_UP_TO", 10)
    monkeypatch.setattr(similarity_module, "SAMPLED_CASES", 6)

    class StoppedError(Exception):
        pass

    def stop(step):
        if step.number == 2:
            raise StoppedError

    whole = make()
    pretrain(whole, waves, Recipe(4, 8), seed=5, device="cpu")
    kept = Checkpoint(tmp_path / "run.safetensors", seconds=0)
    with pytest.raises(StoppedError):
        pretrain(make(), waves, Recipe(4, 8), seed=5, device="cpu", checkpoint=kept, on_step=stop)
    resumed = make()
    pretrain(resumed, waves, Recipe(4, 8), seed=5, device="cpu", checkpoint=kept)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
