from pathlib import Path

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.data.files import read_split
from dicot.data.textforms import outline_of_text, read_text

ONE = """% a comment
@relation 'Toy'

@attribute att1 numeric
@ATTRIBUTE att2 real
@attribute target {1, '2'}

@data
"""
MANY = """@relation Toy
@attribute Toy relational
  @attribute t1 numeric
  @attribute t2 numeric
@end Toy
@attribute activity {Standing,'Sitting down'}
@DATA
"""


def write(folder: Path, text: str, name: str = "Toy_TRAIN.arff") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_one_channel(tmp_path: Path) -> None:
    path = write(tmp_path, ONE + "1.5,-2e-1,1\n% between\n\n3,?,'2'\n")
    cases, labels = read_text(path)
    assert labels is not None and labels.tolist() == ["1", "2"]
    np.testing.assert_array_equal(np.stack(cases), [[[1.5, -0.2]], [[3, np.nan]]])
    outline = outline_of_text(path)
    assert (outline.n_cases, outline.n_channels, outline.n_times, outline.header.classes) == (2, 1, 2, ("1", "2"))


@pytest.mark.parametrize("quote", ["'", '"'])
def test_channels_in_one_quoted_field(tmp_path: Path, quote: str) -> None:
    lines = [f"{quote}1,2\\n3,4\\n5,6{quote},Standing", f"{quote}7,8\\n9,?\\n1,2{quote}, 'Sitting down'"]
    path = write(tmp_path, MANY + "\n".join(lines) + "\n")
    cases, labels = read_text(path)
    assert labels is not None and labels.tolist() == ["Standing", "Sitting down"]
    wanted = [[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, np.nan], [1, 2]]]
    np.testing.assert_array_equal(np.stack(cases), np.float32(wanted))
    outline = outline_of_text(path)
    assert (outline.n_cases, outline.n_channels, outline.n_times) == (2, 3, 2)


def test_a_number_to_predict_and_a_split(tmp_path: Path) -> None:
    path = write(tmp_path, ONE.replace("{1, '2'}", "numeric") + "1,2,0.5\n")
    write(tmp_path, ONE + "5,6,2\n", "Toy_TEST.arff")
    assert outline_of_text(path).header.target and outline_of_text(path).header.classes is None
    split = read_split(path)
    assert split.test is not None and split.test.x.tolist() == [[[5, 6]]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ONE + "1,2,1\n1,x,1\n", "line 10"),
        (ONE + "1,2,1\n1,1\n", r"line 10.*\(1, 2\)"),
        (ONE + "1,2,3\n", "line 9.*'3'"),
        (ONE + "1,2,\n", "line 9"),
        (ONE.replace("{1, '2'}", "numeric") + "1,2,0.5\n1,2,x\n", "line 10.*'x'"),
        (ONE.replace("{1, '2'}", "1}"), "line 6"),
        (ONE, "@data"),
        (MANY + "1,2,Standing\n", "line 8"),
        (MANY + "'1,2\\n3',Standing\n", r"line 8.*\[1, 2\]"),
        ("@relation x\n", "@data"),
        ("@relation x\n1,2\n", "line 2"),
        ("@relation x\n@attribute a string\n@data\n", "@attribute"),
    ],
)
def test_malformed_files_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_text(write(tmp_path, text))
    assert "Toy_TRAIN.arff" in str(caught.value)


def test_the_outline_of_a_damaged_file(tmp_path: Path) -> None:
    for text in (ONE, ONE + "1,x,1\n", MANY + "1,2,Standing\n"):
        with pytest.raises(InputError, match=r"Toy_TRAIN\.arff"):
            outline_of_text(write(tmp_path, text))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.arff"):
        read_text(tmp_path / "none.arff")
