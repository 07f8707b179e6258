"""`dicot explore`: a page is written or served, Ctrl-C ends it, and what is wrong is told before the map is made."""

import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from tests.commands import dicot
from tests.explorer.conftest import page_files

from dicot.core.errors import InputError

# As `dicot` would be, with a page as small as can be.
PROGRAM = (
    "import dicot.explorer.page as a; from tests.explorer.conftest import page_files; a.load_assets = page_files; "
    "from dicot.cli import main; main()"
)


@pytest.fixture
def vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("dicot.explorer.page.load_assets", page_files)
    x = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    start = np.arange(30) * 2.0
    np.savez(tmp_path / "v.npz", X=x, recording=np.repeat("monday", 30), start=start, end=start + 2)
    return tmp_path / "v.npz"


def test_a_page_is_written(vectors: Path, tmp_path: Path) -> None:
    said = dicot("explore", vectors, "--export", tmp_path / "page.html")
    assert "t-SNE of 30 cases" in said and "not at hand" in said and "page.html" in said
    text = (tmp_path / "page.html").read_text()
    assert "dicot-inline" in text and '"n":30' in text
    dicot("explore", vectors, "--export", tmp_path / "some.html", "--set", "sample=7")
    assert '"n":7' in (tmp_path / "some.html").read_text()


def test_what_is_wrong_is_told_before_the_map_is_made(vectors: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"Port {port} cannot be used.*--port"):
            dicot("explore", vectors, "--no-open", "--port", port)
    with pytest.raises(InputError, match="70000"):
        dicot("explore", vectors, "--no-open", "--port", 70_000)
    with pytest.raises(InputError, match="sample is for --export"):
        dicot("explore", vectors, "--no-open", "--set", "sample=5")
    with pytest.raises(InputError, match="There is no file"):
        dicot("explore", tmp_path / "none.npz", "--export", tmp_path / "page.html")
    with pytest.raises(InputError, match="There is no file or folder"):
        dicot("explore", vectors, "--data", tmp_path / "nowhere", "--export", tmp_path / "page.html")
    np.savez(tmp_path / "many.npz", X=np.zeros((20_001, 2), np.float32))
    with pytest.raises(InputError, match="sample.*20000"):
        dicot("explore", tmp_path / "many.npz", "--export", tmp_path / "page.html")
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot be written"):
        dicot("explore", vectors, "--export", tmp_path / "file" / "page.html")
    assert not list(tmp_path.glob("*.explorer-*")) and not list(tmp_path.glob("*.html"))


def test_it_serves_until_it_is_interrupted(vectors: Path) -> None:
    pytest.importorskip("uvicorn", reason="uvicorn is not installed")
    command = [sys.executable, "-c", PROGRAM, "explore", str(vectors), "--no-open"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        address = next(line for line in lines if "token=" in line).split()[-1]
        assert "Ctrl-C" in next(lines)
        base, _, token = address.partition("?token=")
        assert base.startswith("http://127.0.0.1:") and len(token) > 40
        with urllib.request.urlopen(address) as page:
            assert b"map" in page.read()
        request = urllib.request.Request(f"{base}api/about", headers={"X-Dicot-Token": token})
        with urllib.request.urlopen(request) as answer:
            assert b'"n":30' in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="403") as refused:
            urllib.request.urlopen(f"{base}api/about")
        refused.value.close()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0 and "Stopped." in out
    assert "Traceback" not in err and token not in err
