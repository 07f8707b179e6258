"""The trials that an embedding is chosen by."""

import pytest
from benchmarks.trials import DEVELOPMENT, VARIANTS, trials

from dicot.bench.crossing import SuiteOptions
from dicot.datasets import DATASETS
from dicot.encoders import InceptionTime
from dicot.methods import build_method


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_one_that_the_library_knows(name):
    variant = VARIANTS[name]
    build_method(variant.kind, InceptionTime(3, dim=8), variant.method_params)
    model = variant.make(1)
    assert {key: getattr(model, key) for key in variant.settings} == variant.settings
    assert name == variant.name and "," not in name, "as --only has it"


def test_every_variant_and_control_is_run_on_every_set_that_may_be_chosen_on():
    jobs = trials(SuiteOptions(seeds=(1,)))
    assert {job.source.name for job in jobs} == set(DEVELOPMENT) and all(DATASETS.find(name) for name in DEVELOPMENT)
    assert {job.contender.name for job in jobs} == {*VARIANTS, "random", "calibrated", "minirocket"}
