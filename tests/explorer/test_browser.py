"""The explorer as somebody uses it: a real browser with mouse and keys, the real server, 20,000 windows."""

import csv
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.image import imread

pytest.importorskip("fastapi", reason="the explorer needs fastapi")
pytest.importorskip("uvicorn", reason="the explorer needs uvicorn")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")

from bench.speed.browser import CHROMIUM, TOKEN, chromium, make_workspace, served  # noqa: E402
from dicot import LabelStore  # noqa: E402
from dicot.explorer.labelling import HandLabels  # noqa: E402
from dicot.explorer.page import (  # noqa: E402
    load_assets,
    rows_of_page,
    write_page,
)
from dicot.explorer.workspace import ExplorerWorkspace  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no {CHROMIUM}"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright.expect.set_options(timeout=60_000)  # a machine may be busy
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> ExplorerWorkspace:
    return make_workspace(tmp_path_factory.mktemp("large"), 20_000)


@pytest.fixture(scope="module")
def address(large: ExplorerWorkspace) -> Iterator[str]:
    with served(large) as address:
        yield address


Visit = Callable[..., Any]


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    """Open an address or workspace and wait for the map; at the end, no error was logged and nobody else was asked."""
    wrong: list[str] = []
    opened = ExitStack()  # a page is closed before its server: what it still asks for is answered

    def open_page(place: str | ExplorerWorkspace, *, refused: bool = False, **options: Any) -> Any:
        url = place if isinstance(place, str) else f"{opened.enter_context(served(place))}?token={TOKEN}"
        context = browser.new_context(viewport={"width": 1280, "height": 720}, **options)
        opened.callback(context.close)
        page = context.new_page()
        page.set_default_timeout(60_000)

        def heard(message: Any) -> None:
            expected = refused and message.text.startswith("Failed to load resource")  # a browser logs every refusal
            if message.type in ("error", "warning") and not expected:
                wrong.append(message.text)

        page.on("console", heard)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        own = url.partition("?")[0]
        page.on("request", lambda r: None if r.url.startswith((own, "blob:", "data:")) else wrong.append(r.url))
        page.goto(url)
        page.evaluate("dicot.ready")
        return page

    with opened:
        yield open_page
    assert wrong == []


@pytest.fixture
def page(visit: Visit, address: str, large: ExplorerWorkspace) -> Any:
    large.labels.store.unlink(missing_ok=True)
    return visit(f"{address}?token={TOKEN}")


def row_on_map(workspace: ExplorerWorkspace, cluster: int) -> int:
    """Return the window nearest to the middle of its cloud: nothing lies over it."""
    points = workspace.overview.points
    own = np.flatnonzero(workspace.overview.cluster == cluster)
    return int(own[np.argmin(np.linalg.norm(points[own] - points[own].mean(axis=0), axis=1))])


def given(workspace: ExplorerWorkspace) -> dict[int, str]:
    """Return the labels that are in the store."""
    return {int(row): name for row, name in workspace.labelled()["labels"].items()}


def given_becomes(page: Any, workspace: ExplorerWorkspace, labels: dict[int, str]) -> None:
    """Wait until the store has these labels and no others: the page shows the next window before the server answers."""
    for _ in range(50):
        if given(workspace) == labels:
            return
        page.wait_for_timeout(100)
    assert given(workspace) == labels


def hover(page: Any, row: int) -> None:
    at = page.evaluate(f"dicot.screen({row})")
    page.mouse.move(at["x"], at["y"])


def click(page: Any, row: int) -> None:
    at = page.evaluate(f"dicot.screen({row})")
    page.mouse.click(at["x"], at["y"])


def pinned(page: Any, row: int) -> Any:
    """Wait until a window is pinned, with all its neighbours drawn."""
    page.wait_for_selector(f'#pinned[data-row="{row}"] path.trace')
    return page.locator("#neighbours .card")


def shown(page: Any) -> int:
    """Wait until the pinned window is on screen and nothing loads; return its row."""
    return int(page.wait_for_selector('#pinned-section[aria-busy="false"] #pinned').get_attribute("data-row"))


def lasso(page: Any, workspace: ExplorerWorkspace, cluster: int) -> set[int]:
    """Draw a square around the middle of a cloud with the mouse; return the rows inside it."""
    row = row_on_map(workspace, cluster)
    at = page.evaluate(f"dicot.screen({row})")
    page.click("#lasso")
    corners = [(-40, -40), (40, -40), (40, 40), (-40, 40)]
    page.mouse.move(at["x"] - 40, at["y"] - 40)
    page.mouse.down()
    for x, y in corners[1:]:
        page.mouse.move(at["x"] + x, at["y"] + y, steps=4)
    page.mouse.up()
    points = workspace.overview.points.astype(np.float64)
    other = row_on_map(workspace, (cluster + 1) % 5)
    scale = (page.evaluate(f"dicot.screen({other})")["x"] - at["x"]) / (points[other, 0] - points[row, 0])
    return set(np.flatnonzero(np.abs(points - points[row]).max(axis=1) * scale < 40).tolist())


def status(page: Any, pattern: str) -> None:
    playwright.expect(page.locator("#status-text")).to_have_text(re.compile(pattern))


def stored(page: Any, read: Callable[[], Any], expected: Any) -> None:
    """Wait until the store holds what is expected; the page may say the same sentence of two changes."""
    for _ in range(600):
        if read() == expected:
            return
        page.wait_for_timeout(100)
    assert read() == expected


def drawn(page: Any) -> None:
    """Wait until the map has all its points."""
    page.wait_for_selector('#map[aria-busy="false"]')


def test_the_address_bar_loses_the_token_and_a_reload_still_works(page: Any, address: str) -> None:
    assert page.url == address
    assert page.inner_text("#size") == "20,000 windows"
    page.reload()
    page.evaluate("dicot.ready")
    status(page, "20,000 windows")


def test_without_the_token_a_sentence_says_what_to_do(browser: Any, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("#loading.failed")
    assert "dicot explore" in page.inner_text("#loading-text")
    assert page.inner_text("#status-text") == page.inner_text("#loading-text")
    context.close()


def test_the_series_under_the_pointer_is_drawn(page: Any, large: ExplorerWorkspace) -> None:
    row = row_on_map(large, 0)
    hover(page, row)
    page.wait_for_selector(f'#pointer[data-row="{row}"]')
    assert page.locator("#pointer path.trace").count() == 2
    assert str(large.known.recording[row]) in page.inner_text("#pointer")
    other = row_on_map(large, 2)
    before = page.locator("#pointer path.trace").first.get_attribute("d")
    hover(page, other)
    page.wait_for_selector(f'#pointer[data-row="{other}"]')
    assert page.locator("#pointer path.trace").first.get_attribute("d") != before


def test_a_click_pins_beside_neighbours_that_keys_reach(page: Any, large: ExplorerWorkspace) -> None:
    row = row_on_map(large, 1)
    click(page, row)
    cards = pinned(page, row)
    near = large.neighbours(row, 8)[0]
    assert [int(card.get_attribute("data-row")) for card in cards.all()] == near
    page.click("#show-context")
    page.wait_for_selector("#context rect.mark")
    page.keyboard.press("Escape")
    assert page.is_hidden("#context")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    pinned(page, near[1])
    page.keyboard.press("Escape")
    assert page.is_hidden("#pinned-section")
    click(page, row)
    pinned(page, row)
    click(page, row)  # a second click unpins
    playwright.expect(page.locator("#pinned-section")).to_be_hidden()


def test_lasso_label_undo_export_and_reload(page: Any, large: ExplorerWorkspace) -> None:
    inside = lasso(page, large, 3)
    assert len(inside) > 100
    status(page, f"^Selected {len(inside):,} windows")
    page.fill("#selection .new-name", "spin")
    page.keyboard.press("Enter")
    status(page, "Labelled .* “spin”")
    assert set(given(large)) == inside
    with page.expect_download() as download:
        page.click("#export-selection")
    table = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
    assert {int(line["row"]) for line in table} == inside and {line["label"] for line in table} == {"spin"}

    page.reload()
    page.evaluate("dicot.ready")
    status(page, f"{len(inside):,} labelled by hand")
    assert page.locator("#legend .entry", has_text="spin").locator(".count").inner_text() == f"{len(inside):,}"

    page.keyboard.press("Control+z")
    status(page, "^Undone")
    assert given(large) == {}


def test_the_colours_of_every_column_are_explained(page: Any, large: ExplorerWorkspace) -> None:
    for column in large.about()["columns"]:
        page.select_option("#colour", column["name"])
        if column["kind"] == "number":
            page.wait_for_selector("#legend .ramp")
        else:
            _, counts = np.unique(large.columns()[column["name"]]().values, return_counts=True)
            playwright.expect(page.locator("#legend .entry")).to_have_count(len(counts))


def test_a_category_that_is_switched_off_is_neither_drawn_nor_met(page: Any, large: ExplorerWorkspace) -> None:
    page.select_option("#colour", "cluster")
    row = row_on_map(large, 4)
    at = page.evaluate(f"dicot.screen({row})")
    clip = {"x": at["x"] - 8, "y": at["y"] - 8, "width": 16, "height": 16}
    page.wait_for_selector("#legend .entry >> nth=4")
    drawn(page)
    before = page.screenshot(clip=clip)
    page.locator("#legend .entry").nth(4).click()
    drawn(page)
    assert page.screenshot(clip=clip) != before
    click(page, row)
    page.wait_for_timeout(200)
    assert page.is_hidden("#pinned-section")


QUICKLY = """async () => {  // each act comes at another moment of the drawing that the one before began
    for (const wait of [0, 15, 50, 90, 130, 200]) {
        for (const selector of ['#zoom-in', '#legend .entry', '#zoom-reset', '#legend .entry']) {
            document.querySelector(selector).click();
            await new Promise((done) => setTimeout(done, wait));
        }
    }
}"""


def test_quick_acts_leave_no_half_drawn_map(visit: Visit, tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path, 120_000)  # three times what the first frame draws
    places = workspace.overview.points
    page = visit(workspace)
    looks = []
    for act in ("undefined", QUICKLY):
        page.evaluate(act)
        drawn(page)
        looks.append(page.screenshot(mask=[page.locator("#legend")]))
    one, other = (page.evaluate(f"dicot.screen({row})") for row in (0, 1))
    scale = (other["x"] - one["x"]) / (places[1, 0] - places[0, 0])
    x, y = (np.array([[one["x"]], [one["y"]]]) + scale * ((places - places[0]) * [1, -1]).T).astype(int)
    assert looks[0] == looks[1]
    pixels = imread(BytesIO(looks[0]))[..., :3]
    empty = np.abs(pixels[y, x] - pixels[y.min() - 8, x.min()]).max(axis=-1) < 0.05
    assert not empty.any()


def test_search_pins_the_window_and_says_where_there_is_none(
    visit: Visit, address: str, large: ExplorerWorkspace
) -> None:
    page = visit(f"{address}?token={TOKEN}", refused=True)
    page.keyboard.press("/")
    page.keyboard.type("walk_07@21.5")
    page.keyboard.press("Enter")
    pinned(page, large.find("walk_07", 21.5))
    page.fill("#search", "walk_77@1")
    page.press("#search", "Enter")
    status(page, "walk_77")
    assert "failed" in page.get_attribute("#status", "class")


def test_the_queue_is_worked_by_keys(page: Any, large: ExplorerWorkspace) -> None:
    page.keyboard.press("q")
    page.wait_for_selector("#queue")
    first = int(page.wait_for_selector("#pinned[data-row]").get_attribute("data-row"))
    page.keyboard.press("n")
    page.keyboard.type("walk")
    page.keyboard.press("Enter")
    playwright.expect(page.locator("#queue-place")).to_have_text("Suggestion 2 of 20")
    status(page, "^Labelled 1 window")
    assert given(large) == {first: "walk"}
    page.select_option("#colour", "label")
    page.locator("#colour").blur()
    page.wait_for_selector(f'#pinned:not([data-row="{first}"])')
    second = shown(page)
    page.keyboard.press("1")
    playwright.expect(page.locator("#queue-place")).to_have_text("Suggestion 3 of 20")
    shown(page)
    page.keyboard.press("s")
    playwright.expect(page.locator("#queue-place")).to_have_text("Suggestion 4 of 20")
    playwright.expect(page.locator("#legend .entry .count").first).to_have_text("2")
    assert given(large) == {first: "walk", second: "walk"}
    page.keyboard.press("u")
    playwright.expect(page.locator("#queue-place")).to_have_text("Suggestion 2 of 20")
    assert given(large) == {first: "walk"}


def filter_by(page: Any, column: str) -> None:
    """Open the filters of a column."""
    if page.is_hidden("#filter-editor"):
        page.keyboard.press("f")
    page.select_option("#filter-column", column)


def pick(page: Any, name: str) -> None:
    page.locator(".filter-names label", has_text=name).locator("input").click()


def count_left(page: Any, mask: np.ndarray) -> None:
    text = f"{np.count_nonzero(mask):,} of {len(mask):,} windows"
    playwright.expect(page.locator("#filter-count")).to_have_text(text)


def test_filters_combine_and_everything_obeys_them_until_one_key_clears_them(
    page: Any, large: ExplorerWorkspace
) -> None:
    large.labels.set([1, 2], "walk")
    page.reload()
    page.evaluate("dicot.ready")
    filter_by(page, "recording")
    pick(page, "walk_03")
    pick(page, "walk_17")
    mask = np.isin(large.known.recording, ["walk_03", "walk_17"])
    count_left(page, mask)
    filter_by(page, "outlier")
    assert large.overview.outlier is not None
    page.fill(".filter-ends input >> nth=0", "0.7")
    page.keyboard.press("Tab")
    mask &= large.overview.outlier >= np.float64(0.7)
    count_left(page, mask)
    filter_by(page, "label")
    pick(page, "unlabelled")
    count_left(page, mask)
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    playwright.expect(page.locator("#table-count")).to_have_text(f"{np.count_nonzero(mask):,} windows")
    frames = "new Promise(requestAnimationFrame).then(() => new Promise(requestAnimationFrame))"
    page.evaluate(frames)  # the map has shrunk
    inside = lasso(page, large, 3) & set(np.flatnonzero(mask).tolist())
    status(page, f"^Selected {len(inside)} window")
    page.keyboard.press("Escape")
    page.keyboard.press("q")
    playwright.expect(page.locator("#queue-place")).to_have_text("Suggestion 1 of 20")
    assert mask[shown(page)]
    page.keyboard.press("Escape")

    page.reload()
    page.evaluate("dicot.ready")
    count_left(page, mask)
    assert page.is_visible("#table") and page.locator(".filter-chip").count() == 3
    page.keyboard.press("x")
    status(page, "All 20,000 windows are shown")
    assert page.inner_text("#filter-count") == "" and page.is_hidden("#filter-clear")


def test_labelled_points_have_a_ring_and_the_legend_counts_what_a_filter_leaves(
    page: Any, large: ExplorerWorkspace
) -> None:
    row = row_on_map(large, 2)
    at = page.evaluate(f"dicot.screen({row})")
    clip = {"x": at["x"] - 8, "y": at["y"] - 8, "width": 16, "height": 16}
    drawn(page)
    plain = page.screenshot(clip=clip)
    large.labels.set([row, 6, 7], "walk")
    page.reload()
    page.evaluate("dicot.ready")
    page.select_option("#colour", "cluster")
    page.wait_for_selector("#legend .entry >> nth=4")
    drawn(page)
    assert page.screenshot(clip=clip) != plain
    assert page.inner_text("#legend-mark").split() == ["labelled", "by", "hand", "3"]
    page.select_option("#colour", "label")
    page.locator("#colour").blur()
    filter_by(page, "label")
    pick(page, "walk")
    count_left(page, np.arange(20_000) < 3)
    playwright.expect(page.locator("#legend .entry .count")).to_have_text(["3", "0"])
    page.keyboard.press("Escape")
    page.evaluate("dicot.pin(6)")
    pinned(page, 6)
    page.click("#pinned-label .quiet")
    count_left(page, np.arange(20_000) < 2)


def test_the_table_sorts_pins_and_selects(page: Any, large: ExplorerWorkspace) -> None:
    page.keyboard.press("t")
    page.click('[data-column="outlier"]')
    page.click('[data-column="outlier"]')
    assert page.get_attribute('[role="columnheader"]:has([data-column="outlier"])', "aria-sort") == "descending"
    order = np.argsort(-large.overview.outlier, kind="stable")
    lines = page.locator("#table-body .line")
    playwright.expect(lines.first).to_have_attribute("data-row", str(order[0]))
    assert lines.count() < 60  # of 20,000
    lines.nth(1).click()
    pinned(page, int(order[1]))
    page.keyboard.press("Control+z")  # keys still work
    page.focus("#table-rows")
    page.keyboard.press("ArrowDown")
    pinned(page, int(order[2]))
    lines.nth(0).click()
    lines.nth(4).click(modifiers=["Shift"])
    playwright.expect(page.locator(".selected-count")).to_have_text("5 windows selected")
    lines.nth(4).click(modifiers=["Control"])
    playwright.expect(page.locator(".selected-count")).to_have_text("4 windows selected")
    page.evaluate("document.getElementById('table-rows').scrollTop = 1e9")
    playwright.expect(lines.last).to_have_attribute("data-row", str(order[-1]))
    page.click('[data-column="recording"]')
    playwright.expect(lines.first).to_have_attribute("data-row", "0")


@pytest.mark.slow
def test_doubtful_labels_are_confirmed_or_changed_by_one_key(visit: Visit, tmp_path: Path) -> None:
    small = make_workspace(tmp_path, 400)
    small.known = replace(small.known, group=None)
    kinds = [np.flatnonzero(small.overview.cluster == kind)[:25].tolist() for kind in range(2)]
    for rows, name in zip(kinds, ("walk", "run"), strict=True):
        small.labels.set(rows, name)
    wrong = [kinds[0][3], kinds[0][11], kinds[0][20]]
    small.labels.set(wrong, "run")
    page = visit(small)
    page.keyboard.press("w")
    playwright.expect(page.locator("#doubts-list .doubt")).to_have_count(3)
    seen = []
    for key in ("a", "1", "c"):
        seen.append(shown(page))
        page.keyboard.press(key)
        playwright.expect(page.locator("#doubts-list .doubt")).to_have_count(3 - len(seen))
        if len(seen) < 3:
            page.wait_for_selector(f'#pinned:not([data-row="{seen[-1]}"])')
    status(page, "^Labelled 1 window “run”")  # the last one
    assert set(seen) == set(wrong)
    assert [given(small)[row] for row in seen] == ["walk", "walk", "run"]
    page.reload()
    page.evaluate("dicot.ready")
    page.keyboard.press("w")
    status(page, "0 differ")
    assert page.locator("#doubts-list .doubt").count() == 0


@pytest.mark.slow
def test_why_is_drawn_behind_the_series_and_others_labels_beside_it(visit: Visit, tmp_path: Path) -> None:
    small = make_workspace(tmp_path, 400)
    small.labels.set([1, 2, 3], "walk")
    HandLabels(tmp_path / "ben.sqlite", small.known).set([1, 2], "walk")
    small.others = {"ben": HandLabels(tmp_path / "ben.sqlite", small.known, read_only=True)}
    near = [{"row": 1, "distance": 0.1, "label": "walk"}]
    answer = {
        "effect": [[1.0, -0.5], [0.0, 0.2]],
        "edges": [0, 0.5, 1],
        "sentence": "It is the first.",
        "nearest": near,
    }
    small.why = lambda row: {"row": row, **answer}  # type: ignore[method-assign]
    page = visit(small)
    assert "2 of 2" in page.inner_text("#stores")
    page.evaluate("dicot.pin(9)")
    pinned(page, 9)
    page.keyboard.press("y")
    playwright.expect(page.locator("#pinned rect.why")).to_have_count(3)
    assert page.locator("#pinned rect.against").count() == 1
    playwright.expect(page.locator("#why")).to_contain_text("It is the first.")
    page.click("#why .doubt")
    pinned(page, 1)
    assert page.is_hidden("#why") and page.locator("#pinned rect.why").count() == 0
    assert "ben walk" in " ".join(page.inner_text("#pinned").split())


def slow(monkeypatch: pytest.MonkeyPatch, workspace: ExplorerWorkspace, name: str, seconds: float = 1.0) -> None:
    """Let the server take its time over one question."""
    answer = getattr(workspace, name)

    def late(*asked: Any) -> Any:
        time.sleep(seconds)
        return answer(*asked)

    monkeypatch.setattr(workspace, name, late)


# What was on screen when a key came: the row of the pinned window, or null while something loads.
PRESSES = """() => {
    const section = document.getElementById('pinned-section');
    window.presses = [];
    addEventListener('keydown', ({ key }) => {
        const loading = section.hidden || section.getAttribute('aria-busy') === 'true';
        presses.push([Number(key), loading ? null : Number(document.getElementById('pinned').dataset.row)]);
    }, true);
}"""


def test_sixty_quick_keys_label_sixty_windows_and_nothing_while_suggestions_load(
    page: Any, large: ExplorerWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["walk", "run", "sit"]
    for row, name in enumerate(names):
        large.labels.set([row], name)
    page.reload()
    page.evaluate("dicot.ready")
    slow(monkeypatch, large, "suggest")
    page.keyboard.press("q")
    playwright.expect(page.locator("#queue-place")).to_have_text("Suggestion 1 of 20")
    shown(page)
    page.evaluate(PRESSES)
    for number in range(60):
        page.keyboard.press(str(number % 3 + 1))
        page.wait_for_timeout(50)
    for number in range(1000):  # a busy machine draws fewer windows in this time
        if len({row for _, row in page.evaluate("presses")} - {None}) >= 60:
            break
        page.keyboard.press(str(number % 3 + 1))
        page.wait_for_timeout(50)
    expected = [(row, names[key - 1]) for key, row in page.evaluate("presses") if row is not None]
    stored: list[tuple[int, str]] = []
    for _ in range(100):  # until the last answer is there
        with LabelStore(large.labels.store) as kept:
            stored = [(large.find(change.key[0], change.key[1] + 1), change.new) for change in kept.history()[3:]]
        if len(stored) >= len(expected):
            break
        page.wait_for_timeout(100)
    assert stored == expected
    rows = [row for row, _ in stored]
    assert len(rows) >= 60 and len(set(rows)) == len(rows)  # of several batches, and no label over another


def test_a_late_answer_does_not_take_the_place_of_what_was_asked_for_since(
    page: Any, large: ExplorerWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, place = row_on_map(large, 1), page.locator("#queue-place")
    slow(monkeypatch, large, "find")
    page.fill("#search", "walk_07@21.5")
    page.press("#search", "Enter")
    page.locator("#search").blur()
    click(page, row)
    pinned(page, row)
    page.wait_for_timeout(1500)
    assert shown(page) == row

    slow(monkeypatch, large, "suggest")
    page.keyboard.press("q")
    page.keyboard.press("Escape")
    page.wait_for_timeout(1500)
    assert page.is_hidden("#queue") and shown(page) == row

    page.keyboard.press("q")
    other = row_on_map(large, 2)
    click(page, other)
    playwright.expect(place).to_have_text("Suggestion 1 of 20")
    assert shown(page) == other
    page.fill("#pinned-label .new-name", "walk")  # the window that was clicked gets it, and the suggestion comes next
    page.press("#pinned-label .new-name", "Enter")
    page.wait_for_selector(f'#pinned:not([data-row="{other}"])')
    first = shown(page)
    given_becomes(page, large, {other: "walk"})
    assert place.text_content() == "Suggestion 1 of 20"
    click(page, row)
    pinned(page, row)
    page.keyboard.press("s")
    page.wait_for_selector(f'#pinned[data-row="{first}"]')  # it was not on screen: it is not skipped
    assert place.text_content() == "Suggestion 1 of 20"


def test_an_undo_on_its_way_lets_no_key_act(
    page: Any, large: ExplorerWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    large.labels.set([3], "walk")
    page.reload()
    page.evaluate("dicot.ready")
    page.keyboard.press("q")
    playwright.expect(page.locator("#queue-place")).to_have_text("Suggestion 1 of 20")
    first = shown(page)
    page.keyboard.press("1")
    playwright.expect(page.locator("#queue-place")).to_have_text("Suggestion 2 of 20")
    shown(page)
    undo = large.labels.undo
    monkeypatch.setattr(large.labels, "undo", lambda: (time.sleep(1), undo())[1])
    page.keyboard.press("u")
    page.keyboard.press("1")  # the second window is on screen, and the first is on its way back
    playwright.expect(page.locator("#queue-place")).to_have_text("Suggestion 1 of 20")
    assert shown(page) == first and given(large) == {3: "walk"}


@pytest.mark.slow
def test_a_classifier_says_what_it_is_worth_and_colours_the_map(visit: Visit, tmp_path: Path) -> None:
    small = make_workspace(tmp_path, 400)
    page = visit(small)
    for kind in range(2):
        page.evaluate(f"dicot.select({np.flatnonzero(small.overview.cluster == kind)[:8].tolist()})")
        page.fill("#selection .new-name", f"kind {kind}")
        page.press("#selection .new-name", "Enter")
        status(page, f"kind {kind}")
    page.click("#train")
    page.wait_for_selector("#verdict")
    assert page.inner_text("#verdict-sentence") == small.classify().sentence
    for part in ("classes", "confusion"):
        table = page.inner_text(f"#verdict-{part}")
        assert "kind 0" in table and "kind 1" in table
    assert "%" in page.inner_text("#verdict-classes")
    assert page.input_value("#colour") == "prediction"
    page.evaluate("dicot.pin(0)")
    pinned(page, 0)
    assert "Prediction" in page.inner_text("#pinned")


def test_too_few_labels_are_refused_in_a_sentence(visit: Visit, address: str, large: ExplorerWorkspace) -> None:
    large.labels.store.unlink(missing_ok=True)
    page = visit(f"{address}?token={TOKEN}", refused=True)
    page.click("#train")
    status(page, "Two labels are needed")
    assert page.is_hidden("#verdict") and page.is_enabled("#train")


def test_light_dark_and_help(visit: Visit, address: str) -> None:
    page = visit(f"{address}?token={TOKEN}", color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.click("#theme")
    assert page.evaluate(ground) != dark
    page.keyboard.press("?")
    assert page.is_visible("#help") and "lasso" in page.inner_text("#help")
    page.keyboard.press("Escape")
    assert page.is_hidden("#help")


def test_a_phone_shows_everything_below_each_other(visit: Visit, address: str) -> None:
    page = visit(f"{address}?token={TOKEN}")
    page.set_viewport_size({"width": 390, "height": 800})
    page.evaluate("dicot.pin(3)")
    pinned(page, 3)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator("#map").bounding_box()["width"] == 390


@pytest.mark.slow
def test_the_exported_page_needs_no_server(visit: Visit, tmp_path: Path) -> None:
    small = make_workspace(tmp_path, 2000)
    file = tmp_path / "page.html"
    write_page(file, small, rows_of_page(len(small), None), load_assets())
    page = visit(file.as_uri())
    assert page.inner_text("#size") == "2,000 windows"
    assert page.is_hidden("#train") and page.is_hidden("#start-queue")
    row = row_on_map(small, 1)
    hover(page, row)
    page.wait_for_selector(f'#pointer[data-row="{row}"] path.trace')
    click(page, row)
    cards = pinned(page, row)
    assert [int(card.get_attribute("data-row")) for card in cards.all()] == small.neighbours(row, 8)[0]
    assert (
        page.is_hidden("#show-context") and page.is_hidden("#recordings-button") and page.is_hidden("#open-recording")
    )
    inside = lasso(page, small, 3)
    page.fill("#selection .new-name", "=spin")
    page.keyboard.press("Enter")
    status(page, "Labelled")
    with page.expect_download() as download:
        page.click("#export")
    table = list(csv.DictReader(Path(download.value.path()).read_text().splitlines()))
    assert {int(line["row"]) for line in table} == inside and {line["label"] for line in table} == {"'=spin"}
    page.click("#undo")
    status(page, "^Undone")
    page.keyboard.press("Escape")
    page.fill("#search", "walk_03@10")
    page.press("#search", "Enter")
    pinned(page, small.find("walk_03", 10))
