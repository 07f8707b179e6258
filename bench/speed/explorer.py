"""python -m bench explorer: how long the explorer's page takes in headless Chromium.

Of a long recording in the large view, milliseconds until it is open, and from an event that zooms or moves to the next
frame. Then, for each number of windows, milliseconds of a frame while the map is moved, and of what is done to table
and filters: until the next frame, the longest frame of the second after it, and CPU time of the page's own thread,
which other programs do not change. Chromium draws in software here: a GPU is faster. Needs playwright and Chromium.
"""

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.speed.browser import TOKEN, chromium, make_recording, make_workspace, served
from bench.tables import Row, markdown
from dicot.explorer.workspace import ExplorerWorkspace

FRAMES = 40  # that a movement is measured over

# One event before each frame; reading a pixel waits until all is drawn.
ON_MAP = """async ([movement, frames]) => {
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
    const took = [];
    for (let i = 0; i < frames; i++) {
        const began = performance.now();
        move(i);
        await new Promise(requestAnimationFrame);
        gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
        took.push(performance.now() - began);
    }
    return took;
}"""

OPENED = """() => new Promise((found) => {
    const began = performance.now();
    document.getElementById('recordings-button').click();
    const look = () => document.getElementById('reader').hidden
        ? requestAnimationFrame(look) : found(performance.now() - began);
    look();
})"""

# The pointer wanders, so parts of the recording are asked for.
ON_RECORDING = """async ([movement, frames]) => {
    const canvas = document.querySelector('#reader canvas');
    const box = canvas.getBoundingClientRect();
    const context = canvas.getContext('2d');
    const took = [];
    for (let i = 0; i < frames; i++) {
        const at = {clientX: box.x + box.width * (0.3 + 0.4 * Math.abs(Math.sin(i))), clientY: box.y + box.height / 3};
        const began = performance.now();
        if (movement === 'pan') document.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}));
        else canvas.dispatchEvent(new WheelEvent('wheel',
            {...at, deltaY: i < frames / 2 ? -180 : 180, bubbles: true, cancelable: true}));
        await new Promise(requestAnimationFrame);
        context.getImageData(0, 0, 1, 1);
        took.push(performance.now() - began);
    }
    return took;
}"""

# The time to the next frame after something is done, and between two frames for a second after it.
AFTER = """async ([act, frames]) => {
    const took = [];
    let [last, over] = [0, false];
    const watch = (now) => {
        took.push(now - last);
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
    return took;
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


def explorer(
    windows: Annotated[str, typer.Option(help="Numbers of windows, separated by commas.")] = "20000,100000",
    steps: Annotated[int, typer.Option(help="Time steps of the recording in the large view.")] = 3_600_000,
) -> None:
    """Milliseconds of a frame of the explorer's page, in headless Chromium."""
    rows: list[Row] = []
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        rows += reading(browser, make_recording(Path(folder), steps), f"{steps:,} time steps")
        for text in windows.split(","):
            workspace = make_workspace(Path(folder), int(text))
            rows += mapping(browser, workspace, f"{text} windows")
    typer.echo(markdown(rows))


def reading(browser: Any, workspace: ExplorerWorkspace, title: str) -> list[Row]:
    """Open a recording, zoom and move in it."""
    with served(workspace) as address:
        page = open_page(browser, address)
        opened = page.evaluate(OPENED)
        rows: list[Row] = [row(title, "recording opens", [opened], 0.0)]
        for movement in ("zoom", "pan"):
            page.keyboard.press("0")
            page.evaluate(ON_RECORDING, [movement, 4])  # the first frames make the renderer ready
            rows.append(watched(page, title, f"recording, {movement}", ON_RECORDING, movement))
        page.context.close()
    return rows


def mapping(browser: Any, workspace: ExplorerWorkspace, title: str) -> list[Row]:
    """Move the map, then use table, filters and labels."""
    with served(workspace) as address:
        page = open_page(browser, address)
        rows = [watched(page, title, f"map, {movement}", ON_MAP, movement) for movement in ("pan", "zoom", "hover")]
        workspace.labels.set([0, 1, 2], "walk")
        page.reload()
        page.evaluate("dicot.ready")
        page.wait_for_timeout(1000)
        rows += [watched(page, title, name, AFTER, act, frames=1) for name, act in ACTS.items()]
        page.context.close()
    return rows


def open_page(browser: Any, address: str) -> Any:
    """Open the explorer; the acts above are scripts, which its own policy would refuse."""
    context = browser.new_context(viewport={"width": 1280, "height": 720}, bypass_csp=True)
    page = context.new_page()
    page.goto(f"{address}?token={TOKEN}")
    page.evaluate("dicot.ready")
    return page


def watched(page: Any, title: str, what: str, script: str, act: str, frames: int = FRAMES) -> Row:
    """Run a script that returns milliseconds of frames, and count the CPU time of the page's thread."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def processor_ms() -> float:
        metrics = devtools.send("Performance.getMetrics")["metrics"]
        return 1000 * float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))

    before = processor_ms()
    took = page.evaluate(script, [act, frames])
    return row(title, what, took, (processor_ms() - before) / frames)


def row(title: str, what: str, frames: list[float], processor: float) -> Row:
    ordered = sorted(frames)
    return {
        "page": title,
        "what": what,
        "next frame ms": frames[0],
        "median ms": ordered[len(ordered) // 2],
        "longest ms": ordered[-1],
        "CPU ms": processor,
    }
