"""HARTH from files of its publisher's form, with values small enough to count by hand."""

from pathlib import Path

import pytest

from bench.datasets.large import HARTH
from bench.paper.raw.movement import HARTH_ACTIVITIES as ACTIVITIES
from bench.paper.raw.movement import HARTH_TEST, read_harth, read_harth_subject
from dicot.core.errors import InputError

HEAD = "timestamp,back_x,back_y,back_z,thigh_x,thigh_y,thigh_z,label"


def write(folder: Path, who: str, labels: list[int], *, index: str | None = None, gap: tuple[int, ...] = ()) -> Path:
    """back_x counts the rows, the other channels hold their own number; `index` names one more first column."""
    lines = [HEAD if index is None else f"{index},{HEAD}"]
    for row, label in enumerate(labels):
        first = "" if row in gap else f"{row}.5"
        cells = [f"2019-01-12 00:00:{row // 50 % 60:02d}.{row % 50 * 20:03d}", first, "1", "2.0", "-3e0", "4", "5"]
        lines.append(",".join([*([] if index is None else [str(row)]), *cells, str(label)]))
    path = folder / f"{who}.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_windows_labels_and_people(tmp_path: Path) -> None:
    write(tmp_path, "S006", [1] * 1001)  # windows start at 0, 250 and 500; the last row belongs to none
    write(tmp_path, "S025", [130] * 250 + [14] * 250)  # a tie: the smaller code
    write(tmp_path, "S026", [7] * 249 + [8] * 251)
    (tmp_path / "notes.csv").write_text("not a recording")
    prepared = read_harth(tmp_path)
    train, test = prepared.train, prepared.test
    assert train.x.shape == (4, 6, 500) and test.x.shape == (1, 6, 500)
    assert train.x[:3, 0, 0].tolist() == [0.5, 250.5, 500.5] and train.x[2, 0, -1] == 999.5
    assert [prepared.labels[code] for code in train.y] == ["walking"] * 3 + ["cycling standing"]  # type: ignore[union-attr]
    assert [prepared.labels[code] for code in test.y] == ["lying"]  # type: ignore[union-attr]
    assert train.group.tolist() == ["S006"] * 3 + ["S025"] and test.group.tolist() == ["S026"]  # type: ignore[union-attr]
    assert (prepared.stride, len(prepared.labels), list(ACTIVITIES)) == (250, 12, sorted(ACTIVITIES))


def test_the_last_four_of_the_22_files_test() -> None:
    people = [f"S{n:03d}" for n in (6, 8, 9, 10, *range(12, 30))]
    assert len(people) == 22 and tuple(people[18:]) == HARTH_TEST
    assert HARTH.sizes.n_classes == 12 and HARTH.transfer_channels == (3, 4, 5)


def test_faulty_files_are_named(tmp_path: Path) -> None:
    write(tmp_path, "S026", [1] * 600)
    with pytest.raises(InputError, match="training part has no windows"):
        read_harth(tmp_path)
    with pytest.raises(InputError, match=r"S006\.csv.*\[9.0\]"):
        read_harth_subject(write(tmp_path, "S006", [9]))
    (tmp_path / "S006.csv").write_text("time,x\n1,2\n")
    with pytest.raises(InputError, match=r"S006\.csv.*back_x"):
        read_harth_subject(tmp_path / "S006.csv")
    (tmp_path / "S006.csv").write_text(f"{HEAD}\n2019,1,2,3,4,five,6,1\n")
    with pytest.raises(InputError, match=r"S006\.csv.*five"):
        read_harth_subject(tmp_path / "S006.csv")
    (tmp_path / "S006.csv").write_text(f"{HEAD}\n2019,1,2,3,4,5,6,1\n2019,0,1,2,3,4,5,6,1\n")
    with pytest.raises(InputError, match=r"S006\.csv.*line 3.* 9"):
        read_harth_subject(tmp_path / "S006.csv")
    (tmp_path / "S006.csv").write_text(f"{HEAD}\n2019,0,1,2,3,4,5,6,1\n")
    with pytest.raises(InputError, match=r"S006\.csv.*more cells"):
        read_harth_subject(tmp_path / "S006.csv")
    (tmp_path / "copy").mkdir()
    write(tmp_path / "copy", "S026", [1] * 600)
    with pytest.raises(InputError, match="S026"):
        read_harth(tmp_path)
