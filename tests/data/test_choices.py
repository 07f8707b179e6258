"""dicot.toml beside recordings: what it may say, and what is told of one that is wrong."""

from pathlib import Path

import numpy as np
import pytest

from dicot.core.errors import InputError
from dicot.data.choices import KEYS, choices_file, choices_text, read_choices
from dicot.data.inspection import inspect_recordings, suggest_windows


def test_every_key_is_read(tmp_path: Path) -> None:
    path = tmp_path / "dicot.toml"
    path.write_text(
        'window = "2.56s"\nstride = 64\ntime = "t"\nunit = "ms"\nchannels = ["x", "y"]\nrate = 50\nresample = true\n'
        'label = "l"\ngroup = "g"\nmissing = "zero"\ngap = 2.5\nscale = "case"\n'
    )
    read = read_choices(path)
    assert read.keys() == KEYS.keys()
    assert (read["window"], read["stride"], read["rate"], read["channels"]) == ("2.56s", 64, 50, ["x", "y"])
    assert read_choices(tmp_path / "none" / "dicot.toml") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('windw = "2s"', r"dicot\.toml: Unknown key 'windw'. Did you mean 'window'\?"),
        ("rate = true", r"dicot\.toml: 'rate' must be a number of time steps per second; got true"),
        ('rate = "fast"', r"'rate' must be .*got \"fast\""),
        ("window = 2.56", r"'window' must be a whole number of time steps or text such as \"2.56s\"; got 2.56"),
        ('channels = "x"', r"'channels' must be a list of names"),
        ("channels = []", r"'channels' must be a list of names"),
        ("channels = [1]", r"'channels' must be a list of names .*got \[1\]"),
        ("label = 3\ngroup = 4", "'label' must be.*'group' must be"),
        ("[pretrain]\nwindow = 3", "Unknown key 'pretrain'"),
        ("stride = 3\nwindow = 2s", r"dicot\.toml cannot be read as TOML: .*line 2"),
        ("window = 3\nwindow = 4", r"dicot\.toml cannot be read as TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "dicot.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_choices(path)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "dicot.toml").write_bytes(b"window = \xff\xfe")
    with pytest.raises(InputError, match=r"dicot\.toml cannot be read"):
        read_choices(tmp_path / "dicot.toml")


def test_it_lies_in_the_folder_of_the_recordings(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    wanted = tmp_path / "dicot.toml"
    for source in (tmp_path, tmp_path / "a.csv", str(tmp_path / "*.csv"), str(tmp_path / "*" / "b*.csv")):
        assert choices_file(source) == wanted
    with pytest.raises(InputError, match="Name one folder"):
        choices_file([tmp_path, tmp_path.parent])


def test_what_is_suggested_is_read_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, rate in (("a", 50), ("b", 50), ("c", 25)):
        values = rng.normal(size=(400, 2))
        rows = [f"{i / rate},{x},{'' if i == 7 else y}" for i, (x, y) in enumerate(values)]
        extra = ",odd" if name == "c" else ""
        more = ",1" if extra else ""
        (tmp_path / f"{name}.csv").write_text(f'when,x,"y ""2"""{extra}\n' + "\n".join(row + more for row in rows))
    rows = inspect_recordings(tmp_path, time="when")
    advice = suggest_windows(rows)
    text = choices_text(rows, advice, {"time": "when", "label": None})
    (tmp_path / "dicot.toml").write_text(text)
    read = read_choices(tmp_path / "dicot.toml")
    assert read["channels"] == ["x", 'y "2"'], "those that all have"
    assert (read["time"], read["rate"], read["missing"]) == ("when", 50.0, "interpolate")
    assert (read["window"], read["stride"], read["scale"]) == (advice.window, advice.stride, advice.scale)
    assert all(f"# {reason}" in text for reason in (advice.window_reason, advice.rate_reason, advice.missing_reason))
