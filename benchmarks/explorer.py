"""python -m benchmarks.explorer [--windows 20000,100000]: how long the explorer's page takes in headless Chromium.

Size of the built files; of a long recording in the large view, milliseconds until it is open, and from an event that
zooms or moves to the next frame; then, for each number of windows, milliseconds until the map is drawn, after a page
was opened before (the browser's own start is not counted); of one frame while the map is panned, zoomed and hovered
over, on the clock, and CPU time of the page's own thread and of its scripts alone; until the series under the pointer
is drawn, and until a click has drawn its neighbours; the longest frame while table and filters are used. Chromium draws
in software here: a GPU is faster. The windows are made up, and so is their map. Needs playwright and /usr/bin/chromium.
"""

import argparse
import gzip
import statistics
import tempfile
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
from dicot.explorer.server import create_app, listen
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


FRAMES = 40  # that a movement is measured over
# One event before each frame; reading a pixel waits until all is drawn.
MOVEMENTS = """async ([movement, frames]) => {
    const map = document.getElementById('map');
    const canvas = document.querySelector('.map-marks');
    const box = canvas.getBoundingClientRect();
    const gl = document.querySelector('.map-points').getContext('webgl2');
    const pixel = new Uint8Array(4);
    const at = (i) => ({clientX: box.x + box.width * (0.2 + 0.6 * i / frames), clientY: box.y + box.height / 3});
    const move = {
        pan: (i) => map.dispatchEvent(new KeyboardEvent('keydown',
            {key: i % 2 ? 'ArrowLeft' : 'ArrowRight', shiftKey: true, bubbles: true})),
        zoom: (i) => canvas.dispatchEvent(new WheelEvent('wheel',
            {...at(frames / 2), deltaY: i < frames / 2 ? -60 : 60, bubbles: true, cancelable: true})),
        hover: (i) => canvas.dispatchEvent(new PointerEvent('pointermove', {...at(i), bubbles: true})),
    }[movement];
    const began = performance.now();
    for (let i = 0; i < frames; i++) {
        move(i);
        await new Promise(requestAnimationFrame);
        gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
    }
    return (performance.now() - began) / frames;
}"""
RENDERER = """() => {
    const gl = document.querySelector('.map-points').getContext('webgl2');
    const told = gl.getExtension('WEBGL_debug_renderer_info');
    return gl.getParameter(told ? told.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
}"""

SHOWN = """([place, row]) => new Promise((found) => {
    const began = performance.now();
    const look = () => document.querySelector(`#${place}[data-row="${row}"] path.trace`)
        ? found(performance.now() - began) : requestAnimationFrame(look);
    look();
})"""


OPENED = """() => new Promise((found) => {
    const began = performance.now();
    document.getElementById('recordings-button').click();
    const look = () => document.getElementById('reader').hidden
        ? requestAnimationFrame(look) : found(performance.now() - began);
    look();
})"""
STEPS = 60
# One event, then the next frame; reading a pixel waits until all is drawn. The pointer wanders, so tiles are asked for.
READING = """async ([movement, steps]) => {
    const canvas = document.querySelector('#reader canvas');
    const box = canvas.getBoundingClientRect();
    const context = canvas.getContext('2d');
    const took = [];
    for (let i = 0; i < steps; i++) {
        const at = {clientX: box.x + box.width * (0.3 + 0.4 * Math.abs(Math.sin(i))), clientY: box.y + box.height / 3};
        const began = performance.now();
        if (movement === 'pan') document.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));
        else canvas.dispatchEvent(new WheelEvent('wheel',
            {...at, deltaY: i < steps / 2 ? -180 : 180, bubbles: true, cancelable: true}));
        await new Promise(requestAnimationFrame);
        context.getImageData(0, 0, 1, 1);
        took.push(performance.now() - began);
    }
    return took;
}"""


def measured(page: Any) -> Any:
    """Let the browser count CPU time, which others do not change."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    return devtools


def spent(devtools: Any) -> dict[str, float]:
    """Return seconds of CPU by what took them."""
    return {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}


def reading(browser: Any, workspace: ExplorerWorkspace, screenshot: Path | None) -> None:
    """Print how long the large view of a recording takes to open, and from an event to the next frame."""
    with served(workspace) as address:
        page = browser.new_context(viewport={"width": 1280, "height": 720}).new_page()
        page.goto(f"{address}?token={TOKEN}")
        page.evaluate("dicot.ready")
        devtools = measured(page)
        opened = page.evaluate(OPENED)
        print(
            f"recording of {workspace.whole().detail(0).track.values.shape[1]:,} time steps   open {opened:.0f} ms",
            end="",
        )
        for name, movement, closer in (
            ("zoom", "zoom", 0),
            ("pan", "pan", 0),
            ("pan close by", "pan", 5),
            ("pan closest", "pan", 9),
        ):
            page.keyboard.press("0")
            for _ in range(closer):
                page.keyboard.press("+")
            page.evaluate(READING, [movement, 4])  # the first frames make the renderer ready
            page.wait_for_timeout(300)
            before = spent(devtools)
            took = page.evaluate(READING, [movement, STEPS])
            cpu = 1000 * (spent(devtools)["TaskDuration"] - before["TaskDuration"]) / STEPS
            print(
                f"   {name} {statistics.median(took):.0f} ms (longest {max(took):.0f}, CPU {cpu:.0f})",
                end="",
                flush=True,
            )
        print()
        if screenshot is not None:
            page.screenshot(path=screenshot)
        page.context.close()


def movements(page: Any) -> dict[str, float]:
    """Return, by movement, milliseconds of a frame: of the clock, and CPU of the page's thread and of its scripts."""
    devtools, found = measured(page), {}
    for movement in ("pan", "zoom", "hover"):
        before = spent(devtools)
        found[movement] = page.evaluate(MOVEMENTS, [movement, FRAMES])
        after = spent(devtools)
        for what, name in (("CPU", "TaskDuration"), ("script", "ScriptDuration")):
            found[f"{movement} {what}"] = 1000 * (after[name] - before[name]) / FRAMES
    return found


def measure(browser: Any, address: str, rows: list[int], screenshot: Path | None) -> dict[str, float]:
    """Return milliseconds by what took them."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    page.goto(f"{address}?token={TOKEN}")
    page.evaluate("dicot.ready")
    page.goto(f"{address}?token={TOKEN}")
    first = page.evaluate("dicot.ready.then(() => new Promise(requestAnimationFrame)).then(() => performance.now())")
    print(f"drawn by {page.evaluate(RENDERER)}")
    moved = movements(page)
    hover, pin = [], []
    for row in rows:
        at = page.evaluate(f"dicot.screen({row})")
        page.mouse.move(at["x"], at["y"])
        hover.append(page.evaluate(SHOWN, ["pointer", row]))
        page.mouse.click(at["x"], at["y"])
        pin.append(page.evaluate(SHOWN, ["pinned", row]))
    if screenshot is not None:
        page.screenshot(path=screenshot)
    context.close()
    return {"first map": first, **moved, "series": statistics.median(hover), "click": statistics.median(pin)}


# The time to the next frame after something is done, and the longest between two frames for a second after it.
WATCHED = """async (act) => {
    let [next, longest, last, over] = [0, 0, performance.now(), false];
    const watch = (now) => {
        longest = Math.max(longest, now - last);
        next ||= now - last;
        last = now;
        if (!over) requestAnimationFrame(watch);
    };
    await new Promise(requestAnimationFrame);
    last = performance.now();
    requestAnimationFrame(watch);
    const find = (selector) => document.querySelector(selector);
    const wait = (ms) => new Promise((done) => setTimeout(done, ms));
    const fill = (field, text) => { field.value = text; field.dispatchEvent(new Event('change', {bubbles: true})); };
    await (new Function('find', 'wait', 'fill', `return (async () => { ${act} })()`))(find, wait, fill);
    await wait(1000);
    over = true;
    return [next, Math.max(longest, performance.now() - last)];
}"""
ACTS = {
    "table opens": "find('#show-table').click()",
    "sort by number": "find('[data-column=outlier]').click()",
    "sort by name": "find('[data-column=recording]').click()",
    "scroll": "for (let i = 0; i < 20; i++) { find('#table-rows').scrollTop += 31013; await wait(30); }",
    "filter opens": "find('#filter-open').click(); await wait(300); fill(find('#filter-column'), 'outlier')",
    "filter by number": "fill(find('.filter-ends input'), '0.6')",
    "filter by name": "fill(find('#filter-column'), 'recording'); await wait(300); find('.filter-names input').click()",
    "row pins": "find('.line[data-row]').click()",
    "filters cleared": "find('#filter-clear').click()",
    "legend hides one": "find('#legend .entry').click()",
    "colours change": "fill(find('#colour'), 'outlier')",
    "labelled": "find('#pinned-label .chip').click()",
}


def workbench(browser: Any, address: str) -> dict[str, float]:
    """Return milliseconds to the next frame, of the longest one and of CPU time, by what is done to the page.

    The CPU time is that of the page's thread for the whole act, frames of a second among it: others do not change it.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 720}, bypass_csp=True)  # for the acts above
    page = context.new_page()
    page.goto(f"{address}?token={TOKEN}")
    page.evaluate("dicot.ready")
    page.wait_for_timeout(1000)
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        metrics = devtools.send("Performance.getMetrics")["metrics"]
        return 1000 * float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))

    found = {}
    for name, act in ACTS.items():
        before = spent()
        next_frame, longest = page.evaluate(WATCHED, act)
        found[name], found[f"{name}, longest"] = next_frame, longest
        found[f"{name} CPU"] = spent() - before
    context.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--windows", default="20000,100000", help="numbers of windows, separated by commas")
    parser.add_argument("--screenshot", type=Path, help="a .png of the page with the most windows")
    parser.add_argument("--steps", type=int, default=3_600_000, help="time steps of the recording in the large view")
    options = parser.parse_args()
    for name, asset in load_assets().items():
        print(f"{name:12}{len(asset):8} bytes{len(gzip.compress(asset)):8} as gzip")
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        reading(browser, make_recording(Path(folder), options.steps), options.screenshot)
        for text in filter(None, options.windows.split(",")):
            workspace = make_workspace(Path(folder), int(text))
            rows = np.random.default_rng(1).choice(len(workspace), 9, replace=False).tolist()
            with served(workspace) as address:
                found = measure(browser, address, rows, options.screenshot)
                workspace.labels.set(rows, "walk")
                frames = workbench(browser, address)
            for what, took in ((f"{text:>8} windows", found), ("to the next frame", frames)):
                print(what + "".join(f"   {name} {value:.1f} ms" for name, value in took.items()), flush=True)


if __name__ == "__main__":
    main()
