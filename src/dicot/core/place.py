"""This process among others: those that `torchrun` has started, and the one that started it. Imports no torch."""

import os
import threading
from multiprocessing import parent_process
from typing import NamedTuple


class Place(NamedTuple):
    """One process among those of a run."""

    rank: int = 0
    world: int = 1  # processes of the run
    local_rank: int = 0  # among those of this machine

    @property
    def is_first(self) -> bool:
        """Tell whether this is the process that writes, prints and calls back."""
        return self.rank == 0


def find_place() -> Place:
    """Read the variables that torchrun, and other launchers of its kind, set for each process."""
    if not {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= os.environ.keys():
        return Place()
    rank = int(os.environ["RANK"])
    return Place(rank, int(os.environ["WORLD_SIZE"]), int(os.environ.get("LOCAL_RANK", rank)))


def end_with_parent() -> None:
    """End this process of a pool when the one that started it is killed, which cannot do that itself.

    It would go on beside the next run of the same command.
    """
    parent = parent_process()

    def wait() -> None:
        assert parent is not None, "a process of multiprocessing has a parent"
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def cores() -> int:
    """Count the processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
