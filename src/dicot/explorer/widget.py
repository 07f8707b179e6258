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

    It is the page of `dicot explore --export`: it reaches neither this machine nor another one. Labels that are given
    in it stay in it; to label, use `dicot explore`.

    Parameters
    ----------
    vectors : a file of `dicot embed`
    data : where the series are now, if they were moved
    labels : a label store; default: one beside the vectors, where there is one
    sample : draw so many windows, where there are more than 20,000
    height : of the map, in pixels

    Attributes
    ----------
    rows : row numbers in `vectors` of what is selected; `observe(function, "rows")` calls a function when they change
    """

    _esm = files("dicot.explorer").joinpath("widget.js").read_text(encoding="utf-8")
    _page = traitlets.Unicode().tag(sync=True)
    _selected = traitlets.List(traitlets.Int()).tag(sync=True)  # numbers in the page, which counts from 0
    height = traitlets.Int(600).tag(sync=True)
    rows = traitlets.List(traitlets.Int())

    def __init__(
        self,
        vectors: str | Path,
        *,
        data: str | None = None,
        labels: str | Path | None = None,
        sample: int | None = None,
        height: int = 600,
    ) -> None:
        assets, store = load_assets(), None if labels is None else Path(labels)
        self._workspace = open_workspace(Path(vectors), data=data, labels=store)
        self._shown = rows_of_page(len(self._workspace), sample)
        super().__init__(_page=page_text(self._workspace, self._shown, assets), height=height)
        self.observe(self._take, "_selected")

    def _take(self, change: Any) -> None:
        self.rows = self._shown[np.array(change["new"], np.intp)].tolist()

    @property
    def selection(self) -> pd.DataFrame:
        """Return the selected windows: row, and what the file and the label store say of each."""
        rows, known = np.array(self.rows, np.intp), self._workspace.known.columns()
        labels = self._workspace.labels.given().all
        columns = {name: values[rows] for name, values in known.items() if name != "label"}
        return pd.DataFrame({"row": rows, **columns, "label": labels[rows]})
