"""Names of data in file names: nothing leaves its folder, nothing is overwritten, ordinary names stay as they are."""

import os

import pytest
from tests.commands import bench
from tests.report.samples import SUITES, write_csv

from bench.report.benchmark import write_report
from bench.report.frame import frame
from bench.report.pages import folder_name, slug

EVIL = ("x/../../../stolen", "/tmp/stolen", "é" * 300, "a\0b")


pytestmark = pytest.mark.usefixtures("quick")


def everything(folder):
    return {os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names}


def renamed(records, old, new):
    return [{**r, "source": new, "target": new} if r["target"] == old else r for r in records]


@pytest.mark.parametrize("name", EVIL)
def test_whatever_a_data_set_is_called_its_figures_stay_in_the_folder(tmp_path, name):
    """One level below a folder of our own, so that what leaves the report's can be seen."""
    out = tmp_path / "a" / "b" / "out"
    paths = write_report(out, "batch_scaling", frame(renamed(SUITES["batch_scaling"], "harth", name)))
    assert {os.path.relpath(path, tmp_path) for path in paths} == everything(tmp_path)
    assert all(path.parent == out for path in paths)


def test_the_folder_of_a_suite_stays_where_reports_are_written(tmp_path, monkeypatch):
    work = tmp_path / "a" / "work"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    suites = ("../../stolen", "ucr", "u/r")
    write_csv(work / "all.csv", [{**r, "suite": name} for name in suites for r in SUITES["batch_scaling"]])
    for name in suites:
        bench("report", name, "--records", "all.csv")
    written = everything(tmp_path) - {"a/work/all.csv"}
    assert {os.path.dirname(os.path.dirname(path)) for path in written} == {"a/work/out"}
    folders = {os.path.basename(os.path.dirname(path)) for path in written}
    assert len(folders) == 3 and "ucr" in folders


def test_ordinary_names_stay_and_others_do_not_meet():
    for name in ("ucr", "low_label", "ItalyPowerDemand", "skoda-paper"):
        assert slug(name) == folder_name(name) == name
    assert len({folder_name(name) for name in ("a b", "a/b", "a-b", "a.b", "", "..", "unnamed")}) == 7
