"""The cheapest units first, and those of one data set next to each other."""

from dicot.judge.bench.crossing import SuiteOptions
from dicot.judge.bench.suites import suite_jobs
from dicot.judge.evaluation.jobs import units_of
from dicot.paper.runs import cheapest_first


def test_short_runs_come_before_long_ones_and_controls_before_methods():
    options = SuiteOptions(contenders=("dicot", "catt"), sets=("synthetic", "ItalyPowerDemand"))
    units = cheapest_first(units_of(suite_jobs(["ucr"], options)))
    sets = [unit.first.source.name for unit in units]
    assert sets == sorted(sets, key=["ItalyPowerDemand", "synthetic"].index)  # 24 time steps, and more
    kinds = [unit.first.contender.kind for unit in units[:4]]
    assert set(kinds[:2]) == {"random", "calibrated"} and set(kinds[2:]) == {"dicot", "catt"}


def test_larger_batches_cost_more():
    jobs = suite_jobs(["batch_scaling"], SuiteOptions(contenders=("dicot",), sets=("synthetic",)))
    units = [unit for unit in cheapest_first(units_of(jobs)) if unit.first.contender.trained]
    sizes = [unit.first.contender.settings["batch_size"] for unit in units]
    assert sizes == sorted(sizes) and len(set(sizes)) > 1
