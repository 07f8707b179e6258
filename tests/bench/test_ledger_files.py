"""Ledgers that cannot be written, or not now: errors of ours that name the file; reading works all the same."""

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from tests.bench.test_damaged_sources import BAD, GOOD, JOB
from tests.bench.test_ledger import record
from tests.commands import bench

from bench import ledger
from bench.ledger import Ledger
from dicot.core.errors import DicotError

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
            if not os.access(ledger.__file__, os.R_OK, effective_ids=True):
                pytest.skip("this clone is for root alone: nobody else can run it")

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
    bench("run", "smoke", "--dry-run", "--export", tmp_path / "first.csv", "--ledger", held)  # everything is imported
    shut(held.parent)
    assert "Wrote 2 rows" in bench("run", "smoke", "--dry-run", "--export", out / "a.csv", "--ledger", held)
    assert "2 rows" in bench("merge", held, "--ledger", own)
    with pytest.raises(DicotError, match=r"a\.sqlite.*permission") as caught:
        bench("merge", own, "--ledger", held)
    assert isinstance(caught.value, OSError)
    with pytest.raises(DicotError, match=r"new\.sqlite.*permission"):
        bench("merge", own, "--ledger", held.parent / "new.sqlite")
    with pytest.raises(DicotError, match=r"deep.*permission"):
        bench("merge", own, "--ledger", held.parent / "deep" / "new.sqlite")


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
    bench("run", "smoke", "--dry-run", "--export", folder / "first.csv", "--ledger", held)
    bare = shutil.copytree(copy, folder / "bare")
    (bare / "a.sqlite-shm").unlink()
    bare.chmod(0o555)
    shut(copy)
    with pytest.raises(DicotError, match=r"bare/a\.sqlite.*permission"):
        bench("run", "smoke", "--dry-run", "--export", out / "a.csv", "--ledger", bare / "a.sqlite")
    assert "Wrote 3 rows" in bench(
        "run", "smoke", "--dry-run", "--export", out / "a.csv", "--ledger", copy / "a.sqlite"
    )


def test_a_bad_place_for_an_export_is_refused_before_anything_runs(tmp_path):
    call = ["run", "ucr", "--sets", "synthetic", "--only", "raw-mean", "--protocols", "linear", "--workers", 1]
    with pytest.raises(DicotError, match=r"\.xls"):
        bench(*call, "--ledger", tmp_path / "a.sqlite", "--export", tmp_path / "a.xls")
    assert not (tmp_path / "a.sqlite").exists()
