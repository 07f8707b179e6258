"""What a protocol accepts, and what it says about the rest."""

import subprocess
import sys

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.judge.protocols import Features
from dicot.judge.protocols.base import check_classes


def test_whole_numbers_as_floats_are_labels():
    assert Features(np.ones((3, 2)), np.array([2.0, 0.0, 1.0])).y.tolist() == [2, 0, 1]


def test_features_become_float64_and_keep_their_labels():
    f = Features(np.ones((3, 2), np.float32), np.array([2, 0, 1]))
    assert f.x.dtype == np.float64
    assert f.y.tolist() == [2, 0, 1]
    part = f.rows(np.array([2, 0]))
    assert part.y.tolist() == [1, 2]
    assert f.stored.dtype == part.stored.dtype == np.float32, "half the memory"
    assert Features(np.ones((3, 2), np.int8), f.y).stored.dtype == np.float64


def test_object_strings_become_plain_strings():
    assert Features(np.ones((2, 1)), np.array(["a", "b"], dtype=object)).y.dtype.kind == "U"


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.ones((3, 2)), None, "label"),
        (np.ones((3, 2)), np.zeros(2, int), r"\(3, 2\) and \(2,\)"),
        (np.ones(3), np.zeros(3, int), r"\(3,\)"),
        (np.ones((0, 2)), np.zeros(0, int), r"\(0, 2\)"),
        (np.ones((3, 2)), np.array([0.5, 1, 2]), "float64"),
        (np.ones((2, 2)), np.array(["a", None], dtype=object), "object"),
        (np.array([[0.0], [np.nan], [np.inf]]), np.zeros(3, int), "2 of 3 .* case 1"),
    ],
)
def test_malformed_features_are_refused(x, y, message):
    with pytest.raises(InputError, match=message):
        Features(x, y)


def test_one_class_is_refused_with_its_name():
    with pytest.raises(InputError, match="3 .*walk"):
        check_classes(Features(np.ones((3, 2)), np.array(["walk"] * 3)), "This")


@pytest.mark.slow
def test_protocols_do_not_load_torch_for_many_cases_either():
    code = """
import sys
import numpy as np
from dicot.judge.protocols import PROTOCOLS, Features
x, y = np.random.default_rng(0).normal(size=(20_010, 16)), np.arange(20_010) % 2
for name in ("linear", "ridge", "knn_all"):
    PROTOCOLS[name]().score(Features(x, y), Features(x[:9], y[:9]), seed=1)
sys.exit("torch" in sys.modules or "matplotlib" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
