"""Ranges in the large view as somebody labels them: a real browser with mouse and keys, and the real server."""

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the explorer needs fastapi")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")

from bench.speed.browser import make_recording  # noqa: E402
from dicot.explorer.workspace import ExplorerWorkspace  # noqa: E402
from tests.explorer.test_browser import CHROMIUM, browser, status, stored, visit  # noqa: E402, F401

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no {CHROMIUM}"),
]

DRAWN = "document.querySelector('#reader canvas').toDataURL()"


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> ExplorerWorkspace:
    """Ten minutes with dates: two of walking, two of rest and so on."""
    return make_recording(tmp_path_factory.mktemp("day"), 60_000, rate=100.0)


@pytest.fixture
def page(visit: Any, day: ExplorerWorkspace) -> Any:  # noqa: F811
    day.labels.store.unlink(missing_ok=True)
    page = visit(day)
    page.click("#recordings-button")
    page.wait_for_selector("#reader .gutter-row")
    return page


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


def ranges(day: ExplorerWorkspace) -> list[tuple[float, float, str]]:
    """Return the ranges in the store, to ten seconds: a pixel is half a second."""
    return sorted((round(s, -1), round(e, -1), label) for (_, s, e), label in day.labels.given().ranges.items())


def test_drag_label_move_an_edge_undo_and_reload(page: Any, day: ExplorerWorkspace) -> None:
    drag(page, 20, 100)
    name(page, "walk")
    drag(page, 130, 230)
    name(page, "rest")
    drag(page, 260, 340)
    page.keyboard.press("1")
    status(page, "^Labelled .* “walk”")
    assert ranges(day) == [(20, 100, "walk"), (130, 230, "rest"), (260, 340, "walk")]
    assert len(day.labelled()["labels"]) == pytest.approx(130, abs=3)  # windows of two seconds
    page.select_option("#colour", "label", force=True)
    walks = sum(label == "walk" for label in day.labels.given().hand.values())
    playwright.expect(page.locator("#legend .entry .count").first).to_have_text(str(walks))  # the map follows
    drag(page, 230, 180, "labels")  # the end of the second range, in its lane
    status(page, "^Moved “rest”")
    assert ranges(day) == [(20, 100, "walk"), (130, 180, "rest"), (260, 340, "walk")]
    page.keyboard.press("Delete")  # it is still chosen
    status(page, "^Removed")
    assert ranges(day) == [(20, 100, "walk"), (260, 340, "walk")]
    page.keyboard.press("u")
    page.keyboard.press("Control+z")
    stored(page, lambda: ranges(day), [(20, 100, "walk"), (130, 230, "rest"), (260, 340, "walk")])
    status(page, "^Undone: the label of 50 windows is as before.$")

    page.mouse.click(*at(page, 500))  # where there is none: nothing is chosen any more
    page.hover('[data-channel="gyro_x"]')
    page.click('[aria-label="Hide gyro_x"]')
    playwright.expect(page.locator(".gutter-row")).to_have_count(5)
    page.hover('[data-channel="acc_x"]')
    page.click('[aria-label="Draw acc_x larger"]')
    page.mouse.move(*at(page, 180))
    page.mouse.wheel(0, -700)
    playwright.expect(page).to_have_url(re.compile(r"from=[1-9].*hide=gyro_x&scale="))
    page.mouse.move(5, 5)
    url, edge, before = page.url, at(page, 130), ""
    while before != (before := page.evaluate(DRAWN)):  # the finest tiles may still be on their way
        page.wait_for_timeout(1000)
    page.reload()
    page.evaluate("dicot.ready")
    page.wait_for_selector("#reader .gutter-row")
    for _ in range(50):
        if page.evaluate(DRAWN) == before:
            break
        page.wait_for_timeout(200)
    assert page.url == url and at(page, 130) == pytest.approx(edge, abs=0.01)
    assert page.locator("#reader .gutter-row").count() == 5
    assert page.evaluate(DRAWN) == before
    page.keyboard.press("Escape")
    assert page.is_hidden("#reader") and page.url.partition("#")[2] == ""


def test_who_drags_a_range_that_somebody_else_has_moved_sees_it_there(visit: Any, day: ExplorerWorkspace) -> None:  # noqa: F811
    day.labels.store.unlink(missing_ok=True)
    page = visit(day, refused=True)
    page.click("#recordings-button")
    page.wait_for_selector("#reader .gutter-row")
    drag(page, 20, 100)
    name(page, "walk")
    ((place, label),) = day.labels.given().ranges.items()
    moved = (place[0], place[1], place[2] + 50)
    day.labels.change({place: None, moved: label}, seen={place: label, moved: None})
    drag(page, 100, 60, "labels")
    status(page, "^Somebody else was faster: .* has no label any more")
    assert ranges(day) == [(20, 150, "walk")]
    drag(page, 150, 200, "labels")  # it is on screen where it is now
    status(page, "^Moved “walk”")
    assert ranges(day) == [(20, 200, "walk")]


def test_predictions_are_accepted_run_by_run(page: Any, day: ExplorerWorkspace) -> None:
    drag(page, 20, 60)
    name(page, "walk")
    segments = day.along(0)["predictions"]  # found without labels, until there is a classifier
    assert [start for start, *_ in segments] == pytest.approx([0, 120, 240, 360, 480], abs=3)
    page.mouse.click(*at(page, 200, "predictions"))
    name(page, "rest")
    page.click("#train")
    status(page, "^The map shows the predictions")
    page.wait_for_selector("text=Accept run")  # the lane has them too
    runs = day.along(0)["predictions"]
    assert runs == [(0, 120, "walk"), (120, 240, "rest"), (240, 360, "walk"), (360, 480, "rest"), (480, 598, "walk")]
    page.fill('[aria-label="Shortest prediction in seconds"]', "150")
    page.keyboard.press("Enter")
    status(page, "^Predictions last 150 s or more")
    assert page.input_value('[aria-label="Shortest prediction in seconds"]') == "150"
    page.fill('[aria-label="Shortest prediction in seconds"]', "5")
    page.keyboard.press("Enter")
    status(page, "^Predictions last 5 s or more")
    page.keyboard.press("Escape")
    page.mouse.click(*at(page, 300, "predictions"))
    page.keyboard.press("a")
    status(page, "^Labelled 240 to 360 s “walk”")
    page.keyboard.press("a")  # the next one was chosen
    status(page, "^Labelled 360 to 480 s “rest”")
    page.keyboard.press("1")  # the last is said to be something else
    status(page, "^Labelled 480 to .* “walk”")
    page.keyboard.press("u")
    page.keyboard.press("u")
    stored(page, lambda: ranges(day), [(20, 60, "walk"), (*segments[1][:2], "rest"), (240, 360, "walk")])
    status(page, "^Undone: the label of 60 windows is as before.$")


def test_from_a_pinned_window_by_a_key_and_export(page: Any) -> None:
    page.keyboard.press("Escape")
    page.evaluate("dicot.pin(100)")
    page.wait_for_selector('#pinned[data-row="100"]')
    page.keyboard.press("o")
    page.wait_for_selector("#reader:not([hidden])")
    left, right = at(page, 200)[0], at(page, 202)[0]
    box = page.locator("#reader canvas").bounding_box()
    assert right - left == pytest.approx((box["width"] - 164) / 12, abs=2)  # the window and what is around it
    page.mouse.move((left + right) / 2, box["y"] + 50)
    playwright.expect(page.locator(".reader-moment")).to_contain_text("2026-09-21 14:16:4")
    drag(page, 199, 203)
    name(page, "turn")
    for title in ("Table (csv)", "Label Studio (json)"):
        page.click(".menu summary")
        with page.expect_download() as download:
            page.click(f"text={title}")
        assert "turn" in Path(download.value.path()).read_text()
