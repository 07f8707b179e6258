"""Compiled code in the cache folder: foreign, exposed and damaged files are never loaded."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dicot.core.errors import SlowWarning
from dicot.core.machine_code import CFile, use_code, warn_of_slow_work
from dicot.nets.encoders.inception import rows

compiled = pytest.mark.skipif(rows.C.library is None, reason="there is no C compiler here")
LOAD = """
import logging
logging.basicConfig(level="INFO")
from dicot.nets.encoders.inception.rows import C
print(C.library)
"""


def load(cache: Path) -> subprocess.CompletedProcess[str]:
    """Load the C functions in a fresh process."""
    environment = {**os.environ, "DICOT_CACHE": str(cache)}
    return subprocess.run([sys.executable, "-c", LOAD], env=environment, capture_output=True, text=True, check=False)


@compiled
def test_a_truncated_library_is_made_again(tmp_path):
    load(tmp_path)
    (path,) = tmp_path.rglob("native-*.so")
    whole = path.read_bytes()
    path.write_bytes(whole[:3000])
    done = load(tmp_path)
    assert done.returncode == 0 and "CDLL" in done.stdout, done.stderr
    assert path.read_bytes() == whole


@pytest.fixture
def use(tmp_path, monkeypatch):
    """What is loaded and how often it was made, with a cache of its own."""
    monkeypatch.setenv("DICOT_CACHE", str(tmp_path / "cache"))
    made = []

    def make() -> bytes:
        made.append(1)
        return b"our code"

    return lambda: (use_code("code", ".bin", make, lambda path: (path, path.read_bytes())), len(made))


@pytest.mark.parametrize("damage", ["content", "mode", "owner"])
def test_a_file_that_is_not_as_it_was_written_is_made_again(use, damage):
    (path, _), _ = use()
    if damage == "content":
        path.write_bytes(b"our codE")
    elif damage == "mode":
        path.chmod(0o664)
    elif os.getuid():
        pytest.skip("only root gives files away")
    else:
        os.chown(path, 1234, -1)
    assert use() == ((path, b"our code"), 2)
    assert path.stat().st_mode & 0o022 == 0 and path.stat().st_uid == os.getuid()
    assert use()[1] == 2


@pytest.mark.parametrize("what", ["folder", "cache", "owner"])
def test_nothing_is_taken_from_a_folder_that_others_can_write_to(use, tmp_path, caplog, what):
    (path, _), _ = use()
    evil = b"another's code"
    planted = path.with_name(f"code-{hashlib.sha256(evil).hexdigest()[:16]}.bin")
    path.rename(planted)
    planted.write_bytes(evil)
    if what == "folder":
        path.parent.chmod(0o777)
    elif what == "cache":
        (tmp_path / "cache").chmod(0o777)
    elif os.getuid():
        pytest.skip("only root gives files away")
    else:
        os.chown(path.parent, 1234, -1)
    with caplog.at_level("INFO", "dicot"):
        (elsewhere, code), _ = use()
    assert code == b"our code" and not elsewhere.is_relative_to(tmp_path) and not elsewhere.exists()
    assert "cannot be stored" in caplog.text
    assert planted.read_bytes() == evil


def test_what_is_slow_without_a_compiler_is_said_once(tmp_path, monkeypatch):
    monkeypatch.setenv("DICOT_CACHE", str(tmp_path))
    monkeypatch.delenv("DICOT_NATIVE", raising=False)
    monkeypatch.setattr("shutil.which", lambda name: None)
    warn_of_slow_work.cache_clear()
    files = [CFile("dicot.model", "kernels.c"), CFile("dicot.nets.encoders.inception", "native.c")]
    with pytest.warns(
        SlowWarning, match=r"no C compiler.*2\.5 to 5 times as long\. Install one.*DICOT_NATIVE=0"
    ) as said:
        assert [file.library for file in files] == [None, None]
    assert len(said) == 1


def test_who_chose_to_go_on_without_compiled_code_hears_nothing(monkeypatch, recwarn):
    monkeypatch.setenv("DICOT_NATIVE", "0")
    warn_of_slow_work.cache_clear()
    assert CFile("dicot.model", "kernels.c").library is None
    assert not recwarn.list
