from fractions import Fraction

import numpy as np
import pytest
import torch

import dicot
from dicot.core.errors import ModelFileError
from dicot.store import nearest as arithmetic
from dicot.store.folder import write_manifest, write_shard
from dicot.store.nearest import Pairs, Rows
from dicot.store.search import EmbeddingIndex
from tests.corpus.folders import tree

METRICS = ["cosine", "euclidean"]


def slow(x, z, k, metric, allowed=None, left_out=None):
    """One row after the other, in float64: the k smallest (distance, row) of every query."""
    x, answers = np.asarray(x, np.float64), []
    for number, query in enumerate(np.asarray(z, np.float64)):
        found = []
        for row, vector in enumerate(x):
            if (allowed is not None and not allowed[row]) or (left_out is not None and row in left_out[number]):
                continue
            if metric == "euclidean":
                distance = np.sqrt(np.square(vector - query).sum())
            elif not vector.any():
                distance = 1.0
            else:
                unit = [v / np.sqrt(np.square(v).sum()) for v in (vector, query)]
                distance = np.square(unit[0] - unit[1]).sum() / 2
            found.append((distance, row))
        found = sorted(found)[:k] + [(np.inf, -1)] * (k - len(found))
        answers.append(found)
    distances, rows = np.moveaxis(np.array(answers, dtype=float), 2, 0)
    return distances, rows.astype(int)


def same(answer, expected):
    assert np.array_equal(answer[1], expected[1])
    assert np.array_equal(answer[0], expected[0])


def drawn(n, f, seed=0, offset=0.0):
    return (np.random.default_rng(seed).normal(size=(n, f)) + offset).astype(np.float32)


def test_the_nearest_in_closed_form():
    x = np.array([[1, 0], [0, 2], [3, 3], [-1, 0]], np.float32)
    distances, rows = EmbeddingIndex(x).query([2.0, 0.0], k=4)
    assert rows.tolist() == [0, 2, 1, 3]
    np.testing.assert_allclose(distances, [0, 1 - 0.5**0.5, 1, 2], atol=1e-15)
    distances, rows = EmbeddingIndex(x, metric="euclidean").query([0.0, 0.0], k=3)
    assert rows.tolist() == [0, 3, 1] and distances.tolist() == [1, 1, 2]
    assert dicot.EmbeddingIndex is EmbeddingIndex


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_rows_and_distances_are_those_of_a_slow_search(metric, offset):
    x, z = drawn(300, 7, offset=offset), drawn(9, 7, 1, offset)
    x[17] = 0
    expected = slow(x, z, 12, metric)
    same(EmbeddingIndex(x, metric=metric).query(z, 12), expected)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("memory", [10_000, 2**27])
def test_equal_rows_come_by_their_number(metric, memory):
    """Ties that are spread over all blocks."""
    x = np.tile(drawn(4, 5), (100, 1))
    index = EmbeddingIndex(x, metric=metric, memory=memory)
    same(index.query(x[2], 7), (np.zeros(7), 2 + 4 * np.arange(7)))
    same(index.query(x[:3], 150), slow(x, x[:3], 150, metric))


def test_near_ties_below_the_digits_of_float32_are_told_apart():
    """Distances that differ from the 9th digit on: float32 products alone put them into another order."""
    rng = np.random.default_rng(0)
    x = (100 + np.round(rng.normal(size=(2000, 16)) * 2**10) / 2**20).astype(np.float32)
    x = x[rng.permutation(len(x))]
    query = x[5] + np.float32(2**-10)
    answer = EmbeddingIndex(x, metric="euclidean").query(query, 50)
    true = [sum((Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(row, query, strict=True)) for row in x]
    assert answer[1].tolist() == sorted(range(len(x)), key=lambda row: (true[row], row))[:50]
    naive = np.argsort((x * x).sum(axis=1) - 2 * x @ query, kind="stable")[:50]
    assert naive.tolist() != answer[1].tolist(), "the case is too easy"


@pytest.mark.parametrize("metric", METRICS)
def test_a_far_row_or_query_is_put_in_order_too(metric):
    x, z = drawn(200, 16), drawn(5, 16, 1)
    x[123] *= 1e6
    x[7] *= 1e-20
    z[3] *= 1e9
    same(EmbeddingIndex(x, metric=metric).query(z, 10), slow(x, z, 10, metric))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k", [1, 5, 400])
@pytest.mark.parametrize("free", [None, 300 * 8 * 4 * 2 - 1], ids=["resident", "streamed"])
def test_torch_finds_what_numpy_finds(metric, k, free, monkeypatch):
    """The path of a GPU, on torch's CPU."""
    if free is not None:  # a byte too little for the vectors to stay there
        monkeypatch.setattr("dicot.core.device.free_bytes", lambda device: free)
    x, z = drawn(300, 8), drawn(11, 8, 1)
    x[40:140] = x[3]  # ties
    z[0] = x[3]
    allowed = np.random.default_rng(2).random(300) < 0.8
    keep = {"allowed": allowed, "left_out": Pairs(np.array([2, 0]), np.array([5, 60]))}
    expected = slow(x, z, k, metric, allowed, [{60}, (), {5}, *([()] * 8)])
    for memory in (2**16, arithmetic.MEMORY):
        rows = Rows([x], metric)
        for _ in range(2):  # the second time from what stayed on the device
            given = {**keep, "memory": memory, "device": torch.device("cpu")}
            same(rows.nearest(z.astype(float), k, **given), expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")
@pytest.mark.parametrize("metric", METRICS)
def test_a_gpu_finds_what_numpy_finds(metric):
    x, z = drawn(50_000, 64, offset=1), drawn(300, 64, 1, 1)
    same(
        EmbeddingIndex(x, metric=metric, device="cuda").query(z, 20, leave_out=[1, 2]),
        EmbeddingIndex(x, metric=metric).query(z, 20, leave_out=[1, 2]),
    )


def test_fewer_rows_than_asked_for():
    index = EmbeddingIndex(drawn(3, 4))
    distances, rows = index.query(drawn(2, 4, 1), 5)
    assert rows.shape == (2, 5) and (rows[:, 3:] == -1).all() and np.isinf(distances[:, 3:]).all()
    assert sorted(rows[0, :3].tolist()) == [0, 1, 2]
    assert index.query(drawn(1, 4, 1)[0], 5)[1].shape == (3,)
    empty = EmbeddingIndex(np.empty((0, 4), np.float32))
    assert empty.query(drawn(1, 4)[0])[1].shape == (0,)


# Two recordings of ten windows, 2 s long, one every second; groups change in the middle.
N = 20
ABOUT = {
    "recording": np.repeat(["a", "b"], 10),
    "start": np.tile(np.arange(10.0), 2),
    "end": np.tile(np.arange(10.0) + 2, 2),
    "group": np.tile(np.repeat([1, 2], 5), 2),
    "label": np.array(["x", "", *["y"] * 18]),
}


def test_filters_leave_what_they_say():
    x, z = drawn(N, 6), drawn(3, 6, 1)
    index = EmbeddingIndex(x, **ABOUT)
    same(index.query(z, 20, groups=1), slow(x, z, 20, "cosine", ABOUT["group"] == 1))
    same(index.query(z, 20, groups=[1, 2]), slow(x, z, 20, "cosine"))
    time = (ABOUT["start"] >= 3) & (ABOUT["end"] <= 8)
    same(index.query(z, 20, after=3, before=8), slow(x, z, 20, "cosine", time))
    both = time & (ABOUT["group"] == 2)
    same(index.query(z, 2, after=3, before=8, groups=[2]), slow(x, z, 2, "cosine", both))
    out = [[0, 1], [], [19, 3, 3]]
    same(index.query(z, 20, leave_out=[4, 5]), slow(x, z, 20, "cosine", left_out=[(4, 5)] * 3))
    same(index.query(z, 20, leave_out=out), slow(x, z, 20, "cosine", left_out=out))
    same(index.query(z, 4, leave_out=out, groups=1), slow(x, z, 4, "cosine", ABOUT["group"] == 1, out))
    assert index.query(z, 3, after=100)[1].tolist() == [[-1] * 3] * 3


def test_like_leaves_out_the_window_and_what_overlaps_it():
    x = drawn(N, 6)
    index = EmbeddingIndex(x, **ABOUT)
    assert index.row_at("b", 4.4) == 13, "its middle is 4 s; that of row 14 is 5 s"
    assert index.overlapping(13).tolist() == [12, 13, 14], "windows that only touch share no time"
    distances, rows = index.like("b", 4.4, k=20)
    assert sorted(rows.tolist()) == sorted(set(range(N)) - {12, 13, 14})
    same((distances[None], rows[None]), slow(x, x[[13]], 17, "cosine", left_out=[(12, 13, 14)]))
    assert index.row_at("a", 0) == 0 and index.row_at("a", 10.9) == 9
    order = np.random.default_rng(0).permutation(N)  # windows in any order
    index = EmbeddingIndex(x[order], **{name: values[order] for name, values in ABOUT.items()})
    row = index.row_at("b", 4.4)
    assert order[row] == 13 and sorted(order[index.overlapping(row)].tolist()) == [12, 13, 14]


@pytest.mark.parametrize("metric", METRICS)
def test_appended_equals_built_anew(metric, tmp_path):
    x, z = drawn(N, 6), drawn(4, 6, 1)
    x[15] *= 1000
    parts = [slice(0, 3), slice(3, 3), slice(3, 11), slice(11, N)]
    index = EmbeddingIndex(x[parts[0]], metric=metric, **{name: values[parts[0]] for name, values in ABOUT.items()})
    for part in parts[1:]:
        index.append(x[part], **{name: values[part] for name, values in ABOUT.items()})
    whole = EmbeddingIndex(x, metric=metric, **ABOUT)
    assert len(index) == N
    same(index.query(z, 20, groups=2), whole.query(z, 20, groups=2))
    same(index.like("b", 4.4), whole.like("b", 4.4))
    index.save(tmp_path / "one")
    whole.save(tmp_path / "other")
    assert tree(tmp_path / "one") == tree(tmp_path / "other")


def test_a_saved_index_is_mapped_and_answers_as_before(tmp_path):
    x, z = drawn(N, 6), drawn(3, 6, 1)
    index = EmbeddingIndex(x, metric="euclidean", **ABOUT)
    assert index.save(tmp_path / "i") == tmp_path / "i"
    again = EmbeddingIndex.load(tmp_path / "i")
    assert again.metric == "euclidean" and isinstance(again._rows.parts[0], np.memmap)
    same(again.query(z), index.query(z))
    same(again.like("a", 3), index.like("a", 3))
    assert again.label.tolist() == ABOUT["label"].tolist() and again.group.dtype.kind == "i"
    # Grown and saved in place, while the old file is still mapped.
    again.append(x[:2], **{name: values[:2] for name, values in ABOUT.items()})
    again.save(tmp_path / "i")
    third = EmbeddingIndex.load(tmp_path / "i")
    assert len(third) == N + 2 and len(tree(tmp_path / "i")) == 3
    same(third.query(z), again.query(z))


def test_vectors_with_nan_under_a_right_hash_are_refused(tmp_path):
    write_manifest(tmp_path, "vectors", [2], [write_shard(tmp_path, "000000", np.array([[1, np.nan]]), {})], {})
    with pytest.raises(ModelFileError, match="NaN or inf in row 0"):
        EmbeddingIndex.load(tmp_path)


def test_the_approximate_search_that_is_gone_is_exact_and_says_so():
    x, z = drawn(50, 4), drawn(3, 4, 1)
    same(EmbeddingIndex(x, method="auto").query(z), EmbeddingIndex(x).query(z))
    with pytest.warns(FutureWarning, match="this search is exact"):
        index = EmbeddingIndex(x, method="usearch")
    same(index.query(z), EmbeddingIndex(x).query(z))
