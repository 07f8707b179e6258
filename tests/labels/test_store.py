"""LabelStore: what was written is there, also after a kill and beside other writers, and nothing is overwritten."""

import csv
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from dicot import LabelStore
from dicot.core.errors import DicotError, InputError, OutputError
from dicot.use.labels.tables import read_labels
from dicot.use.labels.windows import put_on_windows

NOBODY = 65534


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "labels.sqlite"


def test_labels_are_kept_by_window_or_by_id_with_their_types(path):
    with LabelStore(path) as store:
        store.set([("walk.csv", 0, 2.56), ("walk.csv", 1.28, 3.84), "case 7"], ["up", "down", "up"], by="Ada")
        store.set([("b.csv", "2026-01-02T00:00", "2026-01-02T00:01")], 3)
        store.set(["x", "y"], 2.5)
    with LabelStore(path) as store:
        labels = store.current()
    walks = {("walk.csv", 0, 2.56): "up", ("walk.csv", 1.28, 3.84): "down", "case 7": "up"}
    assert labels == {**walks, ("b.csv", "2026-01-02T00:00", "2026-01-02T00:01"): 3, "x": 2.5, "y": 2.5}
    assert next(iter(labels)) == ("walk.csv", 0, 2.56), "the oldest first"


def test_a_key_is_the_same_whatever_kind_of_number_says_it(path):
    with LabelStore(path) as store:
        store.set([("a", 1, 2)], "x")
        store.set([("a", 1.0, np.int64(2))], np.str_("y"))
        store.set([["a", np.float64(1), 2]], np.int32(4))
        assert store.current() == {("a", 1, 2): 4}
        assert store.current()["a", np.float32(1), np.int8(2)] == 4
        assert [change.old for change in store.history()] == [None, "x", "y"]


def test_history_keeps_who_when_old_and_new(path):
    with LabelStore(path) as store:
        store.set(["a", "b"], "x", by="Ada")
        store.set(["a"], "y", by="Grace")
        store.remove(["b"], by="Ada")
        store.set(["b"], "z")
        history = store.history()
        assert [(c.key, c.old, c.new, c.by, c.action) for c in history] == [
            ("a", None, "x", "Ada", 1),
            ("b", None, "x", "Ada", 1),
            ("a", "x", "y", "Grace", 2),
            ("b", "x", None, "Ada", 3),
            ("b", None, "z", "", 4),
        ]
        assert store.current() == {"a": "y", "b": "z"}
    times = [datetime.fromisoformat(change.at) for change in history]
    assert times == sorted(times) and all(time.utcoffset() is not None for time in times)


def test_undo_goes_back_call_by_call_and_is_history_itself(path):
    states = [{}]
    with LabelStore(path) as store:
        for change in (
            lambda: store.set(["a", "b"], "x"),
            lambda: store.set(["b", "c"], ["y", "z"]),
            lambda: store.remove(["a", "c"]),
            lambda: store.set(["a"], "w"),
        ):
            change()
            states.append(store.current())
        assert store.undo() == {"a": None}
        assert store.current() == states[3]
        assert store.undo(2) == {"a": "x", "b": "x", "c": None}
        assert store.current() == states[1]
        store.set(["d"], "v")
        assert store.undo() == {"d": None}, "what came after an undo is the last call"
        assert store.undo(5) == {"a": None, "b": None}, "all that is left"
        assert store.current() == {} and store.undo() == {}
        assert sum(change.undoes is None for change in store.history()) == 2 + 2 + 2 + 1 + 1
        assert len(store.history()) == 2 * 8, "nothing is ever deleted"


def test_a_call_is_whole_or_nothing(path):
    with LabelStore(path) as store:
        store.set(["a"], "x")
        for keys, labels in ((["b", "c"], ["y", None]), (["b", ""], "y"), (["b", "b"], "y"), (["b"], ["y", "z"])):
            with pytest.raises(InputError):
                store.set(keys, labels)
        with pytest.raises(InputError, match="'b'"):
            store.remove(["a", "b"])
        assert store.current() == {"a": "x"} and len(store.history()) == 1


NAN, INF = float("nan"), float("inf")
NO_KEYS = [7, None, "", "a\0b", "\ud800", b"id", ("a",), (1, 2, 3), ("a", 2, 1), ("a", 1, "2"), ("a", 1, True)]
NO_KEYS += [("a", 1, NAN), ("a", 1, INF), ("a", 0, 2**63), ("a", 0, 10**400)]


def test_what_is_no_key_or_no_label_is_named(path):
    pairs = [(key, "x") for key in NO_KEYS]
    pairs += [("the key", label) for label in (None, "", -1, -1.0, NAN, INF, True, b"x", 2**63, [1], "a\0")]
    with LabelStore(path) as store:
        for key, label in pairs:
            with pytest.raises(InputError) as caught:
                store.set([key], [label])
            assert repr(key) in str(caught.value) and (label == "x" or repr(label) in str(caught.value))


def test_export_writes_the_current_labels(path, tmp_path):
    with LabelStore(path) as store:
        store.set([("b, c", 0.1, 0.2)], 'say "up"', by="Ada")
        store.set(["case é"], 1)
        store.set(["case é"], 2)
        store.set(["gone"], 2)
        store.undo()
        assert store.export(tmp_path / "out" / "labels.csv") == 2
        with pytest.raises(InputError, match=r"labels\.xls"):
            store.export(tmp_path / "labels.xls")
        with pytest.raises(OutputError, match=str(path)):
            store.export(path / "labels.csv")
    with (tmp_path / "out" / "labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(r["recording"], r["start"], r["end"], r["label"], r["by"]) for r in rows] == [
        ("b, c", "0.1", "0.2", 'say "up"', "Ada"),
        ("case é", "", "", "2", ""),
    ]
    assert all(datetime.fromisoformat(row["at"]) for row in rows)


def test_labels_keep_the_order_in_which_they_came(path):
    with LabelStore(path) as store:
        store.add_names(["sit", "stand"])  # of a file, before anybody gave one
        store.set(["a", "b"], ["walk", "run"])
        store.set(["c"], "stand")
        store.set(["a"], "run")  # nobody walks any more
        assert store.names() == ["sit", "stand", "walk", "run"]
        store.set(["d"], "wlak")
        store.undo()
        store.set(["d"], "jump")
    with LabelStore(path) as store:
        assert store.names() == ["sit", "stand", "walk", "run", "jump"]
        store.undo(5)
        assert store.names() == ["sit", "stand"]


# Files that are no label store, or cannot be written


def test_a_foreign_file_is_refused_and_left_as_it_was(tmp_path):
    text, other, later = tmp_path / "notes.txt", tmp_path / "other.sqlite", tmp_path / "later.sqlite"
    text.write_text("no database " * 100)
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE labels (id, label)")
    database.close()
    LabelStore(later).close()
    with sqlite3.connect(later) as database:
        database.execute("PRAGMA user_version = 7")
    database.close()
    for path, word in ((text, "label store"), (other, "other tables"), (later, "version 7")):
        before = path.read_bytes()
        for read_only in (False, True):
            with pytest.raises(InputError, match=word) as caught:
                LabelStore(path, read_only=read_only)
            assert str(path) in str(caught.value)
        assert path.read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["later.sqlite", "notes.txt", "other.sqlite"]


def test_a_path_that_can_hold_no_store_is_named(tmp_path):
    (tmp_path / "file").write_text("text")
    for where in (tmp_path, tmp_path / "file" / "labels.sqlite"):
        with pytest.raises(OutputError, match=str(where)):
            LabelStore(where)
    with pytest.raises(InputError, match="none.sqlite"):
        LabelStore(tmp_path / "none.sqlite", read_only=True)
    assert not (tmp_path / "none.sqlite").exists()


def test_values_that_another_program_wrote_are_refused(path):
    with LabelStore(path) as store:
        store.set(["a"], "x")
    with sqlite3.connect(path) as database:
        database.execute("UPDATE changes SET new = x'00ff'")
        database.execute("UPDATE names SET label = x'00ff'")
    database.close()
    with LabelStore(path) as store:
        for read in (store.current, store.history, store.names, lambda: store.export(path.with_name("a.csv"))):
            with pytest.raises(InputError, match=r"labels\.sqlite is damaged"):
                read()
    assert not path.with_name("a.csv").exists()


def test_a_read_only_store_can_be_read_and_a_write_says_what_to_do():
    folder = Path(tempfile.mkdtemp())  # one that anybody may look into, unlike pytest's own
    user = os.geteuid()
    try:
        path = folder / "labels.sqlite"
        with LabelStore(path) as store:
            store.set(["a"], "x")
        path.chmod(0o444)
        folder.chmod(0o555)
        if user == 0:  # who may otherwise write anywhere
            os.seteuid(NOBODY)
        with pytest.raises(OutputError, match=r"labels\.sqlite.*permission"):
            LabelStore(path)
        with LabelStore(path, read_only=True) as store:
            assert store.current() == {"a": "x"}
            with pytest.raises(DicotError, match=r"labels\.sqlite"):
                store.set(["b"], "x")
    finally:
        os.seteuid(user)
        folder.chmod(0o755)
        shutil.rmtree(folder)


# Kills, and several processes

WRITER = """
import sys
from dicot.use.labels.store import LabelStore

path, first, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with LabelStore(path) as store:
    print("open", flush=True)
    for number in range(first, first + 1_000_000):
        store.set([(f"call {number}", i, i + 1) for i in range(size)], number)
        print(number, flush=True)
"""


def start(path, first, size):
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(first), str(size)], stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("size", [1, 3000])
def test_a_kill_loses_nothing_that_was_committed_and_leaves_no_half_of_a_call(path, size):
    dice, first, confirmed = random.Random(0), 0, set()
    for kill in range(1, 5):
        writer = start(path, first, size)
        assert writer.stdout.readline() == "open\n"
        confirmed |= {int(writer.stdout.readline()) for _ in range(2)}
        # A call takes a few milliseconds, or tens of them with many keys: this ends in the middle of one, or between.
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(timeout=dice.uniform(0, 0.1))
        writer.send_signal(signal.SIGKILL)
        confirmed |= {int(line) for line in writer.communicate()[0].splitlines()}
        assert writer.returncode == -signal.SIGKILL
        with LabelStore(path) as store:
            labels, history = store.current(), store.history()
        written = set(labels.values())
        assert confirmed <= written and len(written - confirmed) <= kill, "at most one call of each kill"
        assert labels == {(f"call {number}", i, i + 1): number for number in written for i in range(size)}
        assert len(history) == size * len(written)
        first = max(written) + 1


SHARER = """
import sys
from dicot.use.labels.store import LabelStore

path, name = sys.argv[1:]
for number in range(25):
    with LabelStore(path) as store:
        store.set([f"{name} {number}", "shared"], f"{name} {number}", by=name)
"""


def test_several_processes_write_to_a_new_file_at_once(path):
    names = ["one", "two", "three"]
    writers = [subprocess.Popen([sys.executable, "-c", SHARER, str(path), name]) for name in names]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    with LabelStore(path) as store:
        labels, history = store.current(), store.history()
    assert labels.keys() == {"shared"} | {f"{name} {number}" for name in names for number in range(25)}
    shared = [change for change in history if change.key == "shared"]
    assert [change.old for change in shared] == [None, *(change.new for change in shared[:-1])], "one after the other"
    assert len(shared) == 75 and len({change.action for change in history}) == 75
    assert labels["shared"] == shared[-1].new


# Ranges


def test_an_edge_is_moved_in_one_call_that_one_undo_takes_back(path):
    old, new, other = ("a", 0.0, 10.0), ("a", 0.0, 12.5), ("a", 12, 20)
    with LabelStore(path) as store:
        store.set([old, other], ["walk", "sit"])
        store.change({old: None, new: "walk"}, by="Ada")
        assert list(store.current().items()) == [(other, "sit"), (new, "walk")]
        assert store.undo() == {old: "walk", new: None}
        assert list(store.current()) == [old, other], "also as old as before"


def test_a_window_takes_the_label_of_ranges_by_the_rule():
    start = np.arange(0, 10.0)
    labels = {("a", 0.0, 4.5): "walk", ("a", 3.0, 6.0): "run", ("a", 2.0, 4.0): "sit", ("a", 7.0, 7.9): "fall"}
    given, lost = put_on_windows(labels, ["a"] * 10, start, start + 2)
    # The key from 2 to 4 s is a window's and no range. From 3 s on "run" counts, which has half of the window from 5 s.
    assert given.tolist() == ["walk", "walk", "sit", "run", "run", "", "", "", "", ""] and lost == [("a", 7.0, 7.9)]
    labels = {("b", 0.0, 9.0): "walk", ("a", 90.0, 95.0): "walk", "case": "walk", ("a", 5.2, 6.4): "run"}
    given, lost = put_on_windows(labels, ["a"] * 10, start, start + 2)
    assert given.tolist() == [""] * 5 + ["run"] + [""] * 4 and lost == list(labels)[:3]


def test_exports_come_back_as_they_were(path, tmp_path):
    begun = {"a": 1.7e9}
    with LabelStore(path) as store:
        store.set([("a", 5.0, 9.0)], "walk")
        store.set([("a", 1.28, 6.5), ("dir/b", 0, 0.5)], ["run", 7])
        for name, dates in (("l.csv", {}), ("l.json", {}), ("dated.csv", begun), ("dated.json", begun)):
            assert store.export(tmp_path / name, dates) == 3
            read = read_labels(tmp_path / name, begun)
            assert read == {("a", 5, 9): "walk", ("a", 1.28, 6.5): "run", ("dir/b", 0, 0.5): "7"}
            assert next(iter(read)) == ("a", 5, 9), "the oldest is still the oldest"
        store.set(["case 7"], "run")
        with pytest.raises(InputError, match=r"new\.json: .*'case 7' has no start"):
            store.export(tmp_path / "new.json")
    assert not (tmp_path / "new.json").exists()
    with (tmp_path / "dated.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["start_time"] == "2023-11-14T22:13:21.280000+00:00" and rows[2]["end_time"] == ""
