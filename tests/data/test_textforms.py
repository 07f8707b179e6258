"""The archives' text forms .ts, .arff and .tsv, against hand-written files and against aeon's reader of .ts."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.data.splits import read_split
from dicot.data.textforms import read_text

TS = "# a comment\n@problemName Toy\n@timeStamps false\n@univariate {u}\n@equalLength {e}\n"
ARFF = (
    "% a comment\n@relation 'Toy'\n\n@attribute att1 numeric\n@ATTRIBUTE att2 real\n"
    "@attribute target {1, '2'}\n\n@data\n"
)
MANY = (
    "@relation Toy\n@attribute Toy relational\n  @attribute t1 numeric\n  @attribute t2 numeric\n@end Toy\n"
    "@attribute activity {Standing,'Sitting down'}\n@DATA\n"
)


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def ts(folder: Path, body: str, u: str = "true", e: str = "true", extra: str = "@classLabel true a b\n") -> Path:
    return write(folder, "Toy_TRAIN.ts", TS.format(u=u, e=e) + extra + body)


def test_ts_of_one_channel(tmp_path: Path) -> None:
    path = ts(tmp_path, "@data\n1,2,3:a\n\n4.5, ?,-6e1: b\n")
    cases, labels = read_text(path)
    np.testing.assert_array_equal(np.stack(cases), [[[1, 2, 3]], [[4.5, np.nan, -60]]])
    assert labels is not None and labels.tolist() == ["a", "b"]


def test_ts_of_several_channels_of_unequal_length_without_labels(tmp_path: Path) -> None:
    path = ts(tmp_path, "@data\n1,2:3,4\n5:NaN\n", "false", "false", "@dimensions 2\n@classLabel false\n")
    cases, labels = read_text(path)
    assert labels is None and cases[0].tolist() == [[1, 2], [3, 4]]
    np.testing.assert_array_equal(cases[1], [[5], [np.nan]])


def test_labels_are_spelled_as_the_header_spells_them(tmp_path: Path) -> None:
    _, labels = read_text(ts(tmp_path, "@data\n1,2:A\n3,4:1.0\n", extra="@classLabel true a 1\n"))
    assert labels is not None and labels.tolist() == ["a", "1"]
    _, targets = read_text(ts(tmp_path, "@data\n1,2:0.5\n", extra="@targetlabel true\n"))
    assert targets is not None and targets.tolist() == ["0.5"]


def test_arff_of_one_channel(tmp_path: Path) -> None:
    path = write(tmp_path, "Toy_TRAIN.arff", ARFF + "1.5,-2e-1,1\n% between\n\n3,?,'2'\n")
    cases, labels = read_text(path)
    assert labels is not None and labels.tolist() == ["1", "2"]
    np.testing.assert_array_equal(np.stack(cases), [[[1.5, -0.2]], [[3, np.nan]]])
    number = write(tmp_path, "Toy_TRAIN.arff", ARFF.replace("{1, '2'}", "numeric") + "1,2,0.5\n")
    write(tmp_path, "Toy_TEST.arff", ARFF + "5,6,2\n")
    split = read_split(number)
    assert split.test is not None and split.test.x.tolist() == [[[5, 6]]]


@pytest.mark.parametrize("quote", ["'", '"'])
def test_arff_with_channels_in_one_quoted_field(tmp_path: Path, quote: str) -> None:
    lines = [f"{quote}1,2\\n3,4\\n5,6{quote},Standing", f"{quote}7,8\\n9,?\\n1,2{quote}, 'Sitting down'"]
    path = write(tmp_path, "Toy_TRAIN.arff", MANY + "\n".join(lines) + "\n")
    cases, labels = read_text(path)
    assert labels is not None and labels.tolist() == ["Standing", "Sitting down"]
    np.testing.assert_array_equal(np.stack(cases), [[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, np.nan], [1, 2]]])


def test_tsv_has_labels_first_and_keeps_its_padding(tmp_path: Path) -> None:
    path = write(tmp_path, "Toy_TRAIN.tsv", "2\t1.5\t-2e-1\t3\n10.0\t4\t5\tNaN\n\n")
    cases, labels = read_text(path)
    np.testing.assert_array_equal(cases, [[[1.5, -0.2, 3]], [[4, 5, np.nan]]])
    assert labels is not None and labels.tolist() == ["2", "10"]
    write(tmp_path, "Toy_TEST.tsv", "2\t7\t8\t9\n")
    split = read_split(path, unequal="pad")
    assert split.test is not None and split.test.x.tolist() == [[[7, 8, 9]]] and split.name == "Toy"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        *(
            ("a.ts", TS.format(u="true", e="true") + "@classLabel true a b\n" + body, message)
            for body, message in [
                ("@data\n1,2:a\n1,2:c\n", "line 9.*'c'"),
                ("@data\n1,2:a\n1,x:a\n", "line 9"),
                ("@data\n1,2:a\n1:a\n", "line 9"),
                ("@data\n1,2:3,4:a\n", "line 8.* 1 .* 2"),
            ]
        ),
        ("a.ts", TS.format(u="false", e="false") + "@classLabel true a\n@data\n1,2:3:a\n", r"line 8.*\[1, 2\]"),
        ("a.arff", ARFF + "1,2,1\n1,x,1\n", "line 10"),
        ("a.arff", ARFF + "1,2,3\n", "line 9.*'3'"),
        ("a.arff", MANY + "'1,2\\n3',Standing\n", r"line 8.*\[1, 2\]"),
        ("a.tsv", "1\t2\t3\n1\t2\n", "line 2"),
        ("a.tsv", "1\t2\tx\n", "x"),
    ],
)
def test_malformed_files_name_file_and_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_text(write(tmp_path, name, text))
    assert name in str(caught.value)
    with pytest.raises(InputError, match=name):
        read_text(tmp_path / "none" / name)


@pytest.mark.skipif(importlib.util.find_spec("aeon") is None, reason="aeon is not installed")
def test_agrees_with_aeon_on_the_files_aeon_ships() -> None:
    from aeon.datasets import load_from_ts_file

    spec = importlib.util.find_spec("aeon")
    assert spec is not None and spec.submodule_search_locations is not None
    folder = Path(spec.submodule_search_locations[0]) / "datasets" / "data"
    for name in ("ItalyPowerDemand", "BasicMotions", "JapaneseVowels", "PickupGestureWiimoteZ", "Covid3Month"):
        path = folder / name / f"{name}_TRAIN.ts"
        cases, labels = read_text(path)
        theirs, their_labels = load_from_ts_file(str(path))
        for ours, other in zip(cases, theirs, strict=True):
            np.testing.assert_array_equal(ours, other)
        assert labels is not None
        assert [label.lower() for label in labels] == [str(label).lower() for label in their_labels]  # aeon lowers them
