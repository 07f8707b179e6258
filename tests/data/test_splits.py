import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.data import Split, Windows, hold_out
from dicot.data.inspection import decimate, stretched
from dicot.data.splits import validation_rows, with_policies


def windows(y=None, group=None, n: int = 20) -> Windows:
    x = np.arange(n, dtype=np.float32).reshape(n, 1, 1)
    return Windows(x, None if y is None else np.array(y), None if group is None else np.array(group), "w")


def test_holds_out_a_share_of_each_class():
    split = hold_out(windows(y=[0] * 10 + [1] * 10), 0.3)
    assert np.bincount(split.test.y).tolist() == [3, 3]
    assert sorted([*split.train.x.ravel(), *split.test.x.ravel()]) == list(range(20))
    assert split.name == "w"


def test_holds_out_whole_groups():
    split = hold_out(windows(y=[0, 1] * 10, group=[i // 4 for i in range(20)]), 0.4)
    assert len(set(split.test.group)) == 2
    assert not set(split.test.group) & set(split.train.group)


def test_unlabelled_cases_and_the_seed():
    assert len(hold_out(windows(), 0.25).test) == 5
    first, again, other = (hold_out(windows(), 0.5, seed).test.x.ravel().tolist() for seed in (1, 1, 2))
    assert first == again != other


def test_says_how_it_split():
    grouped = hold_out(windows(y=[0, 1] * 10, group=[f"u{i // 4}" for i in range(20)]), 0.4, seed=3)
    assert "2 of 5 groups held out" in grouped.how and "seed 3" in grouped.how
    assert all(name in grouped.how for name in set(grouped.test.group))
    assert not any(name in grouped.how for name in set(grouped.train.group))
    assert with_policies(grouped, scale="dataset").how == grouped.how
    assert "30 % of the cases of each class" in hold_out(windows(y=[0, 1] * 10), 0.3).how
    many = hold_out(windows(group=range(20)), 0.9).how
    assert "and 6 more" in many


@pytest.mark.parametrize("empty", [np.nan, ""])
def test_cases_without_a_label_stay_in_training(empty):
    y = [1.0, empty, 2.0, empty] * 5 if empty != "" else ["a", "", "b", ""] * 5
    split = hold_out(windows(y=y), 0.4)
    assert np.unique(split.test.y, return_counts=True)[1].tolist() == [2, 2]
    assert len(split.train) == 16
    group = [i // 4 for i in range(20)]
    blank = [empty if person < 3 else label for person, label in zip(group, y, strict=True)]
    for seed in range(5):
        assert set(hold_out(windows(y=blank, group=group), 0.2, seed).test.group) <= {3, 4}
    with pytest.raises(InputError, match="label"):
        hold_out(windows(y=[empty] * 20), 0.3)


def test_groups_in_both_parts_are_found():
    from dicot.data.splits import shared_groups

    both = Split(windows(group=[i // 4 for i in range(20)]), windows(group=[3] * 10 + [9] * 10))
    assert shared_groups(both) == ["3"]
    assert shared_groups(Split(windows(), windows(group=[3] * 20))) == []
    assert shared_groups(hold_out(both.train, 0.5)) == []


def test_policies_keep_groups_and_use_training_statistics():
    split = hold_out(windows(y=[0, 1] * 10, group=[i // 4 for i in range(20)]), 0.4)
    assert with_policies(split) is split
    scaled = with_policies(split, scale="dataset")
    for before, after in ((split.train, scaled.train), (split.test, scaled.test)):
        assert after.group.tolist() == before.group.tolist()
    assert scaled.train.x.mean() == pytest.approx(0, abs=1e-6)
    expected = (split.test.x - split.train.x.mean()) / split.train.x.std()
    np.testing.assert_allclose(scaled.test.x, expected, rtol=1e-5)
    assert with_policies(Split(windows()), unequal="pad", length=3).test is None


def test_a_share_of_each_large_enough_class_is_for_validation():
    y = np.repeat(["a", "b", "c"], [40, 5, 4])
    held = validation_rows(y, None, 0.2, 5, seed=1)
    assert {kind: int(held[y == kind].sum()) for kind in "abc"} == {"a": 8, "b": 1, "c": 0}
    assert np.array_equal(held, validation_rows(y, None, 0.2, 5, seed=1))
    assert not np.array_equal(held, validation_rows(y, None, 0.2, 5, seed=2))
    assert not validation_rows(y[-4:], None, 0.2, 5, seed=1).any()


@pytest.mark.parametrize("seed", range(5))
def test_whole_groups_are_for_validation_and_no_class_is_lost(seed):
    y = np.array([0, 1] * 30 + [2] * 6)
    group = np.repeat(np.arange(11), 6)  # class 2 is one person's
    held = validation_rows(y, group, 0.2, 5, seed)
    assert not set(group[held]) & set(group[~held]) and 12 <= held.sum() <= 18
    assert set(y[~held]) == {0, 1, 2}
    assert not validation_rows(y, np.zeros(66, int), 0.2, 5, seed).any()


def test_a_class_or_person_is_the_same_in_both_parts_whatever_type_it_has():
    from dicot.data.splits import shared_groups

    whole, lacking = [1] * 10 + [2] * 10, ["", *["1"] * 9, *["2"] * 10]
    split = Split(windows(y=whole, group=whole), windows(y=lacking, group=np.array(whole, float)))
    assert (split.train.y.tolist(), split.test.y.tolist()) == (list(map(str, whole)), lacking)
    assert shared_groups(split) == ["1", "2"]


def test_decimation_keeps_every_extreme() -> None:
    rng = np.random.default_rng(0)
    for n_times, most in ((1001, 1000), (5000, 100), (997, 10), (64, 64)):
        values = rng.normal(size=(2, n_times))
        values[0, rng.integers(n_times)] = 100
        values[1, rng.integers(n_times)] = -100
        drawn = decimate(values, most)
        assert drawn.shape == (2, min(n_times, most))
        assert (drawn.max(axis=1) == values.max(axis=1)).all() and (drawn.min(axis=1) == values.min(axis=1)).all()
    ramp = np.arange(1000.0)[None]
    assert (np.diff(decimate(ramp, 100)[0]) >= 0).all()  # in the order of time
    values = np.full((1, 500), np.nan)
    values[0, 123] = 7
    assert np.nanmax(decimate(values, 20)) == 7 and np.isnan(decimate(values, 20)).sum() == 18
    assert stretched(np.arange(3.0)[None], 6).tolist() == [[0, 0, 1, 1, 2, 2]]
