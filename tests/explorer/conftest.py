"""Recordings of three people in a folder, their windows as vectors, and a client of the explorer's server."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicot.data import Windows
from dicot.explorer.page import Assets
from dicot.explorer.workspace import ExplorerWorkspace, open_workspace
from dicot.store.vectors import write_vectors

TOKEN, PORT = "a-token-for-tests", 8123
INDEX = (
    '<!doctype html><html><head><title>x</title><link rel="stylesheet" href="/assets/app.css">'
    '<script src="/assets/app.js" defer></script></head><body><p>map</p></body></html>'
)


def page_files() -> Assets:
    """A page as small as can be, in place of the built one."""
    return {
        "index.html": INDEX.encode(),
        "app.js": b'console.log("</script>")',
        "app.css": b"p { color: red }",
    }


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with recordings/ (csv, one with a gap and a missing value) and vectors.npz of their windows."""
    folder = tmp_path_factory.mktemp("embedded")
    rng = np.random.default_rng(0)
    (folder / "recordings").mkdir()
    for number, name in enumerate(("ann", "bob", "eve")):
        time = np.arange(1200) / 50
        fast = np.repeat([1.0, 6.0], 600)  # 12 s of each
        values = np.sin(2 * np.pi * fast * time) * (1 + number / 4) + 0.1 * rng.normal(size=1200)
        other = np.repeat([0.0, 2.0], 600) + 0.1 * rng.normal(size=1200)
        kind = np.repeat(["walk", "run"], 600)
        rows = [f"{t:.2f},{a:.5f},{b:.5f},{k}" for t, a, b, k in zip(time, values, other, kind, strict=True)]
        if name == "bob":
            rows[7] = rows[7].replace(rows[7].split(",")[2], "", 1)  # a missing value
            del rows[300:400]  # a gap
        (folder / "recordings" / f"{name}.csv").write_text("time,x,y,activity\n" + "\n".join(rows) + "\n")
    windows = Windows.from_folder(folder / "recordings", "2s", "1s", label="activity", missing="interpolate")
    spectrum = np.abs(np.fft.rfft(windows.x, axis=2))[:, :, :20].reshape(len(windows), -1)
    known = {"X": spectrum.astype(np.float32), "group": windows.group, "recording": windows.recording}
    write_vectors(folder / "vectors.npz", {"": {**known, "start": windows.start, "end": windows.end}})
    open_workspace(folder / "vectors.npz")  # makes the map once for all tests
    return folder


@pytest.fixture
def folder(embedded: Path, tmp_path: Path) -> Path:
    """A copy of what was embedded, with the map beside it."""
    return Path(shutil.copytree(embedded, tmp_path / "copy"))


@pytest.fixture
def workspace(folder: Path) -> ExplorerWorkspace:
    options = {"label": "activity"}
    return open_workspace(folder / "vectors.npz", data=str(folder / "recordings"), options=options)


def client_of(workspace: ExplorerWorkspace, **headers: str) -> Any:
    """A client as the page is one; other headers in place of its own."""
    testclient = pytest.importorskip("fastapi.testclient", reason="fastapi and httpx are not installed")
    from dicot.explorer.routes import create_app

    app = create_app(workspace, TOKEN, PORT, page_files())
    own = {"X-Dicot-Token": TOKEN, **headers}
    return testclient.TestClient(app, base_url=f"http://127.0.0.1:{PORT}", headers=own)


@pytest.fixture
def client(workspace: ExplorerWorkspace) -> Any:
    return client_of(workspace)
