"""Training that draws a new window of each segment in every epoch, by the seed alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dicot import TimeSeriesEmbedder
from dicot.core.errors import InputError
from dicot.data import Windows, check_collection
from dicot.data.splits import Split, with_policies
from dicot.methods.base import Method
from dicot.nets.encoders import FCN
from dicot.train import Checkpoint, Recipe, Step, pretrain
from dicot.train.batches import visited

N, T, LENGTH = 6, 8, 30
RECIPE = Recipe(steps=7, batch_size=2)  # epochs of three steps


@pytest.fixture
def drawn() -> Windows:
    """Value `100 * segment + time` in channel 0, its negative in channel 1; the fixed windows are in the middle."""
    values = 100 * np.arange(N)[:, None] + np.arange(LENGTH)
    segments = np.stack([values, -values], axis=1).astype(np.float32)
    middle = (LENGTH - T) // 2
    x = np.ascontiguousarray(segments[:, :, middle : middle + T])
    return Windows(x, np.arange(N) % 2, np.arange(N), "drawn", segments)


class Spy(Method):
    """Keeps the batches that it is given."""

    summary = paper = complexity = "none"

    def loss(self, batch, plan):
        self.seen = [*getattr(self, "seen", []), (batch.index.numpy().copy(), batch.x.numpy().copy())]
        return self.encoder.embed(batch.x).square().mean()


def train(windows: Windows, kind: type[Method] = Spy, seed: int = 3, **more) -> Method:
    torch.manual_seed(0)
    method = kind(FCN(2, dim=4))
    pretrain(method, windows, RECIPE, seed=seed, device="cpu", **more)
    return method


def starts(seen) -> np.ndarray:
    """(steps, B): where each window begins, after a look that it is a piece of the segment that it claims to be."""
    out = []
    for index, x in seen:
        first = x[:, 0, 0] - 100 * index
        assert (x[:, 0] == (100 * index + first)[:, None] + np.arange(T)).all() and (x[:, 1] == -x[:, 0]).all()
        assert (first >= 0).all() and (first <= LENGTH - T).all()
        out.append(first)
    return np.array(out)


def test_every_epoch_visits_every_segment_with_another_window(drawn):
    seen = train(drawn).seen
    assert sorted(np.concatenate([index for index, _ in seen[:3]])) == list(range(N))
    begun = starts(seen)
    by_segment = {}
    for (index, _), first in zip(seen, begun, strict=True):
        for segment, start in zip(index.tolist(), first.tolist(), strict=True):
            by_segment.setdefault(segment, []).append(start)
    assert sum(len(set(some)) > 1 for some in by_segment.values()) >= N - 1
    again, other, device = train(drawn).seen, train(drawn, seed=4).seen, train(drawn, batches="device").seen
    assert all((a[1] == b[1]).all() for a, b in zip(seen, again, strict=True)), "the same seed, the same windows"
    assert all((a[1] == b[1]).all() for a, b in zip(seen, device, strict=True)), "drawn windows are always streamed"
    assert not np.array_equal(begun, starts(other))


def test_all_starts_occur_and_none_beyond_the_end():
    x = np.zeros((N, 1, T), np.float32)
    windows = Windows(x, segments=np.zeros((N, 1, T + 2), np.float32))
    numbers = visited(windows, 1, 0, 300, 2)
    assert np.unique(numbers // N).tolist() == [0, 1, 2]
    assert (visited(windows, 1, 40, 60, 2) == numbers[40:60]).all(), "a run that goes on draws what it would have drawn"
    exact = Windows(x, segments=np.zeros((N, 1, T), np.float32))
    assert (visited(exact, 1, 0, 9, 2) < N).all()


def test_a_killed_run_goes_on_with_the_same_windows(drawn, tmp_path):
    def ended(step: Step) -> None:
        if step.number == 4:
            raise KeyboardInterrupt

    whole = train(drawn)
    checkpoint = tmp_path / "run.safetensors"
    with pytest.raises(KeyboardInterrupt):
        train(drawn, on_step=ended, checkpoint=Checkpoint(checkpoint, 0))
    resumed = train(drawn, checkpoint=Checkpoint(checkpoint, 0))
    assert len(resumed.seen) < len(whole.seen)
    assert all(torch.equal(value, resumed.state_dict()[name]) for name, value in whole.state_dict().items())


def test_an_estimator_trains_on_drawn_windows_and_embeds_fixed_ones(drawn):
    def fit(windows: Windows) -> TimeSeriesEmbedder:
        return TimeSeriesEmbedder("dicot", encoder="fcn", dim=4, steps=5, random_state=1, device="cpu").fit(windows)

    scaled = replace(drawn, x=drawn.x / 600, segments=drawn.segments / 600)
    model, fixed = fit(scaled), fit(replace(scaled, segments=None))
    assert model.history_.loss != fixed.history_.loss
    assert model.transform(scaled).shape == (N, 4)
    assert (fit(scaled).transform(scaled) == model.transform(scaled)).all()
    assert model.data_["fingerprint"] == scaled.fingerprint() != fixed.data_["fingerprint"]
    with pytest.raises(InputError, match="drawn draws windows while it trains.*Leave both out"):
        TimeSeriesEmbedder("dicot", steps=1, prepare={"scale": "dataset"}, device="cpu").fit(scaled)


def test_segments_travel_with_their_cases_and_policies_that_would_pass_them_by_are_refused(drawn):
    some = drawn.subset([4, 1])
    assert some.segments[:, 0, 0].tolist() == [400, 100]
    assert check_collection(drawn).segments is drawn.segments
    for wrong in (drawn.segments[:5], drawn.segments[:, :1], drawn.segments[:, :, : T - 1], drawn.segments[0]):
        with pytest.raises(InputError, match="Segments must have the cases and channels of x"):
            replace(drawn, segments=wrong)
    changed = replace(drawn, segments=drawn.segments + 1)
    assert drawn.fingerprint() != changed.fingerprint() != replace(drawn, segments=None).fingerprint()
    split = Split(drawn, replace(drawn, segments=None), name="drawn")
    assert with_policies(split, missing="zero").train.segments is drawn.segments
    for policies in ({"scale": "case"}, {"unequal": "crop", "length": 4}):
        with pytest.raises(InputError, match="draws windows while it trains"):
            with_policies(split, **policies)
