"""Ctrl-C and SIGTERM wait until the checkpoint of a run has been written."""

import signal
import threading
from types import FrameType
from typing import Any

from dicot.train.checkpoint import Checkpoint


class DelayedInterrupts:
    """A context in which the first SIGINT or SIGTERM has the checkpoint written before it takes effect.

    A step that is cut off would leave weights and history that do not match, so it is finished first. A second signal
    does not wait, nor does the first while no step is under way. Python delivers signals to the main thread only, so in
    other threads nothing changes. A signal that the caller ignores stays ignored.
    With `patient` a signal of the other kind is not a second one: torchrun answers Ctrl-C, which reaches every rank, by
    sending them SIGTERM as well.
    """

    def __init__(self, checkpoint: Checkpoint | None, *, patient: bool = False) -> None:
        self.checkpoint, self.patient = checkpoint, patient
        self.callers: dict[int, Any] = {}
        self.arrived: int | None = None

    def __enter__(self) -> "DelayedInterrupts":
        if self.checkpoint is not None and threading.current_thread() is threading.main_thread():
            self.checkpoint.rest()
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if handler not in (signal.SIG_IGN, None):
                    self.callers[number] = handler
            self._delay()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._restore()
        if self.arrived is not None and kind is None:
            signal.raise_signal(self.arrived)

    def deliver(self) -> None:
        """Between two steps: once the run is written, pass the signal on to the caller's own handler."""
        if self.arrived is None or (self.checkpoint is not None and self.checkpoint.asked):
            return
        number, self.arrived = self.arrived, None
        self._restore()
        signal.raise_signal(number)
        self._delay()  # the handler wants the run to go on

    def _arrive(self, number: int, frame: FrameType | None) -> None:
        assert self.checkpoint is not None
        if self.arrived is None and self.checkpoint.ask():
            self.arrived = number
        elif not self.patient or self.arrived in (None, number):
            self.arrived = None
            self._restore()
            signal.raise_signal(number)

    def _delay(self) -> None:
        for number in self.callers:
            signal.signal(number, self._arrive)

    def _restore(self) -> None:
        for number, handler in self.callers.items():
            signal.signal(number, handler)
