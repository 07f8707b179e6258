"""dicot inspect: recordings in a table, what is suggested, and files that cannot be read."""

from pathlib import Path

import numpy as np
from tests.commands import dicot


def write(path: Path, n_times: int = 1000) -> None:
    times = np.arange(n_times) / 50
    values = np.sin(2 * np.pi * times)
    path.write_text("t,x,y\n" + "\n".join(f"{t:.2f},{v:.4f},{2 * v:.4f}" for t, v in zip(times, values, strict=True)))


def test_recordings_are_shown_and_windows_suggested(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.csv")
    said = dicot("inspect", tmp_path)
    line = next(line for line in said.splitlines() if "a.csv" in line)
    assert [cell.strip() for cell in line.split("│")[1:7]] == ["a.csv", "1,000", "0:00:20", "50", "0", "0.0%"]
    assert "2 channel(s): x, y" in said and "repeat" in said
    assert f"Next: dicot.windows_from('{tmp_path}', " in said
    assert "1 channel(s): y" in dicot("inspect", tmp_path / "a.csv", "--channels", "y")


def test_a_file_that_cannot_be_read_is_named_beside_the_others(tmp_path: Path) -> None:
    write(tmp_path / "a.csv")
    (tmp_path / "bad.csv").write_text("t,x,y\n0,1,2\n1,walking,3\n")
    said = dicot("inspect", tmp_path, code=1)
    assert "a.csv" in said and "bad.csv" in said and "walking" in said and "window" in said
