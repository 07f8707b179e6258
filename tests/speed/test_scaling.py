"""The simulation behind docs/scaling.md: small cases that can be reckoned by hand, and the page itself."""

from pathlib import Path

import pytest
from benchmarks.queues import Phase, Pool, flow
from benchmarks.scaling import World, embed, index, page, train, with_failures

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scaling.md"


def test_the_page_holds_what_the_simulation_prints():
    text = PAGE.read_text(encoding="utf-8")
    assert page() in text, "run `python -m benchmarks.scaling --write`"


def test_one_slot_does_one_thing_after_the_other_and_many_share_what_there_is():
    phases = [Phase("store", 1.0), Phase("cores", 3.0)]
    alone = flow(100, 1, phases, {"store": Pool(1), "cores": Pool(1)})
    assert alone.seconds == pytest.approx(400, rel=0.05)
    four = flow(100, 4, phases, {"store": Pool(1), "cores": Pool(4)})
    assert 100 < four.seconds < 135, "the store gives one a second at best"
    assert four.bottleneck.startswith("store")
    crowd = flow(100_000, 40, phases, {"store": Pool(1), "cores": Pool(40)})
    assert crowd.seconds == pytest.approx(100_000, rel=0.02), "of which the first were simulated"


def test_failures_cost_their_machine_and_in_training_everybody():
    world = World()
    day = 86_400.0
    seconds, failures = with_failures(day, 1000, 10.0, world)
    assert failures > 10 and day < seconds < 1.01 * day
    often = World()
    for name, value in (("failure", 3600.0), ("restart", 600.0)):
        often.rates[name, "assumed"] = often.rates[name, "assumed"]._replace(value=value)
    assert train(10**9, 1, 128, often).seconds > 1.1 * train(10**9, 1, 128, world).seconds


def test_limits_of_the_code_are_named():
    world = World()
    assert not train(10**6, 1, 128, world).stops and not index(10**6, 1, world).stops
    assert "for the order" in train(10**11, 1, 128, world).stops
    assert "manifest" in embed(10**11, 1, world).stops
    assert "memory" in index(10**11, 1, world).stops


def test_ranks_divide_the_encoder_and_nothing_else():
    world = World()
    one, two, eight = (train(10**9, ranks, 128, world).seconds for ranks in (1, 2, 8))
    assert one > two > eight > 0.329 * one
    assert train(10**9, 64, 128, world).bottleneck.startswith("reads of the store"), "each of them reads every batch"
    assert train(10**9, 64, 64 * 128, world, divided=True).seconds < 0.05 * one
