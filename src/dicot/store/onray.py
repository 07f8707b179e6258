"""Work that Ray Data hands out to the processes of a cluster. The only file that imports Ray (extra `ray`).

A process that is lost, with its node or by itself, may cost the row that it had. Ray gives it to another process or
leaves it out, so that a row must be safe to be worked on twice, and the caller has to look for what is missing.
"""

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dicot.core.errors import InputError, brief, need_extra
from dicot.core.place import cores

LOCAL = "local"  # the address of a cluster that is started on this machine, for one run
GPU_SHARE = 0.25  # of a GPU: four processes feed it
OBJECTS = 100 * 2**20  # bytes for objects of a cluster that is started here: what travels is small
# What numerical libraries take their number of threads from, before they are loaded.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
KNOWN = ("DICOT_DATA", "DICOT_CACHE")  # variables that mean the same everywhere
# Nothing is reported to anybody, and a cluster that does not answer is tried once, for seconds.
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_NUM_REDIS_GET_RETRIES": "1",
    "RAY_py_gcs_connect_timeout_s": "8",
}


@dataclass(frozen=True)
class RayCluster:
    """A cluster by its address, and what each of our processes has there."""

    address: str  # host:port, "auto" for the cluster that this machine belongs to, or LOCAL
    processes: int | None = None  # at once; None: as many as find room
    cpus: int = 1  # cores of each process, and its number of threads
    gpus: float | None = None  # of each process; None: GPU_SHARE where the cluster has GPUs


def map_rows(
    cluster: RayCluster, kind: type, arguments: Sequence[Any], numbers: Sequence[int]
) -> Iterator[Mapping[str, Any]]:
    """Have every number worked on by an object of `kind`, one in each process; yield what it says of each.

    The object is made of `arguments` and called with {"number": array of one}. What it returns is a dict of arrays too.
    """
    with _joined(cluster) as ray:
        gpus = _gpus(ray, cluster)
        _refuse_without_room(ray, cluster.cpus, gpus)
        room = cluster.processes or _room(ray, cluster.cpus, gpus)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.max_errored_blocks = -1  # a row whose process was lost is missing, and the others go on
        variables = dict.fromkeys(THREADS, str(cluster.cpus))
        variables |= {name: os.environ[name] for name in KNOWN if name in os.environ}
        if not gpus:
            variables["CUDA_VISIBLE_DEVICES"] = ""
        rows = ray.data.from_items([{"number": number} for number in numbers], override_num_blocks=len(numbers))
        answers = rows.map_batches(
            kind,
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=min(room, len(numbers))),
            fn_constructor_args=arguments,
            num_cpus=cluster.cpus,
            num_gpus=gpus,
            runtime_env={"env_vars": variables},
        )
        yield from answers.iter_rows()


@contextmanager
def _joined(cluster: RayCluster) -> Iterator[Any]:
    """Join a cluster, or start one here that answers to this machine alone, and leave it at the end."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)  # before Ray is imported; what the user has said stands
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise need_extra("ray", "ray", "A Ray cluster") from error
    if ray.is_initialized():  # by a program that uses us
        yield ray
        return
    options: dict[str, Any] = {}
    if cluster.address == LOCAL:
        n_cpus = cores() if cluster.processes is None else cluster.processes * cluster.cpus
        options = {"num_cpus": n_cpus, "include_dashboard": False, "object_store_memory": OBJECTS}
        options["_node_ip_address"] = "127.0.0.1"
    try:
        ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR, **options)
    except Exception as error:  # of any class: a start that takes too long is a plain Exception
        raise InputError(
            f"No Ray cluster could be joined at {cluster.address} ({brief(error)}). Start one (`ray start --head`), "
            "use --ray local, or run the same command again where the machine was busy. One that asks for a token "
            "wants RAY_AUTH_MODE=token and RAY_AUTH_TOKEN."
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _gpus(ray: Any, cluster: RayCluster) -> float:
    """Say how much of a GPU each process has."""
    if cluster.gpus is not None:
        return cluster.gpus
    return GPU_SHARE if ray.cluster_resources().get("GPU") else 0.0


def _refuse_without_room(ray: Any, cpus: int, gpus: float) -> None:
    """Refuse processes that no node has room for, because Ray would wait for such a node."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(node.get("CPU", 0) >= cpus and node.get("GPU", 0) >= gpus for node in nodes):
        wanted = f"{cpus} cores" + (f" and {gpus:g} GPUs" if gpus else "")
        raise InputError(f"No node of the Ray cluster has {wanted} for a process. Ask for less, or add a node.")


def _room(ray: Any, cpus: int, gpus: float) -> int:
    """Count the processes that find room at once: one at least, because nodes may be on their way."""
    resources = ray.cluster_resources()
    room = resources.get("CPU", 0) // cpus
    if gpus:
        room = min(room, resources.get("GPU", 0) // gpus)
    return max(1, int(room))
