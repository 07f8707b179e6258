"""The ledger: nothing lost, nothing doubled, failures kept."""

import csv
import math
import sqlite3
from dataclasses import replace

import pytest

from dicot.bench.exchange import export_ledger, merge_ledger
from dicot.bench.jobs import Contender, DataSet, Job
from dicot.bench.ledger import Ledger
from dicot.bench.lines import COLUMNS, Result
from dicot.bench.model_protocols import every_protocol
from dicot.errors import InputError

SETTINGS = {"schedule": "per_step", "precision": "tf32"}
JOB = Job("ucr", Contender("dicot", "dicot", {}, SETTINGS), DataSet("GunPoint"), DataSet("GunPoint"), "linear", 1)
GOOD = Result(
    {"accuracy": 81.3, "macro_f1": 0.1 + 0.2},
    recipe={"steps": 200, "batch_size": 8, "lr": 3e-4},
    source_data="aa",
    target_data="aa",
    device="cpu",
    fit_seconds=1.5,
    peak_memory=7,
)
BAD = Result({"accuracy": math.nan, "macro_f1": math.nan}, "InputError: too short", source_data="aa", target_data="aa")


def values(ledger: Ledger, suite: str | None = None) -> list[tuple[str, str, int, str, float, str | None]]:
    return [(r.suite, r.contender, r.seed, r.metric, r.value, r.error) for r in ledger.records(suite)]


def test_a_record_carries_its_provenance(tmp_path):
    with Ledger(tmp_path / "new" / "bench.sqlite") as ledger:
        ledger.record(JOB, GOOD)
        ledger.record(replace(JOB, seed=2, trial=True), BAD)
        good, _, bad, _ = ledger.records()
    assert (good.suite, good.contender, good.source, good.target) == ("ucr", "dicot", "GunPoint", "GunPoint")
    assert (good.protocol, good.metric, good.seed, good.value, good.error) == ("linear", "accuracy", 1, 81.3, None)
    assert (good.schedule, good.steps, good.batch_size, good.precision) == ("per_step", 200, 8, "tf32")
    assert (good.fit_seconds, good.peak_memory, good.device, good.key) == (1.5, 7, "cpu", JOB.key)
    assert good.version and good.recorded.endswith("+00:00") and not good.trial
    assert bad.failed and math.isnan(bad.value) and bad.error == "InputError: too short" and bad.trial


def test_one_row_for_all_suites_and_names(tmp_path):
    with Ledger(tmp_path / "bench.sqlite") as ledger:
        elsewhere = replace(JOB, suite="ablation", contender=replace(JOB.contender, name="Overlap -> 50%"))
        ledger.enrol([elsewhere, replace(JOB, seed=3)])
        ledger.record(JOB, GOOD)
        ledger.record(JOB, replace(GOOD, values={"accuracy": 90.0}))
        assert values(ledger) == [
            ("ablation", "Overlap -> 50%", 1, "accuracy", 90.0, None),
            ("ucr", "dicot", 1, "accuracy", 90.0, None),
        ]
        assert values(ledger, "ucr") == values(ledger)[1:]


def test_a_failure_does_not_replace_a_result_of_the_same_data(tmp_path):
    with Ledger(tmp_path / "bench.sqlite") as ledger:
        ledger.record(JOB, BAD)
        ledger.record(JOB, GOOD)
        ledger.record(JOB, BAD)
        ledger.record(JOB, replace(BAD, source_data="", target_data=""))
        assert [r.error for r in ledger.records()] == [None, None]
        ledger.record(JOB, replace(BAD, source_data="bb"))
        assert [r.error for r in ledger.records()] == [BAD.error] * 2


def write(path, first: int) -> None:
    with Ledger(path) as ledger:
        for seed in range(first, first + 20):
            ledger.record(replace(JOB, seed=seed), replace(GOOD, values={"accuracy": float(seed)}))


def test_several_writers_at_a_new_file(tmp_path, processes):
    """Half of each writer's jobs are also another's."""
    path = tmp_path / "bench.sqlite"
    writers = [processes.Process(target=write, args=(path, 10 * n)) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    with Ledger(path) as ledger:
        assert sorted((r.seed, r.value) for r in ledger.records()) == [(n, float(n)) for n in range(50)]


def test_a_foreign_file_or_version_is_refused_with_advice(tmp_path):
    (tmp_path / "text").write_text("no database " * 100)
    with pytest.raises(InputError, match="cannot be opened as a ledger"):
        Ledger(tmp_path / "text")
    with pytest.raises(InputError, match="There is no ledger"):
        Ledger(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()
    Ledger(tmp_path / "later").close()
    with sqlite3.connect(tmp_path / "later") as database:
        database.execute("PRAGMA user_version = 7")
    with pytest.raises(InputError, match=r"version 7; .* reads version 1.*dicot bench merge"):
        Ledger(tmp_path / "later")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "sqlite"])
def test_a_ledger_travels_whole(tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    with Ledger(tmp_path / "a.sqlite") as ledger, Ledger(tmp_path / "b.sqlite") as other:
        ledger.record(JOB, GOOD)
        ledger.record(replace(JOB, seed=2), BAD)
        ledger.enrol([replace(JOB, suite="ablation")])
        clustered = replace(JOB, contender=Contender("random", "random"), protocol="clustering", seed=3)
        ledger.record(clustered, Result({"nmi": 0.1, "ari": 0.2}))
        path = tmp_path / f"a.{suffix}"
        if suffix != "sqlite":
            assert export_ledger(ledger, path) == 4
        for _ in range(2):  # a second time changes nothing
            merge_ledger(other, path)
            assert list(other.lines()) == list(ledger.lines())
        assert len(other.records()) == 8


@pytest.mark.parametrize("suffix", ["csv", "parquet", "sqlite"])
def test_what_was_wanted_and_has_no_record_is_known_and_travels(tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    moved = replace(JOB, suite="transfer", source=DataSet("harth", (3, 4, 5)), target=DataSet("pamap2"))
    with Ledger(tmp_path / "a.sqlite") as ledger, Ledger(tmp_path / "b.sqlite") as other:
        ledger.enrol([JOB, replace(JOB, target=DataSet("Beef"), source=DataSet("Beef")), moved])
        ledger.record(JOB, BAD)  # a failure is a record
        wanted = [("transfer", "harth", "pamap2"), ("ucr", "Beef", "Beef")]
        assert ledger.unrecorded() == wanted
        path = tmp_path / f"a.{suffix}"
        if suffix != "sqlite":
            assert export_ledger(ledger, path) == 3
        assert merge_ledger(other, path) == (1, 1)
        assert other.unrecorded() == wanted and list(other.lines()) == list(ledger.lines())
        other.record(moved, GOOD)
        assert other.unrecorded() == wanted[1:]


def test_a_ledger_of_an_earlier_release_gets_the_table_that_it_lacks(tmp_path):
    with Ledger(tmp_path / "a.sqlite") as ledger:
        ledger.record(JOB, GOOD)
    with sqlite3.connect(tmp_path / "a.sqlite") as database:
        database.execute("DROP TABLE wanted")
    with Ledger(tmp_path / "a.sqlite") as ledger:
        assert ledger.unrecorded() == [] and len(ledger.records()) == 2


def test_merging_keeps_the_better_row(tmp_path):
    with Ledger(tmp_path / "a.sqlite") as ledger, Ledger(tmp_path / "b.sqlite") as other:
        ledger.record(JOB, GOOD)
        other.record(JOB, BAD)
        other.record(replace(JOB, seed=2), BAD)
        assert merge_ledger(ledger, tmp_path / "b.sqlite") == (2, 1)
        assert merge_ledger(other, tmp_path / "a.sqlite") == (2, 2)
        assert [r.error for r in ledger.records()] == [None, None, BAD.error, BAD.error]
        assert [r.error for r in other.records()] == [None, None, BAD.error, BAD.error]


def test_a_table_for_people(tmp_path):
    with Ledger(tmp_path / "a.sqlite") as ledger:
        ledger.record(JOB, GOOD)
        ledger.record(replace(JOB, seed=2), BAD)
        export_ledger(ledger, tmp_path / "a.csv")
        rows = list(csv.DictReader((tmp_path / "a.csv").read_text().splitlines()))
        assert [(row["contender"], row["accuracy"], row["error"]) for row in rows] == [
            ("dicot", "81.3", ""),
            ("dicot", "nan", "InputError: too short"),
        ]
        with pytest.raises(InputError, match=r"exported as .csv or .parquet"):
            export_ledger(ledger, tmp_path / "a.xls")
        (tmp_path / "other.csv").write_text("a,b\n1,2\n")
        with pytest.raises(InputError, match="no exported ledger: row 1 lacks suite"):
            merge_ledger(ledger, tmp_path / "other.csv")
        with pytest.raises(InputError, match="There is no file"):
            merge_ledger(ledger, tmp_path / "nowhere.csv")


def test_no_metric_is_called_like_a_column():
    for make in every_protocol().values():
        assert not {metric.name for metric in make().metrics} & {"suite", "contender", *COLUMNS}
