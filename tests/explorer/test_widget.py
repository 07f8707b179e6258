"""The explorer in a notebook: Python's side, and the page in a frame as a browser has it."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.store.vectors import write_vectors

N = 40


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    x = np.random.default_rng(0).normal(size=(N, 6)).astype(np.float32)
    places = {"recording": np.repeat(["a", "b"], N // 2), "start": np.tile(np.arange(N / 2), 2)}
    write_vectors(tmp_path / "v.npz", {"": {"X": x, **places, "end": places["start"] + 1}})
    return tmp_path / "v.npz"


def test_what_is_selected_comes_back_as_a_table(vectors: Path) -> None:
    pytest.importorskip("anywidget", reason="the widget needs anywidget")
    from dicot.explorer.widget import Explorer

    widget, told = Explorer(vectors, sample=10, height=300), []
    assert widget.get_state()["_page"].count('id="dicot-inline"') == 1 and widget.selection.empty
    widget.observe(lambda change: told.append(change["new"]), "rows")
    widget.set_state({"_selected": [0, 9]})  # as the browser does
    assert told == [widget.rows] and len(widget.rows) == 2 and widget.rows[1] > 9  # rows of the file, not of the page
    table = widget.selection
    assert list(table) == ["row", "recording", "start", "end", "label"] and table["row"].tolist() == widget.rows
    assert table["start"].tolist() == [row % (N // 2) for row in widget.rows]
    with pytest.raises(InputError, match="1 to 20000 windows"):
        Explorer(vectors, sample=0)


HOST = """async ([script, page]) => {
    const {default: widget} = await import(URL.createObjectURL(new Blob([script], {type: "text/javascript"})));
    const state = window.state = {_page: page, height: 400, saved: 0};
    const [get, set] = [(name) => state[name], (name, value) => state[name] = value];
    widget.render({model: {get, set, save_changes: () => state.saved++}, el: document.body});
}"""


@pytest.mark.slow
def test_the_page_tells_the_notebook_what_it_selects(vectors: Path) -> None:
    pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    from benchmarks.explorer import CHROMIUM, chromium

    from dicot.explorer.page import load_assets, page_text, rows_of_page
    from dicot.explorer.workspace import open_workspace

    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}")
    page_of = page_text(open_workspace(vectors), rows_of_page(N, None), load_assets())
    script = files("dicot.explorer").joinpath("widget.js").read_text(encoding="utf-8")
    with chromium() as browser:
        notebook = browser.new_page()
        notebook.evaluate(HOST, [script, page_of])
        notebook.wait_for_selector("iframe")
        frame = notebook.frames[1]
        frame.wait_for_function("window.dicot")
        frame.evaluate("dicot.ready")
        frame.evaluate("dicot.select([3, 5])")
        notebook.wait_for_function("state.saved === 1")
        assert notebook.evaluate("state._selected") == [3, 5]
        notebook.evaluate("postMessage({dicot: 'selection', rows: [7]}, '*')")  # not from the frame
        with pytest.raises(Exception, match="cross-origin|Blocked a frame"):
            frame.evaluate("parent.document")
        assert notebook.evaluate("state._selected") == [3, 5]
