"""python -m benchmarks.scaling: the pipeline on more windows and machines than there are here, simulated.

Prints the tables of docs/scaling.md. Rates, measured and assumed, are in scaling.csv beside this file, each with where
it comes from; sizes and limits are those of the code. Shards go through queues (driver, network, store, device) event
by event; training goes step by step of the ranks, with machines that fail and checkpoints; an index is joined by one
process, as it is. Of very many shards the first are simulated, and the rest goes on at the rate of these.
"""

import csv
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.queues import Phase, Pool, flow
from benchmarks.tables import said, said_time, table
from dicot.core.processes.budget import PER_CASE
from dicot.core.processes.cluster import GPU_SHARE
from dicot.store.build import SHARD_BYTES
from dicot.store.folder import LARGEST

WINDOW, FEATURES, BATCH = 4 * 6 * 500, 256, 128  # bytes of a window, numbers of a vector, windows of a step
VECTOR = 4 * FEATURES
ABOUT = 8 + 4 * 16 + 2 * 8  # bytes that an index keeps of a vector in memory: length, recording, start and end
PROGRAM = 400 * 10**6  # bytes of the program itself and of a search
NORMS = 8  # BatchNorm layers of the encoder: each exchanges twice in a step of several ranks
BEGIN, END = "<!-- by python -m benchmarks.scaling --write -->", "<!-- end -->"
CHECKPOINT = 10.0  # seconds between checkpoints, the default of `dicot pretrain`
SCALES = {"One billion": 10**9, "A hundred billion": 10**11}


class Rate(NamedTuple):
    """A row of scaling.csv."""

    name: str
    on: str  # "core", "gpu", or "assumed"
    value: float
    unit: str
    source: str


class World:
    """What is reckoned with, from scaling.csv: rates of one window, shard or byte."""

    def __init__(self) -> None:
        with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
            _, *rows = csv.reader(file)
        self.rows = [Rate(name, on, float(value), unit, source) for name, on, value, unit, source in rows]
        self.rates = {(rate.name, rate.on): rate for rate in self.rows}

    def measured(self, name: str, on: str) -> float:
        """A rate of a core or a GPU; those per million become those of one."""
        rate = self.rates[name, on]
        return rate.value / (1e6 if "million" in rate.unit else 1)

    def assumed(self, name: str) -> float:
        return self.rates[name, "assumed"].value


class Row(NamedTuple):
    """A line of a table."""

    stage: str
    fleet: str
    seconds: float
    moved: float  # bytes read and written, over the network where there is one
    memory: float  # bytes of the process that needs most
    bottleneck: str
    stops: str = ""  # why it does not work as it is
    failures: int = 0  # of machines on the way


def shards_of(n: int, world: World) -> tuple[int, int]:
    """Files and shards of so many windows: no shard holds windows of two files."""
    per_file = int(world.assumed("file") // WINDOW)
    return math.ceil(n / per_file), math.ceil(n / per_file) * math.ceil(per_file * WINDOW / SHARD_BYTES)


def with_failures(seconds: float, machines: int, lost: float, world: World) -> tuple[float, int]:
    """Add what machines that fail cost where others go on: each is away for a restart, and its task is done again."""
    count = int(np.random.default_rng(0).poisson(machines * seconds / world.assumed("failure")))
    return seconds + count * (world.assumed("restart") + lost) / machines, count


def build(n: int, machines: int, world: World) -> Row:
    """Files are read once, cut by one process for each core, and written; `dicot corpus build` is one machine."""
    files, shards = shards_of(n, world)
    size, cores = world.assumed("file"), int(world.assumed("cores"))
    pools = {"cores": Pool(machines * cores), "network": Pool(machines), "store": Pool(1)}
    compute = world.measured("build", "core") * size / WINDOW
    phases = [
        *(Phase("store", size / world.assumed("store")), Phase("network", size / world.assumed("network"))),
        Phase("cores", compute),
        *(Phase("network", size / world.assumed("network")), Phase("store", size / world.assumed("store"))),
    ]
    done = flow(files, machines * cores, phases, pools)
    manifest = shards * world.measured("manifest", "core")
    stops = f"manifest of {said(manifest)}B, and {said(LARGEST)}B is the most" if manifest > LARGEST else ""
    seconds, failures = with_failures(done.seconds, machines, compute, world)
    return Row("build", machines_of(machines), seconds, 2 * n * WINDOW, 3 * manifest, done.bottleneck, stops, failures)


def train(n: int, ranks: int, batch: int, world: World, divided: bool = False) -> Row:
    """One pass over all windows: the order is drawn, every rank reads every batch, all start again where one dies.

    `divided` is how it might be: each rank reads and views its share, and the order is a formula.
    """
    steps, gpus = math.ceil(n / batch), int(world.assumed("gpus"))
    machines, exchanged = math.ceil(ranks / gpus), 0.0
    every = world.measured("undivided", "core") if ranks > 1 and not divided else 0.0
    alone = world.measured("train", "gpu") * batch
    work = {"encoder": alone * (1 - every) / ranks, "what every rank does": alone * every, "exchange": 0.0}
    if ranks > 1:  # gradients around a ring, features of all to all, and twice for each BatchNorm
        exchanged = 8 * world.measured("weights", "core") * (ranks - 1) / ranks + 2 * batch * VECTOR
        work["exchange"] = exchanged / world.assumed("network") + 2 * NORMS * world.assumed("latency")
    read = batch if divided else ranks * batch  # windows in a step, by all ranks
    reads = {
        "reads of the store": read / world.assumed("reads"),
        "bytes of the store": read * WINDOW / world.assumed("store"),
        "network": read / machines * WINDOW / world.assumed("network"),
    }
    step = max(sum(work.values()), *reads.values())  # batches are read ahead of their step
    shards, memory = shards_of(n, world)[1], 0 if divided else PER_CASE * n
    restart = world.assumed("restart") + shards * world.measured("open", "core") + n * world.measured("order", "core")
    seconds, left, failures, dice = restart, steps * step, 0, np.random.default_rng(0)
    while left > 0:
        worked = min(left, float(dice.exponential(world.assumed("failure") / machines)))
        seconds, left = seconds + worked, left - worked
        if left > 0:  # back to the checkpoint
            failures += 1
            seconds, left = seconds + restart, left + min(worked, float(dice.uniform(0, CHECKPOINT)))
    stops = (
        f"{said(memory)}B for the order, in each process" if memory * min(ranks, gpus) > world.assumed("memory") else ""
    )
    name, busy = max({**work, **reads}.items(), key=lambda part: part[1])
    fleet, moved = (
        f"{ranks:,} GPU{'s' * (ranks > 1)}, batches of {batch:,}",
        steps * (read * WINDOW + ranks * exchanged),
    )
    return Row("train", fleet, seconds, moved, memory, f"{name}, {100 * busy / step:.0f} % of a step", stops, failures)


def embed(n: int, machines: int, world: World, on: str = "gpu") -> Row:
    """One driver hands out shards; each process reads one, embeds it and writes its vectors. Four share a GPU."""
    shards = shards_of(n, world)[1]
    per_shard = n / shards
    devices = machines * int(world.assumed("gpus" if on == "gpu" else "cores"))
    slots = devices * (round(1 / GPU_SHARE) if on == "gpu" else 1)
    kinds = "GPUs" if on == "gpu" else "cores"
    pools = {"driver": Pool(1), "network": Pool(machines), "store": Pool(1), kinds: Pool(devices)}
    inwards, outwards = per_shard * WINDOW, per_shard * world.measured("vectors", "core")
    compute = per_shard * world.measured("embed", on)
    phases = [
        Phase("driver", world.assumed("handout")),
        *(Phase("store", inwards / world.assumed("store")), Phase("network", inwards / world.assumed("network"))),
        Phase(kinds, compute),
        *(Phase("network", outwards / world.assumed("network")), Phase("store", outwards / world.assumed("store"))),
    ]
    done = flow(shards, slots, phases, pools)
    seconds, failures = with_failures(done.seconds, machines, compute, world)
    seconds += shards * world.measured("open", "core")
    manifest = shards * world.measured("manifest", "core")
    stops = f"manifest of {said(manifest)}B" if manifest > LARGEST else ""
    moved = shards * (inwards + outwards)
    return Row("embed", machines_of(machines, on), seconds, moved, 3 * inwards, done.bottleneck, stops, failures)


def index(n: int, parts: int, world: World) -> Row:
    """One process joins all vectors and then checks them; `parts` machines join a part each."""
    own = n / parts
    vectors, joined = world.measured("vectors", "core"), VECTOR + ABOUT
    compute = own * world.measured("load", "core")
    disk = own * (vectors + joined + VECTOR) / world.assumed("disk")
    store = n * vectors / world.assumed("store")
    memory = PROGRAM + 2 * own * ABOUT
    stops = f"{said(memory)}B of memory" if memory > world.assumed("memory") else ""
    times = {"one core": compute, "disk": disk, "store": store}
    name = max(times, key=times.__getitem__)
    return Row("index", machines_of(parts), max(times.values()), n * (vectors + joined + VECTOR), memory, name, stops)


def searches(n: int, world: World) -> Iterator[tuple[str, ...]]:
    """How a thousand queries, a hundred at once, would be answered, and how many bytes have to be kept for it."""
    memory, card, held = world.assumed("memory"), world.assumed("card"), n * (VECTOR + ABOUT)
    core = 1000 * n * world.measured("query", "core") / world.assumed("cores")
    disk = 10 * n * VECTOR / world.assumed("disk")
    slower = "disk" if disk > core else "cores"
    yield "exact, vectors on the disk of one", "1", said(n * ABOUT) + "B", said_time(max(core, disk)), slower
    machines = math.ceil(held / memory)
    yield "exact, vectors in memory", f"{machines:,}", said(held) + "B", said_time(core / machines), "cores"
    cards = math.ceil(n * VECTOR / (card / 2))
    machines, gpu = math.ceil(cards / world.assumed("gpus")), 1000 * n * world.measured("query", "gpu") / cards
    yield "exact, on GPUs", f"{machines:,}", said(n * VECTOR) + "B", said_time(gpu), "GPUs"
    machines = math.ceil(n * world.assumed("node") / memory)
    grown = math.log(n / machines) / math.log(50_000)  # a graph of so many was measured
    building = n * world.measured("graph", "core") * grown / machines / world.assumed("cores")
    kept = said(n * world.assumed("node")) + "B"
    yield f"usearch's graph, built in {said_time(building)}", f"{machines:,}", kept, "not measured", "memory"


def machines_of(count: int, on: str = "core") -> str:
    return f"{count:,} machine{'s' * (count > 1)} of {'8 GPUs' if on == 'gpu' else '64 cores'}"


def stages(rows: Sequence[Row]) -> str:
    heads = ("stage", "on", "bottleneck", "stops at", "time", "moved", "memory", "failures")
    return table(
        heads,
        [
            (
                r.stage,
                r.fleet,
                r.bottleneck,
                r.stops or "-",
                said_time(r.seconds),
                said(r.moved) + "B",
                said(r.memory) + "B",
                f"{r.failures}",
            )
            for r in rows
        ],
        left=4,
    )


def page() -> str:
    """All tables, in the order of docs/scaling.md."""
    world = World()
    of = {"core": "a core", "gpu": "an H200"}
    measured = [(r.name, of[r.on], r.source, f"{r.value:,.4g} {r.unit}") for r in world.rows if r.on in of]
    assumed = [(r.name, r.source, f"{r.value:,.6g} {r.unit}") for r in world.rows if r.on not in of]
    out = ["### What was measured\n", table(("rate", "of", "by", "value"), measured, left=3)]
    out += ["### What is assumed\n", table(("name", "what", "value"), assumed, left=2)]
    for name, n in SCALES.items():
        few, ranks = (1, 64) if n <= 10**9 else (32, 512)
        whole = [
            build(n, 1, world),
            train(n, 1, BATCH, world),
            train(n, 8, BATCH, world),
            train(n, 8, 8 * BATCH, world),
        ]
        whole += [embed(n, few, world, "core"), embed(n, few, world), embed(n, 8 * few, world), index(n, 1, world)]
        many = [build(n, 8 * few, world), train(n, ranks, ranks * BATCH, world, divided=True), index(n, 8 * few, world)]
        out += [f"### {name} windows, as it is\n", stages(whole)]
        out += [f"### {name} windows, if build, training and index were divided\n", stages(many)]
        heads = ("way", "machines", "kept", "a thousand queries", "bottleneck")
        out += [f"### Search among {name.lower()} vectors\n", table(heads, list(searches(n, world)))]
    return "\n".join(out)


def main() -> None:
    """Print the tables, or with --write put them in their place in docs/scaling.md."""
    tables = page()
    if sys.argv[1:] != ["--write"]:
        print(tables, end="")
        return
    path = Path(__file__).resolve().parents[1] / "docs" / "scaling.md"
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    path.write_text(f"{before}{BEGIN}\n\n{tables}\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
