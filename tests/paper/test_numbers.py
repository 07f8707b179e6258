"""The paper's numbers by our names."""

import pytest

from bench.paper.grid import published
from bench.paper.numbers import FOREST, NAMES, TABLES, printed_names
from dicot.judge.classical import CLASSICAL
from dicot.methods import METHODS
from dicot.model.controls import CONTROLS


def test_every_contender_of_the_paper_has_a_key_and_every_key_exists():
    assert set(printed_names(TABLES)) == {*NAMES.values(), FOREST}
    assert set(NAMES) - {"end-to-end"} <= {*METHODS, *CONTROLS, *CLASSICAL}


@pytest.mark.parametrize(
    ("suite", "contender", "source", "target", "protocol", "metric", "value"),
    [
        ("ucr", "dicot", "Beef", "Beef", "linear", "accuracy", 60.0),
        ("ucr", "minirocket", "Beef", "Beef", "ridge", "accuracy", 66.67),
        ("ucr", "raw-mean", "Beef", "Beef", "forest", "accuracy", 30.0),
        ("large", "dicot", "harth", "harth", "linear", "accuracy", 93.23),
        ("large", "dicot", "skoda-paper", "skoda-paper", "linear", "accuracy", 99.41),
        ("large", "raw-mean", "HARTH", "HARTH", "linear", "accuracy", 66.42),
        ("large", "end-to-end", "ecg", "ecg", "finetune-100", "accuracy", 95.33),
        ("low_label", "end-to-end", "ecg", "ecg", "finetune-1", "accuracy", 54.28),
        ("low_label", "random", "ecg", "ecg", "few_1pct", "accuracy", 56.56),
        ("low_label", "raw-mean", "pamap2-paper", "pamap2-paper", "forest_1pct", "accuracy", 64.94),
        ("low_label", "minirocket", "ecg", "ecg", "forest_1pct", "accuracy", 62.06),
        ("knn", "tnc", "sleep", "sleep", "knn_500", "accuracy", 65.35),
        ("clustering", "supervised", "ecg", "ecg", "clustering", "ari", 0.321),
        ("transfer", "cost", "harth", "pamap2-paper", "linear", "accuracy", 65.69),
    ],
)
def test_a_cell_of_ours_finds_the_papers(suite, contender, source, target, protocol, metric, value):
    assert published(suite, contender, source, target, protocol, metric) == value
