"""python -m tests.survival.faults: a full disk, one that is read-only, a source that vanishes, a clock that jumps.

Each ends with an error of ours or with the right result; what was finished before stays; and when the fault is gone,
the same command comes to the same end as one that never met it. Exit code 1 where that is not so.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from random import Random

from tests.survival.kills import begin, difference, wait_for
from tests.survival.processes import REFUSED, Ended, HangError, Run, ask
from tests.survival.tasks import TASKS, Task, at_hand

DISK = 64 << 20  # bytes of the small disk


@dataclass
class Report:
    """What became of a task under one fault."""

    task: str
    fault: str
    times: int = 0
    refused: int = 0  # ended with an error of ours; the others were done before they met the fault
    said: str = ""  # one of these errors
    problems: list[str] = field(default_factory=list)


@contextmanager
def small_disk() -> Iterator[Path]:
    """A file system in memory that is small and can be made read-only; an OSError where this user may not mount one."""
    with tempfile.TemporaryDirectory() as place:
        _mount("-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", place)
        try:
            yield Path(place)
        finally:
            subprocess.run(["umount", "--lazy", place], check=True)


def _mount(*words: str) -> None:
    try:
        subprocess.run(["mount", *words], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise OSError(f"no file system can be mounted here: {getattr(error, 'stderr', error)}") from error


def can_mount() -> bool:
    """Whether this user may mount a small disk."""
    with suppress(OSError), small_disk():
        return True
    return False


Fault = Callable[[Task, Path, Random], Ended]


def full(task: Task, folder: Path, dice: Random) -> Ended:
    """The disk has room for some of what the command writes, and not for all of it."""
    filler = folder.parent / "filler"
    free = shutil.disk_usage(folder.parent).free
    left = dice.choice([0, dice.randrange(1 << 14), dice.randrange(1 << 17), dice.randrange(1 << 20)])
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, free - left))
    try:
        return Run(task.run, folder).end()
    finally:
        filler.unlink()


def limited(task: Task, folder: Path, dice: Random) -> Ended:
    """No file may be larger than so many bytes, as by a quota."""
    # What it says goes to a file too, and has to fit.
    size = 4096 + dice.choice([0, dice.randrange(4096), dice.randrange(1 << 15), dice.randrange(1 << 17)])
    return Run(task.run, folder, before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))).end()


def read_only(task: Task, folder: Path, dice: Random) -> Ended:
    """The whole disk can only be read."""
    _mount("-o", "remount,ro", str(folder.parent))
    try:
        return Run(task.run, folder).end()
    finally:
        _mount("-o", "remount,rw", str(folder.parent))


def vanished(task: Task, folder: Path, dice: Random) -> Ended:
    """What is read is taken away in the middle, and is there again later."""
    source, away = folder / task.source, folder.parent / "away"
    run = Run(task.run, folder)
    ended = run.wait(dice.uniform(0, 0.5))
    source.rename(away)
    try:
        return run.end() if ended is None else ended
    finally:
        away.rename(source)


class _Jumping(datetime):
    """A clock that is put back by an hour whenever it is looked at."""

    back = timedelta()

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "datetime":  # type: ignore[override]
        cls.back += timedelta(hours=1)
        return datetime.now(tz) - cls.back


def clock_jumps() -> None:
    """Put the clock of this process back at every look. `time.monotonic` goes on, as it does in the kernel."""
    import dicot.judge.evaluation.jobs
    import dicot.use.labels.store

    dicot.judge.evaluation.jobs.datetime = _Jumping  # type: ignore[misc]
    dicot.use.labels.store.datetime = _Jumping  # type: ignore[misc]
    usual, looks = time.time, [0]

    def jumping() -> float:
        looks[0] += 1
        return usual() - 3600 * looks[0]

    time.time = jumping


def clock(task: Task, folder: Path, dice: Random) -> Ended:
    """The clock goes back again and again, and what was written already is of tomorrow."""
    tomorrow = time.time() + 86400
    for path in folder.rglob("*"):
        if not path.is_relative_to(folder / "in"):
            os.utime(path, (tomorrow, tomorrow))
    return Run(task.run, folder, before=clock_jumps).end()


FAULTS: dict[str, Fault] = {
    "full": full,
    "limited": limited,
    "read-only": read_only,
    "vanished": vanished,
    "clock": clock,
}
ON_SMALL_DISK = ("full", "read-only")


def meet(task: Task, fault: str, times: int, dice: Random) -> Report:
    """Let a task meet a fault so often, half-way through or at its beginning, and then finish it."""
    report = Report(task.name, fault)
    with small_disk() if fault in ON_SMALL_DISK else tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "work"
        begin(task, folder)
        left_alone = Run(task.run, folder)
        assert (ended := left_alone.end()).code == 0, ended.said
        usual, wanted = time.monotonic() - left_alone.started, ask(task.final, folder)
        for _ in range(times):
            begin(task, folder)
            try:
                _meet_once(task, fault, folder, dice, usual, report)
                ended = Run(task.run, folder).end()
                assert ended.code == 0, f"does not go on after the fault: {ended.said[-1500:]}"
                found = ask(task.final, folder)
                assert found == wanted, f"ends otherwise: {difference(found, wanted)}"
            except (AssertionError, HangError) as error:
                report.problems.append(str(error))
    return report


def _meet_once(task: Task, fault: str, folder: Path, dice: Random, usual: float, report: Report) -> None:
    if dice.random() < 0.5:  # some of it is done already
        run = Run(task.run, folder)
        if run.wait(dice.uniform(0.2, 0.9) * usual) is None:
            workers = task.workers(run.pid) if task.workers else []
            run.kill()
            wait_for(workers, report.problems)  # until then they write, and hold the disk
    before = ask(task.committed, folder)
    ended = FAULTS[fault](task, folder, dice)
    report.times += 1
    report.refused += ended.code == REFUSED
    assert ended.code in (0, REFUSED), f"ended with {ended.code}: {ended.said[-1500:]}"
    if ended.code == REFUSED:
        assert "Traceback" not in ended.said, ended.said[-1500:]
        report.said = " ".join(ended.said.split())[-300:]
    lost = before - ask(task.committed, folder)
    assert not lost, f"lost by the fault: {sorted(map(str, lost))[:3]}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.survival.faults", description=__doc__)
    parser.add_argument("--times", type=int, default=5, help="how often each task meets each fault")
    parser.add_argument("--task", action="append", choices=sorted(TASKS), help="only this; repeat for more")
    parser.add_argument("--fault", action="append", choices=sorted(FAULTS), help="only this; repeat for more")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    faults, problems, times = chosen.fault or list(FAULTS), 0, 0
    if not can_mount():
        print(f"Left out, because this user may mount no file system: {', '.join(ON_SMALL_DISK)}")
        faults = [fault for fault in faults if fault not in ON_SMALL_DISK]
    for task in [one for one in at_hand(chosen.task or TASKS) if one.meets_faults]:
        for fault in faults:
            if fault == "vanished" and not task.source:
                continue
            began = time.monotonic()
            report = meet(task, fault, chosen.times, Random(f"{task.name} {fault} {chosen.seed}"))
            facts = f"{report.times:3} times, {report.refused:3} errors of ours, {len(report.problems):2} problems"
            print(f"{task.name:10} {fault:10} {facts}  ({time.monotonic() - began:.0f} s)  {report.said}", flush=True)
            for problem in report.problems:
                print(f"    {problem}", flush=True)
            problems, times = problems + len(report.problems), times + report.times
    print(f"{times} faults, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
