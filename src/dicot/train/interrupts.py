"""Ctrl-C, or a request to end, that waits until a run has been written."""

import signal
import threading
from types import FrameType
from typing import Any

from dicot.train.checkpoint import Checkpoint


class HeldInterrupts:
    """Inside, the first SIGINT or SIGTERM has the checkpoint written after the step under way, and is then delivered.

    A step that is cut off leaves weights and history that do not belong together, so it is finished first. A second
    signal does not wait, nor does the first while no step is under way. Signals reach the main thread alone, and only
    there can they be held; a signal that the caller ignores stays ignored.
    """

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self.checkpoint = checkpoint
        self.callers: dict[int, Any] = {}
        self.arrived: int | None = None

    def __enter__(self) -> "HeldInterrupts":
        if self.checkpoint is not None and threading.current_thread() is threading.main_thread():
            self.checkpoint.rest()
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if handler not in (signal.SIG_IGN, None):
                    self.callers[number] = handler
            self._hold()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._let_go()
        if self.arrived is not None and kind is None:
            signal.raise_signal(self.arrived)

    def deliver(self) -> None:
        """Between two steps: once the run is written, what has arrived gets to the caller's own handler."""
        if self.arrived is None or (self.checkpoint is not None and self.checkpoint.asked):
            return
        number, self.arrived = self.arrived, None
        self._let_go()
        signal.raise_signal(number)
        self._hold()  # the handler wants the run to go on

    def _arrive(self, number: int, frame: FrameType | None) -> None:
        assert self.checkpoint is not None
        if self.arrived is None and self.checkpoint.ask():
            self.arrived = number
        else:
            self.arrived = None
            self._let_go()
            signal.raise_signal(number)

    def _hold(self) -> None:
        for number in self.callers:
            signal.signal(number, self._arrive)

    def _let_go(self) -> None:
        for number, handler in self.callers.items():
            signal.signal(number, handler)
