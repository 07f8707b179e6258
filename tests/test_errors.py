import re
from pathlib import Path

import pytest

from dicot.core.errors import InputError, MissingDataError, OutputError, did_you_mean, lookup, need_extra, quoted


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
        "Reading needs pyarrow, which is not installed. Run in a clone of dicot: pip install '.[tables]'"
    )


def test_nothing_advises_to_install_the_package_of_that_name_on_pypi_which_is_another_projects():
    root = Path(__file__).parent.parent
    folders = [root / name for name in ("src", "docs", "bench")]
    texts = [file for folder in folders for suffix in ("py", "md") for file in folder.rglob(f"*.{suffix}")]
    wrong_advice = re.compile(r"pip install [^\n]*dicot\[")
    wrong = [file.name for file in [*texts, root / "README.md"] if wrong_advice.search(file.read_text("utf-8"))]
    assert not wrong


@pytest.mark.parametrize("kind", [InputError, OutputError, MissingDataError])
def test_a_message_that_quotes_half_a_file_keeps_its_beginning_and_its_remedy(kind):
    said = str(kind(f"a.json is damaged: {'9' * 10_000}. Write it again."))
    assert said.startswith("a.json is damaged: 9") and said.endswith("9. Write it again.") and len(said) < 2100
    assert str(kind("x" * 2000)) == "x" * 2000


def test_values_of_files_are_quoted_in_a_few_words():
    assert quoted("a'b") == '"a\'b"' and quoted([1, None]) == "[1, None]"
    deep = []
    for _ in range(100_000):
        deep = [deep]
    for value in ("9" * 5000, list(range(5000)), {str(i): "x" * 99 for i in range(99)}, 10**4000, deep):
        assert len(quoted(value)) <= 80
