"""The simulation behind docs/scaling.md: small cases that can be reckoned by hand, and the page itself."""

from pathlib import Path

import pytest
from benchmarks.queues import Phase, Pool, flow
from benchmarks.scaling import page

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
