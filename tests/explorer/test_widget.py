"""The explorer in a notebook: Python's side, and the page in a frame as a browser has it."""

from pathlib import Path

import numpy as np
import pytest

from dicot.store.vectors import write_vectors

HOST = """async ([script, state]) => {
    const {default: widget} = await import(URL.createObjectURL(new Blob([script], {type: "text/javascript"})));
    const [get, set] = [(name) => state[name], (name, value) => state[name] = value];
    widget.render({model: {get, set, save_changes: () => window.saved = state}, el: document.body});
}"""


@pytest.mark.slow
def test_what_is_selected_in_the_page_comes_back_as_a_table(tmp_path: Path) -> None:
    pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    pytest.importorskip("anywidget", reason="the widget needs anywidget")
    from bench.speed.browser import chromium
    from dicot.explorer.widget import Explorer

    places = {"recording": np.repeat(["a", "b"], 20), "start": np.arange(40.0), "end": np.arange(40.0) + 1}
    x = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    write_vectors(tmp_path / "v.npz", {"": {"X": x, **places}})
    widget = Explorer(tmp_path / "v.npz", sample=10)
    with chromium() as browser:
        notebook = browser.new_page()
        notebook.evaluate(HOST, [Explorer._esm, {name: widget.get_state()[name] for name in ("_page", "height")}])
        notebook.wait_for_selector("iframe")
        frame = notebook.frames[1]
        frame.wait_for_function("window.dicot")
        frame.evaluate("dicot.ready")
        frame.evaluate("dicot.select([3, 9])")
        notebook.wait_for_function("window.saved")
        notebook.evaluate("postMessage({dicot: 'selection', rows: [7]}, '*')")  # not from the frame
        with pytest.raises(Exception, match="cross-origin|Blocked a frame"):
            frame.evaluate("parent.document")
        widget.set_state({"_selected": notebook.evaluate("saved._selected")})
    assert len(widget.rows) == 2 and widget.rows[1] > 9, "rows of the file, not of the page"
    assert widget.selection["start"].tolist() == widget.rows == widget.selection["row"].tolist()
