"""check_collection: what it accepts, what it makes of it, and that it only ever fails with a reason."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicot.core.errors import InputError
from dicot.data.cases import Scale
from dicot.data.collection import Windows, check_collection
from dicot.data.labels import labelled
from dicot.data.preparation import Preparation
from dicot.data.splits import Split, with_policies
from dicot.model.estimator import TimeSeriesEmbedder

NAN = np.nan


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape)


def test_shapes_and_types() -> None:
    x = random(4, 2, 5)
    windows = check_collection(x, list("abab"), group=[1, 1, 2, 2], name="n")
    assert (windows.x.dtype, windows.shape, windows.n_channels, windows.n_times) == (np.float32, (4, 2, 5), 2, 5)
    np.testing.assert_array_equal(windows[1:3], x[1:3].astype(np.float32))
    np.testing.assert_array_equal(windows.labels(), list("abab"))
    np.testing.assert_array_equal(windows.group, [1, 1, 2, 2])
    assert windows.name == "n" and len(windows) == 4
    assert check_collection(random(3, 4)).x.shape == (3, 1, 4)
    same = x.astype(np.float32)
    assert check_collection(same).x is same, "nothing is copied needlessly"
    assert check_collection(np.asfortranarray(same)).x.flags.c_contiguous


def test_equivalent_inputs_give_equal_windows() -> None:
    torch = pytest.importorskip("torch")
    x = random(3, 2, 4).astype(np.float32)
    same: list[Any] = [
        list(x),
        tuple(x),
        x.tolist(),
        x.astype(object),
        torch.from_numpy(x),
        torch.from_numpy(x).requires_grad_(),
        list(torch.from_numpy(x)),
        Windows(x),
        np.ma.MaskedArray(x),
    ]
    for each in same:
        np.testing.assert_array_equal(check_collection(each).x, x)
    np.testing.assert_array_equal(check_collection(x.transpose(0, 2, 1), layout="ntc").x, x)
    np.testing.assert_array_equal(check_collection([c.T for c in x], layout="ntc").x, x)
    half = torch.from_numpy(x).bfloat16()
    np.testing.assert_array_equal(check_collection(half).x, half.float().numpy())


def test_masked_values_are_missing_values() -> None:
    x = np.ma.MaskedArray([[1, 2, 3]], mask=[[False, True, False]])
    with pytest.raises(InputError, match="NaN in case 0"):
        check_collection(x)
    assert check_collection(x, missing="zero").x.tolist() == [[[1, 0, 3]]]


def test_data_frames() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [3.5, 4.5]})
    windows = check_collection(frame, pd.Series(["u", "v"]))
    assert windows.x.tolist() == [[[1, 3.5]], [[2, 4.5]]]
    assert windows.y is not None
    assert windows.y.tolist() == ["u", "v"]
    gaps = pd.DataFrame({"a": pd.array([1, pd.NA], dtype="Int64"), "b": [1, 2]})
    assert check_collection(gaps, missing="zero").x.tolist() == [[[1, 1]], [[0, 2]]]


@pytest.mark.parametrize("form", ["list", "array"])
def test_trailing_nan_means_a_shorter_case(form: str) -> None:
    x: Any = np.array([[[1, 2, 3], [4, 5, NAN]], [[1, NAN, NAN], [2, NAN, NAN]]])
    x = list(x) if form == "list" else x
    with pytest.raises(InputError, match="NaN.*case 1"):
        check_collection(x, missing="zero")
    with pytest.raises(InputError, match="NaN in case 0"):
        check_collection(x, unequal="pad")
    padded = check_collection(x, unequal="pad", missing="interpolate").x
    assert padded.tolist() == [[[1, 2, 3], [4, 5, 5]], [[1, 0, 0], [2, 0, 0]]]
    assert check_collection(x, unequal="crop", missing="zero").x.tolist() == [[[1], [4]], [[1], [2]]]
    resampled = check_collection(x, unequal="resample", missing="zero").x
    assert resampled.tolist() == [[[1, 2, 3], [4, 5, 0]], [[1, 1, 1], [2, 2, 2]]]


def test_scales() -> None:
    x = np.array([[[0.0, 2], [7, 7]], [[4, 6], [7, 7]]])
    scaled = check_collection(x, scale="dataset").x
    np.testing.assert_allclose(scaled[:, 0].ravel(), (np.array([0, 2, 4, 6]) - 3) / np.sqrt(5), rtol=1e-6)
    assert not scaled[:, 1].any()
    assert check_collection(x, scale="case").x[:, 0].tolist() == [[-1, 1], [-1, 1]]
    fitted = Scale.fit(x[:1])
    np.testing.assert_array_equal(check_collection(x, scale=fitted).x, fitted(x.astype(np.float32)))
    with pytest.raises(InputError, match="scale"):
        check_collection(x, scale="minmax")


bad_inputs: list[tuple[Any, str]] = [
    (np.zeros((128, 500, 6, 1)), r"\(cases, channels, time\).*\(128, 500, 6, 1\)"),
    (np.zeros(20), "Reshape your data"),
    (np.float64(3), r"got \(\)"),
    (np.zeros((0, 3)), r"0 sample\(s\)"),
    ([], r"0 sample\(s\)"),
    (np.zeros((12, 0)), r"0 feature\(s\) \(shape=\(\d*, 0\)\) while a minimum of \d* is required."),
    ([[], []], r"0 feature\(s\) \(shape=\(2, 0\)\) while a minimum of 1 is required."),
    (np.zeros((2, 0, 3)), "0 channels"),
    (np.zeros((2, 3, 0)), "0 time steps"),
    ([np.zeros((2, 3)), np.zeros((2, 0))], "case 1 "),
    ([np.zeros((2, 3)), np.zeros((3, 3)), np.zeros((1, 4))], "cases 1, 2 "),
    ([np.zeros((1, 2, 3))], "each case must be"),
    (np.array([["a", "b"]]), "dtype <U"),
    (np.array([["a", 1.0]], dtype=object), "convert"),
    (np.ones((2, 2)) * 1j, "Complex data not supported"),
    (np.array([["2020-01-01"]], dtype="datetime64[D]"), "dtype datetime64"),
    (np.array([[1.0, np.inf]]), "inf .*case 0"),
    (np.array([[1.0, 1e39]]), "beyond .*case 0 .channel 0"),
    (np.array([[1.0, NAN, 2.0]]), "NaN in case 0"),
    (np.array([[1.0, 2.0], [NAN, NAN]]), "nothing but NaN in case 1"),
    (None, "got NoneType"),
    ({"a": [1]}, "got dict"),
]


@pytest.mark.parametrize(("bad", "message"), bad_inputs, ids=[m for _, m in bad_inputs])
def test_bad_input_is_explained(bad: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_collection(bad)


def test_type_errors_match_what_scikit_learn_expects() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    for matrix in (sparse.csr_array(np.eye(3)), sparse.coo_matrix(np.eye(3)), sparse.dok_array(np.eye(3))):
        with pytest.raises(TypeError, match="Sparse input is not supported"):
            check_collection(matrix)
    x = random(4, 3).astype(object)
    x[0, 0] = {"foo": "bar"}
    with pytest.raises(TypeError, match=r"argument must be a string or a number"):
        check_collection(x)


BEYOND_FLOAT = 2**60 + 1  # float64 would round it


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (["a", "b", None], ["a", "b", ""]),
        (["a", NAN, "b"], ["a", "", "b"]),
        (np.array(["a", "", "b"]), ["a", "", "b"]),
        ([b"a", None, b"b"], ["a", "", "b"]),
        (np.array([3, None, 5], dtype=object), [3.0, NAN, 5.0]),
        (np.array([3, NAN, 5], dtype=np.float32), [3.0, NAN, 5.0]),
        (np.ma.masked_equal([3, 4, 5], 4), [3.0, NAN, 5.0]),
        (np.ma.array(["a", "b", "c"], mask=[0, 0, 1]), ["a", "b", ""]),
        ([BEYOND_FLOAT, None, BEYOND_FLOAT + 1], [str(BEYOND_FLOAT), "", str(BEYOND_FLOAT + 1)]),
        ([None, None, NAN], [NAN] * 3),
    ],
)
def test_missing_labels_mean_unlabelled_and_groups_must_be_known(y: Any, expected: list[Any]) -> None:
    windows = check_collection(random(3, 4), y)
    assert windows.y is not None
    np.testing.assert_array_equal(windows.y, np.array(expected))
    assert windows.y.dtype.kind == ("U" if any(isinstance(v, str) for v in expected) else "f")
    known = labelled(windows.y)
    assert known.tolist() == [v not in ("", None) and v == v for v in expected]
    first = int(np.flatnonzero(~known)[0])
    with pytest.raises(InputError, match=rf"^group .*cases? {first}\b"):
        check_collection(random(3, 4), group=y)


def test_missing_labels_of_pandas() -> None:
    for series, expected in (
        (pd.Series([1, None, BEYOND_FLOAT], dtype="Int64"), ["1", "", str(BEYOND_FLOAT)]),
        (pd.Series(["a", pd.NA, "b"], dtype="string"), ["a", "", "b"]),
        (pd.Series(["a", None, "b"], dtype="category"), ["a", "", "b"]),
        (pd.Categorical(["a", None, "b"]), ["a", "", "b"]),
    ):
        assert check_collection(random(3, 4), series).y.tolist() == expected  # type: ignore[union-attr]


def test_numbers_that_no_dtype_holds_exactly_become_text() -> None:
    assert check_collection(random(2, 4), [-1, 2**64 - 1]).y.tolist() == ["-1", str(2**64 - 1)]  # type: ignore[union-attr]
    assert check_collection(random(2, 4), [2**64 - 1, 2**64 - 2]).y.tolist() == [2**64 - 1, 2**64 - 2]  # type: ignore[union-attr]


def test_windows_subset_and_fingerprint() -> None:
    windows = check_collection(random(4, 2, 3), [0, 1, 2, 3], group=list("aabb"))
    mask = np.array([True, False, False, True])
    for index in ([0, 3], mask, np.array([0, 3]), slice(0, 4, 3)):
        part = windows.subset(index)
        np.testing.assert_array_equal(part.x, windows.x[[0, 3]])
        assert part.y is not None
        assert part.group is not None
        assert (part.y.tolist(), part.group.tolist(), part.x.flags.c_contiguous) == ([0, 3], ["a", "b"], True)
    assert len(windows.subset([])) == 0
    print_before = windows.fingerprint()
    assert re.fullmatch("[0-9a-f]{16}", print_before)
    assert Windows(windows.x, y=None).fingerprint() == print_before
    assert Windows(windows.x.reshape(4, 3, 2)).fingerprint() != print_before
    assert Windows(windows.x + 1).fingerprint() != print_before


def test_a_group_per_length_at_transform() -> None:
    x = random(5, 2, 6).astype(np.float32)
    crop = Preparation(unequal="crop", missing="zero", n_channels=2, n_times=6)
    ((index, same),) = crop.apply(x)
    assert np.shares_memory(same[:5], x)
    assert index.tolist() == [0, 1, 2, 3, 4]
    x[1, :, 4:] = NAN
    x[3, :, 4:] = NAN
    x[4, 0, :] = NAN  # a missing channel is not padding
    short, whole = crop.apply(x)
    assert short[0].tolist() == [1, 3]
    np.testing.assert_array_equal(short[1].whole(), x[[1, 3], :, :4])
    assert whole[0].tolist() == [0, 2, 4]
    np.testing.assert_array_equal(whole[1].whole(), np.nan_to_num(x[[0, 2, 4]]))
    from_list = list(replace(crop, layout="ntc").apply([c.T for c in x]))
    assert [i.tolist() for i, _ in from_list] == [[1, 3], [0, 2, 4]]
    with pytest.raises(InputError, match="NaN.*case 0"):
        list(crop.apply(np.full((1, 2, 3), NAN)))


def identified(n: int = 4, **changed: Any) -> Windows:
    facts: dict[str, Any] = {
        "recording": [f"r{i % 2}" for i in range(n)],
        "start": np.arange(n),
        "end": np.arange(n) + 2,
        "channels": ["a", "b"],
        "rate": 25,
    }
    return Windows(random(n, 2, 50).astype(np.float32), group=np.arange(n), **(facts | changed))


def test_identity_survives_a_subset_and_policies() -> None:
    windows = identified()
    assert windows.channels == ("a", "b") and windows.rate == 25.0 and windows.start.dtype == np.float64  # type: ignore[union-attr]
    for some in (windows.subset([3, 1]), check_collection(windows).subset([3, 1])):
        assert some.recording.tolist() == ["r1", "r1"]  # type: ignore[union-attr]
        assert (some.start.tolist(), some.end.tolist()) == ([3, 1], [5, 3])  # type: ignore[union-attr]
        assert (some.channels, some.rate, some.group.tolist()) == (("a", "b"), 25.0, [3, 1])  # type: ignore[union-attr]
    split = with_policies(Split(windows, windows.subset([0])), scale="dataset")
    assert split.test is not None
    assert split.train.recording is windows.recording and split.test.start.tolist() == [0]  # type: ignore[union-attr]


def test_resampled_windows_have_another_rate() -> None:
    halved = check_collection(identified(), unequal="resample", length=25)
    assert halved.rate == pytest.approx(25 * 24 / 49) and halved.end is not None
    assert check_collection(identified(), unequal="crop", length=25).rate == 25


def test_windows_as_a_frame() -> None:
    frame = replace(identified(), y=np.array(["walk", "", "run", "run"])).to_pandas()
    assert list(frame.columns) == ["recording", "start", "end", "start_time", "end_time", "group", "label"]
    assert frame.recording.tolist() == ["r0", "r1", "r0", "r1"] and frame.end.tolist() == [2, 3, 4, 5]
    assert frame.label.isna().tolist() == [False, True, False, False] and frame.label[2] == "run"
    plain = check_collection(random(3, 5)).to_pandas()
    assert plain.shape == (3, 7) and plain.isna().all(axis=None)


def test_a_case_without_any_value_of_a_channel_is_refused() -> None:
    x = np.random.default_rng(0).normal(size=(6, 2, 8))
    x[2, 0, 3] = np.nan
    x[4, 1] = np.nan
    for cases in (x, list(x)):
        with pytest.raises(InputError, match=r'case 4 \(channel 1\).*missing="zero"'):
            check_collection(cases, missing="interpolate")
    assert not check_collection(x, missing="zero").x[4, 1].any()
    fitted, _ = Preparation(missing="interpolate").fit(x[:4])
    with pytest.raises(InputError, match=r"case 4 \(channel 1\)"):
        list(fitted.apply(x))


def test_errors_about_policies_say_what_to_write_for_an_estimator_and_a_command() -> None:
    gaps = np.ones((3, 2, 8))
    gaps[1, 0, 3] = np.nan
    with pytest.raises(InputError) as missing:
        Windows.from_array(gaps)
    assert 'prepare={"missing": "interpolate"}' in str(missing.value)
    assert "--set missing=interpolate" in str(missing.value)
    TimeSeriesEmbedder(prepare={"missing": "interpolate"}, device="cpu").fit(gaps + np.arange(3)[:, None, None])
    with pytest.raises(InputError) as unequal:
        Windows.from_array([np.ones((1, 5)), np.ones((1, 6))])
    assert 'prepare={"unequal": "pad"}' in str(unequal.value) and "--set unequal=pad" in str(unequal.value)
