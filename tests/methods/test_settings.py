"""Settings of a method: names and kinds of values are checked before anything is built."""

import pytest
import torch
from tests.commands import dicot

from dicot.core.errors import InputError
from dicot.methods import build_method
from dicot.nets.encoders import FCN


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"projection": "fals"}, "projection must be true or false; got 'fals'"),
        ({"projection": 1}, "projection must be true or false; got 1"),
        ({"k": float("nan")}, "k must be a whole number or a list"),
        ({"k": [2, 10**20]}, "k must be .*; got .*2, 1000000000"),
        ({"k": "25"}, "k must be .*; got '25'"),
        ({"temperature": float("inf")}, "temperature must be a finite number above 0; got inf"),
        ({"temperature": 10**400}, "temperature must be a finite number above 0; got 1000"),
        ({"overlap": True}, "overlap must be a finite number, 0 or more and below 1; got True"),
        ({"temperature": 0}, "temperature must be a finite number above 0; got 0"),
        (
            {"ovrlap": 0.5, "positive": 3},
            "no 'ovrlap' .*'overlap'.*positive must be one of previous, next, both, shuffled; got 3",
        ),
    ],
)
def test_values_of_another_kind_are_named(settings, named):
    with pytest.raises(InputError, match=named) as caught:
        build_method("dicot", FCN(1, dim=8), settings)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [("tnc", "window", 3), ("cost", "kernels", [2, 0]), ("catt", "form", "nxt"), ("simmtm", "ratio", 1.0)],
)
def test_values_out_of_range_are_named(method, name, value):
    with pytest.raises(InputError, match=f"{name} must be .*; got .*{value if name != 'kernels' else '0'}"):
        build_method(method, FCN(1, dim=8), {name: value})


def test_values_of_the_right_kind_are_taken():
    method = build_method("dicot", FCN(1, dim=8), {"k": (2, 5), "temperature": 1, "overlap": torch.tensor(0.25).item()})
    assert (method.k_range, method.temperature, method.overlap) == ((2, 5), 1, 0.25)
    assert build_method("tnc", FCN(1, dim=8), {"window": None, "adf": False}) is not None


@pytest.mark.parametrize("value", ["[" * 100_000, "9" * 5000, '{"a":' * 5000])
def test_what_is_typed_is_read_or_refused(tmp_path, value):
    words = ["pretrain", "synthetic", "--method", "dicot", "--out", tmp_path / "model", "--steps", 1, "--set", "dim=8"]
    with pytest.raises(InputError, match=r"\bk\b") as caught:
        dicot(*words, "--set", f"k={value}")
    assert len(str(caught.value)) < 500
