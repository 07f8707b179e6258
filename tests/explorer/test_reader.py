"""Ranges in the large view as somebody labels them: a real browser with mouse and keys, and the real server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the explorer needs fastapi")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")

from benchmarks.explorer import TOKEN, make_recording, served  # noqa: E402

from dicot.explorer.page import load_assets, rows_of_page, write_page  # noqa: E402
from dicot.explorer.workspace import ExplorerWorkspace  # noqa: E402
from tests.explorer.test_browser import CHROMIUM, browser, status, visit  # noqa: E402, F401

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no {CHROMIUM}"),
]

Range = tuple[float, float, str]
DRAWN = "document.querySelector('#reader canvas').toDataURL()"


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> ExplorerWorkspace:
    """Ten minutes with dates: two of walking, two of rest and so on."""
    return make_recording(tmp_path_factory.mktemp("day"), 60_000, rate=100.0)


@pytest.fixture(scope="module")
def address(day: ExplorerWorkspace) -> Iterator[str]:
    with served(day) as address:
        yield address


@pytest.fixture
def page(visit: Any, address: str, day: ExplorerWorkspace) -> Any:  # noqa: F811
    day.labels.store.unlink(missing_ok=True)
    page = visit(f"{address}?token={TOKEN}")
    page.click("#recordings-button")
    ready(page)
    return page


def ready(page: Any) -> None:
    page.wait_for_selector("#reader .gutter-row")


def at(page: Any, time: float, place: str = "plot") -> tuple[float, float]:
    """Return where a time is on the page: in the plot, or in the lane of labels or predictions."""
    found = page.evaluate(f"dicot.moment({time})")
    return found["x"], found.get(place, page.locator("#reader canvas").bounding_box()["y"] + 60)


def drag(page: Any, start: float, end: float, place: str = "plot") -> None:
    page.mouse.move(*at(page, start, place))
    page.mouse.down()
    page.mouse.move(*at(page, end, place), steps=5)
    page.mouse.up()


def name(page: Any, label: str) -> None:
    page.keyboard.press("n")
    page.keyboard.type(label)
    page.keyboard.press("Enter")
    status(page, f"^Labelled .* “{label}”")


def ranges(day: ExplorerWorkspace) -> list[Range]:
    return sorted((start, end, label) for (_, start, end), label in day.labels.given().ranges.items())


def near(found: list[Range], wanted: list[Range]) -> bool:
    return len(found) == len(wanted) and all(
        abs(one[0] - other[0]) < 1 and abs(one[1] - other[1]) < 1 and one[2] == other[2]
        for one, other in zip(found, wanted, strict=True)
    )


def test_drag_label_move_an_edge_undo_and_reload(page: Any, day: ExplorerWorkspace) -> None:
    drag(page, 20, 100)
    assert ranges(day) == []  # nothing is written before a label is given
    name(page, "walk")
    drag(page, 130, 230)
    name(page, "rest")
    drag(page, 260, 340)
    page.keyboard.press("1")
    status(page, "^Labelled .* “walk”")
    assert near(ranges(day), [(20, 100, "walk"), (130, 230, "rest"), (260, 340, "walk")])
    expected = set(map(int, day.labelled()["labels"]))
    assert len(expected) == pytest.approx(130, abs=3)  # windows of two seconds
    page.select_option("#colour", "label", force=True)
    counts = page.locator("#legend .entry .count")
    playwright.expect(counts.first).to_have_text(str(sum(one == "walk" for one in day.labels.given().hand.values())))

    drag(page, ranges(day)[1][1], 180, "labels")  # the end of the second range, in its lane
    status(page, "^Moved “rest”")
    assert near(ranges(day), [(20, 100, "walk"), (130, 180, "rest"), (260, 340, "walk")])
    page.keyboard.press("Delete")  # it is still chosen
    status(page, "^Removed")
    assert near(ranges(day), [(20, 100, "walk"), (260, 340, "walk")])
    page.keyboard.press("u")
    status(page, "^Undone")
    assert near(ranges(day), [(20, 100, "walk"), (130, 180, "rest"), (260, 340, "walk")])
    page.keyboard.press("Control+z")
    playwright.expect(page.locator("#status-text")).to_have_text("Undone: the label of 25 windows is as before.")
    assert near(ranges(day), [(20, 100, "walk"), (130, 230, "rest"), (260, 340, "walk")])

    page.mouse.click(*at(page, 500))  # where there is none: nothing is chosen any more
    page.hover('[data-channel="gyro_x"]')
    page.click('[aria-label="Hide gyro_x"]')
    playwright.expect(page.locator(".gutter-row")).to_have_count(5)
    page.hover('[data-channel="acc_x"]')
    page.click('[aria-label="Draw acc_x larger"]')
    page.mouse.move(*at(page, 180))
    page.mouse.wheel(0, -700)
    page.wait_for_function("location.hash.includes('hide=gyro_x')")
    page.wait_for_timeout(400)
    page.mouse.move(5, 5)
    url, edge = page.url, at(page, 130)
    before = page.evaluate(DRAWN)
    page.reload()
    page.evaluate("dicot.ready")
    ready(page)
    page.wait_for_timeout(400)
    assert page.url == url and at(page, 130) == pytest.approx(edge, abs=0.01)
    assert page.locator("#reader .gutter-row").count() == 5
    assert page.evaluate(DRAWN) == before
    page.keyboard.press("Escape")
    assert page.is_hidden("#reader") and page.url.partition("#")[2] == ""


def test_predictions_are_accepted_run_by_run(page: Any, day: ExplorerWorkspace) -> None:
    page.keyboard.press("a")
    status(page, "no predictions yet")
    drag(page, 20, 60)
    name(page, "walk")
    drag(page, 140, 180)
    name(page, "rest")
    page.click("#train")
    status(page, "^The map shows the predictions")
    runs = day.along(0)["predictions"]
    assert runs == [(0, 120, "walk"), (120, 240, "rest"), (240, 360, "walk"), (360, 480, "rest"), (480, 598, "walk")]
    page.mouse.click(*at(page, 300, "predictions"))
    playwright.expect(page.locator(".reader-told strong")).to_have_text("predicted walk")
    page.keyboard.press("a")
    status(page, "^Labelled 240 to 360 s “walk”")
    page.keyboard.press("a")  # the next one was chosen
    status(page, "^Labelled 360 to 480 s “rest”")
    assert ranges(day)[2:] == runs[2:4]
    page.keyboard.press("1")  # the last is said to be something else
    status(page, "^Labelled 480 to .* “walk”")
    page.keyboard.press("u")
    page.keyboard.press("u")
    playwright.expect(page.locator("#status-text")).to_have_text("Undone: the label of 60 windows is as before.")
    assert ranges(day)[2:] == runs[2:3]


def test_from_a_pinned_window_by_a_key_and_export(page: Any, day: ExplorerWorkspace) -> None:
    page.keyboard.press("Escape")
    page.evaluate("dicot.pin(100)")
    page.wait_for_selector('#pinned[data-row="100"]')
    page.keyboard.press("o")
    page.wait_for_selector("#reader:not([hidden])")
    left, right = at(page, 200)[0], at(page, 202)[0]
    box = page.locator("#reader canvas").bounding_box()
    assert right - left == pytest.approx((box["width"] - 164) / 12, abs=2)  # the window and what is around it
    page.mouse.move((left + right) / 2, box["y"] + 50)
    assert "2026-09-21 14:16:4" in page.inner_text(".reader-moment")
    drag(page, 199, 203)
    name(page, "=turn")
    for title, read in (("Table (csv)", str), ("Label Studio (json)", json.loads)):
        page.click(".menu summary")
        with page.expect_download() as download:
            page.click(f"text={title}")
        assert "=turn" in str(read(Path(download.value.path()).read_text()))


def test_an_exported_page_offers_no_recordings(visit: Any, day: ExplorerWorkspace, tmp_path: Path) -> None:  # noqa: F811
    write_page(tmp_path / "page.html", day, rows_of_page(len(day), None), load_assets())
    page = visit((tmp_path / "page.html").as_uri())
    assert page.is_hidden("#recordings-button") and page.is_hidden("#open-recording")
