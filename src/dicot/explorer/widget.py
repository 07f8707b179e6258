"""The map in a notebook: what the lasso selects there comes back to Python."""

from importlib.resources import files
from pathlib import Path
from typing import Any, final

import numpy as np
import pandas as pd

from dicot.core.errors import need_extra
from dicot.explorer.page import load_assets, page_text, rows_of_page
from dicot.explorer.workspace import open_workspace

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise need_extra("anywidget", "notebook", "The widget") from error


@final
class Explorer(anywidget.AnyWidget):
    """Show a map of windows in a notebook; `selection` is a table of those that were circled.

    It is the page of `dicot explore --export`, which reaches nobody. Labels that are given in it stay in it.

    Parameters
    ----------
    vectors, data, labels : a file of `dicot embed`, where its series are now, and a label store
    sample : draw so many windows, where there are more than 20,000

    Attributes
    ----------
    height : of the map, in pixels; set it before the map is shown
    rows : numbers of what is selected in `vectors`; `observe(function, "rows")` calls a function when they change
    """

    _esm = files("dicot.explorer").joinpath("widget.js").read_text(encoding="utf-8")
    _page = traitlets.Unicode().tag(sync=True)
    _selected = traitlets.List(traitlets.Int()).tag(sync=True)  # numbers in the page, which counts from 0
    height = traitlets.Int(600).tag(sync=True)
    rows = traitlets.List(traitlets.Int())

    def __init__(
        self, vectors: str | Path, *, data: str | None = None, labels: Path | None = None, sample: int | None = None
    ) -> None:
        self._workspace = open_workspace(Path(vectors), data=data, labels=labels)
        self._shown = rows_of_page(len(self._workspace), sample)
        super().__init__(_page=page_text(self._workspace, self._shown, load_assets()))
        self.observe(self._take, "_selected")

    def _take(self, change: Any) -> None:
        self.rows = self._shown[np.array(change["new"], np.intp)].tolist()

    @property
    def selection(self) -> pd.DataFrame:
        """Return the selected windows: row, and what the file and the label store say of each."""
        return self._workspace.frame(self.rows)
