"""A lock holds for one process at a time, and never two of many that come and go."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from dicot.core.errors import DicotWarning
from dicot.core.storage import locks
from dicot.core.storage.locks import only_writer

MANY = """
import sys
from pathlib import Path
from dicot.core.errors import OutputError
from dicot.core.storage.locks import only_writer
place, done = Path(sys.argv[1]), 0
while done < 60:
    try:
        with only_writer(place):
            Path(sys.argv[2]).open("x").close()  # fails where two are inside
            Path(sys.argv[2]).unlink()
            done += 1
    except OutputError:
        pass
"""


def test_of_many_processes_one_is_inside(tmp_path: Path) -> None:
    """They also remove the lock file that others wait for."""
    words = [sys.executable, "-c", MANY, str(tmp_path / "a.npz"), str(tmp_path / "inside")]
    assert [process.wait() for process in [subprocess.Popen(words) for _ in range(4)]] == [0] * 4
    assert list(tmp_path.iterdir()) == []


def test_it_is_given_back_after_an_error(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(KeyError), only_writer(tmp_path / "sub" / "a.npz"):
            raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_a_disk_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks, "_take", refuse)
    with pytest.warns(DicotWarning, match="a disk without locks"), only_writer(tmp_path / "a.npz"):
        pass
