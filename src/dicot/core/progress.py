"""How far work is and how long it will take: a bar in a terminal, a line every minute in a log."""

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

PATIENCE = 2.0  # seconds before anything is shown
MEASURED = 5.0  # seconds of work that the first estimate is made of
LONG = 20.0  # seconds from which it is said how long the work will take
EVERY = 60.0  # seconds between two lines of a log


class Bar:
    """Shows work of more than two seconds on stderr; where that is no terminal, a line every minute that `update` sees.

    Work that will take more than 20 seconds says so once, by the speed of its first five. `most` are the seconds after
    which it ends in any case.
    """

    def __init__(self, what: str, total: int, enabled: bool = True, *, most: float | None = None) -> None:
        self._what, self._total, self._enabled, self._most = what, total, enabled, most
        self._console: Console | None = None
        self._progress: Progress | None = None
        self._started = self._line = time.monotonic()
        self._first: tuple[float, int] | None = None  # time and count of the first update: some may be done before
        self._told = False

    def __enter__(self) -> "Bar":
        return self

    def update(self, done: int, note: str = "") -> None:
        now = time.monotonic()
        self._first = self._first or (now, done)
        if not self._enabled or now - self._started < PATIENCE:
            return
        if self._console is None:  # only now: quick work, such as one window, does not pay for one that nobody sees
            self._console = Console(stderr=True, soft_wrap=True)
            if self._console.is_terminal or self._console.is_jupyter:
                columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"), TimeRemainingColumn())
                self._progress = Progress(TextColumn(self._what), *columns, console=self._console, transient=True)
                self._progress.start()
                self._progress.add_task("", total=self._total, note="")
        left, line = self._left(now, done), ""
        if not self._told and left is not None and now - self._first[0] >= MEASURED:
            self._told, line = True, f"about {duration(left)}" if left > LONG else ""
        elif self._progress is None and now - self._line >= EVERY:
            rest = "" if left is None else f"about {duration(left)} left"
            line = ", ".join(filter(None, [f"{done} of {self._total}", note, rest]))
        if line:
            self._line = now
            self._console.print(f"{self._what}: {line}", highlight=False, markup=False)
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], completed=done, note=note)

    def _left(self, now: float, done: int) -> float | None:
        """Return the seconds that are left if the work goes on as it went; None where nothing was measured yet."""
        since, before = self._first or (now, done)
        if done <= before or done >= self._total:
            return None
        left = (now - since) / (done - before) * (self._total - done)
        return left if self._most is None else min(left, max(0.0, self._started + self._most - now))

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
