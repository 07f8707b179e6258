"""Maps of embeddings: what `dicot evaluate --features` writes, `dicot report --features` draws."""

import numpy as np
import pytest
from tests.commands import dicot
from tests.report.samples import SUITES

from dicot.bench.recordfile import write_records
from dicot.errors import InputError, MissingDataError
from dicot.report.maps import maps, write_features

EVERYBODY = ["dicot", "random", "calibrated", "raw-mean", "raw-flat"]
QUICK = ["--dim", 8, "--steps", 2, "--device", "cpu", "--protocols", "knn_all"]


def test_embeddings_of_an_evaluation_are_mapped_in_a_report(tmp_path, waves):
    np.savez(tmp_path / "waves.npz", X_train=waves.x, y_train=waves.y, X_test=waves.x[:9], y_test=waves.y[:9])
    held = tmp_path / "features.npz"
    said = dicot("evaluate", tmp_path / "waves.npz", *QUICK, "--features", held, "--out", tmp_path / "run")
    assert f"Wrote the test embeddings of {', '.join(EVERYBODY)} to {held}" in said
    vectors = tmp_path / "vectors.npz"
    dicot("embed", tmp_path / "run" / "model", tmp_path / "waves.npz", "--out", vectors)
    with np.load(held, allow_pickle=False) as file, np.load(vectors) as embedded:
        assert set(file) == {*EVERYBODY, "labels", "data_set"} and file["data_set"] == "waves"
        assert np.array_equal(file["dicot"], embedded["X_test"])
        assert np.array_equal(file["raw-flat"], waves.x[:9].reshape(9, -1))
        assert np.array_equal(file["labels"], waves.y[:9])
    write_records(tmp_path / "records.csv", SUITES["uea"])
    dicot("report", "uea", "--records", tmp_path / "records.csv", "--features", held, "--out", tmp_path / "out")
    page, figure = ((tmp_path / "out" / name).read_text() for name in ("report.html", "maps.svg"))
    assert "<h2>Maps of the embeddings of waves</h2>" in page and page.count(figure) == 1
    assert f"{', '.join(EVERYBODY)}: t-SNE of 9 cases" in page
    assert all(f">{name}</text>" in figure for name in EVERYBODY)


def test_who_failed_is_left_out_and_a_name_that_cannot_be_written_is_refused_at_once(tmp_path):
    held = tmp_path / "features.npz"
    said = dicot("evaluate", "synthetic", *QUICK, "--set", "k=1", "--features", held)
    assert "k must be" in said and "test embeddings of random, calibrated, raw-mean, raw-flat to" in said
    with pytest.raises(InputError, match=r"ends in .npz; got '.csv'"):
        dicot("evaluate", "synthetic", "--features", tmp_path / "features.csv")
    with pytest.raises(InputError, match="no contender in it may be called labels. Rename"):
        write_features(held, "waves", np.arange(3), {"labels": np.ones((3, 2))})


def test_a_file_made_by_hand_needs_labels_and_no_name(tmp_path):
    vectors, labels = np.random.default_rng(0).normal(size=(12, 3)), np.arange(12) % 2
    np.savez(tmp_path / "hand.npz", labels=labels, dicot=vectors)
    (part,) = maps(tmp_path / "hand.npz")
    assert part.title == "Maps of the embeddings" and part.text.startswith("dicot: t-SNE of 12 cases")
    for arrays in ({"dicot": vectors}, {"labels": labels, "data_set": "waves"}):
        np.savez(tmp_path / "odd.npz", **arrays)
        with pytest.raises(InputError, match="must hold `labels` and one array of embeddings per contender"):
            maps(tmp_path / "odd.npz")
    (tmp_path / "odd.npz").write_bytes((tmp_path / "hand.npz").read_bytes()[:-40])
    with pytest.raises(InputError, match=r"odd\.npz cannot be read"):
        maps(tmp_path / "odd.npz")
    with pytest.raises(MissingDataError, match="no file of embeddings.*evaluate --features"):
        maps(tmp_path / "none.npz")
