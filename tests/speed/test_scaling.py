"""docs/scaling.md holds what is reckoned."""

from bench.speed.scaling import PAGE, World, several_gpus, tables


def test_the_page_holds_what_is_reckoned():
    text = PAGE.read_text(encoding="utf-8")
    assert tables() in text, "run `python -m bench scaling --write`"


def test_eight_gpus_are_more_than_six_times_one_by_what_is_exchanged():
    times = {row["GPUs"]: row["times as fast as one"] for row in several_gpus(World())}
    assert times[1] == 1 and times[8] > 6
