"""The page to send to a colleague: it holds all it needs, and nothing of it can run that is not ours."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.explorer.page import MOST_WINDOWS, joined, load_assets, rows_of_page, write_page
from dicot.explorer.workspace import ExplorerWorkspace, open_workspace
from tests.explorer.conftest import page_files


def unpacked(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), kind)


def read(path: Path) -> dict[str, Any]:
    (held,) = re.findall(r'<script type="application/json" id="dicot-inline">(.*?)</script>', path.read_text(), re.S)
    content: dict[str, Any] = json.loads(held)
    return content


def test_the_page_holds_what_the_server_would_say(workspace: ExplorerWorkspace, tmp_path: Path) -> None:
    workspace.labels.set([3], "walk")
    write_page(tmp_path / "page.html", workspace, rows_of_page(len(workspace), None), page_files())
    page, n = read(tmp_path / "page.html"), len(workspace)
    assert page["about"] == workspace.about()
    np.testing.assert_array_equal(unpacked(page["points"], "<f4").reshape(n, 2), workspace.overview.points)
    for column in page["about"]["columns"]:
        kind = "<i4" if column["kind"] == "category" else "<f8"
        got = unpacked(page["columns"][column["name"]], kind)
        np.testing.assert_array_equal(got, workspace.columns()[column["name"]]().values)
    assert page["rows"][3] == workspace.describe(3, "walk") and len(page["rows"]) == n
    near = unpacked(page["neighbours"], "<i4").reshape(n, 8)
    assert near[5].tolist() == workspace.neighbours(5, 8)[0]
    series = page["series"]
    levels = unpacked(series["data"], "u1").reshape(n, 2, series["points"])
    for row in (0, 20, n - 1):
        values = workspace.series.window(row)  # type: ignore[union-attr]
        assert values is not None
        for channel, (low, high) in enumerate(series["scale"]):
            there = levels[row, channel][levels[row, channel] != series["missing"]]
            assert len(there) == series["points"] or np.isnan(values[channel]).any()
            drawn, step = low + (high - low) * there / 254, (high - low) / 254
            assert abs(drawn.max() - np.nanmax(values[channel])) <= step
            assert abs(drawn.min() - np.nanmin(values[channel])) <= step
    first = workspace.find("bob", 0.1)  # the window with a missing value
    assert (levels[first] == 255).any() and not (levels[first] == 255).all()


def test_nothing_is_fetched_and_nothing_in_the_data_runs(workspace: ExplorerWorkspace, tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><!--"
    workspace.labels.set([0], evil)
    write_page(tmp_path / "page.html", workspace, rows_of_page(len(workspace), None), page_files())
    text = (tmp_path / "page.html").read_text()
    assert read(tmp_path / "page.html")["rows"][0]["label"] == evil
    assert "alert(1)</script>" not in text and "/assets/" not in text and "src=" not in text
    assert text.count("<script") == text.count("</script>") == 2  # the data and the program, whose own text is escaped
    assert r'console.log("<\/script>")' in text and "<style>p { color: red }</style>" in text
    assert "default-src 'none'" in text
    assert text.index("dicot-inline") < text.index("console.log") < text.index("</body>")


def test_some_windows_are_numbered_anew(workspace: ExplorerWorkspace, tmp_path: Path) -> None:
    rows = rows_of_page(len(workspace), 10)
    write_page(tmp_path / "page.html", workspace, rows, page_files())
    page = read(tmp_path / "page.html")
    assert page["about"]["n"] == len(rows) == len(page["rows"]) == 10
    near = unpacked(page["neighbours"], "<i4").reshape(10, 8)
    assert near.max() < 10 and (near >= -1).all()
    for place, row in enumerate(rows.tolist()):
        assert page["rows"][place] == workspace.describe(row, "")
        there = near[place][near[place] >= 0]
        assert not set(rows[there].tolist()) & set(workspace.index.overlapping(row).tolist())
    assert rows_of_page(len(workspace), 10).tolist() == rows.tolist()


def test_too_many_windows_are_refused_with_what_to_do() -> None:
    with pytest.raises(InputError, match=r"20001.*sample=20000"):
        rows_of_page(MOST_WINDOWS + 1, None)
    with pytest.raises(InputError, match="sample"):
        rows_of_page(5, 0)
    assert len(rows_of_page(50_000, MOST_WINDOWS)) == MOST_WINDOWS and len(rows_of_page(5, 100)) == 5


def test_without_recordings_and_with_a_vector_of_zeros(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
    x[4] = 0
    np.savez(tmp_path / "v.npz", X=x)
    write_page(tmp_path / "page.html", open_workspace(tmp_path / "v.npz"), np.arange(12), page_files())
    page = read(tmp_path / "page.html")
    assert page["series"] is None and page["rows"][0]["recording"] is None
    near = unpacked(page["neighbours"], "<i4").reshape(12, 8)
    assert (near[4] == -1).all() and (near[5] >= 0).all() and 5 not in near[5]


def test_a_few_wild_values_do_not_flatten_the_rest(workspace: ExplorerWorkspace, tmp_path: Path) -> None:
    series = workspace.series
    assert series is not None
    usual = series.window

    def wild(row: int) -> np.ndarray | None:
        values = usual(row)
        return values if row or values is None else np.where(np.arange(values.shape[1]) == 5, 1e6, values)

    series.window = wild  # type: ignore[method-assign]
    write_page(tmp_path / "page.html", workspace, np.arange(len(workspace)), page_files())
    scale = read(tmp_path / "page.html")["series"]["scale"]
    assert all(-20 < low < high < 20 for low, high in scale)


def test_a_page_that_was_not_built_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not built.*npm"):
        load_assets(tmp_path)
    empty = {**page_files(), "index.html": b"<html></html>"}
    with pytest.raises(InputError, match="Build it again"):
        joined(empty, "{}")
