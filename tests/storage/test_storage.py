import errno
import os

import pytest

from dicot.core.errors import DicotError, ModelFileError, OutputError
from dicot.core.storage import check_format, check_writable, write_atomic
from dicot.store.vectors import check_vector_file
from dicot.use.labels.store import LabelStore


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


def test_a_path_below_a_file_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DicotError, match="file/b.bin cannot be written"):
        write_atomic(tmp_path / "file" / "b.bin", b"one")


def test_a_folder_in_place_of_a_file_is_told_before_any_work_is_done(tmp_path):
    (tmp_path / "v.parquet").mkdir()
    for check in (check_writable, check_vector_file, lambda path: LabelStore(path)):
        with pytest.raises(OutputError, match=r"v\.parquet cannot be written: .*directory"):
            check(tmp_path / "v.parquet")
    check_writable(tmp_path / "v.parquet", folder=True)


def test_another_version_is_named_in_a_few_words(tmp_path):
    for version, writer in ((2, "0.9"), ("9" * 5000, "9" * 5000)):
        config = {"format": "a", "format_version": version, "library_version": writer}
        with pytest.raises(ModelFileError, match=r"a\.json has format version .*Install the version.*9") as caught:
            check_format(tmp_path / "a.json", config, "a", 1)
        assert len(str(caught.value)) < 300 + len(str(tmp_path))
