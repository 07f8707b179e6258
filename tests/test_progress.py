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
    assert "work: about" not in watch(20, 1, terminal=True)
    assert watch(10, 0.1, terminal=True) == watch(100, 10, terminal=True, enabled=False) == ""


def test_a_log_has_a_line_every_minute(watch):
    assert watch(160, 1).splitlines() == [
        "work: about 3 minutes",
        "work: 66 of 160, loss 1.5, about 90 seconds left",
        "work: 126 of 160, loss 1.5, about 30 seconds left",
    ]
    assert watch(20, 1) == watch(100, 10, enabled=False) == ""
    assert watch(200, 1, before=150) == "work: about 40 seconds\n"  # an earlier run did 150
    assert watch(200, 1, most=60, stop=9) == "work: about 50 seconds\n"  # it ends then
    assert [duration(s) for s in (3, 86, 96, 9000)] == ["10 seconds", "90 seconds", "2 minutes", "2.5 hours"]


@pytest.fixture
def spoken(monkeypatch):
    """Do units of work that take these seconds; return what a log says and when, beside how long the rest took."""

    def work(seconds):
        now, said = [0.0], []
        monkeypatch.setattr(dicot.core.progress, "time", SimpleNamespace(monotonic=lambda: now[0]))

        def console(**_):
            out = Console(file=io.StringIO())
            out.print = lambda text, **_: said.append((text, sum(seconds) - now[0]))
            return out

        monkeypatch.setattr(dicot.core.progress, "Console", console)
        with Bar("work", len(seconds)) as bar:
            for done, one_unit in enumerate([0.0, *seconds]):
                now[0] += one_unit
                bar.update(done)
        return said

    return work


def test_the_first_unit_in_which_code_is_compiled_is_no_measure_of_the_others(spoken):
    # 12 seconds of compilation, then 60 seconds of work: five seconds of it tell the rest.
    said = spoken([12.0, *[0.1] * 600])
    assert said[0] == ("work: about 60 seconds", pytest.approx(55.0))


def test_a_warm_up_of_several_units_is_forgotten(spoken):
    said = spoken([5.0, 4.0, 3.0, 2.0, *[0.5] * 300])
    remaining = [(text, seconds) for text, seconds in said if "left" in text]
    assert len(remaining) == 2
    for text, seconds in remaining:
        assert text.endswith(f"about {duration(seconds)} left")


def test_nothing_is_estimated_before_a_second_unit_is_done(spoken):
    assert [text for text, _ in spoken([90.0])] == ["work: 1 of 1"]
    said = [text for text, _ in spoken([70.0, 70.0, 70.0])]
    assert said == ["work: 1 of 3", "work: about 70 seconds", "work: 3 of 3"]


def test_the_bar_of_a_terminal_tells_what_is_left_by_the_same_speed(watch):
    last_drawn = watch(200, 1, terminal=True).rsplit("199/200", 1)[1]
    assert "about 10 seconds left" in last_drawn
    assert "0:0" not in last_drawn, "there is one estimate, not two"
