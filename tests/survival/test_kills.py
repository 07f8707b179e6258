"""A few kills and faults in the default run, and proof that the harness notices what it is there to notice."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dicot.core.errors import InputError
from dicot.core.storage import remove_leftovers, write_atomic
from tests.survival import faults
from tests.survival.kills import Pace, Report, begin, kill_once, torment
from tests.survival.processes import REFUSED, Run
from tests.survival.tasks import TASKS, Task, files_in

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["build", "labels", "index"]  # the others are killed by tests of their own, or in the long form
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked and looked at as Linux does it"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),  # other tests may have left threads behind
]


def run(module: str, *words: str) -> None:
    """In a process of its own, which has no threads that a fork would lose."""
    command = [sys.executable, "-m", f"tests.survival.{module}", *words]
    ended = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert ended.returncode == 0, ended.stdout


@pytest.mark.slow
def test_what_is_killed_ends_as_if_it_had_been_left_alone() -> None:
    run("kills", "--kills", "5", *(word for name in SMALL for word in ("--task", name)))


@pytest.mark.slow
def test_faults_give_errors_of_ours_and_leave_the_last_good_state() -> None:
    run("faults", "--times", "1", "--task", "labels", "--task", "index")


# --- does it notice? --------------------------------------------------------------------------------------------------

LINES = 20


def task(write: Callable[[Path], None], **more: Any) -> Task:
    """A task that writes a file; it makes no difference between a first run and a second one."""

    def committed(folder: Path) -> set[str]:
        path = folder / "out.txt"
        return set(path.read_text().split()) if path.exists() else set()

    return replace(Task("planted", lambda folder: None, write, committed, files_in), **more)


def whole(folder: Path) -> None:
    path = folder / "out.txt"
    remove_leftovers(path)
    for number in range(len(path.read_text().split()) if path.exists() else 0, LINES):
        write_atomic(path, " ".join(map(str, range(number + 1))).encode())
        time.sleep(0.002)


def anew(folder: Path) -> None:
    (folder / "out.txt").unlink(missing_ok=True)
    whole(folder)


def twice(folder: Path) -> None:
    with (folder / "out.txt").open("a") as file:
        for number in range(LINES):
            file.write(f"{number} ")
            file.flush()
            time.sleep(0.002)


def untidy(folder: Path) -> None:
    aside = folder / f".aside.{os.getpid()}"
    aside.write_text("half")
    whole(folder)
    aside.unlink()


def torn(folder: Path) -> None:
    if (folder / "out.txt").exists() and len((folder / "out.txt").read_text().split()) < LINES:
        raise InputError("there is something half-written already")
    twice(folder)


def foreign(folder: Path) -> None:
    if (folder / "out.txt").exists():
        raise KeyError("x")
    whole(folder)


def test_a_sound_task_has_no_problem() -> None:
    report = torment(task(whole), 5, Random(0))
    assert report.kills == 5 and report.runs and report.half_way and not report.problems


def test_a_first_run_that_was_slow_does_not_put_the_kills_behind_the_end_of_the_others(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        time.sleep(0.05 if (tmp_path / "again").exists() else 1.5)
        (tmp_path / "again").touch()
        os.chdir(folder)  # so that no call can be counted by its path, as where a process of its own does the work
        Path("out.txt").write_text("all")

    report = torment(task(write), 5, Random(0))
    assert report.kills == 5 and report.runs < 20 and not report.problems


def test_kills_fall_between_changes_that_other_processes_make(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        for number in range(5):
            subprocess.run([sys.executable, "-c", f"open('{folder}/{number}', 'w')"], check=True)
            time.sleep(0.1)

    left_alone = Run(write, tmp_path)
    assert left_alone.watch(tmp_path) is not None and 2 < left_alone.changes < 6 and not left_alone.calls()
    for path in tmp_path.iterdir():
        path.unlink()
    killed = Run(write, tmp_path)
    assert killed.watch(tmp_path, 2) is None and killed.kill().code == -9
    assert 1 < len(list(tmp_path.iterdir())) < 5


class AlwaysAWorker(Random):
    def choice(self, ways: Any) -> Any:
        return ways[-1]


def test_a_command_that_refuses_though_no_worker_was_killed_is_noticed(tmp_path: Path) -> None:
    pace, report = Pace(0.1, 0, 0), Report("planted")
    with pytest.raises(AssertionError, match="refused to go on"):
        kill_once(task(refuse, workers=lambda pid: []), tmp_path, AlwaysAWorker(0), pace, report, set())


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (anew, "lost by a kill"),
        (twice, "ends otherwise"),
        (untidy, "ends otherwise"),
        (torn, "there is something half-written already"),
        (foreign, "KeyError"),
    ],
)
def test_what_a_kill_may_do_is_noticed(write: Callable[[Path], None], said: str) -> None:
    problems: list[str] = []
    for seed in range(5):
        problems += torment(task(write), 6, Random(seed)).problems
        if any(said in problem for problem in problems):
            return
    raise AssertionError(problems)


def test_a_run_can_die_at_a_call_to_the_file_system(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    left_alone = Run(whole, folder)
    assert left_alone.end().code == 0
    calls = left_alone.calls()
    assert calls >= 2 * LINES  # a file is made and put in place
    (folder / "out.txt").unlink()
    assert Run(whole, folder, calls // 2).end().code == -9
    assert 0 < len((folder / "out.txt").read_text().split()) < LINES


def test_an_index_that_was_killed_behind_its_last_save_is_tidied_by_the_next(tmp_path: Path) -> None:
    index, folder = TASKS["index"], tmp_path / "work"
    begin(index, folder)
    left_alone = Run(index.run, folder)
    assert left_alone.end().code == 0
    wanted = files_in(folder)
    begin(index, folder)
    assert Run(index.run, folder, left_alone.calls() - 2).end().code == -9  # before it removes what was there before
    assert len(files_in(folder)) > len(wanted)
    assert Run(index.run, folder).end().code == 0
    assert files_in(folder) == wanted


def refuse(folder: Path) -> None:
    raise InputError("no")


def test_an_error_of_ours_is_told_from_any_other(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    assert Run(refuse, tmp_path / "work").end().code == REFUSED
    (tmp_path / "work" / "out.txt").write_text("")
    ended = Run(foreign, tmp_path / "work").end()
    assert ended.code == 1 and "KeyError" in ended.said


def careless(folder: Path) -> None:
    (folder / "out.txt").write_bytes(bytes(200_000))


def test_a_fault_that_ends_in_a_foreign_error_is_noticed() -> None:
    report = faults.meet(task(careless), "limited", 3, Random(0))
    assert any("File too large" in problem for problem in report.problems), report


def test_every_task_has_a_name_of_its_own() -> None:
    assert all(name == one.name for name, one in TASKS.items())
