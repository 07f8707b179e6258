"""docs/scaling.md holds what the simulation prints."""

from pathlib import Path

from benchmarks.scaling import page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scaling.md"


def test_the_page_holds_what_the_simulation_prints():
    text = PAGE.read_text(encoding="utf-8")
    assert page() in text, "run `python -m benchmarks.scaling --write`"
