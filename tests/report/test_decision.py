"""A benchmark's report says first who is ahead, by how much, whether that is noise, and what to do."""

import numpy as np
import pytest
from tests.report.samples import record

from bench.datasets.names import DEVELOPMENT
from bench.report.benchmark import Request, decision_parts, write_report
from bench.report.frame import frame
from bench.report.pages import to_document

SETS = ("Beef", "Car", "BME", "Fish", "Wine", "Yoga", "Ham", "Meat")
LEVELS = {"dicot": 80.0, "calibrated": 70.0, "random": 60.0, "minirocket": 75.0}


def rows(suite="ucr", levels=LEVELS, sets=SETS, spread=1.0, protocol="linear", seeds=(1,)):
    """Every contender at its level on every set, give or take."""
    rng = np.random.default_rng(0)
    return [
        record(suite, who, name, level + spread * rng.normal(), protocol, seed=seed)
        for who, level in levels.items()
        for name in sets
        for seed in seeds
    ]


def opening(records, suite="ucr"):
    parts = list(decision_parts(Request.of(suite, frame(records))))
    return parts[0].lead if parts else (), parts[1].table if len(parts) > 1 else None


def test_a_clear_winner_is_named_with_the_interval_over_data_sets():
    (said, more), table = opening(rows())
    assert said.startswith("Use dicot. By linear accuracy dicot has 8") and "minirocket (untrained)" in said
    assert said.endswith("larger than noise.") and "Pretraining pays here." in more and "over 8 data sets" in more
    assert "one-vs-rest logistic regression" in table.note


def test_what_varies_more_than_it_differs_is_noise():
    (said, more), _ = opening(rows(levels={**LEVELS, "dicot": 75.5}, spread=6.0))
    assert said.startswith("No recommendation yet. ") and said.endswith("within noise.")
    assert "It is open whether pretraining pays here" in more


def test_an_interval_is_that_of_the_paired_differences():
    """By hand: Student's t over the eight differences, at the level for three rivals."""
    from scipy import stats

    records = rows()
    data = frame(records).pivot(index="target", columns="contender", values="value")
    gaps = data.dicot - data.minirocket
    half = stats.t.ppf(1 - 0.025 / 3, 7) * gaps.std(ddof=1) / np.sqrt(8)
    (_, said), _ = opening(records)
    assert f"95 % interval: {gaps.mean() - half:.1f} to {gaps.mean() + half:.1f}, over 8 data sets" in said


def test_families_are_not_averaged_with_each_other():
    large = {**LEVELS, "dicot": 50.0}
    said, _ = opening([*rows(), *rows(levels=large, sets=("ecg", "harth", "hapt", "wisdm2", "pamap2"))])
    assert said[0].startswith("UCR. Use dicot.") and said[2].startswith("Large sets. Use minirocket.")


def test_protocols_with_the_same_numbers_count_once():
    one = rows()
    _, table = opening([*one, *({**row, "protocol": "ridge"} for row in one)])
    assert "Equal in every number, so shown once: linear and ridge." in table.note


def test_sets_that_the_preset_was_chosen_on_do_not_decide():
    chosen = [name for name in DEVELOPMENT if name in ("Beef", "Car", "BME", "Fish", "Wine", "Yoga", "Ham", "Meat")]
    levels = {"best": 80.0, **LEVELS}
    (_, said), table = opening(rows("best", levels), "best")
    assert chosen and f"{8 - len(chosen)} data sets" in said and "Development sets are left out" in table.note


def test_it_is_the_first_sentence_of_every_form(tmp_path):
    data = frame(rows())
    request = Request.of("ucr", data)
    text = to_document("Benchmark: ucr", request.facts(), "", list(request.parts()))
    assert text.split("\n")[2].startswith("Use dicot. By linear accuracy ")
    pytest.importorskip("matplotlib")
    write_report(tmp_path, "ucr", data)
    page = (tmp_path / "report.html").read_text()
    assert '<p class="verdict">Use dicot. By linear accuracy ' in page
