"""How much memory there is, and how much this process has had."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from dicot.core.errors import InputError

UNITS = {"GB": 10**9, "MB": 10**6, "kB": 10**3}
GROUP = Path("/sys/fs/cgroup")  # of the control group that a container runs in


def said_bytes(count: float) -> str:
    """Write an amount of memory as a person would."""
    for unit, size in UNITS.items():
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{int(count)} bytes"


def refuse_beyond_half(free: int, need: int, what: str, remedy: str) -> None:
    """Refuse what would take more than half of the free memory: a small file can claim any length."""
    if need > free // 2:
        raise InputError(
            f"{what} takes about {said_bytes(need)} of memory, more than half of the {said_bytes(free)} that are "
            f"free. {remedy}"
        )


def free_memory() -> int:
    """Return how many bytes are free for this process, by the system and by its control group."""
    free = _free_of_system()
    with suppress(OSError, ValueError):  # there is no such group, or its limit is "max"
        limit = int((GROUP / "memory.max").read_text(encoding="ascii"))
        used = int((GROUP / "memory.current").read_text(encoding="ascii"))
        free = max(0, min(free, limit - used))
    return free


def _free_of_system() -> int:
    try:
        return _kilobytes(Path("/proc/meminfo"))["MemAvailable"]
    except (OSError, KeyError):  # not Linux
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def resident() -> dict[str, int]:
    """Return the bytes that this process has in memory now (VmRSS) and had at most (VmHWM), as Linux tells them."""
    return _kilobytes(Path("/proc/self/status"))


def peak_bytes() -> int:
    """Return the most memory that this process has had so far."""
    try:
        return resident()["VmHWM"]
    except OSError:
        import resource

        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return largest if sys.platform == "darwin" else largest * 1024


def _kilobytes(path: Path) -> dict[str, int]:
    """Read the lines "name: number kB" of a file of Linux, as bytes."""
    sizes = {}
    for line in path.read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if value.endswith(" kB"):
            sizes[name] = 1024 * int(value.split()[0])
    return sizes
