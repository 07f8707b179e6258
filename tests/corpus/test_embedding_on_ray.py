"""A corpus embedded on Ray has the bytes of one process, though a node is lost. CONTRIBUTING.md says how to run it."""

import os
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.commands import dicot
from tests.corpus.folders import WINDOW, tree, write_recordings
from tests.corpus.slow_model import SlowModel

from dicot.store.build import build_corpus
from dicot.store.folder import Corpus
from dicot.store.onray import RayCluster
from dicot.store.shards import OnRay, embed_corpus

needs_ray = pytest.mark.skipif(
    not os.environ.get("DICOT_RAY") or find_spec("ray") is None,
    reason="starts Ray, which takes half a minute: set DICOT_RAY=1 and install the extra ray",
)


@pytest.fixture
def corpus(tmp_path) -> Corpus:
    recordings = write_recordings(tmp_path / "r", 8)
    build_corpus(recordings, tmp_path / "c", **WINDOW, channels=["x", "y"], label="label", shard_bytes=4000)
    return Corpus.open(tmp_path / "c")


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Ray
def test_a_node_that_is_killed_costs_no_row(corpus, tmp_path, monkeypatch):
    from functools import partial

    from ray.cluster_utils import Cluster as Nodes

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    root = str(Path(__file__).parents[2])  # so that the processes find SlowModel
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]))
    notes, size = tmp_path / "notes", {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
    notes.mkdir()
    embed_corpus(SlowModel(notes, 0), corpus, tmp_path / "whole", model_hash="m")
    nodes = Nodes(initialize_head=True, head_node_args=size)
    killed = []
    try:
        second = nodes.add_node(**size)
        raylet = second.all_processes["raylet"][0].process

        def kill() -> None:
            begun, given_up = notes / second.node_id, time.monotonic() + 300
            while not begun.exists() or begun.read_text().count("shard") < 2:
                if time.monotonic() > given_up:
                    return
                time.sleep(0.01)
            # Its processes too, as where a machine is lost: they outlive their raylet by seconds.
            tasks = Path(f"/proc/{raylet.pid}/task").glob("*/children")
            for pid in [raylet.pid, *(int(pid) for task in tasks for pid in task.read_text().split())]:
                os.kill(pid, signal.SIGKILL)
            killed.append(len(list((tmp_path / "v" / "shards").glob("*.npz"))))

        threading.Thread(target=kill, daemon=True).start()
        on_ray = OnRay(RayCluster(nodes.address), partial(SlowModel, notes, 0.5))
        done = embed_corpus(on_ray, corpus, tmp_path / "v", model_hash="m")
    finally:
        nodes.shutdown()
    assert killed and 0 < killed[0] < len(corpus.shards)
    begun = [path.read_text().count("shard") for path in notes.iterdir()]
    assert len(begun) == 2 and sum(begun) > len(corpus.shards) > 10  # both took part; one shard was begun twice
    assert len(done) == len(corpus) and tree(tmp_path / "v") == tree(tmp_path / "whole")


@needs_ray
@pytest.mark.slow
def test_a_killed_command_is_continued_on_ray_with_the_bytes_of_one_process(corpus, tmp_path):
    model = tmp_path / "m"
    dicot("pretrain", corpus.path, "--method", "random", "--set", "dim=8", "--out", model, "--device", "cpu")
    words = ["embed", model, corpus.path, "--device", "cpu", "--out"]
    dicot(*words, tmp_path / "whole")
    on_ray = ["--ray", "local", "--set", "actors=1"]
    command = [sys.executable, "-m", "dicot", *map(str, words), str(tmp_path / "v"), *on_ray]
    first = subprocess.Popen(command)
    given_up = time.monotonic() + 300
    while len(list((tmp_path / "v").glob(".unfinished/0*.json"))) < 2:
        assert time.monotonic() < given_up and first.poll() is None
        time.sleep(0.005)
    first.kill()
    first.wait()
    there = len(list((tmp_path / "v").glob(".unfinished/0*.json")))
    assert not (tmp_path / "v" / "manifest.json").exists()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert f"{len(corpus)} windows -> 8 features" in done.stdout and 1 < there < len(corpus.shards)
    assert tree(tmp_path / "v") == tree(tmp_path / "whole")
