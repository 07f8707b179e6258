"""python -m benchmarks.corpus WHAT: a corpus larger than memory, from recordings to an index, with its peak memory.

  whole    generates recordings of --gigabytes, then builds a corpus, pretrains --steps, embeds and indexes it, each by
           a `dicot` command, killed --kills times at random moments; counts and checksums in the end
  rate     steps per second of pretraining from a corpus beside the same cases in memory, in turns in the same process
  needs    how much memory it takes to read files of each kind, beside what dicot.store.build.need_of says
  index    an index of --vectors x --features, its queries per second, and its recall
           beside plain numpy in float64

Windows are long (6 x 1024) and the encoder small (inception_time of 4 features): embedding 20 GB by the paper's encoder
takes far longer, and what is measured here is the way of the data.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

RATE = 100.0
WORKED = "{name:10} {seconds:8.1f} s   {cpu:8.1f} s of CPU   peak {peak:7.0f} MB   {note}"


def recording(number: int, channels: int, n_times: int) -> np.ndarray:
    """Values (C, T) of a recording, the same for the same number: noise around slow waves."""
    dice = np.random.default_rng([7, number])
    x = dice.standard_normal((channels, n_times), dtype=np.float32)
    x += np.sin(np.arange(n_times, dtype=np.float32) / (20 + number % 30))
    return x


def generate(folder: Path, options: argparse.Namespace) -> int:
    """Write recordings until they have the size; those that are there stay. Return how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    n_times = int(options.file_megabytes * 1e6 / 4 / options.channels)
    count: int = max(1, round(options.gigabytes * 1e9 / (n_times * options.channels * 4)))
    for number in range(count):
        path = folder / f"r{number:05d}.{options.kind}"
        if path.exists():
            continue
        x, aside = recording(number, options.channels, n_times), path.with_name(f".{path.name}")
        if options.kind == "npz":
            with aside.open("wb") as file:
                np.savez(file, X=x, rate=RATE)
        else:
            import pyarrow as pa
            from pyarrow import parquet

            columns = {"time": np.arange(n_times) / RATE, **{f"c{i}": row for i, row in enumerate(x)}}
            parquet.write_table(pa.table(columns), aside, compression="none")
        aside.replace(path)
    return count


class Watched:
    """A process whose memory is looked at all the time, with that of its children."""

    def __init__(self, words: list[object]) -> None:
        self.command = [sys.executable, "-c", "from dicot.cli import main; main()", *map(str, words)]
        self.peak = 0.0  # MB, of all its processes together
        self.out = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.started, self.before = time.monotonic(), os.times()
        self.process = subprocess.Popen(self.command, stdout=self.out, stderr=self.out, start_new_session=True)
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()

    def _watch(self) -> None:
        while self.process.poll() is None:
            self.peak = max(self.peak, sum(_resident(pid) for pid in _with_children(self.process.pid)))
            time.sleep(0.02)

    def kill(self) -> None:
        """End the process and its children by SIGKILL."""
        os.killpg(self.process.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for its end; what it said is printed where it failed."""
        code = self.process.wait()
        self.watcher.join()
        self.seconds = time.monotonic() - self.started
        now = os.times()
        spent = now.children_user + now.children_system
        self.cpu = spent - self.before.children_user - self.before.children_system
        self.out.seek(0)
        self.said = self.out.read()
        if code not in (0, -signal.SIGKILL):
            sys.exit(f"{' '.join(self.command)} failed:\n{self.said}")
        return code


def _with_children(pid: int) -> Iterator[int]:
    yield pid
    try:
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from _with_children(int(child))
    except OSError:
        return


def _resident(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmRSS"))
    except (OSError, StopIteration):
        return 0.0


def stage(name: str, words: list[object], kills: int, progress: Callable[[], float], dice: random.Random) -> float:
    """Run a command to its end, killed so often at random moments of its progress (0 to 1); return its peak in MB."""
    seconds = cpu = peak = 0.0
    done = 0
    for share in sorted(dice.random() for _ in range(kills)):
        run = Watched(words)
        while run.process.poll() is None and progress() < share:
            time.sleep(0.01)
        time.sleep(dice.uniform(0, 0.2))
        if run.process.poll() is None:
            run.kill()
        done += run.wait() != 0
        seconds, cpu, peak = seconds + run.seconds, cpu + run.cpu, max(peak, run.peak)
    run = Watched(words)
    run.wait()
    note = run.said.strip().splitlines()[-1] if run.said.strip() else ""
    peak = max(peak, run.peak)
    killed = f"killed {done} times; " if kills else ""
    times = {"seconds": seconds + run.seconds, "cpu": cpu + run.cpu}
    print(WORKED.format(name=name, **times, peak=peak, note=killed + note), flush=True)
    return peak


def whole(options: argparse.Namespace) -> None:
    """All stages on recordings of the asked size."""
    folder = Path(options.folder)
    source, corpus, model, vectors = (folder / name for name in ("recordings", "corpus", "model", "vectors"))
    started = time.monotonic()
    count = generate(source, options)
    print(f"{count} recordings, {sum(f.stat().st_size for f in source.iterdir()) / 1e9:.2f} GB, "
          f"generated in {time.monotonic() - started:.0f} s")  # fmt: skip
    for made in (corpus, model, vectors):
        shutil.rmtree(made, ignore_errors=True)
    dice = random.Random(options.seed)
    share = [options.kills // 4 + (number < options.kills % 4) for number in range(4)]
    memory = ["--set", f"memory={options.memory}"]
    n_shards = count * max(1, -(-int(options.file_megabytes * 1e6) // (64 * 2**20)))
    build = ["corpus", "build", source, "--out", corpus, "--window", options.window, "--stride", "100%"]
    peaks = [
        stage(
            "build",
            [*build, "--workers", options.workers, *memory],
            share[0],
            lambda: len(list((corpus / "shards").glob("0*.npy"))) / n_shards if (corpus / "shards").exists() else 0.0,
            dice,
        )
    ]
    train = ["pretrain", corpus, "--out", model, "--method", "dicot", "--set", "dim=4", "--steps", options.steps]
    train += ["--set", f"batch_size={options.batch_size}", "--set", "checkpoint_seconds=1"]
    train += ["--device", options.device, *memory]
    peaks.append(stage("pretrain", train, share[1], lambda: 1.0 * (model / "checkpoint.safetensors").exists(), dice))
    embed = ["embed", model, corpus, "--out", vectors, "--device", options.device, *memory]
    peaks.append(
        stage("embed", embed, share[2], lambda: len(list(vectors.glob("vectors/0*.parquet"))) / n_shards, dice)
    )
    begun = time.monotonic()
    find = ["search", vectors, "--like", "0", "-k", 3]
    index = vectors / "index"
    peaks.append(
        stage("index", find, share[3], lambda: float(index.exists() and time.monotonic() - begun > dice.random()), dice)
    )
    check(source, corpus, vectors, count, options)
    print(f"peak {max(peaks):.0f} MB of {options.memory}")
    if not options.keep:
        shutil.rmtree(folder)


def check(source: Path, corpus: Path, vectors: Path, count: int, options: argparse.Namespace) -> None:
    """Compare the corpus with windows that are cut here from the generator, and count everything behind it."""
    from dicot.store.folder import Corpus, Store
    from dicot.store.search import EmbeddingIndex

    opened = Corpus.open(corpus, verify=True)
    n_times = int(options.file_megabytes * 1e6 / 4 / options.channels)
    per_file = n_times // options.window
    assert len(opened) == count * per_file, f"{len(opened)} windows, and {count} x {per_file} were generated"
    by_source: dict[int, list[int]] = {}
    for number, shard in enumerate(opened.shards):
        by_source.setdefault(int(shard.name.partition("-")[0]), []).append(number)
    for number, shards in by_source.items():
        x = recording(number, options.channels, n_times)[:, : per_file * options.window]
        windows = x.reshape(options.channels, per_file, options.window).transpose(1, 0, 2)
        at = 0
        for own in shards:
            n, name = opened.shards[own].rows, opened.shards[own].name
            with (corpus / "shards" / f"{name}.npy").open("rb") as raw:
                header = raw.read(128)
            digest = hashlib.sha256(header + np.ascontiguousarray(windows[at : at + n]).tobytes()).hexdigest()
            assert digest == opened.shards[own].sha256, f"shard {name} holds other windows"
            about = opened.store.shard_columns(own)
            assert (about["recording"] == f"r{number:05d}").all()
            np.testing.assert_allclose(about["start"], np.arange(at, at + n) * options.window / RATE)
            at += n
        assert at == per_file
    embedded = Store(vectors, verify=True)
    assert [entry.rows for entry in embedded.shards] == [shard.rows for shard in opened.shards]
    assert len(EmbeddingIndex.load(vectors)) == len(embedded) == len(opened)
    print(f"check: {len(opened):,} windows, vectors and rows of the index; every shard as generated, every hash exact")


class Marks:
    """Notes the time after each step, by the clock and of the processor."""

    def __init__(self) -> None:
        self.times: list[tuple[float, float]] = []

    def __call__(self, step: object) -> None:
        self.times.append((time.perf_counter(), time.process_time()))

    def each(self) -> np.ndarray:
        """Seconds of each step by clock and processor (steps, 2), the first quarter left out."""
        return np.diff(np.array(self.times[len(self.times) // 4 :]), axis=0)


def forget(corpus: Path) -> None:
    """Let the system drop what it keeps of the shards in memory, so that they are read from disk."""
    for file in (corpus / "shards").glob("*.npy"):
        handle = os.open(file, os.O_RDONLY)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def rate(options: argparse.Namespace) -> None:
    """Time steps of training from a corpus and from memory, in turns."""
    import torch

    from dicot import pretrain
    from dicot.methods.dicot import DiCOT
    from dicot.nets.encoders import build_encoder
    from dicot.store.build import build_corpus
    from dicot.store.folder import Corpus
    from dicot.train import Recipe

    if options.threads:
        torch.set_num_threads(options.threads)
    for window, batch_size, dim in (map(int, shape.split("x")) for shape in options.shapes.split(",")):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            sources, options.window = Path(folder) / "r", window
            generate(sources, options)
            build_corpus(sources, Path(folder) / "c", window, "100%")
            corpus = Corpus.open(Path(folder) / "c")
            ways: dict[str, tuple[Any, str]] = {"memory": (corpus[:], "device"), "corpus": (corpus, "streamed")}
            steps: dict[str, list[np.ndarray]] = {name: [] for name in ways}
            for _ in range(options.repeats):
                for name, (train, batches) in ways.items():
                    torch.manual_seed(0)
                    method = DiCOT(build_encoder("inception_time", {"n_channels": options.channels, "dim": dim}))
                    marks = Marks()
                    if options.cold:
                        forget(Path(folder) / "c")
                    pretrain(
                        method,
                        train,
                        Recipe(steps=options.steps, batch_size=batch_size),
                        seed=1,
                        device=options.device,
                        batches=batches,
                        on_step=marks,
                    )
                    steps[name].append(marks.each())
            # The same step has the same work in every turn: its shortest time is the one that nothing else disturbed.
            here, there = (np.min(steps[name], axis=0).mean(axis=0) for name in ways)
            print(
                f"({batch_size}, {options.channels}, {window}), {dim} features on {options.device}: "
                f"memory {1000 * here[0]:.2f} ms, corpus {1000 * there[0]:.2f} ms a step: "
                f"{100 * here[0] / there[0]:.0f} % of the rate, {100 * here[1] / there[1]:.0f} % by CPU time",
                flush=True,
            )


def needs(options: argparse.Namespace) -> None:
    """Measure the peak of reading and cutting one file of each kind, in a process of its own."""
    from dicot.store.build import SHARD_BYTES, need_of

    code = (
        "import sys; from dicot.store.build import build_corpus\n"
        "from dicot.core.processes.budget import peak_bytes\n"
        "build_corpus(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], memory='100GB')\nprint(peak_bytes())"
    )
    for kind in ("npz", "compressed npz", "float64 npz", "parquet", "csv", "wav"):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            path = _file_of(kind, Path(folder), options)
            for stride in ("100%", "50%"):
                words = [sys.executable, "-c", code, str(path), f"{folder}/c{stride}", str(options.window), stride]
                done = subprocess.run(words, capture_output=True, text=True, check=True)
                peak, said, size = int(done.stdout.split()[-1]), need_of(path, SHARD_BYTES), path.stat().st_size
                print(f"{kind:15} {size / 1e6:7.0f} MB, stride {stride:4}: peak {peak / 1e6:7.0f} MB, said "
                      f"{said / 1e6:7.0f} MB", flush=True)  # fmt: skip


def _file_of(kind: str, folder: Path, options: argparse.Namespace) -> Path:
    n_times = int(options.file_megabytes * 1e6 / 4 / options.channels)
    x = recording(0, options.channels, n_times)
    suffix = kind.split()[-1]
    path = folder / f"a.{suffix}"
    if kind == "npz":
        np.savez(path, X=x, rate=RATE)
    elif kind == "compressed npz":
        np.savez_compressed(path, X=np.round(x), rate=RATE)
    elif kind == "float64 npz":
        np.savez(path, X=x.astype(np.float64), rate=RATE)
    elif kind == "csv":
        rows = ("%.6g," * options.channels)[:-1] + "\n"
        with path.open("w") as file:
            file.write("t," + ",".join(f"c{i}" for i in range(options.channels)) + "\n")
            for t, row in enumerate(x.T.tolist()):
                file.write(f"{t / RATE:.2f}," + rows % tuple(row))
    elif kind == "wav":
        import wave

        with wave.open(str(path), "wb") as sound:
            sound.setnchannels(2)
            sound.setsampwidth(2)
            sound.setframerate(8000)
            sound.writeframes((1000 * x[:2].T).astype("<i2").tobytes())
    else:
        options.kind, options.gigabytes = "parquet", options.file_megabytes / 1000
        generate(folder, options)
        path = next(folder.glob("*.parquet"))
    return path


SEARCH = """
import json, sys, time
from pathlib import Path
import numpy as np
from dicot.core.processes.budget import peak_bytes
from dicot.store.search import EmbeddingIndex
folder = Path(sys.argv[1])
times, z = {}, np.load(folder / "queries.npy")
def timed(name, work):
    clock, cpu = time.monotonic(), time.process_time()
    done = work()
    times[name] = time.monotonic() - clock, time.process_time() - cpu
    return done
index = timed("load", lambda: EmbeddingIndex.load(folder / "vectors"))
timed("first", lambda: index.query(z[:1], 10))
distances, rows = timed("query", lambda: index.query(z, 10))
timed("like", lambda: index.like("recording 000000", 12.5, 3))
np.savez(folder / "found.npz", distances=distances, rows=rows)
print(json.dumps({"times": times, "peak": peak_bytes()}))
"""


def index(options: argparse.Namespace) -> None:
    """Write a store of random vectors, search it, and compare what it finds with plain numpy."""
    from dicot.store.folder import write_manifest, write_shard

    folder = Path(options.folder) / "index-benchmark"
    per_shard = 2**26 // (4 * options.features)
    shards, started = [], time.monotonic()
    for number, first in enumerate(range(0, options.vectors, per_shard)):
        n = min(per_shard, options.vectors - first)
        x = np.random.default_rng(number).standard_normal((n, options.features), dtype=np.float32)
        at = np.arange(n, dtype=np.float64)
        about = {"recording": np.full(n, f"recording {number:06d}"), "start": at, "end": at + 1}
        about["group"] = np.full(n, f"person {number % 50:03d}")
        shards.append(write_shard(folder / "vectors", f"{number:06d}", x, about))
    size = write_manifest(folder / "vectors", "vectors", [options.features], shards, {}).bytes / 1e9
    print(f"{options.vectors:,} vectors of {options.features} features, {size:.1f} GB of shards, written in "
          f"{time.monotonic() - started:.0f} s", flush=True)  # fmt: skip
    dice = np.random.default_rng(options.seed + 10**6)
    np.save(folder / "queries.npy", dice.standard_normal((options.queries, options.features), dtype=np.float32))
    words = [sys.executable, "-c", SEARCH, str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    said = json.loads(done.stdout.splitlines()[-1])
    clock, cpu = ({name: both[place] for name, both in said["times"].items()} for place in (0, 1))
    for name, note in {
        "load": "opened, every byte checked",
        "first": "one query",
        "query": f"{options.queries} queries at once: {options.queries / clock['query']:.2f} a second",
        "like": f"by recording and time; peak of all {said['peak'] / 1e6:.0f} MB",
    }.items():
        print(f"{name:6} {clock[name]:8.2f} s   {cpu[name]:8.2f} s of CPU   {note}", flush=True)
    found = np.load(folder / "found.npz")
    expected, rows = _nearest_by_numpy(
        sorted((folder / "vectors" / "shards").glob("*.npy")), np.load(folder / "queries.npy"), 10
    )
    recall = np.mean([len(np.intersect1d(*pair)) / 10 for pair in zip(found["rows"], rows, strict=True)])
    off = np.abs(found["distances"] - expected).max()
    print(f"recall@10 {recall:.4f} beside numpy in float64 over all files; distances differ by {off:.1e} at most")
    if not options.keep:
        shutil.rmtree(folder)


def _nearest_by_numpy(files: list[Path], z: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosine distances and rows (Q, k) of the nearest vectors of all files, in float64, by numpy alone."""
    unit = z / np.linalg.norm(z.astype(np.float64), axis=1, keepdims=True)
    distances, rows = np.full((len(z), k), np.inf), np.full((len(z), k), -1)
    start = 0
    for file in files:
        x = np.load(file).astype(np.float64)
        here = 1 - unit @ (x / np.linalg.norm(x, axis=1, keepdims=True)).T  # (Q, n)
        best = np.argpartition(here, k, axis=1)[:, :k]
        both = np.concatenate([distances, np.take_along_axis(here, best, 1)], axis=1)
        which = np.concatenate([rows, start + best], axis=1)
        order = np.argsort(both, axis=1, kind="stable")[:, :k]
        distances, rows = np.take_along_axis(both, order, 1), np.take_along_axis(which, order, 1)
        start += len(x)
    return distances, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    stages = {"whole": whole, "rate": rate, "needs": needs, "index": index}
    parser.add_argument("what", choices=stages)
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where all files go")
    parser.add_argument("--gigabytes", type=float, default=0.5, help="of recordings")
    parser.add_argument("--file-megabytes", type=float, default=100)
    parser.add_argument("--kind", default="npz", choices=["npz", "parquet"])
    parser.add_argument("--channels", type=int, default=6)
    parser.add_argument("--window", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, help="of torch, for `rate`")
    parser.add_argument("--repeats", type=int, default=3, help="for `rate`: turns, of which each step's best counts")
    parser.add_argument("--cold", action="store_true", help="for `rate`: read shards from disk, not from its cache")
    parser.add_argument(
        "--shapes", default="128x8x256,128x64x32,1024x16x4", help="for `rate`: window x batch x features"
    )
    parser.add_argument("--vectors", type=int, default=1_000_000, help="for `index`")
    parser.add_argument("--features", type=int, default=256, help="for `index`")
    parser.add_argument("--queries", type=int, default=32, help="for `index`, asked at once")
    parser.add_argument("--keep", action="store_true", help="leave the files")
    options = parser.parse_args()
    if options.what == "whole":
        options.folder = str(Path(options.folder) / "corpus-benchmark")
    stages[options.what](options)


if __name__ == "__main__":
    main()
