"""Damaged files in the default run, and proof that the run notices what it is there to notice.

DICOT_SURVIVAL sets how many files are damaged (default 250).
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dicot.core.errors import InputError
from tests.survival import run
from tests.survival.kind import Kind, UnreadableError
from tests.survival.kinds import KINDS
from tests.survival.mutations import BYTES
from tests.survival.reference import whole
from tests.survival.run import Outcome, damage, survive

ROOT = Path(__file__).resolve().parents[2]
FILES = os.environ.get("DICOT_SURVIVAL", "250")
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="memory is limited and measured as Linux does it"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),  # other tests may have left threads behind
]


@pytest.mark.slow
def test_damaged_files_give_errors_of_ours_or_right_results():
    command = [sys.executable, "-m", "tests.survival", "--files", FILES]
    ended = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_seed_gives_the_same_damage_again(tmp_path: Path, kind: Kind):
    made = [run._make(kind, tmp_path / name) for name in ("one", "other")]
    for seed in range(3):
        name, data, _ = damage(kind, seed, made[0])
        again, same, _ = damage(kind, seed, made[1])
        assert again == name
        if kind.name.split("-")[0] != "corpus":  # whose manifest says where its sources lie and when they were written
            assert same == data
        assert data != made[0][name]


def fate(read, judge=lambda folder, result, sound: "", seeds=(0, 1), **more) -> list[Outcome]:
    """What becomes of a file whose reader does this once it is damaged."""

    def read_file(folder: Path):
        sound = (folder / "a.txt").read_bytes() == b"sound"
        return "sound" if sound else read(folder / "a.txt")

    def judge_result(folder: Path, result, sound) -> str:
        return "" if result == "sound" else judge(folder, result, sound)

    def make(folder: Path) -> None:
        (folder / "a.txt").write_bytes(b"sound")

    return list(survive(Kind("planted", make, {"a.txt": BYTES}, read_file, judge_result, **more), seeds))


def fail(error: BaseException):
    def read(path: Path) -> None:
        raise error

    return read


def hoard(path: Path) -> int:
    return len(np.zeros(1 << 30, np.uint8))


def hoard_in_our_name(path: Path) -> None:
    try:
        hoard(path)
    except MemoryError as error:
        raise InputError("The file cannot be read.") from error


def loop(path: Path) -> None:
    while True:
        pass


def unreadable(folder: Path, result, sound) -> str:
    raise UnreadableError("its rows are ragged")


def test_errors_of_ours_and_right_results_are_told_apart():
    assert [o.verdict for o in fate(fail(InputError("no")))] == ["ours", "ours"]
    assert [o.verdict for o in fate(lambda path: 1)] == ["right", "right"]


@pytest.mark.parametrize(
    ("read", "more", "cause"),
    [
        (fail(KeyError("x")), {}, "KeyError, outside the library"),
        (fail(InputError("no")), {"refused": lambda folder: "half of it is merged"}, "half of it is merged"),
        (lambda path: 1, {"judge": lambda folder, result, sound: "another column"}, "read wrong"),
        (lambda path: 1, {"judge": unreadable}, "taken, though it cannot be read right"),
        (lambda path: path.write_bytes(b"other"), {}, "reading has changed the file"),
        (hoard, {}, "more than 500 MB"),
        (hoard_in_our_name, {}, "more than 500 MB"),
        (lambda path: os.kill(os.getpid(), signal.SIGSEGV), {}, "died (SIGSEGV)"),
    ],
)
def test_what_goes_wrong_is_noticed_and_the_next_file_read(read, more, cause):
    outcomes = fate(read, **more)
    assert [(o.seed, o.verdict) for o in outcomes] == [(0, "wrong"), (1, "wrong")]
    assert all(cause in o.cause for o in outcomes), outcomes


@pytest.mark.parametrize(
    ("limit", "seconds", "deaf"), [("WORK", 0.2, False), ("WAIT", 0.2, False), ("PATIENCE", 1, True)]
)
def test_a_hang_is_noticed(monkeypatch, limit, seconds, deaf):
    monkeypatch.setattr(run, limit, seconds)

    def read(path: Path) -> None:
        if deaf:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM, signal.SIGPROF})
        loop(path)

    (outcome,) = fate(read, seeds=[0])
    assert outcome.verdict == "wrong" and ("SIGKILL" if deaf else "no answer") in outcome.cause


def test_a_sound_file_that_is_not_read_is_one_failure():
    def refuse(folder: Path) -> None:
        raise InputError("no")

    (outcome,) = survive(Kind("planted", lambda folder: None, {}, refuse, lambda *_: ""), range(5))
    assert outcome.seed == run.SOUND and outcome.verdict == "wrong"


def test_a_judge_reads_numbers_beside_characters_that_strip_drops_and_float_does_not(tmp_path):
    assert whole("\x1e5") == 5
    (tmp_path / "log.txt").write_text("1,Walking,0,1,2,3;\n1,Walking,0,\x1e4,5,6;\n")
    assert KINDS["raw-log"].judge(tmp_path, KINDS["raw-log"].read(tmp_path), None) == ""
