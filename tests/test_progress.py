import io
from types import SimpleNamespace

import pytest
from rich.console import Console

import dicot.core.progress
from dicot.core.progress import Bar, duration


@pytest.fixture
def watch(monkeypatch):
    """Do one thing every `pace` seconds of a clock that does not take any; return what was shown."""

    def work(total: int, pace: float, *, terminal: bool, before: int = 0, stop: int | None = None, **how) -> str:
        out, now = io.StringIO(), [0.0]
        clock = SimpleNamespace(monotonic=lambda: now[0])
        monkeypatch.setattr(dicot.core.progress, "time", clock)
        monkeypatch.setattr(
            dicot.core.progress, "Console", lambda **more: Console(file=out, force_terminal=terminal, width=100)
        )
        with Bar("work", total, **how) as bar:
            for done in range(before, total if stop is None else stop):
                bar.update(done, "loss 1.5")
                now[0] += pace
        return out.getvalue()

    return work


def test_shows_after_a_while_in_a_terminal(watch):
    text = watch(10, 1, terminal=True, stop=5)
    assert "work" in text and "4/10" in text and "loss 1.5" in text
    assert "about" not in text


def test_silent_when_quick_and_when_told(watch):
    assert watch(10, 0.1, terminal=True) == ""
    assert watch(10, 0.1, terminal=False) == ""
    assert watch(100, 10, terminal=True, enabled=False) == watch(100, 10, terminal=False, enabled=False) == ""


def test_a_long_job_says_once_how_long_it_will_take(watch):
    assert watch(200, 1, terminal=True).count("work: about 3 minutes") == 1
    assert watch(20, 1, terminal=False) == ""  # 15 of its 20 seconds are left when that is known
    assert watch(200, 1, terminal=False, most=60, stop=10) == "work: about 60 seconds\n"  # it ends before


def test_what_an_earlier_run_has_done_does_not_count_as_speed(watch):
    assert watch(200, 1, terminal=False, before=150, stop=160) == "work: about 40 seconds\n"


def test_a_log_has_a_line_every_minute(watch):
    assert watch(200, 1, terminal=False).splitlines() == [
        "work: about 3 minutes",
        "work: 65 of 200, loss 1.5, about 2 minutes left",
        "work: 125 of 200, loss 1.5, about 80 seconds left",
        "work: 185 of 200, loss 1.5, about 20 seconds left",
    ]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(3, "10 seconds"), (86, "90 seconds"), (96, "2 minutes"), (200, "3 minutes"), (9000, "2.5 hours")],
)
def test_durations_are_round(seconds, said):
    assert duration(seconds) == said
