"""python -m bench scaling: the pipeline on more windows and machines than there are here, reckoned.

Prints the tables of docs/scaling.md. Rates, measured and assumed, are in scaling.csv beside this file, each with where
it comes from. Every stage needs some seconds of each resource (cores, GPUs, network, common folders, a driver). All of
them work at the same time, so the stage takes as long as the busiest one. Only training is a chain: what follows one
another within a step is added up.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from bench.tables import Row, duration, markdown, with_unit

RATES = Path(__file__).with_suffix(".csv")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "scaling.md"
BEGIN, END = "<!-- by python -m bench scaling --write -->", "<!-- end -->"

WINDOW = 4 * 6 * 500  # bytes of a window of HARTH: 6 channels, 500 time steps
VECTOR = 4 * 256  # bytes of a vector
SHARD = 64 * 2**20  # bytes of a shard of a corpus
ORDER = 32  # bytes that a process keeps of each window for the order of an epoch
MANIFEST = 2**30  # bytes of the largest manifest that is opened
ABOUT = 8 + 4 * 16 + 2 * 8  # bytes that an index keeps of a vector in memory: length, recording, start and end
NORMS = 8  # BatchNorm layers of the encoder: each exchanges twice forwards and twice backwards
BATCH = 128  # windows of a step for each GPU
SUB_BLOCKS = 6  # of a window, the mean of 2 to 10; each has a vector

Seconds = dict[str, float]  # by resource


class World:
    """The rates of scaling.csv."""

    def __init__(self) -> None:
        self.table = pd.read_csv(RATES, keep_default_na=False)
        self.values = self.table.set_index(["name", "on"])["value"].to_dict()

    def measured(self, name: str, on: str = "core") -> float:
        """Seconds or bytes of one window, shard or vector."""
        units = self.table.set_index(["name", "on"])["unit"]
        return float(self.values[name, on]) / (1e6 if "million" in units[name, on] else 1)

    def assumed(self, name: str) -> float:
        return float(self.values[name, "assumed"])

    def shards(self, n: int) -> int:
        """Shards of so many windows: none holds windows of two files."""
        per_file = int(self.assumed("file") // WINDOW)
        return math.ceil(n / per_file) * math.ceil(per_file * WINDOW / SHARD)

    def transfer(self, n_bytes: float, machines: int) -> Seconds:
        """Bytes between machines and the common folders."""
        network = n_bytes / self.assumed("network") / machines
        return {"network": network, "common folders": n_bytes / self.assumed("store")}


def build(n: int, machines: int, world: World) -> Row:
    """Files are read once, cut by one process for each core, and written."""
    cores = machines * world.assumed("cores")
    seconds = {"cores": n * world.measured("build") / cores, **world.transfer(2 * n * WINDOW, machines)}
    return row("build", f"{machines} x 64 cores", max(seconds.values()), busiest(seconds), too_many(n, world))


def step_of(gpus: int, batch: int, world: World) -> Seconds:
    """Seconds of a training step by part: each GPU encodes its share, then features and gradients are exchanged."""
    share = batch / gpus
    parts = {"encoder": share * world.measured("train", "gpu")}
    if gpus > 1:
        # Gradients travel around a ring, features to all. A ring is as slow as its slowest link.
        # A step has 4 small exchanges for each BatchNorm; gradients, features and the loss are one each.
        weights = 4 * world.measured("weights")
        features = (batch - share) * SUB_BLOCKS * VECTOR
        exchanged = 2 * weights * (gpus - 1) / gpus + features
        is_one_machine = gpus <= world.assumed("gpus")
        link = world.assumed("link" if is_one_machine else "network")
        parts["exchange"] = exchanged / link + (4 * NORMS + 3) * world.assumed("latency")
    return parts


def train(n: int, gpus: int, world: World) -> Row:
    """One pass over all windows, each of which is read by one GPU."""
    batch = BATCH * gpus
    machines = math.ceil(gpus / world.assumed("gpus"))
    parts = step_of(gpus, batch, world)
    reads = {"single reads": batch / world.assumed("reads"), **world.transfer(batch * WINDOW, machines)}
    # Batches are read ahead of their step.
    chain = sum(parts.values())
    step = max(chain, *reads.values())
    memory = ORDER * n * min(gpus, world.assumed("gpus"))
    stops = f"{with_unit(memory)}B for the order of an epoch" if memory > world.assumed("memory") else ""
    on = f"{gpus} GPUs, batches of {batch:,}" if gpus > 1 else f"1 GPU, batches of {batch}"
    name = busiest(reads) if step > chain else busiest(parts)
    return row("train", on, n / batch * step, name, stops)


def embed(n: int, machines: int, on: str, world: World) -> Row:
    """One driver hands out shards; each process reads one, embeds it and writes its vectors."""
    devices = machines * world.assumed("gpus" if on == "gpu" else "cores")
    seconds = {
        "driver": world.shards(n) * world.assumed("handout"),
        "GPUs" if on == "gpu" else "cores": n * world.measured("embed", on) / devices,
        **world.transfer(n * (WINDOW + world.measured("vectors")), machines),
    }
    title = f"{machines} x {'8 GPUs' if on == 'gpu' else '64 cores'}"
    return row("embed", title, max(seconds.values()), busiest(seconds), too_many(n, world))


def index(n: int, world: World) -> Row:
    """One process joins all vectors and checks them."""
    read_and_written = n * (world.measured("vectors") + 2 * VECTOR + ABOUT)
    seconds = {
        "one core": n * world.measured("load"),
        "disk": read_and_written / world.assumed("disk"),
        "common folders": n * world.measured("vectors") / world.assumed("store"),
    }
    memory = 2 * n * ABOUT
    stops = f"{with_unit(memory)}B of memory" if memory > world.assumed("memory") else ""
    return row("index", "1 machine", max(seconds.values()), busiest(seconds), stops)


def searches(n: int, world: World) -> Iterator[Row]:
    """How a thousand queries, a hundred at once, would be answered exactly, and how many bytes are kept for it."""
    core = 1000 * n * world.measured("query") / world.assumed("cores")
    disk = 10 * n * VECTOR / world.assumed("disk")
    yield search("vectors on the disk of one machine", 1, n * ABOUT, max(core, disk))
    held = n * (VECTOR + ABOUT)
    machines = math.ceil(held / world.assumed("memory"))
    yield search("vectors in memory", machines, held, core / machines)
    # Half of a card may hold vectors.
    cards = math.ceil(n * VECTOR / (world.assumed("card") / 2))
    machines = math.ceil(cards / world.assumed("gpus"))
    yield search("vectors on GPUs", machines, n * VECTOR, 1000 * n * world.measured("query", "gpu") / cards)


def search(way: str, machines: int, n_bytes: float, seconds: float) -> Row:
    return {"way": way, "machines": machines, "kept": f"{with_unit(n_bytes)}B", "1,000 queries": duration(seconds)}


def row(stage: str, on: str, seconds: float, busy: str, stops: str) -> Row:
    return {"stage": stage, "on": on, "limited by": busy, "stops at": stops or "-", "time": duration(seconds)}


def busiest(seconds: Seconds) -> str:
    return max(seconds, key=seconds.__getitem__)


def too_many(n: int, world: World) -> str:
    """Say that the manifest, one file, would be larger than what is opened."""
    manifest = world.shards(n) * world.measured("manifest")
    return f"a manifest of {with_unit(manifest)}B" if manifest > MANIFEST else ""


def several_gpus(world: World) -> Iterator[Row]:
    """How much faster training is by several GPUs, by what is exchanged."""
    for gpus in (1, 8, 64, 512):
        batch = BATCH * gpus
        parts = step_of(gpus, batch, world)
        step = sum(parts.values())
        yield {
            "GPUs": gpus,
            "windows of a step": batch,
            "encoder ms": 1e3 * parts["encoder"],
            "exchange ms": 1e3 * parts.get("exchange", 0.0),
            "times as fast as one": batch / step * world.measured("train", "gpu"),
        }


def tables() -> str:
    """All tables, in the order of docs/scaling.md."""
    world = World()
    rates = world.table.rename(columns={"name": "rate", "source": "by"})
    rates["on"] = rates["on"].replace({"core": "a core", "gpu": "an H200"})
    rates["value"] = [f"{value:,.4g} {unit}".strip() for value, unit in zip(rates["value"], rates["unit"], strict=True)]
    parts = ["### Rates\n", markdown(rates[["rate", "on", "by", "value"]].to_dict("records"))]
    parts += ["### Training by several GPUs\n", markdown(list(several_gpus(world)))]
    for title, n, machines, gpus in (("One billion", 10**9, 1, 64), ("A hundred billion", 10**11, 32, 512)):
        stages = [build(n, 1, world), train(n, 1, world), train(n, 8, world), train(n, gpus, world)]
        stages += [embed(n, machines, "core", world), embed(n, machines, "gpu", world)]
        stages += [embed(n, 8 * machines, "gpu", world), index(n, world)]
        parts += [f"### {title} windows\n", markdown(stages)]
        parts += [f"### Search among {title.lower()} vectors\n", markdown(list(searches(n, world)))]
    return "\n".join(parts)


def scaling(
    write: Annotated[bool, typer.Option("--write", help="Put the tables into docs/scaling.md.")] = False,
) -> None:
    """Reckon the pipeline on millions of millions of windows and many machines."""
    if not write:
        typer.echo(tables())
        return
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{tables()}\n{END}{after}", encoding="utf-8")
