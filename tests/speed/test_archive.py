import numpy as np
import pytest

from dicot.data import Windows
from dicot.errors import InputError
from dicot.speed.archive import Entry, archive_sections, entries
from dicot.train import Recipe


def test_the_plain_sum_is_steps_times_seconds_per_step(monkeypatch):
    monkeypatch.setattr("dicot.speed.archive.STEPS", 2)
    monkeypatch.setattr("dicot.speed.archive.WARM_UP", 1)
    rng = np.random.default_rng(0)
    sets = [
        Entry(f"set {n_times}", Windows(rng.normal(size=(9, 1, n_times)).astype(np.float32)), Recipe(steps, 8))
        for n_times, steps in ((12, 2), (16, 3))
    ]
    total, plain = archive_sections("float32", "cpu", sets)
    ((_, (runs, steps, expected, ours, ratio)),) = total.rows
    assert (runs, steps) == ("2", "5") and ours > 0 and ratio == expected / ours
    ms = {label: value for label, (value,) in plain.rows}
    assert expected == pytest.approx((2 * ms["8, 12, 1"] + 3 * ms["8, 16, 1"]) / 1e3)


def test_without_a_data_folder_it_says_what_to_set(monkeypatch):
    monkeypatch.setattr("dicot.speed.archive.available", list)
    with pytest.raises(InputError, match="DICOT_DATA"):
        entries("float32")
