"""The map, clusters and outlier scores: made once, kept beside the vectors, refused where they are another's."""

import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dicot.core.errors import MissingExtraError
from dicot.explorer.kept import _read, outlier_scores, read_or_make
from dicot.explorer.workspace import open_workspace
from dicot.store.vectors import Vectors, read_vectors
from dicot.use import projection
from dicot.use.outliers import EmbeddingOutlierDetector, compare_with_rest


def blobs(n: int = 90) -> np.ndarray:
    """Three groups of cases, far from each other."""
    x = np.random.default_rng(0).normal(size=(n, 6)).astype(np.float32)
    x += 12 * np.eye(3, 6, dtype=np.float32)[np.arange(n) % 3]
    return x


def kept_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.explorer-*.npz"))


def test_a_second_start_reads_the_map(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = open_workspace(folder / "vectors.npz").overview
    (place,) = kept_in(folder)
    before = place.read_bytes()
    monkeypatch.setattr(projection, "overview", lambda *args, **more: pytest.fail("the map is made again"))
    said: list[str] = []
    second = open_workspace(folder / "vectors.npz", say=said.append).overview
    assert (first.points == second.points).all() and place.read_bytes() == before
    assert any(str(place) in sentence for sentence in said)


def test_the_same_vectors_give_the_same_bytes(tmp_path: Path) -> None:
    files = []
    for name in ("one", "two"):
        read_or_make(tmp_path / name / "v.npz", Vectors(blobs()), 0, print)
        files += kept_in(tmp_path / name)
    assert files[0].read_bytes() == files[1].read_bytes() and files[0].name == files[1].name


def test_what_was_there_stays_in_place_when_windows_are_appended(tmp_path: Path) -> None:
    x, path, said = blobs(120), tmp_path / "v.npz", list[str]()
    places = {"recording": np.repeat(["a", "b"], 60), "start": np.arange(120.0), "end": np.arange(120.0) + 1}
    rows = np.arange(120) < 90
    first = read_or_make(path, Vectors(x[rows], **{name: one[rows] for name, one in places.items()}), 0, said.append)
    order = np.random.default_rng(0).permutation(120)  # new recordings may come between the old ones
    whole = Vectors(x[order], **{name: one[order] for name, one in places.items()})
    second = read_or_make(path, whole, 0, said.append)
    old = order < 90
    assert (second.points[old] == first.points[order[old]]).all()
    assert (second.cluster[old] == first.cluster[order[old]]).all() and second.n_clusters == first.n_clusters
    centres = np.stack([first.points[start::3].mean(axis=0) for start in range(3)])
    nearest = np.linalg.norm(second.points[:, None] - centres, axis=2).argmin(axis=1)
    assert (nearest[~old] == order[~old] % 3).all(), "each new window lies among its like"
    np.testing.assert_array_equal(second.outlier, outlier_scores(whole))
    assert "30 window(s) that were appended" in said[-2] and not any("anew" in one for one in said)
    assert (read_or_make(path, whole, 0, print).points == second.points).all()


def test_other_vectors_have_another_map(tmp_path: Path) -> None:
    x, path, said = blobs(), tmp_path / "v.npz", list[str]()
    first = read_or_make(path, Vectors(x[:50]), 0, print)
    read_or_make(path, Vectors(x), 0, said.append)
    assert any("anew" in one and str(kept_in(tmp_path)[0]) in one for one in said), "nearly half were placed"
    other = read_or_make(path, Vectors(x[:50] ** 2), 0, print)
    assert other.own.all() and (other.points != first.points).any()


def test_a_file_that_is_no_map_of_these_vectors_is_made_again(folder: Path) -> None:
    (place,) = kept_in(folder)
    arrays, whole = dict(np.load(place)), place.read_bytes()
    n = len(arrays["points"])
    for change in (
        {"format": np.array("something else")},
        {"points": arrays["points"][:-1]},
        {"own": arrays["own"].astype(float)},
        {"points": np.full((n, 2), np.nan, np.float32)},
        {"cluster": np.full(n, 99, np.int32)},
        {"n_clusters": np.array([2, 3])},
        {"title": np.array([None, "object"], object)},
    ):
        np.savez(place, **{**arrays, **change})
        assert _read(place) is None
    for content in (b"", b"no archive", whole[:200]):
        place.write_bytes(content)
        assert _read(place) is None
    assert len(open_workspace(folder / "vectors.npz")) == n and place.read_bytes() == whole


def test_where_nothing_can_be_written_the_map_is_there_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "v").write_text("a file where a folder should be")
    said: list[str] = []
    seen = read_or_make(tmp_path / "v" / "vectors.npz", Vectors(blobs(12)), 0, said.append)
    assert len(seen.points) == 12 and any("not kept" in sentence for sentence in said)


def test_only_clusters_are_made_anew_when_the_number_of_classes_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = blobs()
    first = read_or_make(tmp_path / "v.npz", Vectors(x), 0, print)
    monkeypatch.setattr(projection, "overview", lambda *args, **more: pytest.fail("the map is made again"))
    second = read_or_make(tmp_path / "v.npz", Vectors(x), 3, print)
    assert first.n_clusters == 7 and second.n_clusters == 3 and len(kept_in(tmp_path)) == 1
    assert (first.points == second.points).all()
    assert all(len(set(second.cluster[start::3])) == 1 for start in range(3))  # each group is a cluster
    assert read_or_make(tmp_path / "v.npz", Vectors(x), 3, print).n_clusters == 3


class StandIn:
    """In place of UMAP: the first two columns, and epochs told as tqdm would tell them."""

    def __init__(self, n_neighbors: int, n_epochs: int, tqdm_kwds: dict[str, Any], **more: Any) -> None:
        self.epochs, self.told = n_epochs, tqdm_kwds

    def fit_transform(self, z: np.ndarray) -> np.ndarray:
        self.told["file"].write("\r" + self.told["bar_format"].format(n_fmt=self.epochs))
        return z[:, :2]


def test_each_kind_of_map_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=StandIn))
    first, second = (read_or_make(tmp_path / "v.npz", Vectors(blobs()), 0, print, kind) for kind in ("tsne", "umap"))
    assert "t-SNE" in first.title and second.title == "UMAP of 90 cases, 15 neighbours"
    monkeypatch.setattr(projection, "overview", lambda *args, **more: pytest.fail("a map is made again"))
    for kind, made in (("tsne", first), ("umap", second)):
        again = read_or_make(tmp_path / "v.npz", Vectors(blobs()), 0, print, kind)
        assert (again.points == made.points).all() and again.title == made.title


def test_where_umap_is_not_installed_it_is_said_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[umap\]'"):
        projection.overview(blobs(), kind="umap")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("umap") is None, reason="umap-learn is not installed")
def test_umap_keeps_groups_together_and_gives_the_same_map_again() -> None:
    told: list[int] = []
    first, second = (projection.overview(blobs(), kind="umap", on_step=told.append).points for _ in range(2))
    assert (first == second).all() and max(told) > 100
    centres = np.stack([first[start::3].mean(axis=0) for start in range(3)])
    nearest = np.linalg.norm(first[:, None] - centres, axis=2).argmin(axis=1)
    assert (nearest == np.arange(90) % 3).all()


def test_outlier_scores_are_those_of_the_command_and_find_what_is_odd() -> None:
    x = blobs()
    x[40] += 60
    scores = outlier_scores(Vectors(x))
    wanted = compare_with_rest(EmbeddingOutlierDetector(), x)[0]
    assert scores is not None and scores.argmax() == 40
    np.testing.assert_allclose(scores, wanted, rtol=1e-6)
    assert outlier_scores(Vectors(blobs(3))) is None  # too few to compare


def test_landmarks_place_the_others_beside_their_like() -> None:
    x = blobs(600)
    steps: list[int] = []
    placed = projection.overview(x, landmarks=150, on_step=steps.append)
    assert steps[-1] == projection.STEPS and "150 of 600" in placed.title
    assert (placed.points == projection.overview(x, landmarks=150).points).all()
    middles = np.stack([placed.points[start::3].mean(axis=0) for start in range(3)])
    nearest = np.square(placed.points[:, None] - middles).sum(axis=2).argmin(axis=1)
    assert (nearest == np.arange(600) % 3).all()


@pytest.mark.parametrize(("n", "features"), [(1, 1), (2, 40), (4, 3), (6, 1)])
def test_a_few_windows_have_a_map_too(tmp_path: Path, n: int, features: int) -> None:
    x = np.random.default_rng(1).normal(size=(n, features)).astype(np.float32)
    np.savez(tmp_path / "v.npz", X=x)
    seen = open_workspace(tmp_path / "v.npz").overview
    assert seen.points.shape == (n, 2) and np.isfinite(seen.points).all() and np.abs(seen.points).max() <= 1
    assert len(read_vectors(tmp_path / "v.npz")) == n
