"""Several processes of one command, the ranks of a run: where this one stands among them, and how they are started."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from dicot.core.errors import LostWorkerError

MEETING = "DICOT_MEETING"  # the file by which the ranks that `launch` has started find each other
PARENT = "DICOT_PARENT"  # the process that has started them
LOST = 3  # exit code of a rank that ended because another one had
LOOK = 0.05  # seconds between two looks at the processes
GRACE = 10.0  # seconds that the others have to end by themselves


@dataclass(frozen=True)
class Place:
    """One process among those of a run."""

    rank: int
    world: int
    local_rank: int  # among those of this machine
    meeting: str = ""  # a file, for processes of `launch`; torchrun's have an address


ONLY = Place(0, 1, 0)


def find_place(environment: Mapping[str, str] = os.environ) -> Place:
    """Read from the environment where torchrun, another launcher of its kind or `launch` has put this process."""
    names = ("RANK", "WORLD_SIZE")
    if not all(name in environment for name in names) or not {MEETING, "MASTER_ADDR"} & set(environment):
        return ONLY
    rank, world = (int(environment[name]) for name in names)
    return Place(rank, world, int(environment.get("LOCAL_RANK", rank)), environment.get(MEETING, ""))


def is_launched() -> bool:
    """Tell whether `launch` has started this process; it then says what became of the others."""
    return MEETING in os.environ


def end_with_parent() -> None:
    """End this process when the one that started it is killed, which cannot do that itself.

    It would go on beside the next run of the same command. For processes of `launch`, torchrun and multiprocessing.
    """
    from multiprocessing import parent_process

    parent = parent_process()
    number = int(os.environ.get(PARENT) or os.getppid())

    def wait() -> None:
        if parent is not None:
            parent.join()
        while parent is None and os.getppid() == number:
            time.sleep(LOOK)
        os._exit(LOST)

    threading.Thread(target=wait, daemon=True).start()


def launch(n_processes: int, words: Sequence[str], again: str, module: str = "dicot") -> int:
    """Run `python -m dicot WORDS` in so many processes of this machine, and return the exit code of the first.

    The first one has the terminal; of the others an error is shown. Where one dies, the rest is ended, and the error
    says how to go on (`again`). Ctrl-C and SIGTERM reach all of them as Ctrl-C, once.
    """
    with tempfile.TemporaryDirectory(prefix="dicot-ranks-") as folder, _Forwarding() as forwarding:
        logs = [Path(folder, f"rank{rank}.log") for rank in range(n_processes)]
        processes: list[subprocess.Popen[Any]] = []
        try:
            for rank in range(n_processes):
                command = [sys.executable, "-m", module, *words]
                processes.append(_start(rank, n_processes, command, folder, logs[rank]))
                forwarding.processes = processes
            victim = _wait(processes)
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
                process.wait()
        codes = [process.returncode for process in processes]
        if forwarding.arrived or codes[0] in (1, 2) or not any(codes):
            return codes[0] if codes[0] >= 0 else 128 - codes[0]
        code = codes[victim]
        fate = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        said = logs[victim].read_text(errors="replace").strip() if victim else ""
        raise LostWorkerError(
            f"Process {victim} of {n_processes} {fate}, and the others were ended."
            + (f" It said: {said[-2000:]}" if said else "")
            + f" {again}"
        )


def _start(rank: int, world: int, command: Sequence[str], folder: str, log: Path) -> "subprocess.Popen[Any]":
    environment = {
        **os.environ,
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world),
        MEETING: str(Path(folder, "meeting")),
        PARENT: str(os.getpid()),
        # Each would take all cores otherwise, and they would mostly wait for each other.
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // world))),
    }
    if rank == 0:
        return subprocess.Popen(command, env=environment, start_new_session=True)
    with log.open("wb") as errors:
        return subprocess.Popen(
            command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=errors
        )


def _wait(processes: "Sequence[subprocess.Popen[Any]]") -> int:
    """Wait until all have ended, and return the number of the first that failed; what then goes on is killed."""
    victim, deadline = 0, float("inf")
    while running := [process for process in processes if process.poll() is None]:
        failed = [number for number, process in enumerate(processes) if process.poll() not in (None, 0)]
        if failed and (deadline == float("inf") or processes[victim].returncode == LOST):
            # One that was lost itself is no cause: another rank is dead, and will be seen in a moment.
            victim = next((number for number in failed if processes[number].returncode != LOST), failed[0])
            deadline = min(deadline, time.monotonic() + GRACE)
        for process in running if time.monotonic() > deadline else ():
            process.kill()
        time.sleep(LOOK)
    codes = [process.returncode for process in processes]
    if codes[victim] in (0, LOST):
        victim = next((number for number, code in enumerate(codes) if code not in (0, LOST)), victim)
    return victim


class _Forwarding:
    """A context in which Ctrl-C and SIGTERM are sent on to processes, and this one waits for them."""

    def __init__(self) -> None:
        self.processes: Sequence[subprocess.Popen[Any]] = ()
        self.arrived = 0
        self.callers: dict[int, Any] = {}

    def __enter__(self) -> "_Forwarding":
        for number in (signal.SIGINT, signal.SIGTERM):
            self.callers[number] = signal.signal(number, self._arrive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.callers.items():
            signal.signal(number, handler)

    def _arrive(self, number: int, frame: FrameType | None) -> None:
        self.arrived += 1
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
