"""A workspace and a long recording that are made up, the explorer's server, and a browser without a window."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from dicot.explorer.kept import Overview
from dicot.explorer.labelling import HandLabels
from dicot.explorer.page import load_assets
from dicot.explorer.routes import create_app
from dicot.explorer.server import listen
from dicot.explorer.workspace import ExplorerWorkspace
from dicot.store.series import CaseSeries, series_of
from dicot.store.vectors import Vectors

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-angle=swiftshader",  # draws without a GPU
    "--enable-unsafe-swiftshader",
]
TOKEN = "secret-token"
KINDS = 5


def drawn(points: np.ndarray, kind: np.ndarray, kinds: int, outlier: np.ndarray) -> Overview:
    """Return a map that was not computed."""
    n = len(points)
    own = np.arange(n, dtype=np.uint64), np.ones(n, dtype=bool)
    return Overview(points.astype(np.float32), "drawn", kind.astype(np.int32), kinds, outlier.astype(np.float32), *own)


def make_workspace(folder: Path, n: int) -> ExplorerWorkspace:
    """Windows of five kinds in 20 recordings: each kind is one cloud on the map, and one frequency."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, KINDS, n)
    angle = 2 * np.pi * kind / KINDS
    points = 0.6 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + rng.normal(scale=0.07, size=(n, 2))
    place = np.arange(n) % (n // 20)
    known = Vectors(
        x=np.concatenate([np.eye(KINDS)[kind], 0.2 * rng.normal(size=(n, 3))], axis=1).astype(np.float32),
        recording=np.array([f"walk_{number:02d}" for number in np.arange(n) // (n // 20)]),
        start=place * 2.0,
        end=place * 2.0 + 2.0,
        group=np.array([f"user {number}" for number in np.arange(n) // (n // 4)]),
    )
    phase = rng.uniform(0, 6, size=(n, 2, 1))
    cases = np.sin((2 + 3 * kind[:, None, None]) * np.linspace(0, 3, 64) + phase).astype(np.float32)
    outlier = np.abs(points).sum(axis=1).astype(np.float32)
    overview = drawn(np.clip(points, -1, 1), kind, KINDS, outlier)
    labels = HandLabels(folder / "walks.labels.sqlite", known)
    return ExplorerWorkspace("walks", known, overview, labels, CaseSeries(list(cases)))


def make_recording(folder: Path, n: int, rate: float = 1000.0) -> ExplorerWorkspace:
    """One recording of six channels with dates, in windows of two seconds: two minutes of walking, two of rest, ..."""
    rng = np.random.default_rng(0)
    time = np.arange(n) / rate
    walks = time // 120 % 2 == 0
    turns = np.arange(1, 7)[:, None]
    x = 0.1 * rng.normal(size=(6, n)) + walks * np.sin(2 * np.pi * (1 + turns / 10) * time) + np.sin(time / 300 + turns)
    (folder / "recordings").mkdir()
    names = np.array(["acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z"])
    np.savez(folder / "recordings" / "day.npz", X=x.astype(np.float32), time=1.79e9 + time, channels=names)
    start = np.arange(0, time[-1] - 2, 2.0)
    kind = walks[(start * rate).astype(int)].astype(np.int32)
    noise = rng.normal(scale=0.1, size=(len(start), 2))
    points = np.clip(np.stack([kind - 0.5, 0 * start], axis=1) + noise, -1, 1).astype(np.float32)
    known = Vectors(
        np.concatenate([np.eye(2)[kind], noise], axis=1).astype(np.float32),
        np.full(len(start), "day"),
        start,
        start + 2,
    )
    series = series_of(known, folder / "recordings", {}, rate)
    labels = HandLabels(folder / "day.labels.sqlite", known)
    return ExplorerWorkspace("day", known, drawn(points, kind, 2, np.abs(noise[:, 0])), labels, series)


@contextmanager
def served(workspace: ExplorerWorkspace) -> Iterator[str]:
    """Serve a workspace from another thread; gives the address without the token."""
    import uvicorn

    listener = listen(0)
    port = listener.getsockname()[1]
    app = create_app(workspace, TOKEN, port, load_assets())
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        with threadpool_limits(1):  # as `serve` has it
            yield f"http://127.0.0.1:{port}/"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()
