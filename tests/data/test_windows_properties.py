"""Properties of check_collection that hold for any input."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dicot.core.errors import InputError
from dicot.data.collection import check_collection
from dicot.data.preparation import Preparation

NAN = np.nan
values = st.floats(-1e6, 1e6, width=32)


@st.composite
def ragged(draw: st.DrawFn) -> list[np.ndarray]:
    channels = draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    return [draw(hnp.arrays(np.float32, (channels, n), elements=values)) for n in lengths]


@settings(deadline=None, derandomize=True, max_examples=60)
@given(ragged())
def test_pad_then_drop_the_padding_is_identity(cases: list[np.ndarray]) -> None:
    padded = check_collection(cases, unequal="pad").x
    longest = max(c.shape[1] for c in cases)
    assert padded.shape == (len(cases), cases[0].shape[0], longest)
    marked = padded.copy()
    for row, case in zip(marked, cases, strict=True):
        np.testing.assert_array_equal(row[:, : case.shape[1]], case)
        assert not row[:, case.shape[1] :].any()
        row[:, case.shape[1] :] = NAN
    np.testing.assert_array_equal(check_collection(marked, unequal="pad").x, padded)
    for index, group in Preparation(unequal="pad", n_channels=marked.shape[1]).apply(marked):
        for i, case in zip(index, group.whole(), strict=True):
            np.testing.assert_array_equal(case, cases[i])


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**400), 10**400)
    | st.floats()
    | st.text(max_size=3)
    | st.complex_numbers()
    | st.binary(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=1), inner, max_size=2)
    ),
    max_leaves=8,
)
any_array = hnp.arrays(
    st.sampled_from([np.float32, np.float64, np.int8, np.complex64, np.bool_, "U2", "M8[s]", "m8[s]"]),
    hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3),
)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(
    anything | any_array | st.lists(any_array, max_size=3) | anything.map(lambda v: np.array([v, None], dtype=object)),
    st.none() | anything,
    st.sampled_from(["error", "pad", "crop", "resample"]),
    st.sampled_from(["error", "interpolate", "zero"]),
    st.sampled_from([None, "dataset", "case"]),
)
def test_any_input_gives_sound_windows_or_a_reason(
    X: Any, y: Any, unequal: str, missing: str, scale: str | None
) -> None:
    try:
        windows = check_collection(X, y, unequal=unequal, missing=missing, scale=scale)
    except (InputError, TypeError):
        return
    assert windows.x.ndim == 3
    assert min(windows.x.shape) > 0
    assert windows.x.dtype == np.float32
    assert np.isfinite(windows.x).all()
    assert windows.y is None or windows.y.shape == (len(windows),)
