"""python -m tests.survival.kills: SIGKILL at random moments; then the command is simply run again.

Nothing that was finished may be lost, nothing may be there twice, and in the end everything is as after a run that was
left alone, with no file left behind. Exit code 1 where it is not.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.survival.processes import REFUSED, Ended, HangError, Run, ask, is_alive
from tests.survival.tasks import TASKS, Task, at_hand

IN_A_ROW = 6  # kills at most before the command is left alone
ORPHANED = 1200  # looks, a minute or more, until a worker has noticed that its driver is gone


@dataclass
class Report:
    """What became of a task."""

    task: str
    kills: int = 0
    of_workers: int = 0
    half_way: int = 0  # kills that left some of the work done and some not
    runs: int = 0  # that were finished at last and compared
    problems: list[str] = field(default_factory=list)


@dataclass
class Pace:
    """What a run that is left alone takes: the moments to choose from."""

    seconds: float
    calls: int  # of its own that change files
    changes: int  # of files, by whichever process


def torment(task: Task, kills: int, dice: Random) -> Report:
    """Kill a task so often, finish it again and again, and compare each end with that of a run left alone."""
    report = Report(task.name)
    # What Ray has left may still be written to.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        folder = Path(place) / "work"
        begin(task, folder)
        left_alone = Run(task.run, folder)
        ended = left_alone.watch(folder)
        assert ended is not None and ended.code == 0, ended
        pace = Pace(time.monotonic() - left_alone.started, left_alone.calls(), left_alone.changes)
        wanted, everything = ask(task.final, folder), ask(task.committed, folder)
        while report.kills < kills and not report.problems:
            begin(task, folder)
            held: set[object] = set()
            workers: set[int] = set()
            for number in range(dice.randint(1, IN_A_ROW)):
                if report.kills == kills:
                    break
                try:
                    began, killed = time.monotonic(), report.kills
                    finished = kill_once(task, folder, dice, pace, report, workers)
                    if number == 0 and report.kills == killed:  # done before its kill, all of it
                        pace.seconds = min(pace.seconds, time.monotonic() - began)
                    now = ask(task.committed, folder)
                except (AssertionError, HangError) as error:
                    report.problems.append(str(error))
                    break
                if lost := held - now:
                    report.problems.append(f"lost by a kill: {str(sorted(map(str, lost)))[:300]}")
                report.half_way += bool(now) and now != everything and not finished
                held = now
                if finished:
                    break
            if not report.problems:
                _finish(task, folder, wanted, report)
            wait_for(workers, report.problems)
    return report


def at_every_call(task: Task) -> Report:
    """Kill a task before each of its own calls that change files, one after the other, and finish it each time."""
    report = Report(task.name)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        folder = Path(place) / "work"
        begin(task, folder)
        left_alone = Run(task.run, folder)
        assert (ended := left_alone.end()).code == 0, ended.said
        wanted, everything = ask(task.final, folder), ask(task.committed, folder)
        for call in range(1, left_alone.calls() + 1):
            begin(task, folder)
            report.kills += Run(task.run, folder, call).end().code == -signal.SIGKILL
            now = ask(task.committed, folder)
            report.half_way += bool(now) and now != everything
            before = len(report.problems)
            _finish(task, folder, wanted, report)
            report.problems[before:] = [f"call {call}: {problem}" for problem in report.problems[before:]]
    return report


def begin(task: Task, folder: Path) -> None:
    """Make the folder anew, with what the task needs."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    task.make(folder)


def kill_once(task: Task, folder: Path, dice: Random, pace: Pace, report: Report, workers: set[int]) -> bool:
    """Start the command and kill it, or one of its workers; whether it was done before."""
    ways = ["moment", "change", *(["call"] if pace.calls else []), *(["worker"] * 3 if task.workers else [])]
    how = dice.choice(ways)
    run, before = Run(task.run, folder, dice.randint(1, pace.calls) if how == "call" else 0), report.of_workers
    if how == "worker":
        ended = _kill_a_worker(run, task, folder, dice, pace, report)
    elif how == "call":
        ended = run.end()
    else:
        ended = _wait(run, folder, dice, pace) if how == "change" else run.wait(dice.uniform(0, 1.1 * pace.seconds))
        workers |= set(task.workers(run.pid)) if ended is None and task.workers else set()
        ended = run.kill() if ended is None else ended
    report.kills += ended.code == -signal.SIGKILL
    if ended.code not in (0, REFUSED, -signal.SIGKILL):
        raise AssertionError(f"ended with {ended.code}: {ended.said[-1500:]}")
    if ended.code == REFUSED and report.of_workers == before:
        raise AssertionError(f"refused to go on: {ended.said[-1500:]}")
    return ended.code == 0 and how != "worker"


def _wait(run: Run, folder: Path, dice: Random, pace: Pace) -> Ended | None:
    """Wait for a random one of the changes of its files, and a moment longer."""
    ended = run.watch(folder, dice.randint(0, pace.changes))
    return run.wait(dice.uniform(0, pace.seconds / max(1, pace.changes))) if ended is None else ended


def _kill_a_worker(run: Run, task: Task, folder: Path, dice: Random, pace: Pace, report: Report) -> Ended:
    """Kill one of its processes; it must end by itself, with its own error at worst."""
    ended = run.wait(dice.uniform(0.2, 0.9) * pace.seconds) if dice.random() < 0.5 else _wait(run, folder, dice, pace)
    found = task.workers(run.pid) if ended is None and task.workers else []
    if found:
        try:
            os.kill(dice.choice(found), signal.SIGKILL)
            report.kills += 1
            report.of_workers += 1
        except ProcessLookupError:
            pass
    return run.end() if ended is None else ended


def _finish(task: Task, folder: Path, wanted: object, report: Report) -> None:
    """Leave it alone now: it must come to the same end."""
    try:
        ended = Run(task.run, folder).end()
        if ended.code != 0:
            report.problems.append(f"does not end well after kills ({ended.code}): {ended.said[-1500:]}")
        elif (found := ask(task.final, folder)) != wanted:
            report.problems.append(f"ends otherwise after kills: {difference(found, wanted)}")
        else:
            report.runs += 1
    except (AssertionError, HangError) as error:
        report.problems.append(str(error))


def difference(found: object, wanted: object) -> str:
    """What two ends do not have in common, part by part."""
    if type(found) is not type(wanted) or found == wanted:
        return f"{str(found)[:300]} instead of {str(wanted)[:300]}"
    if isinstance(found, tuple) and isinstance(wanted, tuple):
        return "; ".join(difference(*pair) for pair in zip(found, wanted, strict=True) if pair[0] != pair[1])
    if isinstance(found, dict) and isinstance(wanted, dict):
        found, wanted = list(found.items()), list(wanted.items())
    if isinstance(found, list | set) and isinstance(wanted, list | set):
        more, less = [one for one in found if one not in wanted], [one for one in wanted if one not in found]
        return f"{str(more)[:300]} instead of {str(less)[:300]}"
    return f"{str(found)[:300]} instead of {str(wanted)[:300]}"


def wait_for(workers: Iterable[int], problems: list[str]) -> None:
    """A worker ends when its driver is killed."""
    looks = 0
    while any(map(is_alive, workers)) and looks < ORPHANED:
        time.sleep(0.05)
        looks += 1
    if alive := [pid for pid in workers if is_alive(pid)]:
        problems.append(f"{len(alive)} worker(s) live on, {looks} looks after their driver was killed")
        for pid in alive:
            os.kill(pid, signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.survival.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="how many, over all tasks")
    parser.add_argument("--task", action="append", choices=sorted(TASKS), help="only this; repeat for more")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--every-call", action="store_true", help="instead: before each call that changes files, once")
    chosen = parser.parse_args()
    tasks = at_hand(chosen.task or TASKS)
    shares = [chosen.kills // len(tasks) + (i < chosen.kills % len(tasks)) for i in range(len(tasks))]
    reports = []
    for task, share in zip(tasks, shares, strict=True):
        began = time.monotonic()
        dice = Random(f"{task.name} {chosen.seed}")
        report = at_every_call(task) if chosen.every_call else torment(task, share, dice)
        reports.append(report)
        facts = f"{report.kills:4} kills ({report.of_workers} of workers, {report.half_way} half-way)"
        same = f"{report.runs:3} times finished and the same"
        print(f"{task.name:10} {facts}, {same}  ({time.monotonic() - began:.0f} s)", flush=True)
        for problem in report.problems:
            print(f"    {problem}", flush=True)
    wrong = sum(len(report.problems) for report in reports)
    print(f"{sum(report.kills for report in reports)} kills, {wrong} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
