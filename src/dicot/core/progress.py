"""How far work is and how long it will take: a bar in a terminal, a line every minute in a log."""

import time
from collections import deque
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

PATIENCE = 2.0  # seconds before anything is shown
MEASURED = 5.0  # seconds of work that the first estimate is made of
LONG = 20.0  # seconds from which it is said how long the work will take
EVERY = 60.0  # seconds between two lines of a log
_APART = 0.1  # seconds between two moments that are remembered


class Moment(NamedTuple):
    """How much was done when."""

    time: float
    done: int


class Pace:
    """Estimates how long work will still take, by its recent speed.

    The first unit of work is not counted: libraries are loaded and code is compiled in it, and by its speed the rest
    would take several times too long. Warm-up that lasts longer is forgotten, because only the later half of the time
    since then is measured.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._first: int | None = None  # what was done at the first update: an earlier run may have done some
        self._moments: deque[Moment] = deque()
        self._warm_since = 0.0

    def update(self, now: float, done: int) -> None:
        if self._first is None:
            self._first = done
        if done <= self._first:
            return
        if not self._moments:
            self._warm_since = now
        elif now - self._moments[-1].time < _APART:
            return
        self._moments.append(Moment(now, done))

        halfway = (self._warm_since + now) / 2
        while len(self._moments) > 1 and self._moments[1].time <= halfway:
            self._moments.popleft()

    def measured(self, now: float) -> float:
        """Return the seconds of work since the warm-up."""
        return now - self._warm_since if self._moments else 0.0

    def seconds_left(self, now: float, done: int) -> float | None:
        """Return the seconds that are left if the work goes on as it went lately; None where that is not known yet."""
        if not self._moments or done >= self._total:
            return None
        since = self._moments[0]
        if done <= since.done:
            return None
        return (now - since.time) / (done - since.done) * (self._total - done)


class Bar:
    """Shows work of more than two seconds on stderr; where that is no terminal, a line every minute that `update` sees.

    Work that will take more than 20 seconds says so once, by its speed in five seconds after the warm-up. `most` are
    the seconds after which it ends in any case.
    """

    def __init__(self, what: str, total: int, enabled: bool = True, *, most: float | None = None) -> None:
        self._what, self._total, self._enabled, self._most = what, total, enabled, most
        self._console: Console | None = None
        self._progress: Progress | None = None
        self._started = self._last_line = time.monotonic()
        self._pace = Pace(total)
        self._has_told_duration = False

    def __enter__(self) -> "Bar":
        return self

    def update(self, done: int, note: str = "") -> None:
        now = time.monotonic()
        self._pace.update(now, done)
        if not self._enabled or now - self._started < PATIENCE:
            return
        if self._console is None:  # only now: quick work, such as one window, does not pay for one that nobody sees
            self._console = Console(stderr=True, soft_wrap=True)
            self._progress = self._new_progress(self._console)
        seconds = self._seconds_left(now, done)
        line = self._line(now, done, note, seconds)
        if line:
            self._last_line = now
            self._console.print(f"{self._what}: {line}", highlight=False, markup=False)
        if self._progress is not None:
            is_measured = self._pace.measured(now) >= PATIENCE
            remaining = f"about {duration(seconds)} left" if seconds is not None and is_measured else ""
            self._progress.update(self._progress.task_ids[0], completed=done, note=note, remaining=remaining)

    def _new_progress(self, console: Console) -> Progress | None:
        """Start to draw a bar; None where nobody watches."""
        if not (console.is_terminal or console.is_jupyter):
            return None
        texts = (TextColumn("{task.fields[note]}"), TextColumn("{task.fields[remaining]}"))
        columns = (TextColumn(self._what), BarColumn(), MofNCompleteColumn(), *texts)
        progress = Progress(*columns, console=console, transient=True)
        progress.start()
        progress.add_task("", total=self._total, note="", remaining="")
        return progress

    def _line(self, now: float, done: int, note: str, seconds: float | None) -> str:
        """Return what is printed now: once how long the work will take, and in a log how far it is."""
        if not self._has_told_duration and seconds is not None and self._pace.measured(now) >= MEASURED:
            self._has_told_duration = True
            return f"about {duration(seconds)}" if seconds > LONG else ""
        if self._progress is None and now - self._last_line >= EVERY:
            remaining = "" if seconds is None else f"about {duration(seconds)} left"
            return ", ".join(filter(None, [f"{done} of {self._total}", note, remaining]))
        return ""

    def _seconds_left(self, now: float, done: int) -> float | None:
        seconds = self._pace.seconds_left(now, done)
        if seconds is None or self._most is None:
            return seconds
        return min(seconds, max(0.0, self._started + self._most - now))

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()


def duration(seconds: float) -> str:
    """Write a time as somebody says it who does not know it to the second: 40 seconds, 3 minutes, 2.5 hours."""
    for unit, length, step in (("second", 1.0, 10.0), ("minute", 60.0, 1.0)):
        count = max(1, round(seconds / length / step)) * step
        if count < 95:
            return f"{count:g} {unit}{'s' * (count != 1)}"
    return f"{round(seconds / 1800) / 2:g} hours"
