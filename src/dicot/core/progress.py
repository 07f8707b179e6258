"""A progress bar for whatever takes longer than two seconds."""

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

PATIENCE = 2.0  # seconds before the bar appears


class Bar:
    """Shows on stderr, only in a terminal, and only once the work has taken two seconds."""

    def __init__(self, what: str, total: int, enabled: bool = True) -> None:
        self._what, self._total, self._enabled = what, total, enabled
        self._progress: Progress | None = None
        self._started = time.monotonic()

    def __enter__(self) -> "Bar":
        return self

    def update(self, done: int, note: str = "") -> None:
        """Show `done` of the total."""
        if not self._enabled or time.monotonic() - self._started < PATIENCE:
            return
        if self._progress is None:  # only now: quick work, such as one window, does not pay for one that nobody sees
            console = Console(stderr=True)
            self._enabled = console.is_terminal or console.is_jupyter
            if not self._enabled:
                return
            noted = TextColumn("{task.fields[note]}")
            columns = (TextColumn(self._what), BarColumn(), MofNCompleteColumn(), noted, TimeRemainingColumn())
            self._progress = Progress(*columns, console=console, transient=True)
            self._progress.start()
            self._progress.add_task("", total=self._total, note="")
        self._progress.update(self._progress.task_ids[0], completed=done, note=note)

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()
