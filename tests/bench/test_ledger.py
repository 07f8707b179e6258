"""The ledger: nothing lost, nothing doubled, failures kept."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from bench.ledger import Ledger, read_contents, write_table
from bench.paper.suites import PAPER_UCR, PAPER_UEA
from bench.suites import SuiteOptions, suite_jobs
from dicot.core.errors import InputError
from dicot.judge.evaluation import Contender
from dicot.judge.evaluation.jobs import Job, JobData

SETTINGS = {"schedule": "per_step", "precision": "tf32"}
JOB = Job("ucr", Contender("dicot", "dicot", {}, SETTINGS), JobData("GunPoint"), JobData("GunPoint"), "linear", 1)
GOOD = {
    "values": {"accuracy": 81.3, "macro_f1": 0.1 + 0.2},
    "recipe": {"steps": 200, "batch_size": 8, "lr": 3e-4},
    "source_data": "aa",
    "target_data": "aa",
    "device": "cpu",
    "fit_seconds": 1.5,
    "peak_memory": 7,
}
BAD = {
    "values": {"accuracy": math.nan, "macro_f1": math.nan},
    "error": "InputError: too short",
    "source_data": "aa",
    "target_data": "aa",
}


def record(ledger: Ledger, job: Job, facts: dict, **changed) -> None:
    ledger.record([job.result(**{**facts, **changed})])


def values(ledger: Ledger, suite: str | None = None) -> list[tuple[str, str, int, str, float, str | None]]:
    return [(r.suite, r.contender, r.seed, m, v, r.error) for r in ledger.results(suite) for m, v in r.values.items()]


def test_one_row_for_all_suites_and_names(tmp_path):
    with Ledger(tmp_path / "bench.sqlite") as ledger:
        elsewhere = replace(JOB, suite="ablation", contender=replace(JOB.contender, name="Overlap -> 50%"))
        ledger.enrol([elsewhere, replace(JOB, seed=3)])
        record(ledger, JOB, GOOD)
        record(ledger, JOB, GOOD, values={"accuracy": 90.0})
        assert values(ledger) == [
            ("ablation", "Overlap -> 50%", 1, "accuracy", 90.0, None),
            ("ucr", "dicot", 1, "accuracy", 90.0, None),
        ]
        assert values(ledger, "ucr") == values(ledger)[1:]


def test_a_failure_does_not_replace_a_result_of_the_same_data(tmp_path):
    with Ledger(tmp_path / "bench.sqlite") as ledger:
        record(ledger, JOB, BAD)
        record(ledger, JOB, GOOD)
        record(ledger, JOB, BAD)
        record(ledger, JOB, BAD, source_data="", target_data="")
        assert [r.error for r in ledger.results()] == [None]
        record(ledger, JOB, BAD, source_data="bb")
        assert [r.error for r in ledger.results()] == [BAD["error"]]


def write(path, first: int) -> None:
    with Ledger(path) as ledger:
        for seed in range(first, first + 20):
            record(ledger, replace(JOB, seed=seed), GOOD, values={"accuracy": float(seed)})


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
        assert sorted((r.seed, r.values["accuracy"]) for r in ledger.results()) == [(n, float(n)) for n in range(50)]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "sqlite"])
def test_a_ledger_travels_whole(tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    with Ledger(tmp_path / "a.sqlite") as ledger, Ledger(tmp_path / "b.sqlite") as other:
        record(ledger, JOB, GOOD)
        record(ledger, replace(JOB, seed=2), BAD)
        ledger.enrol([replace(JOB, suite="ablation")])
        clustered = replace(JOB, contender=Contender("random", "random"), protocol="clustering", seed=3)
        record(ledger, clustered, {"values": {"nmi": 0.1, "ari": 0.2}})
        path = tmp_path / f"a.{suffix}"
        if suffix != "sqlite":
            assert write_table(path, *ledger.contents()) == 4
        for _ in range(2):  # a second time changes nothing
            other.take([read_contents(path)])[0]
            assert repr(other.results()) == repr(ledger.results())
        assert len(other.results()) == 4


@pytest.mark.parametrize("suffix", ["csv", "parquet", "sqlite"])
def test_what_was_wanted_and_has_no_record_is_known_and_travels(tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    moved = replace(JOB, suite="transfer", source=JobData("harth", (3, 4, 5)), target=JobData("pamap2"))
    with Ledger(tmp_path / "a.sqlite") as ledger, Ledger(tmp_path / "b.sqlite") as other:
        ledger.enrol([JOB, replace(JOB, target=JobData("Beef"), source=JobData("Beef")), moved])
        record(ledger, JOB, BAD)  # a failure is a record
        wanted = [("transfer", "harth", "pamap2"), ("ucr", "Beef", "Beef")]
        assert ledger.contents().wanted == wanted
        path = tmp_path / f"a.{suffix}"
        if suffix != "sqlite":
            assert write_table(path, *ledger.contents()) == 3
        assert other.take([read_contents(path)])[0] == (1, 1)
        assert other.contents().wanted == wanted and repr(other.results()) == repr(ledger.results())
        record(other, moved, GOOD)
        assert other.contents().wanted == wanted[1:]


DRAWN = replace(JOB, protocol="few_5", draws=True)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "sqlite"])
def test_draws_of_labelled_cases_travel_whole(tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    with Ledger(tmp_path / "a.sqlite") as ledger, Ledger(tmp_path / "b.sqlite") as other:
        ledger.record([DRAWN.result({"accuracy": 50.0 + draw}, draw=draw, source_data="aa") for draw in (1, 2, 3)])
        ledger.enrol([replace(DRAWN, suite="other")])
        record(ledger, JOB, GOOD)
        path = tmp_path / f"a.{suffix}"
        if suffix != "sqlite":
            assert write_table(path, *ledger.contents()) == 7
        other.take([read_contents(path)])[0]
        assert repr(other.results()) == repr(ledger.results())
        drawn = [(one.draw, one.values["accuracy"]) for one in other.results("other")]
        assert drawn == [(1, 51.0), (2, 52.0), (3, 53.0)]


def test_a_table_that_lost_a_draw_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    with Ledger(":memory:") as ledger:
        ledger.record([DRAWN.result({"accuracy": 50.0 + draw}, draw=draw) for draw in (1, 2, 3)])
        write_table(path, *ledger.contents())
        lines = path.read_text().splitlines(keepends=True)
        for changed, said in (
            ([*lines[:2], *lines[3:]], "draw"),
            ([*lines[:2], lines[2].replace(",1,2,", ",1,0,", 1), lines[3]], "draw"),
            ([*lines, lines[2].replace("52.0", "62.0")], "something else"),
        ):
            path.write_text("".join(changed))
            with pytest.raises(InputError, match=said):
                ledger.take([read_contents(path)])[0]


def test_merging_keeps_the_better_row(tmp_path):
    with Ledger(tmp_path / "a.sqlite") as ledger, Ledger(tmp_path / "b.sqlite") as other:
        record(ledger, JOB, GOOD)
        record(other, JOB, BAD)
        record(other, replace(JOB, seed=2), BAD)
        assert ledger.take([read_contents(tmp_path / "b.sqlite")])[0] == (2, 1)
        assert other.take([read_contents(tmp_path / "a.sqlite")])[0] == (2, 2)
        assert [r.error for r in ledger.results()] == [None, BAD["error"]]
        assert [r.error for r in other.results()] == [None, BAD["error"]]


@pytest.mark.parametrize("name", ["ucr", "uea", "sensors"])
def test_the_published_results_are_written_as_they_were_read(tmp_path, name):
    published = Path(__file__).parents[2] / "results" / f"{name}.csv"
    with Ledger(tmp_path / "a.sqlite") as ledger:
        ledger.take([read_contents(published)])[0]
        write_table(tmp_path / "again.csv", *ledger.contents())
    assert (tmp_path / "again.csv").read_bytes() == published.read_bytes()


def test_the_keys_of_the_published_results_are_those_of_jobs_of_today():
    """A job whose key changed would be run again by everybody."""
    published = Path(__file__).parents[2] / "results"
    results = [one for name in ("ucr", "uea") for one in read_contents(published / f"{name}.csv").results]
    assert len(results) > 1000
    for one in results:
        config = json.loads(one.config)
        who = Contender(one.contender, config["kind"], config.get("method_params", {}), config.get("settings", {}))
        job = Job(one.suite, who, JobData(one.source), JobData(one.target), one.protocol, one.seed)
        assert job.key == one.key
    suites = {name: {job.key for job in suite_jobs([name], SuiteOptions())} for name in ("ucr", "uea")}
    in_the_paper = [one for one in results if one.source in {*PAPER_UCR, *PAPER_UEA} and one.schedule != "per_epoch"]
    assert all(one.key in suites[one.suite] for one in in_the_paper if one.precision != "tf32")
