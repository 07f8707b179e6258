import io
from types import SimpleNamespace

import pytest
from rich.console import Console

import dicot.core.progress
from dicot.core.progress import Bar, duration


@pytest.fixture
def watch(monkeypatch):
    """Do one thing every `pace` seconds of a clock that takes no time; return what was shown."""

    def work(total, pace, *, terminal=False, before=0, stop=None, **how):
        out, now, bar = io.StringIO(), [0.0], dicot.core.progress
        monkeypatch.setattr(bar, "time", SimpleNamespace(monotonic=lambda: now[0]))
        monkeypatch.setattr(bar, "Console", lambda **_: Console(file=out, force_terminal=terminal, width=100))
        with Bar("work", total, **how) as bar:
            for done in range(before, total if stop is None else stop):
                bar.update(done, "loss 1.5")
                now[0] += pace
        return out.getvalue()

    return work


def test_a_terminal_shows_a_bar_and_once_how_long_it_will_take(watch):
    text = watch(200, 1, terminal=True)
    assert "199/200" in text and "loss 1.5" in text and text.count("work: about 3 minutes") == 1
    assert "about" not in watch(20, 1, terminal=True)
    assert watch(10, 0.1, terminal=True) == watch(100, 10, terminal=True, enabled=False) == ""


def test_a_log_has_a_line_every_minute(watch):
    assert watch(160, 1).splitlines() == [
        "work: about 3 minutes",
        "work: 65 of 160, loss 1.5, about 2 minutes left",
        "work: 125 of 160, loss 1.5, about 40 seconds left",
    ]
    assert watch(20, 1) == watch(100, 10, enabled=False) == ""
    assert watch(200, 1, before=150) == "work: about 40 seconds\n"  # an earlier run did 150
    assert watch(200, 1, most=60, stop=9) == "work: about 60 seconds\n"  # it ends then
    assert [duration(s) for s in (3, 86, 96, 9000)] == ["10 seconds", "90 seconds", "2 minutes", "2.5 hours"]
