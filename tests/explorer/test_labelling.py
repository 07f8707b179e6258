"""Labels of the explorer are those of `dicot label`, and outlive it."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from dicot import LabelStore
from dicot.core.errors import InputError
from dicot.explorer.labelling import ChangedMeanwhileError, HandLabels
from dicot.explorer.workspace import open_workspace
from dicot.store.vectors import Vectors
from tests.commands import dicot
from tests.explorer.conftest import client_of


def placed(n: int = 6, **more: object) -> Vectors:
    start = np.arange(n) * 1.28
    return Vectors(np.eye(n, 4, dtype=np.float32) + 1, np.repeat("a", n), start, start + 2.56, **more)


def test_labels_survive_a_restart_and_so_do_their_number_keys(folder: Path) -> None:
    before = client_of(open_workspace(folder / "vectors.npz"))
    for row, name in ((2, "walk"), (3, "run"), (4, "bike"), (3, "walk")):
        before.post("/api/labels", json={"rows": [row], "label": name})
    again = client_of(open_workspace(folder / "vectors.npz")).get("/api/labels").json()
    labels = {"2": "walk", "3": "walk", "4": "bike"}
    assert again == {"labels": labels, "names": ["walk", "run", "bike"], "can_undo": True}  # "run" keeps its key


def test_the_store_is_the_one_of_the_command(folder: Path) -> None:
    vectors, store = folder / "vectors.npz", folder / "labels.sqlite"
    dicot("label", "add", store, "ann@3.5", "walk", "--vectors", vectors)
    client = client_of(open_workspace(vectors, labels=store))
    (row,) = client.get("/api/labels").json()["labels"]
    assert client.get("/api/find?recording=ann&time=3.5").json()["row"] == int(row)
    client.post("/api/labels", json={"rows": [int(row) + 4], "label": "run"})
    assert "1 run" in dicot("label", "show", store) and "1 walk" in dicot("label", "show", store)
    with LabelStore(store) as kept:
        assert [change.by for change in kept.history()] == ["", "explorer"]
    dicot("label", "add", store, "eve@3.5", "sit", "--vectors", vectors)  # while the explorer is open
    assert client.get("/api/labels").json()["names"] == ["walk", "run", "sit"]
    assert client.post("/api/undo").json()["names"] == ["walk", "run"]  # what was labelled last, whoever did it


def test_labels_on_no_window_are_told(folder: Path) -> None:
    with LabelStore(folder / "vectors.labels.sqlite") as kept:
        kept.set([("zoe", 0.0, 2.0)], "walk")
    said: list[str] = []
    workspace = open_workspace(folder / "vectors.npz", say=said.append)
    assert any("'zoe'" in sentence for sentence in said) and workspace.labels.given().hand == {}
    assert workspace.labels.undo() == []  # it is taken back, and no row has changed
    with LabelStore(folder / "vectors.labels.sqlite") as kept:
        assert kept.current() == {}


def test_labels_by_hand_win_over_those_of_the_file(tmp_path: Path) -> None:
    labels = HandLabels(tmp_path / "l.sqlite", placed(label=np.array([1.0, 2.0, np.nan, 10.0, 2.0, np.nan])))
    assert labels.given().all.tolist() == ["1", "2", "", "10", "2", ""]
    assert labels.names() == ["1", "2", "10"]  # numbers by size
    labels.set([0, 2], "2")
    labels.set([5], "odd")
    assert labels.given().all.tolist() == ["2", "2", "2", "10", "2", "odd"]
    assert labels.to_learn_from().tolist() == labels.given().all.tolist()
    assert labels.codes(labels.given().all).tolist() == [1, 1, 1, 2, 1, 3]
    assert labels.given().names == ["1", "2", "10", "odd"]  # no window is 1 any more, and its key is still its own
    labels = HandLabels(tmp_path / "m.sqlite", placed(label=np.array(list("aabbab"))))  # where the file knows all
    assert labels.to_learn_from().tolist() == [""] * 6
    labels.set([1], "b")
    assert labels.to_learn_from().tolist() == ["", "b", "", "", "", ""]


def test_number_keys_stay_when_the_file_knows_another_label(tmp_path: Path) -> None:
    before = HandLabels(tmp_path / "l.sqlite", placed(label=np.array(["sit", "", "", "", "", "lie"])))
    before.set([1], "walk")
    before.set([2], "run")
    keys = ["lie", "sit", "walk", "run"]
    assert before.given().names == keys
    more = np.array(["sit", "aerobics", "", "", "", "lie"])  # embedded again, and the data have a class more
    after = HandLabels(tmp_path / "l.sqlite", placed(label=more))
    assert after.given().names == [*keys, "aerobics"]
    assert after.names() == after.given().names  # the colours too


def test_a_store_of_numbers_keeps_numbers(tmp_path: Path) -> None:
    known = placed()
    with LabelStore(tmp_path / "l.sqlite") as kept:
        kept.set([("a", 0.0, 2.56)], 3)
    labels = HandLabels(tmp_path / "l.sqlite", known)
    labels.set([1], "3")
    labels.set([2], "4.5")
    with pytest.raises(InputError, match="are numbers; got 'walk'"):
        labels.set([3], "walk")
    with LabelStore(tmp_path / "l.sqlite") as kept:
        assert list(kept.current().values()) == [3, 3, 4.5]


def test_a_time_that_was_written_as_text_is_the_same_window(tmp_path: Path) -> None:
    with LabelStore(tmp_path / "l.sqlite") as kept:
        kept.set([("a", 1.2800001, 3.84)], "walk")
    labels = HandLabels(tmp_path / "l.sqlite", placed())
    assert labels.given().hand == {1: "walk"}
    labels.set([1], "run")  # under the key that is there
    assert labels.given().hand == {1: "run"}
    labels.set([1], None)
    assert labels.given().hand == {} and labels.given().can_undo


def test_cases_without_a_place_are_labelled_by_number(tmp_path: Path) -> None:
    part = np.repeat(["train", "test"], [4, 2])
    labels = HandLabels(tmp_path / "l.sqlite", Vectors(np.ones((6, 2), np.float32), part=part))
    labels.set([1, 5], "walk")
    with LabelStore(tmp_path / "l.sqlite") as kept:
        assert set(kept.current()) == {"train 1", "test 1"}
    bare = HandLabels(tmp_path / "m.sqlite", Vectors(np.ones((6, 2), np.float32)))
    bare.set([5], "run")
    assert bare.given().hand == {5: "run"} and labels.given().hand == {1: "walk", 5: "walk"}


def test_a_file_that_is_no_store_is_refused(folder: Path) -> None:
    (folder / "vectors.labels.sqlite").write_bytes(b"not a database, but long enough to be looked at" * 20)
    with pytest.raises(InputError, match=r"vectors\.labels\.sqlite"):
        open_workspace(folder / "vectors.npz")


def test_what_another_process_writes_is_seen_at_once(tmp_path: Path) -> None:
    labels = HandLabels(tmp_path / "l.sqlite", placed())
    for round_ in range(30):
        with LabelStore(tmp_path / "l.sqlite") as kept:
            kept.set([("a", 0.0, 2.56)], f"label {round_}")
            assert labels.given().hand == {0: f"label {round_}"}
        assert labels.given().hand == {0: f"label {round_}"}
        if round_ % 10 == 0:
            time.sleep(0.1)  # long enough for what was read to be kept
            assert labels.given() is labels.given()


def test_long_numbers_stay_apart(tmp_path: Path) -> None:
    numbers = np.array([10000000001.0, 10000000002.0, np.nan, 1.0, 0.1 + 0.2, 0.3])
    given = HandLabels(tmp_path / "a.sqlite", placed(label=numbers)).given().all.tolist()
    assert given == ["10000000001", "10000000002", "", "1", "0.30000000000000004", "0.3"]
    with LabelStore(tmp_path / "b.sqlite") as kept:
        kept.set([("a", 0.0, 2.56)], 1)
    hand = HandLabels(tmp_path / "b.sqlite", placed())
    hand.set([1], "9007199254740993")
    assert hand.given().hand == {0: "1", 1: "9007199254740993"}


def test_of_many_who_drag_the_same_ranges_at_once_one_moves_each(tmp_path: Path) -> None:
    store, known = tmp_path / "l.sqlite", placed()
    n_people, n_drags = 6, 12
    places = [("a", 100.0 * number, 100.0 * number + 50) for number in range(3)]
    HandLabels(store, known).change(dict.fromkeys(places, "walk"), seen=dict.fromkeys(places))
    everyone = threading.Barrier(n_people)

    def drag(person: int) -> int:
        """Move ranges about as fast as others let one, and return how many were moved."""
        labels, moved = HandLabels(store, known), 0
        for number in range(n_drags):
            seen = [key for key in labels.given().ranges if key[1] == places[number % 3][1]]
            everyone.wait()  # all have seen the same
            (before,) = seen
            after = (before[0], before[1], before[2] + 1 / (1 + person))
            with suppress(ChangedMeanwhileError):
                labels.change({before: None, after: "walk"}, seen={before: "walk", after: None})
                moved += 1
            everyone.wait()
        return moved

    with ThreadPoolExecutor(n_people) as pool:
        moved = sum(pool.map(drag, range(n_people)))
    assert len(HandLabels(store, known).given().ranges) == 3
    assert moved == n_drags
