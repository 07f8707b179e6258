"""A stream gives the windows, vectors and classes of the recording that its samples make."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dicot import EmbeddingOutlierDetector, FewLabelClassifier, Stream, TimeSeriesEmbedder, Windows, export_onnx
from dicot.core.errors import InputError
from dicot.model.stream import StreamedWindow

RATE, WINDOW = 50.0, 64


def recording(n: int = 1500, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(channels, n)).cumsum(axis=1)


def cut(stride: int = 32, times: np.ndarray | None = None) -> Windows:
    how = {"rate": RATE} if times is None else {"times": times}
    return Windows.from_array(recording(), window=WINDOW, stride=stride, **how)


@cache
def model(name: str = "instant") -> TimeSeriesEmbedder:
    if name == "dicot-base":
        return TimeSeriesEmbedder.from_pretrained(name, device="cpu")
    return TimeSeriesEmbedder(prepare={"scale": "dataset"}, random_state=0, device="cpu").fit(cut())


def assert_same(found: list[StreamedWindow], windows: Windows, by: TimeSeriesEmbedder) -> None:
    assert [one.start for one in found] == windows.start.tolist()
    assert [one.end for one in found] == windows.end.tolist()
    alone, together = np.concatenate([by.transform(one[None]) for one in windows.x]), by.transform(windows)
    np.testing.assert_array_equal([one.vector for one in found], alone)  # to the bit
    assert np.abs(alone - together).max() < 1e-5 * np.abs(together).max()


@pytest.mark.parametrize("name", ["instant", "dicot-base"])
@pytest.mark.parametrize("stride", [32, 100])
def test_any_division_into_pushes_gives_what_the_recording_gives(name: str, stride: int):
    samples, rng, found, at = recording().T, np.random.default_rng(stride), [], 0
    how = {"window": WINDOW, "stride": stride, "rate": RATE}
    stream = Stream(model(name), **how)
    while at < len(samples):
        n = int(rng.integers(0, 200))
        found += stream.push(samples[at] if n == 1 else samples[at : at + n])
        at += n
        stream = Stream(model(name), **how, state=json.loads(json.dumps(stream.state())))
    assert_same(found, cut(stride), model(name))


def test_a_gap_in_the_time_stamps_starts_a_new_stretch():
    times = 1.7e9 + np.arange(1500) / RATE
    times[700:] += 3
    whole, stream = cut(times=times), Stream(model(), stride=32)
    assert_same([one for at in range(1500) for one in stream.push(recording().T[at], times[[at]])], whole, model())
    assert_same(Stream(model(), stride=32).push(recording().T, times), whole, model())
    assert not ((whole.start < times[700]) & (whole.end > times[700])).any()


def test_classes_and_outliers_are_those_of_classifier_and_detector(tmp_path: Path):
    z, detector = model().transform(cut()), EmbeddingOutlierDetector(alpha=0.2).fit(1.1 * model().transform(cut()))
    head = FewLabelClassifier().fit(z, np.arange(len(z)) % 3)
    chances, saved = head.predict_proba(z), head.head_.save(tmp_path / "head.safetensors")
    export_onnx(model(), tmp_path / "classes.onnx", classifier=head)
    for by, own in ((model(), saved), (tmp_path / "classes.onnx", None)):
        found = Stream(by, head=own, detector=detector).push(recording().T)
        assert [one.label for one in found] == head.classes_[chances.argmax(axis=1)].tolist()
        np.testing.assert_allclose([one.probability for one in found], chances.max(axis=1), rtol=1e-4)
        np.testing.assert_allclose([one.outlier for one in found], detector.p_values(z))
    with pytest.raises(InputError, match=f"of {z.shape[1]} numbers; this model makes 512"):
        Stream("dicot-base", window=WINDOW, head=head)


@pytest.mark.parametrize(
    ("samples", "times", "said"),
    [
        (np.zeros((3, 100)), None, r"takes \(time steps, 3 channels\); got \(3, 100\).*transpose"),
        ([["a", "b", "c"]], None, "takes numbers"),
        ([[1, 2, 3], [1, np.nan, 3]], None, "Time step 1 of this push has nan in channel 1. Fill it in"),
        (np.zeros((2, 3)), [0.5, 0.6], "0.5 s came after 0.98 s"),
        (np.zeros((99, 3)), 1 + np.arange(99) / 100, "100 steps per second; the rate is 50"),
        (np.zeros((99, 3)), 1 + np.arange(99) / 20, "20 steps per second; the rate is 50"),
        (np.zeros((2, 3)), None, "always, or never"),
    ],
)
def test_what_cannot_be_used_is_refused_and_changes_nothing(samples: object, times: object, said: str):
    stream = Stream(model())
    stream.push(recording().T[:50], np.arange(50) / RATE)
    before = stream.state()
    with pytest.raises(InputError, match=said):
        stream.push(samples, times)
    assert stream.state() == before


def test_settings_and_states_that_do_not_fit_are_refused():
    state = Stream(model()).state()
    damages = ({"values": [[1, 2]]}, {"skip": -1}, {"times": None}, {"format": "other"}, {"last": "now"})
    wrong = [({"state": {**state, **damage}}, "no state of a stream") for damage in damages]
    for how, said in [*wrong, ({"stride": 10, "state": state}, "stride=32"), ({"rate": 100}, "rate of 50; got 100")]:
        with pytest.raises(InputError, match=said):
            Stream(model(), **how)
    with pytest.raises(InputError, match="Say rate="):
        Stream("dicot-base", window=8).push(np.zeros((2, 2)), [0, 1])
