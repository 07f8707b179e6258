import pytest

from dicot.errors import InputError, did_you_mean, lookup, need_extra


def test_suggestions_see_through_case_and_punctuation():
    assert did_you_mean("TS-TCC", ["tstcc", "tfc"]) == "Did you mean 'tstcc'?"
    assert did_you_mean("zzz", ["b", "a"]) == "Known: a, b."


def test_of_very_many_names_only_some_are_listed():
    assert did_you_mean("zzz", [f"name{i:03}" for i in range(190)]).endswith("name004 and 185 more.")


def test_lookup():
    assert lookup({"a": 1}, "a", "thing") == 1
    with pytest.raises(InputError, match="Unknown thing 'b'"):
        lookup({"a": 1}, "b", "thing")


def test_a_missing_extra_names_the_command():
    assert str(need_extra("pyarrow", "tables", "Reading")) == (
        "Reading needs pyarrow, which is not installed. Run: pip install 'dicot[tables]'"
    )
