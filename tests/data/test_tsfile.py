"""The .ts reader, against hand-written files and against aeon's own reader."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.data.textforms import outline_of_text, read_text

HEAD = "# a comment\n@problemName Toy\n@timeStamps false\n@missing false\n@univariate {u}\n@equalLength {e}\n"


def write(folder: Path, body: str, u: str = "true", e: str = "true", extra: str = "@classLabel true a b\n") -> Path:
    path = folder / "Toy_TRAIN.ts"
    path.write_text(HEAD.format(u=u, e=e) + extra + body)
    return path


def test_univariate(tmp_path: Path) -> None:
    path = write(tmp_path, "@data\n1,2,3:a\n\n4.5, ?,-6e1: b\n")
    cases, labels = read_text(path)
    assert [c.shape for c in cases] == [(1, 3), (1, 3)]
    assert cases[0].dtype == np.float64
    np.testing.assert_array_equal(cases[1], [[4.5, np.nan, -60]])
    assert labels is not None
    assert labels.tolist() == ["a", "b"]
    outline = outline_of_text(path)
    assert (outline.n_cases, outline.n_channels, outline.n_times, outline.header.classes) == (2, 1, 3, ("a", "b"))


def test_multivariate_unequal_and_unlabelled(tmp_path: Path) -> None:
    path = write(tmp_path, "@data\n1,2:3,4\n5:NaN\n", "false", "false", "@dimensions 2\n@classLabel false\n")
    cases, labels = read_text(path)
    assert labels is None
    np.testing.assert_array_equal(cases[0], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(cases[1], [[5], [np.nan]])
    outline = outline_of_text(path)
    assert (outline.n_cases, outline.n_channels, outline.n_times) == (2, 2, None)


def test_regression_targets(tmp_path: Path) -> None:
    cases, labels = read_text(write(tmp_path, "@data\n1,2:0.5\n", extra="@targetlabel true\n"))
    assert labels is not None
    assert (len(cases), labels.tolist()) == (1, ["0.5"])


def test_labels_are_spelled_as_the_header_spells_them(tmp_path: Path) -> None:
    _, labels = read_text(write(tmp_path, "@data\n1,2:A\n3,4:1.0\n", extra="@classLabel true a 1\n"))
    assert labels is not None
    assert labels.tolist() == ["a", "1"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("@data\n1,2:a\n1,2:c\n", "line 10.*'c'"),
        ("@classLabel true\n@data\n1,2:a\n", "line 8"),
        ("@classLabel false\n@targetLabel true\n@data\n1,2:0.5\n1,2:much\n", "line 12.*'much'"),
        ("@data\n1,2:a\n1,x:a\n", "line 10"),
        ("@data\n1,2:a\n1,:a\n", "line 10"),
        ("@data\n1,2:a\n1,2\n", "line 10"),
        ("@data\n1,2:a\n1,2:\n", "line 10"),
        ("@data\n1,2:a\n1:a\n", "line 10"),
        ("@data\n1,2:3,4:a\n", "line 9.* 1 .* 2"),
        ("@data\n", "@data"),
        ("", "@data"),
        ("1,2:a\n", "line 8"),
        ("@timestamps true\n@data\n(0,1):a\n", "@timestamps"),
        ("@univariate perhaps\n@data\n", "line 8.*'@univariate perhaps'"),
        ("@classLabel\n@data\n", "line 8"),
    ],
)
def test_malformed_files_name_file_and_line(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_text(write(tmp_path, body))
    assert "Toy_TRAIN.ts" in str(caught.value)


def test_channels_of_unequal_length(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 9.*\[1, 2\]"):
        read_text(write(tmp_path, "@data\n1,2:3:a\n", "false", "false", "@classLabel true a\n"))
    with pytest.raises(InputError, match="line 10"):
        read_text(write(tmp_path, "@data\n1:3:a\n1:a\n", "false", "false", "@classLabel true a\n"))


def test_a_missing_or_binary_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.ts"):
        read_text(tmp_path / "none.ts")
    (tmp_path / "binary.ts").write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match=r"binary\.ts"):
        read_text(tmp_path / "binary.ts")


@pytest.mark.skipif(importlib.util.find_spec("aeon") is None, reason="aeon is not installed")
def test_agrees_with_aeon_on_the_files_aeon_ships() -> None:
    from aeon.datasets import load_from_ts_file

    spec = importlib.util.find_spec("aeon")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = Path(spec.submodule_search_locations[0]) / "datasets" / "data"
    names = ["ItalyPowerDemand", "BasicMotions", "JapaneseVowels", "PickupGestureWiimoteZ", "OSULeaf", "Covid3Month"]
    for name in names:
        path = folder / name / f"{name}_TRAIN.ts"
        cases, labels = read_text(path)
        theirs, their_labels = load_from_ts_file(str(path))
        assert len(cases) == len(theirs), name
        for ours, other in zip(cases, theirs, strict=True):
            np.testing.assert_array_equal(ours, other)
        assert labels is not None
        assert [label.lower() for label in labels] == [str(label).lower() for label in their_labels]  # aeon lowers them
