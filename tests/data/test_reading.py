"""Reading: what it refuses, how it is kept in JSON and in dicot.toml, and windows as people write them."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.data import Reading, inspect_recordings, suggest_windows
from dicot.data.reading import read_toml, seconds_of, seconds_text, time_steps, toml_of

WHOLE: dict[str, Any] = {
    "window": "2.56s",
    "stride": 64,
    "time": "t",
    "unit": "ms",
    "channels": ("x", "y"),
    "rate": 50,
    "label": "l",
    "group": "g",
    "resample": True,
    "duplicates": "mean",
    "missing": "zero",
    "gap": 2.5,
    "keep_tail": True,
    "scale": "case",
    "case": "c",
    "ignore": ("n",),
    "header": False,
    "layout": "ntc",
    "names": "{a}_{b}",
    "join": "b",
    "table": "/labels.csv",
    "table_unit": "ms",
}


def test_a_reading_is_the_same_after_json_and_what_is_none_is_not_said() -> None:
    assert WHOLE.keys() == {field.name for field in fields(Reading)}
    for reading in (Reading(), Reading(**WHOLE), Reading("1s", channels=["a"])):  # type: ignore[arg-type]
        kept = json.loads(json.dumps(reading.to_dict(), allow_nan=False))
        assert Reading.from_dict(kept) == reading
    assert Reading(stride=None, gap=None, missing=None) == Reading()  # type: ignore[arg-type]
    assert Reading(np.int64(3)).to_dict()["window"] == 3 and Reading(gap=np.inf).gap < np.inf  # type: ignore[arg-type]
    assert Reading("1s").replace(label="l") == Reading("1s", label="l")


@pytest.mark.parametrize(
    ("window", "steps"), [(128, 128), ("128", 128), ("2.56s", 128), ("500ms", 25), ("1 min", 3000), (".1s", 5)]
)
def test_lengths(window: str | int, steps: int) -> None:
    assert time_steps(window, 50.0) == steps


@pytest.mark.parametrize(("stride", "steps"), [(3, 3), ("50%", 64), ("0.1%", 1), ("1s", 50), ("100 %", 128)])
def test_strides(stride: str | int, steps: int) -> None:
    assert time_steps(stride, 50.0, 128) == steps


@pytest.mark.parametrize(("seconds", "text"), [(2.56, "2.56s"), (120, "120s"), (0.0125, "0.0125s"), (1 / 3, "0.333s")])
def test_times_as_text(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text
    assert time_steps(text, 1e5) == pytest.approx(seconds * 1e5, rel=1e-2)


@pytest.mark.parametrize(("text", "seconds"), [("1d", 86_400), ("7d", 604_800), ("2w", 1_209_600), ("24h", 86_400)])
def test_days_and_weeks_are_times_wherever_one_is_asked_for(text: str, seconds: int) -> None:
    assert seconds_of(text, "--least") == seconds
    assert time_steps(text, 1 / 60) == seconds // 60
    assert time_steps(text, 1 / 60, 10**6) == seconds // 60
    assert Reading(window=text, stride=text).steps(1 / 60)[0] == seconds // 60


def test_a_toml_says_what_a_reading_holds(tmp_path: Path) -> None:
    path = tmp_path / "dicot.toml"
    kept = {
        key: value for key, value in WHOLE.items() if key not in ("keep_tail", "case", "ignore", "header", "layout")
    }
    path.write_text(Reading(**kept).to_toml())
    assert Reading.from_toml(path) == Reading(**kept)
    assert read_toml(path).keys() == kept.keys()
    assert read_toml(tmp_path / "none" / "dicot.toml") == {}


def test_a_toml_lies_in_the_folder_of_the_recordings(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    for source in (tmp_path, tmp_path / "a.csv", str(tmp_path / "*.csv"), str(tmp_path / "*" / "b*.csv")):
        assert toml_of(source) == tmp_path / "dicot.toml"
    with pytest.raises(InputError, match="Name one folder"):
        toml_of([tmp_path, tmp_path.parent])


def test_what_is_suggested_is_read_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, rate in (("a", 50), ("b", 50), ("c", 25)):
        rows = [f"{i / rate},{x},{'' if i == 7 else y}" for i, (x, y) in enumerate(rng.normal(size=(400, 2)))]
        odd = (",odd", ",1") if name == "c" else ("", "")
        text = "\n".join([f'when,x,"y ""2"""{odd[0]}', *(row + odd[1] for row in rows)])
        (tmp_path / f"{name}.csv").write_text(text)
    said = Reading(time="when")
    advice = suggest_windows(inspect_recordings(tmp_path, said), said)
    (tmp_path / "dicot.toml").write_text(advice.reading.to_toml(advice.reasons))
    read = Reading.from_toml(tmp_path / "dicot.toml")
    assert read == advice.reading and read.channels == ("x", 'y "2"'), "those that all have"
    assert (read.time, read.rate, read.missing, read.scale) == ("when", 50.0, "interpolate", "dataset")
    assert {"window", "stride", "rate", "missing", "scale"} <= advice.reasons.keys()
