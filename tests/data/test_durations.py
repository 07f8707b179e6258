"""Windows and strides as people write them."""

import pytest

from dicot.core.errors import InputError
from dicot.data.durations import seconds_text, window_length, window_stride


@pytest.mark.parametrize(
    ("window", "steps"), [(128, 128), ("128", 128), ("2.56s", 128), ("500ms", 25), ("1 min", 3000), (".1s", 5)]
)
def test_lengths(window: str | int, steps: int) -> None:
    assert window_length(window, 50.0) == steps


@pytest.mark.parametrize(("stride", "steps"), [(3, 3), ("50%", 64), ("0.1%", 1), ("1s", 50), ("100 %", 128)])
def test_strides(stride: str | int, steps: int) -> None:
    assert window_stride(stride, 128, 50.0) == steps


@pytest.mark.parametrize(
    ("window", "rate", "message"),
    [
        ("2.56s", None, "2.56s.*rate"),
        (0, 50.0, "0"),
        (2.5, 50.0, "2.5"),
        (True, 50.0, "True"),
        ("2.5", 50.0, "2.5"),
        ("-1s", 50.0, "-1s"),
        ("two seconds", 50.0, "two seconds"),
        ("1 day", 50.0, "1 day"),
        ("50%", 50.0, "50%"),
        ("2.56s", 0.05, "0.128 time steps.*unit"),
    ],
)
def test_what_is_no_length(window: str | int, rate: float | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        window_length(window, rate)


def test_a_stride_moves_on() -> None:
    with pytest.raises(InputError, match="0%"):
        window_stride("0%", 128, 50.0)


@pytest.mark.parametrize(("seconds", "text"), [(2.56, "2.56s"), (120, "120s"), (0.0125, "0.0125s"), (1 / 3, "0.333s")])
def test_times_as_text(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text
    assert window_length(text, 1e5) == pytest.approx(seconds * 1e5, rel=1e-2)


@pytest.mark.parametrize("stride", ["100000000000000000000%", 10**30, f"{10**30}", "1e30s".replace("1e30", "9" * 30)])
def test_more_time_steps_than_any_recording_has_are_refused(stride):
    with pytest.raises(InputError, match="more than any recording has"):
        window_stride(stride, 10, 20.0)
