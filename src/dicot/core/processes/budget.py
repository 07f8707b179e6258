"""How much memory a command may take: what a user says, what is free, and a refusal before any work is done."""

import os
import re
import sys
from pathlib import Path

from dicot.core.errors import InputError

UNITS = {
    "b": 1,
    **{name: 1000**power for power, name in enumerate(("kb", "mb", "gb", "tb"), start=1)},
    **{name: 1024**power for power, name in enumerate(("kib", "mib", "gib", "tib"), start=1)},
}
TORCH = 550 * 10**6  # bytes of a process that computes with torch, whatever the data
PER_CASE = 32  # bytes of row numbers and their order, for each case of a training set
SHARE = 0.5  # of what is free, where nobody says how much may be taken


def parse_bytes(text: str) -> int:
    """Read an amount of memory such as "4GB" (4,000,000,000 bytes), "500 MB" or "2GiB"."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*", text)
    unit = UNITS.get(found[2].lower()) if found else None
    if found is None or unit is None or float(found[1]) <= 0:
        raise InputError(f"An amount of memory is a number and a unit such as 4GB or 500MiB; got {text!r}.")
    return int(float(found[1]) * unit)


def memory_of(text: str | None) -> int:
    """Return the bytes that a command may take: what a user says, or else half of what is free."""
    return int(SHARE * available_bytes()) if text is None else parse_bytes(text)


def available_bytes() -> int:
    """Return how much memory is free for this process, by the system and by its control group."""
    free = _of_system()
    limit, used = (_number(Path("/sys/fs/cgroup") / name) for name in ("memory.max", "memory.current"))
    return free if limit is None or used is None else max(0, min(free, limit - used))


def cores() -> int:
    """Count the processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def said_bytes(count: float) -> str:
    """Write an amount of memory as a person would."""
    for unit in ("GB", "MB", "kB"):
        if count >= UNITS[unit.lower()]:
            return f"{count / UNITS[unit.lower()]:.3g} {unit}"
    return f"{int(count)} bytes"


def refuse_beyond(memory: int, need: int, what: str, remedy: str, option: str = "memory") -> None:
    """Refuse work that needs more than it may take; `option` is where a user says how much that is."""
    if need > memory:
        raise InputError(
            f"{what} takes about {said_bytes(need)} of memory, and {said_bytes(memory)} may be taken ({option}). "
            f"{remedy}"
        )


def peak_bytes() -> int:
    """Return the most memory that this process has had so far."""
    try:
        return resident()["VmHWM"]
    except OSError:
        import resource

        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return largest if sys.platform == "darwin" else largest * 1024


def resident() -> dict[str, int]:
    """Return the bytes that this process has in memory now (VmRSS) and had at most (VmHWM), as Linux tells them."""
    lines = (line.split() for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines())
    return {words[0].rstrip(":"): 1024 * int(words[1]) for words in lines if words[-1] == "kB"}


def _of_system() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable")) * 1024
    except (OSError, StopIteration, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no such group, or "max"
        return None
