import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dicot.core.errors import OutputError
from dicot.core.storage import atomic_file, only_writer, write_atomic


def test_replaces_as_a_whole_and_makes_folders(tmp_path):
    path = tmp_path / "a" / "b.bin"
    write_atomic(path, b"one")
    write_atomic(path, b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(path.parent) == ["b.bin"]
    assert path.stat().st_mode & 0o044, "others can read it, as any file one writes"


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "b.bin"
    write_atomic(path, b"one")
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_atomic(path, b"two")
    assert path.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["b.bin"]


def test_what_cannot_be_written_is_named_with_the_reason(tmp_path, monkeypatch):
    path = tmp_path / "b.bin"
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")))
    with pytest.raises(OutputError, match="No space left") as caught:
        write_atomic(path, b"one")
    assert str(path) in str(caught.value) and os.listdir(tmp_path) == []


def test_what_a_killed_process_left_goes_and_what_another_writes_stays(tmp_path):
    path = tmp_path / "b.bin"
    (tmp_path / ".b.bin.a1b2_3c4").touch()
    with atomic_file(path) as slow:
        write_atomic(path, b"one")
        assert path.read_bytes() == b"one" and len(os.listdir(tmp_path)) == 2
        slow.write(b"two")
    assert path.read_bytes() == b"two" and os.listdir(tmp_path) == ["b.bin"]


MANY = """
import sys
from pathlib import Path
from dicot.core.errors import OutputError
from dicot.core.storage import only_writer
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


WITHOUT_FCNTL = """
import sys
sys.modules["fcntl"] = None  # as on Windows, where importing it fails
from dicot.cli import main
sys.argv = ["dicot", *sys.argv[1:]]
main()
"""


def test_where_files_cannot_be_locked_a_command_says_so_in_a_sentence(tmp_path):
    call = [sys.executable, "-c", WITHOUT_FCNTL, "label", "show", "labels.sqlite"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: dicot needs Linux or macOS for now") and "WSL" in done.stderr
    assert len(done.stderr.splitlines()) == 1
