"""Events from a few examples, hits that are one event, and outliers of a chosen reference."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dicot import EmbeddingOutlierDetector
from dicot.core.errors import InputError
from dicot.use.events import EventDetector, covered, merge_hits
from tests.commands import dicot

STEP, WIDTH = 1.0, 2.0


def recordings(n: int = 6, length: int = 60, seed: int = 0) -> dict[str, np.ndarray]:
    """Recordings of vectors in which windows 20 and 21 and, in every other one, 40 and 41 are of an event."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, length, 5)).astype(np.float32)
    x[:, 20:22] += 6
    x[::2, 40:42] += 6
    start = np.tile(np.arange(length) * STEP, n)
    name = np.repeat([f"r{i}" for i in range(n)], length)
    return {"X": x.reshape(-1, 5), "recording": name, "start": start, "end": start + WIDTH}


def test_windows_that_overlap_or_touch_are_one_hit() -> None:
    name, start = np.array(["a"] * 8 + ["b"]), np.array([0.0, 1, 2, 3, 4, 20, 22, 40, 2])
    hits, beyond = merge_hits([0, 4, 5, 2, 6, 8, 7], name, start, start + 2)
    assert beyond is None
    # 0 and 4 lie apart until 2 joins them; 5 and 6 touch; b is another recording.
    told = [(hit.row, hit.first, hit.last, hit.windows) for hit in hits]
    assert told == [(0, 0, 4, 3), (5, 5, 6, 2), (8, 8, 8, 1), (7, 7, 7, 1)]
    hits, beyond = merge_hits([5, 0, 6, 1, 8, 7], name, start, start + 2, most=2)
    assert [hit.row for hit in hits] == [5, 0] and [hit.windows for hit in hits] == [2, 2] and beyond == 8
    assert covered(name, start, start + 2) == 6 + 4 + 2 + 2


def test_a_few_examples_find_the_others_with_few_alarms() -> None:
    known, new = recordings(), recordings(seed=1)
    place = [known["recording"], 10 * known["start"], 10 * known["end"]]  # ten minutes each: enough for a rate
    event = (known["start"] == 20) & np.isin(known["recording"], ["r0", "r2", "r4"])
    true = np.isin(known["start"], [19, 20, 21, 22]) | np.isin(known["start"], [39, 40, 41, 42])
    model = EventDetector(alarms=0).fit(known["X"], event, ~true, *place, groups=known["recording"])
    hits = model.hits(model.scores(new["X"]), *(new[key] for key in ("recording", "start", "end")))
    assert len(hits) == 9, "one hit for each event of two windows"
    assert {float(new["start"][hit.row]) for hit in hits} <= {20.0, 21.0, 40.0, 41.0}
    assert sum(model.elsewhere_.values()) == 1, "the highest of all lies beyond the others"
    (worst,) = [name for name, count in model.elsewhere_.items() if count]
    rate = 1 / model.group_hours_[worst]
    assert f"Expect up to {rate:.3g} false hits per hour from a new person, not 0. " in model.expectation("person")
    assert f"Each person was judged by the others' threshold. The most came from {worst}, 1 in " in model.expectation(
        "person"
    )
    model.alarms = 2 * rate
    assert model.expectation("person").startswith("No person of 6 gave more than ")
    model.alarms = 0
    odd = known["X"] + 4 * ((known["recording"] == "r5") & (known["start"] % 9 == 0))[:, None]
    model.fit(odd, event, ~true, *place, groups=known["recording"])
    assert [name for name, count in model.elsewhere_.items() if count > 2] == ["r5"], "the others did not expect that"
    with pytest.raises(InputError, match="needs 2 examples .* got 18 examples of 1"):
        model.fit(known["X"], known["start"] < 3, ~true, *place, groups=(known["start"] >= 3).astype(int))


def expected(seconds: list[float], counts: list[int]) -> str:
    """What is to be expected where groups have so many seconds of normal time and gave so many false hits."""
    model = EventDetector(alarms=1)
    names = [f"r{number}" for number in range(len(seconds))]
    model.group_hours_ = dict(zip(names, [one / 3600 for one in seconds], strict=True))
    model.elsewhere_ = dict(zip(names, counts, strict=True))
    model.hours_ = sum(seconds) / 3600
    return model.expectation("recording")


def test_no_rate_is_told_of_a_few_seconds_of_normal_time() -> None:
    said = expected([13, 15, 14, 15, 15], [1, 0, 0, 0, 0])
    assert said.startswith("Too little normal time (72 s in all) to say how many false hits to expect")
    assert said.endswith("Label more windows of normal time.") and "per hour" not in said
    said = expected([60] * 10, [1] + [0] * 9)
    assert "All together gave 6.00 false hits per hour" in said and "r0" not in said
    assert "no recording has 6 minutes of normal time" in said
    said = expected([13, 3600, 3600], [1, 3, 0])
    assert "Expect up to 3 false hits per hour from a new recording, not 1" in said
    assert "The most came from r1, 3 in 1 h; 1 of 2 recordings gave more than 1 per hour" in said
    assert "1 recording(s) with less than 6 minutes of normal time" in said


def test_examples_are_counted_as_windows_and_as_events(tmp_path: Path) -> None:
    vectors, labels = tmp_path / "v.npz", tmp_path / "l.csv"
    np.savez(vectors, **recordings())
    falls = "".join(f"r{i},20,23,fall\n" for i in (0, 2, 4))  # two windows of each fall
    labels.write_text("recording,start,end,label\n" + falls)
    said = " ".join(dicot("events", "fall", vectors, "--labels", labels, "--out", tmp_path / "e.csv").split())
    assert "of 6 example windows (3 events) are found again" in said
    assert "Add recordings of normal time." in said, "without --known-only nobody has to label what is normal"


def test_the_command_finds_events_and_says_what_is_wrong(tmp_path: Path) -> None:
    vectors, labels, out = tmp_path / "v.npz", tmp_path / "l.csv", tmp_path / "e.csv"
    np.savez(vectors, **recordings())
    labels.write_text("recording,start,end,label\n" + "".join(f"r{i},20,22,fall\n" for i in (0, 2, 4)))
    said = dicot("events", "fall", vectors, "--labels", labels, "--out", out, "--alarms", 100)
    found = pd.read_csv(out)
    assert found["example"].sum() == 3 and "are found again by the others" in said
    assert said.index("no recording has 6 minutes of normal time") < said.index("event(s)"), "what holds comes first"
    assert set(found["start"]) >= {20.0, 40.0}
    for words, message in (
        (["faall", vectors, "--labels", labels], "no label 'faall'. Did you mean 'fall'"),
        (["fall", vectors, "--labels", labels, "--alarms", -1], "hits per hour, 0 or more; got -1"),
    ):
        with pytest.raises(InputError, match=message):
            dicot("events", *words, "--out", tmp_path / "other.csv")
    assert not (tmp_path / "other.csv").exists()


def frequent(tmp_path: Path, others: str) -> tuple[str, pd.DataFrame]:
    """Look for falls that most recordings hold without a label, beside five examples and other labels."""
    vectors, labels, out = tmp_path / "v.npz", tmp_path / "l.csv", tmp_path / "e.csv"
    held = recordings(n=40)
    unlabelled = np.isin(held["recording"], [f"r{i}" for i in range(6, 40)])
    held["X"][unlabelled & (held["start"] % 6 < 2)] += 6
    np.savez(vectors, **held)
    examples = "".join(f"r{i},20,22,fall\n" for i in range(5))
    labels.write_text("recording,start,end,label\n" + examples + others)
    said = dicot("events", "fall", vectors, "--labels", labels, "--out", out)
    return said, pd.read_csv(out)


def test_where_unlabelled_windows_hold_the_event_they_are_not_taken_as_normal(tmp_path: Path) -> None:
    others = "".join(f"r{i},{start},{start + 2},walk\n" for i in range(6) for start in range(2, 16, 3))
    said, found = frequent(tmp_path, others)
    assert "Only 0 of 5 example windows (5 events) were found again" in said
    assert "as with --known-only, and 5 of 5" in said
    assert len(found) > 100 and found["example"].sum() == 5


def test_where_nothing_else_is_labelled_it_says_what_to_label(tmp_path: Path) -> None:
    said, found = frequent(tmp_path, "")
    assert "Only 0 of 5 example windows (5 events)" in said
    assert "with any other label, and run this again with --known-only" in said
    assert not found["example"].any()


def test_neighbours_of_a_reference_case_are_of_other_groups() -> None:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(40, 3)) * [1, 1, 1]
    # Each group repeats one place many times: by its own copies it would seem dense, and all else far out.
    x, group = np.repeat(centres, 8, axis=0) + 1e-3 * rng.normal(size=(320, 3)), np.repeat(np.arange(40), 8)
    new = rng.normal(size=(50, 3))
    alone = EmbeddingOutlierDetector().fit(x, groups=np.arange(320)).score_samples(new)
    apart = EmbeddingOutlierDetector().fit(x, groups=group).score_samples(new)
    assert -alone.min() > 100 and -apart.min() < 20


def test_conditions_say_which_windows_are_normal(tmp_path: Path) -> None:
    held = recordings(n=8)
    odd = np.isin(held["start"], [20, 21]) | (np.isin(held["start"], [40, 41]) & (held["X"].mean(axis=1) > 3))
    np.savez(tmp_path / "v.npz", **held, y=np.where(odd, "fall 1", "walk"), group=held["recording"])
    for condition in ("label!=fall*", "label=walk", "end<=19.5"):
        words = ["--normal", condition, "--top", 12, "--out", tmp_path / "o.csv", "--overwrite"]
        said = dicot("outliers", tmp_path / "v.npz", *words)
        table = pd.read_csv(tmp_path / "o.csv")
        assert set(table.nlargest(24, "distance")["label"]) == {"fall 1"}, condition
        assert said.count("│ fall 1 │") == 12, "of two windows that overlap one is listed"
    both = ("--normal", "group=r0,r1,r2", "--normal", "start<10")
    assert "Normal: 30 of 480" in dicot("outliers", tmp_path / "v.npz", *both)
    for words, message in (
        (["--normal", "label!=fell"], r"v\.npz: no window has the label 'fell'. Did you mean"),
        (["--normal", "start>900"], r"v\.npz: no window is normal"),
        (["--reference", "n.npz", "--normal", "label=walk"], "Give one"),
    ):
        with pytest.raises(InputError, match=message):
            dicot("outliers", tmp_path / "v.npz", *words)
