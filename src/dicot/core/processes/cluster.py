"""Work on a Ray cluster: joined, or started on this machine for one run. The only file that imports Ray (extra `ray`).

Processes are asked for what is to be done, one task at a time. One that dies, with its node or by itself, costs the
task that it had, which another one is given; so a task must be safe to be done twice.
"""

import logging
import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dicot.core import __version__
from dicot.core.errors import DicotError, InputError, LostWorkerError, brief, need_extra

LOCAL, AUTO = "local", "auto"
STORE = 100 * 2**20  # bytes for objects of a cluster that is started here: what travels is small
GPU_SHARE = 0.25  # four processes feed a GPU, each a pass of an eighth of it at a time (model/embedding.py)
ATTEMPTS = 4  # processes that may be lost over one task: after that it is the task
# What numerical libraries take their number of threads from, before they are loaded.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
KNOWN = ("DICOT_DATA", "DICOT_CACHE")  # variables that mean the same everywhere

Key = TypeVar("Key", bound=Hashable)
Work = Callable[[Any], Iterator[Any]]  # a task -> its answers, as they are found


@dataclass(frozen=True)
class Share:
    """What each process has of its node."""

    cpus: int = 1  # which is its number of threads too
    gpus: float = 0.0

    @property
    def device(self) -> str:
        """Name the device of such a process."""
        return "cuda" if self.gpus else "cpu"


@dataclass(frozen=True)
class Lost:
    """The answer to a task that no process outlived."""

    error: LostWorkerError


class Cluster:
    """A Ray cluster that this process has joined."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def share(self, device: str, cpus: int = 1, gpus: float | None = None) -> "Share":
        """Settle what each process gets, cores and GPUs; refused where no node has it, because Ray would wait for one.

        device is "cpu", "cuda", or "auto" for GPUs where the cluster has any; gpus=None is `GPU_SHARE`.
        """
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        with_gpus = device == "cuda" or bool(gpus) or (device == "auto" and any(node.get("GPU") for node in nodes))
        if device == "cpu" and gpus:
            raise InputError(f"Processes with {gpus:g} of a GPU do not run on the CPU. Leave out --device cpu.")
        share = Share(cpus, (GPU_SHARE if gpus is None else gpus) if with_gpus else 0.0)
        if not any(node.get("CPU", 0) >= share.cpus and node.get("GPU", 0) >= share.gpus for node in nodes):
            wanted = f"{share.cpus} cores" + (f" and {share.gpus:g} GPUs" if share.gpus else "")
            raise InputError(f"No node of the Ray cluster has {wanted} for a process. Ask for less, or add a node.")
        return share

    def room(self, share: Share) -> int:
        """Count the processes that find room at once: one at least, because nodes may be on their way."""
        there = self._ray.cluster_resources()
        fits = there.get("CPU", 0) // share.cpus
        return max(1, int(min(fits, there.get("GPU", 0) // share.gpus) if share.gpus else fits))

    def answers(
        self,
        make: Callable[[], Work],
        tasks: Iterable[Key],
        share: Share,
        *,
        most: int | None = None,
        payload: Callable[[Key], Any] = lambda task: task,
    ) -> Iterator[tuple[Key, Any]]:
        """Have tasks done and yield each answer with its task; an error of ours in one of them is raised.

        make: is called once in each process, and returns what does a task there
        most: processes at once; None: as many as find room, of nodes that come later too
        payload: what a process is told of a task, or None where there is nothing left of it
        """
        ray = self._ray
        errors = ray.exceptions
        # What must be said before a process imports anything: its threads, no GPU where it has no share of one.
        said = dict.fromkeys(THREADS, str(share.cpus)) | ({} if share.gpus else {"CUDA_VISIBLE_DEVICES": ""})
        said |= {name: os.environ[name] for name in KNOWN if name in os.environ}
        actor = ray.remote(_Actor).options(num_cpus=share.cpus, num_gpus=share.gpus, runtime_env={"env_vars": said})
        waiting, lost = deque(tasks), Counter[Key]()
        idle: list[Any] = []
        busy: dict[Any, tuple[Any, Key]] = {}  # by the stream of answers
        try:
            while waiting or busy:
                # The idle first, however little room is said to be left: one that waits for theirs would wait for ever.
                while waiting and (idle or len(busy) < (most or self.room(share))):
                    task = waiting.popleft()
                    if (told := payload(task)) is not None:
                        process = idle.pop() if idle else actor.remote(make, os.getcwd(), __version__)
                        busy[process.do.options(num_returns="streaming").remote(told)] = (process, task)
                while idle and not waiting:
                    ray.kill(idle.pop())  # gives its room to one that could not start yet
                if not busy:
                    return
                (stream,), _ = ray.wait(list(busy), num_returns=1)
                process, task = busy[stream]
                try:
                    answer = ray.get(next(stream))
                except StopIteration:
                    del busy[stream]
                    idle.append(process)
                except errors.RayTaskError as error:
                    cause = getattr(error, "cause", None)
                    raise (cause if isinstance(cause, DicotError) else error) from error
                except errors.RayError as error:
                    del busy[stream]
                    _end(ray, process)
                    lost[task] += 1
                    if lost[task] < ATTEMPTS:
                        waiting.append(task)
                    else:
                        last = (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()[:300]
                        what = f"Ray lost {ATTEMPTS} processes over it ({last})."
                        yield task, Lost(LostWorkerError(f"{what} Where memory is short, let fewer run at once."))
                else:
                    yield task, answer
        finally:
            for process in (*idle, *(process for process, _ in busy.values())):
                _end(ray, process)


class _Actor:
    """What Ray keeps in a process: it is made there, and holds what `make` has loaded for the next task."""

    def __init__(self, make: Callable[[], Work], folder: str, version: str) -> None:
        self._make, self._folder, self._version = make, folder, version
        self._work: Work | None = None

    def do(self, task: Any) -> Iterator[Any]:
        if self._work is None:  # not before: what goes wrong in the making of an actor does not come back whole
            if self._version != __version__:
                raise InputError(
                    f"A node of the cluster ({socket.gethostname()}) has dicot {__version__}, and this is "
                    f"{self._version}. Install the same version on all nodes."
                )
            if Path(self._folder).is_dir():
                os.chdir(self._folder)  # so that paths mean what they mean to the caller
            self._work = self._make()
        yield from self._work(task)


@contextmanager
def joined(address: str, processes: int | None = None) -> Iterator[Cluster]:
    """Join the Ray cluster at an address, and leave it at the end.

    It is "host:port", "auto" for the cluster that this machine belongs to, or "local" for one that is started here, has
    room for so many processes (by default one per core), answers to this machine alone and ends with the block.
    """
    for name, value in {**_ENVIRONMENT, **(_STARTING if address == LOCAL else _JOINING)}.items():
        os.environ.setdefault(name, value)  # before Ray is imported; what the user has said stands
    try:
        import ray
    except ImportError as error:
        raise need_extra("ray", "ray", "A Ray cluster") from error
    if ray.is_initialized():  # by a program that uses us
        yield Cluster(ray)
        return
    own = {"num_cpus": processes, "include_dashboard": False, "object_store_memory": STORE}
    local = own if address == LOCAL else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **local)
    except Exception as error:  # of any class: a start that takes too long is a plain Exception
        raise InputError(f"No Ray cluster could be joined at {address} ({brief(error)}). {_REMEDY}") from error
    try:
        yield Cluster(ray)
    finally:
        ray.shutdown()


_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported to anybody
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # we say which GPU a process without one sees
}
# Its only public way to listen on 127.0.0.1 alone, as it does by itself on the systems of that name.
_STARTING = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
# One try of 20 seconds. By itself it makes 20 of 40, also where somebody else listens or a cluster has been killed.
_JOINING = {"RAY_NUM_REDIS_GET_RETRIES": "1", "RAY_py_gcs_connect_timeout_s": "8"}
_REMEDY = (
    "Start one (`ray start --head`), use --ray local, or run the same command again where the machine was busy. One "
    "that asks for a token wants RAY_AUTH_MODE=token and RAY_AUTH_TOKEN."
)


def _end(ray: Any, process: Any) -> None:
    with suppress(Exception):  # it may be gone, and with it the cluster
        ray.kill(process)
