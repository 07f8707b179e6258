"""The top of the page: what reproduces, what does not, what cannot be said; and no column of a table is cut off."""

from pathlib import Path

import pytest
from tests.paper.records import CONTROLS, STAND_INS, everything, paper_markdown
from tests.report.samples import record, several

from bench.paper.page import chosen, paper_parts
from bench.paper.summary import AGAINST, AGREES, ELSEWHERE, OPEN, findings
from bench.paper.tables import newest
from bench.report.frame import frame
from dicot.judge.report.page import render

PUBLISHED = Path(__file__).parents[2] / "docs" / "results" / "paper" / "report.html"
SETS = ("ACSF1", "Beef", "CBF", "Coffee", "Fish", "Wine", "Adiac", "Car")
CLAIM = "Preceding Sub-block Contrast -> Next Sub-block Contrast"


def rows(gap, suite="ucr", other="catt", sets=SETS):
    """Di-COT ahead of another by about `gap` on every set."""
    values = [("dicot", 80.0 + gap), (other, 80.0), ("random", 70.0), ("calibrated", 80.0 + gap)]
    return [
        record(suite, name, data, value + 0.1 * number * (name == "dicot"))
        for name, value in values
        for number, data in enumerate(sets)
    ]


def by_question(data):
    return {(one.question, one.where): one for one in findings(newest(frame(data)))}


@pytest.mark.parametrize(("gap", "verdict"), [(2.0, AGREES), (-2.0, AGAINST), (-0.35, OPEN)])
def test_a_difference_reproduces_is_the_opposite_or_is_not_shown(gap, verdict):
    one = by_question(rows(gap))["Does Di-COT beat CaTT?", "UCR"]
    assert one.paper > 0 and one.verdict == verdict and len(one.gaps) == len(SETS)
    assert one.mean == pytest.approx(gap + 0.35)


def test_stand_ins_say_nothing_of_the_paper_and_a_variant_is_compared_with_the_method_itself():
    found = by_question([*rows(2.0, "large", sets=STAND_INS), *rows(-3.0, "ablation", CLAIM)])
    assert found["Does Di-COT beat CaTT?", "stand-ins for the large sets"].verdict == ELSEWHERE
    next_one = found["Does the neighbour matter?", "UCR"]
    assert next_one.who == "the next one" and next_one.mean == pytest.approx(3.0 - 0.35)
    assert next_one.verdict == (AGREES if next_one.paper > 0 else AGAINST)


def test_what_has_other_seeds_is_compared_over_those_that_both_have():
    """Di-COT's later seeds are worse by 30 points: they say nothing of a variant that has the first alone."""
    sets = ("hapt", "wisdm2019")
    made = rows(2.0, "positive_selection", "Next Sub-block", sets=sets)
    made = [{**row, "contender": row["contender"].replace("dicot", "Preceding Sub-block")} for row in made]
    made += [{**row, "seed": 2, "value": row["value"] - 30.0} for row in made if row["contender"] != "Next Sub-block"]
    text = paper_markdown(frame(made), only=["table7"])
    assert "| Preceding Sub-block | **82.05** |" in text and "| Next Sub-block | 80.00 (-2.05) |" in text
    made = [{**row, "suite": "ablation"} for row in made]
    made = [{**row, "contender": row["contender"].replace("Preceding Sub-block", "dicot")} for row in made]
    made = [{**row, "contender": row["contender"].replace("Next Sub-block", CLAIM)} for row in made]
    assert by_question(made)["Does the neighbour matter?", "stand-ins for the large sets"].mean == pytest.approx(-2.05)


def test_the_page_begins_with_answers_and_says_what_cannot_be_said():
    text = paper_markdown(frame(rows(2.0)))
    opening = text.split("\n- suites")[0]
    assert "the data at hand can test 1. Reproduced: 1. Not told from chance: 0. Of the opposite sign: 0." in opening
    assert "Does Di-COT beat CaTT? Yes on UCR: Di-COT minus CaTT +2.35 ±" in opening
    assert "Is it faster? Not measured: there is no file times.csv beside the records." in opening
    assert "Does splitting matter? There is no record." in opening
    assert "What cannot be said: the paper's numbers on ECG, HARTH, PAMAP2, SKODA, SLEEP, WISDM2" in opening
    assert text.index("## What reproduces") < text.index("## What is here") < text.index("## Figure 1.")
    assert "Nothing of the paper is recorded" in paper_markdown(frame([]))


def test_an_exhibit_says_its_labels_seeds_device_and_precision():
    text = paper_markdown(
        frame(several("knn", ("dicot", *CONTROLS), ("hapt",), ("knn_5",), seeds=(1, 2))), only=["table11"]
    )
    assert "Labels: 5 per class. Seeds: 1, 2. Trained on: cpu A (2 fits). Precision: float32." in text


@pytest.mark.slow
def test_no_column_is_cut_off_at_1280_pixels(tmp_path):
    pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    from bench.speed.browser import CHROMIUM, chromium

    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}")
    several_seeds = [{**row, "seed": seed, "value": row["value"] + seed} for row in everything() for seed in (1, 2)]
    parts = list(paper_parts(newest(frame(several_seeds)), chosen([])))
    (tmp_path / "page.html").write_text(render("page", parts, {}), encoding="utf-8")
    with chromium() as browser:
        for path in (tmp_path / "page.html", PUBLISHED):  # some lines of the published one lack seeds, and say so
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(f"file://{path}")
            boxes = page.evaluate("""() => [...document.querySelectorAll('.scroll')].map((box) =>
                [box.closest('section').id, Math.max(box.scrollWidth, box.firstChild.scrollWidth), box.clientWidth])""")
            assert len(boxes) > 25 and page.evaluate("document.documentElement.scrollWidth") <= 1280
            assert not [box for box in boxes if box[1] > box[2]]
