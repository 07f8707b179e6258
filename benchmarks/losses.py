"""python -m benchmarks.losses [NAME ...]: time and memory of the losses on features per time step, CPU.

Each row is measured in a process of its own: the growth of its peak resident memory over one forward and backward
pass, then the median seconds of more of them.
"""

import argparse
import math
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from dicot.methods.catt import adjacent_step
from dicot.methods.cost import frequency_contrast, queue_contrast
from dicot.methods.infots import pooled_contrast, segment_contrast
from dicot.methods.simmtm import aggregate, copies_contrast
from dicot.methods.tnc import positive_unlabelled
from dicot.methods.tstcc import prediction_contrast
from dicot.nets.hierarchy import hierarchical_contrast
from dicot.nets.losses import adjacent_block, log_p_of_others, nt_xent, poly_nt_xent, view_contrast


def dense_adjacent_step(z: Tensor, temperature: float) -> Tensor:
    """CaTT's two-sided loss as its formula reads, by the whole matrix of pairs."""
    u = F.normalize(z.flatten(0, 1), dim=-1)
    e = (u @ u.T / temperature).exp()
    e = e - e.diagonal().diag()
    a, c = e.diagonal(-1), e.sum(dim=0)
    positive = a[:-1] + a[1:]
    return (c[:-2] + c[1:-1] - a[:-1] - positive).div(positive).log().mean()


def simmtm(z: Tensor) -> Tensor:
    """Contrast and aggregation of a stack of four rows per series."""
    log_p = log_p_of_others(z.mean(dim=1), 0.2)
    return copies_contrast(log_p, len(z) // 4) + aggregate(log_p.exp(), z[..., :6]).square().mean()


# A loss is one line here: features (B, T, F) -> scalar.
LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "catt-dense": lambda z: dense_adjacent_step(z, 0.1),
    "catt": lambda z: adjacent_step(z, 0.1),
    "catt-next": lambda z: adjacent_step(z, 0.1, "next"),
    "dicot": lambda z: adjacent_block(z.unflatten(1, (10, -1)).mean(dim=2), 0.07),  # type: ignore[no-untyped-call]
    "ts2vec": lambda z: hierarchical_contrast(z.transpose(1, 2), z.roll(1, dims=0).transpose(1, 2)),
    "soft": lambda z: hierarchical_contrast(
        z.transpose(1, 2), z.roll(1, dims=0).transpose(1, 2), case_weights=torch.eye(len(z)), tau_temp=1.0
    ),
    "tnc": lambda z: positive_unlabelled(z[..., 0], z[..., 1], 0.05),
    "tstcc": lambda z: prediction_contrast(z[:, :6].transpose(0, 1), z[:, -6:].transpose(0, 1)),
    "nt-xent": lambda z: nt_xent(z.mean(dim=1), z[:, 0]),
    "across-whole": lambda z: view_contrast(z.mean(dim=1), z[:, 0], 0.2),
    "tfc": lambda z: poly_nt_xent(z.mean(dim=1), z[:, 0]),
    "cost-time": lambda z: queue_contrast(z[:, 0], z[:, 1], torch.randn(z.shape[2], 256), 0.07),
    "cost-frequency": lambda z: torch.stack(frequency_contrast(*z.transpose(1, 2).chunk(2, dim=1))).sum(),
    "infots-global": lambda z: pooled_contrast(z.transpose(1, 2), z.roll(1, dims=0).transpose(1, 2)),
    "infots-local": lambda z: segment_contrast(z.transpose(1, 2), 8),
    "simmtm": simmtm,
}


def peak_mib() -> float:
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, KiB elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def step_seconds(name: str, z: Tensor) -> float:
    z.grad = None
    started = time.perf_counter()
    LOSSES[name](z).backward()  # type: ignore[no-untyped-call]
    return time.perf_counter() - started


def measure(name: str, batch: int, n_times: int, dim: int, repeats: int) -> tuple[float, float]:
    """(median seconds, peak MiB) of one forward and backward pass."""
    torch.manual_seed(0)
    step_seconds(name, torch.randn(4, 20, dim, requires_grad=True))  # what is loaded once does not count
    z = torch.randn(batch, n_times, dim, requires_grad=True)
    before = peak_mib()
    step_seconds(name, z)
    growth = peak_mib() - before
    return statistics.median(step_seconds(name, z) for _ in range(repeats)), growth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(LOSSES)}; all if none is given")
    parser.add_argument("--batches", type=int, nargs="+", default=[4, 8, 16, 32, 64])
    parser.add_argument("--n-times", type=int, default=100, help="time steps of a window, a multiple of 10")
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    names = options.names or list(LOSSES)
    if unknown := set(names) - set(LOSSES):
        parser.error(f"unknown loss {', '.join(sorted(unknown))}; known: {', '.join(LOSSES)}")
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, T = {options.n_times}, F = {options.dim}")
    print(f"{'loss':16}{'batch':>8}{'N = B T':>10}{'ms':>10}{'MiB':>10}")
    # One task per process: the peak of a process never falls.
    first, last = options.batches[0], options.batches[-1]
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for name in names:
            times = []
            for batch in options.batches:
                shape = (batch, options.n_times, options.dim)
                seconds, mib = pool.apply(measure, (name, *shape, options.repeats))
                times.append(seconds)
                print(f"{name:16}{batch:8}{batch * options.n_times:10}{seconds * 1e3:10.1f}{mib:10.1f}", flush=True)
            if last > first:
                power = math.log(times[-1] / times[0]) / math.log(last / first)
                print(f"{name:16}time grows as B^{power:.2f}", flush=True)


if __name__ == "__main__":
    main()
