"""Keys: equal for equal configurations, different for any other."""

import hashlib
from dataclasses import replace

import pytest

from dicot.judge.evaluation import Contender
from dicot.judge.evaluation.jobs import Job, JobData, unique_jobs, units_of

BASE = Job(
    "large",
    Contender("dicot", "dicot", {"overlap": 0.25, "k": (2, 5)}, {"schedule": "per_step", "precision": "float32"}),
    JobData("harth", (3, 4, 5)),
    JobData("pamap2", (2, 3, 4)),
    "linear",
    seed=1,
)


def other(**settings) -> Contender:
    return replace(BASE.contender, **settings)


def test_a_key_is_the_same_today_and_tomorrow():
    """Whatever changes this text makes every ledger start anew."""
    text = (
        '{"kind":"dicot","method_params":{"k":[2,5],"overlap":0.25},"protocol":"linear","seed":1,'
        '"settings":{"precision":"float32","schedule":"per_step"},"source":"harth","source_channels":[3,4,5],'
        '"target":"pamap2","target_channels":[2,3,4]}'
    )
    assert BASE.key == hashlib.sha256(text.encode()).hexdigest()


def test_a_key_does_not_depend_on_names_order_or_marks():
    shuffled = dict(reversed(BASE.contender.settings.items()))
    same = [
        replace(BASE, suite="transfer"),
        replace(BASE, trial=True),
        replace(BASE, contender=other(name="Di-COT")),
        replace(BASE, contender=other(settings=shuffled)),
        replace(BASE, contender=other(method_params={"k": [2, 5], "overlap": 0.25})),
    ]
    assert {job.key for job in same} == {BASE.key}
    assert unique_jobs([BASE, *same]) == [BASE]


@pytest.mark.parametrize(
    "changed",
    [
        {"contender": other(kind="catt")},
        {"contender": other(method_params={"overlap": 0.5, "k": (2, 5)})},
        {"contender": other(method_params={"overlap": 0.25})},
        {"contender": other(settings={"schedule": "per_epoch", "precision": "float32"})},
        {"contender": other(settings={"schedule": "per_step", "precision": "tf32"})},
        {"contender": other(settings={**BASE.contender.settings, "batch_size": 8})},
        {"contender": other(settings={**BASE.contender.settings, "steps": 10})},
        {"contender": other(settings={**BASE.contender.settings, "encoder": "fcn"})},
        {"source": JobData("wisdm2", (3, 4, 5))},
        {"source": JobData("harth")},
        {"target": JobData("wisdm2", (2, 3, 4))},
        {"target": JobData("pamap2", (4, 5, 6))},
        {"source": JobData("harth", (3, 4, 5), "large")},
        {"target": JobData("pamap2", (2, 3, 4), "large")},
        {"source": JobData("harth", (3, 4, 5), scale="dataset")},
        {"target": JobData("pamap2", (2, 3, 4), scale="case")},
        {"protocol": "ridge"},
        {"seed": 2},
        {"steps": 10},
        {"draws": True},
        {"subsets": "per-seed"},
    ],
    ids=str,
)
def test_a_key_changes_with_every_setting(changed):
    assert replace(BASE, **changed).key != BASE.key


def test_units_share_a_fit_and_lie_by_source():
    jobs = [
        replace(BASE, protocol="knn_5"),
        replace(BASE, source=JobData("ecg")),
        BASE,
        replace(BASE, target=JobData("wisdm2")),
        replace(BASE, seed=2),
        BASE,
    ]
    units = units_of(jobs)
    assert [unit.first.source.name for unit in units] == ["ecg", "harth", "harth"]
    assert [len(unit.jobs) for unit in units] == [1, 3, 1]
    assert {data.name: len(found) for data, found in units[1].by_target().items()} == {"pamap2": 2, "wisdm2": 1}
    assert str(units[2].first) == "dicot on harth, channels 3, 4, 5, seed 2"
