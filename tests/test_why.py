"""Where the answer is known, it is found: what was added to a window is what makes it different."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dicot import TimeSeriesEmbedder
from dicot.core.errors import InputError
from dicot.use.why import explain, model_behind, nearest_labelled, target_of
from tests.commands import dicot

TIME = np.arange(128)


def waves(n: int = 60, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.sin(TIME / 3 + rng.uniform(0, 6, size=(n, 3, 1))) + 0.1 * rng.normal(size=(n, 3, 128))


def with_bump(window: np.ndarray, channel: int, at: int) -> np.ndarray:
    bump = 3 * np.exp(-(((TIME - at) / 4) ** 2))
    return window + bump * (np.arange(3) == channel)[:, None]


@cache
def base() -> TimeSeriesEmbedder:
    return TimeSeriesEmbedder.from_pretrained("dicot-base", device="cpu")


@pytest.mark.parametrize(("channel", "at"), [(0, 20), (1, 70), (2, 122)])
@pytest.mark.parametrize("asked", ["outlier", "bump", 0])
def test_a_bump_is_found_in_its_channel_at_its_place(channel: int, at: int, asked: str | int):
    """It makes the window an outlier, one of those with a bump, and unlike the window that it was put on."""
    bumps = [with_bump(one, row % 3, 10 + 5 * row) for row, one in enumerate(waves(20 * (asked == "bump"), 1))]
    x = np.stack([*waves(), *bumps, with_bump(waves()[0], channel, at)])
    z, labels = base().transform(x), np.array(["flat"] * 60 + ["bump"] * len(bumps) + [""])
    target = target_of(z, len(x) - 1, labels, asked=asked)
    found = explain(base(), x[-1], target, reference=x[target.rows])
    (where, piece), *_ = found.strongest(1)
    assert where == channel and found.edges[piece] - 4 <= at < found.edges[piece + 1] + 4
    assert found.effect.shape == (3, 16) and found.value == pytest.approx(float(target.of(z[-1:])[0]), rel=1e-4)


def test_a_level_that_lasts_the_whole_window_is_found_in_its_channel():
    x = waves()
    x[30:, 1] += 4
    z, labels = base().transform(x), np.array(["low"] * 30 + ["high"] * 30)
    target = target_of(z, 59, labels)
    assert target.name == "probability of high" and target.rows.max() < 30
    assert explain(base(), x[59], target, reference=x[target.rows]).channels.argmax() == 1
    rows, distances = nearest_labelled(z, 59, np.where(np.arange(60) % 2, "", labels), leave_out=[58, 56])
    assert len(rows) == 3 and all(row % 2 == 0 and 30 <= row < 56 for row in rows) and distances == sorted(distances)


def test_the_command_lists_draws_and_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    tracks = waves(6)
    for number, track in enumerate(np.concatenate([tracks, tracks], axis=2)):
        track[:, :128] = with_bump(tracks[number], 1, 70) if number == 3 else tracks[number]
        np.savetxt(f"day{number}.csv", track.T, delimiter=",", header="x,y,z", comments="")
    dicot("embed", "dicot-base", ".", "--window", 128, "--stride", 64, "--set", "rate=50", "--out", "v.npz")
    said = dicot("why", "v.npz", "day3@1.2", "--target", "day3@3.9", "--plot", "why.html")
    assert "Distance from row" in said and said.splitlines()[4].split("│")[1].strip() == "y"
    page = Path("why.html").read_text()
    assert page.count('class="for"') + page.count('class="against"') == 3 * 16 and 'fill-opacity="1.0"' in page
    labels = "".join(f"day{day},0,2.56,{label}\n" for day, label in ((0, "calm"), (1, "calm"), (2, "odd"), (3, "odd")))
    Path("l.csv").write_text(f"recording,start,end,label\n{labels}")
    said = dicot("why", "v.npz", "day3@1.2", "--labels", "l.csv")
    assert "Probability of" in said and said.count("calm") >= 2 and "whole channel" in said
    with pytest.raises(InputError, match="No other window has the label 'clam'. Did you mean 'calm'"):
        dicot("why", "v.npz", "day3@1.2", "--labels", "l.csv", "--target", "clam")
    with pytest.raises(InputError, match=r"were made by the model .* does not come with dicot.*--model"):
        model_behind("0" * 64)
    Path("day3.csv").unlink()
    with pytest.raises(InputError, match=r"There is no .*day3.csv. Say where the recordings are"):
        dicot("why", "v.npz", "day3@1.2")
