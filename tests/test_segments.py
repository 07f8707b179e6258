"""Stretches of one activity: where they begin and end, and what they are called."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dicot.core.errors import InputError
from dicot.model.fewlabels import FewLabelClassifier
from dicot.use.segments import best_path, change_points, segment
from tests.commands import dicot

TRUTH = [0] * 40 + [1] * 25 + [0] * 30 + [2] * 15


def windows(seed: int = 0, stride: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of windows of one second, and their starts."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(len(TRUTH), 12)) + 6 * np.eye(12)[TRUTH]
    return x.astype(np.float32), np.arange(len(x)) * stride


def every_way(n: int, shortest: int) -> list[list[int]]:
    inner = [list(cut) for count in range(n) for cut in itertools.combinations(range(1, n), count)]
    return [e for e in ([0, *cut, n] for cut in inner) if min(np.diff(e)) >= shortest]


@pytest.mark.parametrize("shortest", [1, 3])
def test_changes_and_paths_are_the_best_of_all(shortest: int) -> None:
    rng = np.random.default_rng(shortest)
    for _ in range(5):
        z, penalty = rng.normal(size=(9, 2)) + np.repeat([[0], [2], [0]], 3, axis=0), 1.5

        def squares(edges: list[int], z: np.ndarray = z, penalty: float = penalty) -> float:
            return sum(np.square(z[a:b] - z[a:b].mean(axis=0)).sum() + penalty for a, b in itertools.pairwise(edges))

        best = min(every_way(9, shortest), key=squares)
        assert change_points(z, shortest, penalty).tolist() == best
        worth = rng.normal(size=(9, 3))

        def gain(edges: list[int], worth: np.ndarray = worth, penalty: float = penalty) -> float:
            return sum(worth[a:b].sum(axis=0).max() - penalty for a, b in itertools.pairwise(edges))

        path = best_path(worth, shortest, penalty)
        runs = np.flatnonzero(np.diff(path)) + 1
        assert gain([0, *runs.tolist(), 9]) == pytest.approx(max(map(gain, every_way(9, shortest))))


def test_stretches_begin_where_windows_change_and_like_ones_share_a_number() -> None:
    x, start = windows()
    table = segment(x, None, start, start + 1)
    # Windows 39 and 40 begin at 19.5 and 20 s and last a second: the middle between their centres is 20.25 s.
    np.testing.assert_allclose(table["start"], [0, 20.25, 32.75, 47.75])
    np.testing.assert_allclose(table["end"], [20.25, 32.75, 47.75, 55.5])
    assert table["cluster"].tolist() == [1, 2, 1, 3], "the cluster that lasts longest is 1"
    shuffled = np.random.default_rng(0).permutation(len(x))
    pd.testing.assert_frame_equal(segment(x[shuffled], None, start[shuffled], start[shuffled] + 1), table)


def test_an_activity_of_several_people_is_one_cluster_though_they_differ() -> None:
    rng, people = np.random.default_rng(1), 8
    shifts = 1.6 * rng.normal(size=(people, 12)) / np.sqrt(12)  # as far from one another as two windows, roughly
    x = np.concatenate([windows(seed)[0] + shift for seed, shift in enumerate(shifts)])
    start, who = np.tile(windows()[1], people), np.repeat(np.arange(people), len(TRUTH))
    table = segment(x, who, start, start + 1)
    assert table["cluster"].tolist() == [1, 2, 1, 3] * people
    alone = segment(x, who, start, start + 1, groups=np.zeros(len(x)))
    assert alone["cluster"].max() > 3, "within one group the same differences count"


def test_no_stretch_spans_a_gap_or_two_recordings_or_is_too_short() -> None:
    x, start = windows()
    late = start + 100 * (np.arange(len(x)) >= 20)
    names = np.array(["a", "b"])[(np.arange(len(x)) >= 100).astype(int)]
    table = segment(x, names, late, late + 1, least=6)
    assert not ((table["start"] < 50) & (table["end"] > 50)).any()
    assert table.groupby("recording")["end"].max().tolist() == [150.5, 155.5]
    inner = table[~table["end"].isin([10.5, 150.5, 155.5])]
    assert (inner["end"] - inner["start"] >= 6 - 1e-9).all()


def test_the_command_writes_a_table_and_refuses_what_cannot_be(tmp_path: Path) -> None:
    x, start = windows()
    vectors, out = tmp_path / "v.npz", tmp_path / "s.csv"
    np.savez(vectors, X=x, recording=np.full(len(x), "day"), start=start, end=start + 1)
    said = dicot("segment", vectors, "--out", out, "--least", "2s")
    assert "4 stretches, 3 cluster(s)" in said and "Judged by the vectors alone" in said
    assert list(pd.read_csv(out)) == ["recording", "start", "end", "windows", "cluster"]
    (tmp_path / "l.csv").write_text("recording,start,end,label\nday,1,5,sit\nday,22,30,walk\nday,49,54,run\n")
    head = tmp_path / "head.safetensors"
    FewLabelClassifier().fit(x, np.array(["sit", "walk", "run"])[TRUTH]).head_.save(head)
    for told in (["--labels", tmp_path / "l.csv"], ["--head", head]):
        dicot("segment", vectors, "--out", out, "--overwrite", "--least", "2s", *told)
        assert pd.read_csv(out)["label"].tolist() == ["sit", "walk", "sit", "run"]
    before = out.read_bytes()
    np.savez(tmp_path / "bare.npz", X=x)
    for words, message in (
        ([vectors, "--least", "soon"], "--least takes a time such as 5s"),
        ([vectors, "--labels", tmp_path / "l.csv", "--head", head], "Give one of them"),
        ([vectors, "--head", head, "--clusters", 2], "Leave it out"),
        ([tmp_path / "bare.npz"], "does not say recording, start and end"),
    ):
        with pytest.raises(InputError, match=message):
            dicot("segment", *words, "--out", out, "--overwrite")
    assert out.read_bytes() == before


def test_without_a_rate_stretches_are_counted_in_time_steps(tmp_path: Path) -> None:
    folder, vectors, out = tmp_path / "recordings", tmp_path / "v.npz", tmp_path / "s.csv"
    folder.mkdir()
    values = np.random.default_rng(0).normal(size=2000).cumsum()
    (folder / "a.csv").write_text("x\n" + "\n".join(f"{value:.4f}" for value in values))
    dicot("embed", "dicot-base", folder, "--window", 64, "--out", vectors, "--device", "cpu")
    said = dicot("segment", vectors, "--out", out, "--features", "vector")
    assert "time steps" in said and "seconds" not in said
    assert (pd.read_csv(out)["windows"] > 1).all()
    with pytest.raises(InputError, match="--least 5s is a time.*--least 256"):
        dicot("segment", vectors, "--out", out, "--overwrite", "--least", "5s")
    dicot("segment", vectors, "--out", out, "--overwrite", "--features", "vector", "--least", "640")
    table = pd.read_csv(out)
    assert (table["end"] - table["start"] >= 640).all()
