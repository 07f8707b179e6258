"""Ledgers that cannot be written, or not now: errors of ours that name the file; reading works all the same."""

import os
import resource
import shutil
import sqlite3
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from tests.bench.test_damaged_sources import BAD, GOOD, JOB
from tests.bench.test_ledger import record
from tests.commands import dicot

from dicot.core.errors import DicotError
from dicot.judge.bench import ledger as ledgers
from dicot.judge.bench.executor import execute, site_for
from dicot.judge.bench.ledger import Ledger
from dicot.judge.evaluation import units_of

NOBODY = 65534


@pytest.fixture
def folder():
    """A folder that anybody may look into, unlike pytest's own."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    path.chmod(0o755)
    shutil.rmtree(path)


@pytest.fixture
def shut(folder):
    """A function that makes a folder and its files read-only, for whoever may otherwise write anywhere too."""
    user = os.geteuid()

    def shut(path):
        for one in (*path.iterdir(), path):
            one.chmod(one.stat().st_mode & ~0o222)
        if user == 0:
            os.seteuid(NOBODY)

    yield shut
    os.seteuid(user)


def filled(path):
    with Ledger(path) as ledger:
        record(ledger, JOB, GOOD)
        record(ledger, replace(JOB, seed=2), BAD)
    return path


def test_a_read_only_ledger_is_read_and_a_write_says_what_to_do(folder, tmp_path, shut):
    held = filled(folder / "held" / "a.sqlite")
    own = filled(folder / "own" / "b.sqlite")
    out = folder / "out"
    out.mkdir()
    os.chown(out, NOBODY, -1)
    os.chown(own.parent, NOBODY, -1)
    os.chown(own, NOBODY, -1)
    dicot("bench", "smoke", "--dry-run", "--export", tmp_path / "first.csv", "--ledger", held)  # everything is imported
    shut(held.parent)
    assert "Wrote 2 rows" in dicot("bench", "smoke", "--dry-run", "--export", out / "a.csv", "--ledger", held)
    assert "2 rows" in dicot("bench", "merge", held, "--ledger", own)
    with pytest.raises(DicotError, match=r"a\.sqlite.*permission") as caught:
        dicot("bench", "merge", own, "--ledger", held)
    assert isinstance(caught.value, OSError)
    with pytest.raises(DicotError, match=r"new\.sqlite.*permission"):
        dicot("bench", "merge", own, "--ledger", held.parent / "new.sqlite")
    with pytest.raises(DicotError, match=r"deep.*permission"):
        dicot("bench", "merge", own, "--ledger", held.parent / "deep" / "new.sqlite")


def test_a_ledger_left_by_a_kill_in_a_read_only_folder_is_read(folder, shut):
    """With its log beside it, which holds rows that are not in the file; a copy may lack the index of the log."""
    held = filled(folder / "held" / "a.sqlite")
    with Ledger(held) as ledger:
        record(ledger, replace(JOB, seed=3), GOOD)
        copy = folder / "copy"
        shutil.copytree(held.parent, copy)
    out = folder / "out"
    out.mkdir()
    os.chown(out, NOBODY, -1)
    dicot("bench", "smoke", "--dry-run", "--export", folder / "first.csv", "--ledger", held)
    bare = shutil.copytree(copy, folder / "bare")
    (bare / "a.sqlite-shm").unlink()
    bare.chmod(0o555)
    shut(copy)
    with pytest.raises(DicotError, match=r"bare/a\.sqlite.*permission"):
        dicot("bench", "smoke", "--dry-run", "--export", out / "a.csv", "--ledger", bare / "a.sqlite")
    assert "Wrote 3 rows" in dicot(
        "bench", "smoke", "--dry-run", "--export", out / "a.csv", "--ledger", copy / "a.sqlite"
    )


def test_a_path_that_can_hold_no_ledger_is_named(tmp_path):
    filled(tmp_path / "a.sqlite")
    (tmp_path / "file").write_text("text")
    for where in (tmp_path, tmp_path / "file" / "new.sqlite"):
        with pytest.raises(DicotError, match=str(where)):
            dicot("bench", "merge", tmp_path / "a.sqlite", "--ledger", where)


def test_a_locked_ledger_says_so(tmp_path, monkeypatch):
    path = filled(tmp_path / "a.sqlite")
    monkeypatch.setattr(ledgers, "PATIENCE", 0.1)
    other = sqlite3.connect(path, isolation_level=None)
    with Ledger(path) as ledger:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DicotError, match=r"a\.sqlite.*locked"):
            record(ledger, JOB, GOOD)
        assert len(ledger.results()) == 2
        other.execute("ROLLBACK")
        record(ledger, replace(JOB, seed=3), GOOD)
        assert len(ledger.results()) == 3
    other.close()


@pytest.fixture
def small_disk():
    """Files cannot grow beyond this size, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_ends_with_a_sentence_and_keeps_what_was_recorded(tmp_path, small_disk):
    path = tmp_path / "a.sqlite"
    with Ledger(path) as ledger, pytest.raises(DicotError, match=r"a\.sqlite.*disk") as caught:
        _record_many(ledger)
    assert isinstance(caught.value, OSError)
    with Ledger(path) as ledger:
        seeds = {one.seed for one in ledger.results()}
    assert seeds == set(range(len(seeds))) and 0 < len(seeds) < 100


def test_a_ledger_that_workers_cannot_write_ends_the_run_with_one_error(tmp_path, job, capfd, processes):
    """Not with a row for a worker that was lost: there is no place for it."""
    path = tmp_path / "a.sqlite"
    path.mkdir()
    units = units_of([job("raw-mean"), job("raw-flat")])
    with pytest.raises(DicotError, match=r"a\.sqlite"):
        execute(units, path, site_for(path, "cpu"), 2, lambda job, error: None, "forkserver")
    assert "Traceback" not in capfd.readouterr().err


def test_a_bad_place_for_an_export_is_refused_before_anything_runs(tmp_path):
    call = ["bench", "ucr", "--sets", "synthetic", "--only", "raw-mean", "--protocols", "linear", "--workers", 1]
    with pytest.raises(DicotError, match=r"\.xls"):
        dicot(*call, "--ledger", tmp_path / "a.sqlite", "--export", tmp_path / "a.xls")
    assert not (tmp_path / "a.sqlite").exists()


def _record_many(ledger: Ledger) -> None:
    for seed in range(100):
        record(ledger, replace(JOB, seed=seed), GOOD)
