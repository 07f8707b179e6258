"""A plan knows what can run: files are looked into, damaged sets are one line among the others, failures are told."""

import numpy as np
import pytest
from tests.commands import bench

from bench.ledger import Ledger

FEW = ["--only", "raw-mean", "--protocols", "linear", "--seeds", "1", "--device", "cpu", "--workers", 1]


@pytest.fixture
def ucr(tmp_path, monkeypatch):
    """`bench run ucr` on given sets, with nothing but these in sight."""
    monkeypatch.setenv("DICOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DICOT_DATA", str(tmp_path))

    def run(sets, *more, code=0):
        return bench("run", "ucr", "--sets", sets, *FEW, "--ledger", tmp_path / "a.sqlite", *more, code=code)

    return run


def test_a_file_without_a_test_part_is_split_as_evaluate_does_it(tmp_path, ucr, waves):
    """Whole groups are held out where there are groups, and always the same ones."""
    group = np.arange(24) // 3
    np.savez(tmp_path / "own.npz", X=waves.x, y=waves.y, group=group)
    np.savez(tmp_path / "plain.npz", X=waves.x, y=waves.y)
    sets = f"{tmp_path / 'own.npz'},{tmp_path / 'plain.npz'}"
    dry = ucr(sets, "--dry-run")
    assert "2 to run" in dry and "6 of 24 cases" in dry and "groups" in dry and "of each class" in dry
    assert "2 jobs recorded" in ucr(sets)
    with Ledger(tmp_path / "a.sqlite") as ledger:
        assert [one.error for one in ledger.results()] == [None, None]
    assert "2 recorded" in ucr(sets, "--dry-run")
    np.savez(tmp_path / "own.npz", X=waves.x, y=waves.y, group=group[::-1] % 5)
    assert "1 recorded" in (again := ucr(sets, "--dry-run")) and "1 to run" in again  # another split, other data


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"X": None}, "labels"),
        ({"X_train": None, "y_train": None, "X_test": None}, "labels"),
        ({"X": None, "y": np.zeros(24)}, "one class"),
        ({"X": None, "y": np.full(24, np.nan)}, "has a label"),
        ({"Y": None}, "Y"),
    ],
)
def test_what_cannot_be_scored_is_told_by_the_plan_and_by_the_exit_code(tmp_path, ucr, waves, arrays, said):
    usual = {"x": waves.x, "y": waves.y}
    np.savez(tmp_path / "own.npz", **{k: usual[k[0].lower()] if v is None else v for k, v in arrays.items()})
    sets = f"{tmp_path / 'own.npz'},synthetic"
    dry = ucr(sets, "--dry-run")
    assert "1 unusable, 1 to run" in dry and said in dry.split("own.npz. ")[1].splitlines()[0]
    done = ucr(sets, code=1)
    assert "1 jobs recorded" in done and "failed:" not in done
    with Ledger(tmp_path / "a.sqlite") as ledger:
        assert [one.source for one in ledger.results()] == ["synthetic"]


def test_a_set_of_another_number_of_channels_is_not_planned(tmp_path, ucr, waves):
    np.savez(tmp_path / "a.npz", X=waves.x, y=waves.y)
    np.savez(tmp_path / "b.npz", X=np.concatenate([waves.x, waves.x], axis=1), y=waves.y)
    call = ["run", "transfer", "--sets", f"{tmp_path / 'a.npz'},{tmp_path / 'b.npz'}", "--only", "random"]
    said = bench(*call, "--seeds", "1", "--ledger", tmp_path / "a.sqlite", "--dry-run")
    assert "2 unusable, 0 to run" in said and "2 channel(s)" in said and "0, 1, 2" in said


def test_a_damaged_set_does_not_end_a_plan_or_a_run(tmp_path, ucr, waves):
    name = "harth"
    (tmp_path / "large" / name).mkdir(parents=True)
    (tmp_path / "large" / name / "card.json").write_text("{")
    dry = ucr(f"{name},synthetic", "--dry-run")
    assert "1 unusable, 1 to run" in dry and f"cannot be used: {name}." in dry
    assert "1 jobs recorded" in ucr(f"{name},synthetic", code=1)
    assert "1 jobs: 1 recorded" in ucr("synthetic")  # a damaged set that nobody asked for does not matter
