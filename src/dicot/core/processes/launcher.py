"""Several processes of one command, the ranks of a run: where this one stands among them, and how they are started."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dicot.core.errors import LostWorkerError

MEETING = "DICOT_MEETING"  # the file by which the ranks that `launch` has started find each other
PARENT = "DICOT_PARENT"  # the process that has started them
LOST = 6  # exit code of a rank that ended because another one had; cli/exitcodes.py lists all codes
PARTIAL = 3  # exit code of a command that has done its work, but for files that could not be used
DONE = (0, PARTIAL)
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


def find_place() -> Place:
    """Read from the environment where torchrun, another launcher of its kind or `launch` has put this process."""
    names = ("RANK", "WORLD_SIZE")
    if not all(name in os.environ for name in names) or not {MEETING, "MASTER_ADDR"} & set(os.environ):
        return ONLY
    rank, world = (int(os.environ[name]) for name in names)
    return Place(rank, world, int(os.environ.get("LOCAL_RANK", rank)), os.environ.get(MEETING, ""))


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


def launch(n_processes: int, words: Sequence[str], again: str, module: str = "dicot", grace: float = GRACE) -> int:
    """Run `python -m dicot WORDS` in so many processes of this machine, and return the exit code of the first.

    The first one has the terminal; of the others an error is shown. Where one dies, the rest has `grace` seconds to
    end, and the error says how to go on (`again`). Ctrl-C and SIGTERM reach all of them as Ctrl-C.
    """
    processes: list[subprocess.Popen[bytes]] = []
    usual = signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="dicot-ranks-") as folder:
        log = Path(folder, "others.log")
        try:
            for rank in range(n_processes):
                processes.append(_start(rank, n_processes, [sys.executable, "-m", module, *words], folder, log))
            victim = _wait(processes, grace)
        except KeyboardInterrupt:
            for process in processes:
                process.send_signal(signal.SIGINT)
            for process in processes:
                process.wait()
            return 130
        finally:
            signal.signal(signal.SIGTERM, usual)
            for process in processes:
                process.kill()
                process.wait()
        first, code = processes[0].returncode, processes[victim].returncode
        if first in (1, 2, 130) or code in DONE:
            return first
        fate = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        said = log.read_text(errors="replace").strip()[-2000:]
        quote = f" It said: {said}" if said else ""
        raise LostWorkerError(f"Process {victim} of {n_processes} {fate}, and the others were ended.{quote} {again}")


def _start(rank: int, world: int, command: Sequence[str], folder: str, log: Path) -> subprocess.Popen[bytes]:
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
    with log.open("ab") as errors:
        quiet: dict[str, Any] = {} if rank == 0 else {"stdout": subprocess.DEVNULL, "stderr": errors}
        return subprocess.Popen(command, env=environment, start_new_session=True, **quiet)


def _wait(processes: Sequence[subprocess.Popen[bytes]], grace: float) -> int:
    """Wait until all have ended, and return the number of the first that failed; what then goes on is killed."""
    victim, deadline = 0, float("inf")
    while any(process.poll() is None for process in processes):
        codes = [process.poll() for process in processes]
        # One that was lost itself is no cause: another one is dead, and will be seen in a moment.
        failed = [number for number, code in enumerate(codes) if code not in (None, *DONE, LOST)]
        if failed and deadline == float("inf"):
            victim, deadline = failed[0], time.monotonic() + grace
        if time.monotonic() > deadline:
            for process in processes:
                process.kill()
        time.sleep(LOOK)
    if deadline == float("inf"):
        codes = [process.returncode for process in processes]
        victim = max(range(len(codes)), key=lambda number: codes[number] not in (*DONE, LOST))
    return victim
