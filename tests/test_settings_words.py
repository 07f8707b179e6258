"""How messages write a setting: the option of the command line first, ready to paste, then Python."""

import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest

import dicot
from dicot.cli.options import ReadingOptions
from dicot.core.settings import OPTIONS, as_option, how_to_prepare, how_to_set

SOURCE = Path(dicot.__file__).parent


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("time", "ts", '--time ts (in Python time="ts")'),
        ("unit", "ms", '--set unit=ms (in Python unit="ms")'),
        ("rate", 50.0, "--set rate=50 (in Python rate=50)"),
        ("resample", True, "--set resample=true (in Python resample=True)"),
        ("channels", ["x", "y"], '--channels x,y (in Python channels=["x", "y"])'),
        ("channels", list("abcd"), "--channels a,b,c,d (in Python channels=[...])"),
        ("time", "Time (s)", "--time 'Time (s)' (in Python time=\"Time (s)\")"),
        ("case", "my case", "--set 'case=my case' (in Python case=\"my case\")"),
    ],
)
def test_a_setting_is_written_as_an_option_and_in_python(name: str, value: object, words: str) -> None:
    assert how_to_set(name, value) == words  # type: ignore[arg-type]


def test_a_policy_of_cases_is_written_for_an_estimator_too() -> None:
    words = '--set unequal=pad (in Python unequal="pad"; of an estimator prepare={"unequal": "pad"})'
    assert how_to_prepare("unequal", "pad") == words


def test_what_is_written_as_an_option_is_one_of_every_command() -> None:
    reading = {field.name for field in fields(ReadingOptions)}
    taken = reading - {"strict", "allow_partial", "set_"}
    assert taken == OPTIONS
    assert shlex.split(as_option("names", "{label} {group}")) == ["--names", "{label} {group}"]


def test_no_message_writes_a_setting_as_a_bare_python_keyword() -> None:
    bare = re.compile(r"\b[a-z_]+= ?\(--|\([a-z_]+=\)|\b(Say|Name) (rate|channels|unit|time)=\.")
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for room in ("data", "store", "cli")
        for path in (SOURCE / room).glob("*.py")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if bare.search(line)
    ]
    assert found == []
