from pathlib import Path

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.data.files import read_split, read_windows
from dicot.data.textforms import outline_of_text, read_text


def write(folder: Path, text: str, name: str = "Toy_TRAIN.tsv") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_label_first_and_padding_kept(tmp_path: Path) -> None:
    path = write(tmp_path, "2\t1.5\t-2e-1\t3\n10\t4\t5\tNaN\n\n")
    cases, labels = read_text(path)
    np.testing.assert_array_equal(cases, np.array([[[1.5, -0.2, 3]], [[4, 5, np.nan]]]))
    assert labels.tolist() == ["2", "10"]
    outline = outline_of_text(path)
    assert (outline.n_cases, outline.n_channels, outline.n_times, outline.header.classes) == (2, 1, 3, ("10", "2"))


def test_by_path(tmp_path: Path) -> None:
    path = write(tmp_path, "1\t1\t2\t3\n2\t4\t5\tNaN\n")
    write(tmp_path, "1\t7\t8\t9\n", "Toy_TEST.tsv")
    split = read_split(path, unequal="pad")
    assert split.test is not None and split.test.x.tolist() == [[[7, 8, 9]]]
    assert split.train.x.tolist() == [[[1, 2, 3]], [[4, 5, 0]]] and split.name == "Toy"
    alone = read_windows(write(tmp_path, "a\t1\t2\nb\t3\t4\n", "mine.tsv"))
    assert alone.y is not None and alone.y.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\t2\t3\n1\t2\n", "line 2"),
        ("1\t2\tx\n", "x"),
        ("1\n2\n", "line 1"),
        ("", "empty"),
    ],
)
def test_malformed_files_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_text(write(tmp_path, text))
    assert "Toy_TRAIN.tsv" in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.tsv"):
        read_text(tmp_path / "none.tsv")
