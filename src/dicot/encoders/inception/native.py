"""The four functions of `rows` in C (native.c): one or two passes over memory, where PyTorch takes four to eight.

Compiled with the system's C compiler at first use, in about a second, and stored in the user's cache folder. Where
there is no compiler, or DICOT_NATIVE=0 is set, `rows` does the work and the log says so.
"""

import ctypes
import hashlib
import logging
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dicot.encoders.inception.rows import Normed, next_momentum
from dicot.gpu.machine_code import use_code

log = logging.getLogger(__name__)

FLAGS = ["-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fopenmp", "-fPIC"]
MOST_PARTS = 4
WIDEST = 1024  # columns of a part, as in native.c


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """Load the compiled functions, or return None where they cannot be compiled."""
    if os.environ.get("DICOT_NATIVE", "1") == "0":
        log.info("DICOT_NATIVE=0: PyTorch's operators are used")
        return None
    try:
        return _compiled()
    except (OSError, subprocess.SubprocessError, LookupError) as error:
        log.info("the C functions could not be compiled, PyTorch's operators are used instead: %s", error)
        return None


def _compiled() -> ctypes.CDLL:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise LookupError("no C compiler")
    source = files("dicot.encoders.inception").joinpath("native.c").read_text(encoding="utf-8")
    threads = _openmp()
    key = "\n".join([source, *FLAGS, threads, platform.platform(), _processor()])
    stem = f"native-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    return use_code(stem, ".so", partial(_compile, compiler, source, threads), lambda path: ctypes.CDLL(str(path)))


def _compile(compiler: str, source: str, threads: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="dicot-") as folder:
        code, built = Path(folder) / "native.c", Path(folder) / "native.so"
        code.write_text(source, encoding="utf-8")
        # Linked with the OpenMP library that torch has loaded: the threads of two would take each other's cores.
        commands = (
            [compiler, *FLAGS, "-c", str(code), "-o", str(code.with_suffix(".o"))],
            [compiler, "-shared", str(code.with_suffix(".o")), threads, "-lm", "-o", str(built)],
        )
        for command in commands:
            subprocess.run(command, check=True, capture_output=True, timeout=60)
        return built.read_bytes()


def _openmp() -> str:
    """Return the path of the GNU OpenMP library in this process."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if path := re.search(r"(/\S*libgomp\S*\.so\S*)", line):
            return path.group(1)
    raise LookupError("torch has no GNU OpenMP library loaded")


def _processor() -> str:
    """Return the processor's flags, which -march=native depends on."""
    return next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")), "")


def _address(tensor: Tensor | None) -> ctypes.c_void_p:
    assert tensor is None or tensor.is_contiguous(), "C goes through memory"
    return ctypes.c_void_p(None if tensor is None else tensor.data_ptr())


def _call(name: str, *arguments: Any) -> None:
    loaded = library()
    assert loaded is not None
    getattr(loaded, name)(*(_address(a) if a is None or isinstance(a, Tensor) else a for a in arguments))


def _four(parts: Sequence[Tensor]) -> list[Tensor]:
    return [*parts, *[parts[0]] * (MOST_PARTS - len(parts))]


def _work(n_columns: int) -> tuple[Tensor, Tensor, int]:
    """Return memory for the sums of each thread and for an affine map per column, and the number of threads."""
    n_threads = torch.get_num_threads()
    return torch.empty(2 * n_threads * n_columns, dtype=torch.float64), torch.empty(3 * n_columns), n_threads


def norm_forward(parts: Sequence[Tensor], norm: nn.BatchNorm1d, bias: Tensor, added: Tensor | None = None) -> Normed:
    """See `rows.norm_forward`; the parts have equally many columns."""
    assert norm.num_batches_tracked is not None
    n_rows, n_columns = len(parts[0]), norm.num_features
    y, statistics = parts[0].new_empty(n_rows, n_columns), parts[0].new_empty(2, n_columns)
    momentum = next_momentum(norm)
    norm.num_batches_tracked.add_(1)
    _call(
        "norm_forward", *_four(parts), parts[0].shape[1], ctypes.c_long(n_rows), n_columns, norm.weight, norm.bias,
        bias, norm.running_mean, norm.running_var, ctypes.c_double(momentum), ctypes.c_double(norm.eps), added, y,
        statistics, *_work(n_columns),
    )  # fmt: skip
    return Normed(parts, y, statistics)


def norm_backward(
    dy: Tensor, saved: Normed, norm: nn.BatchNorm1d, widths: Sequence[int], masked: bool = True
) -> tuple[Sequence[Tensor], Tensor, Tensor]:
    """See `rows.norm_backward`."""
    n_rows, n_columns = saved.y.shape
    dparts = [torch.empty_like(part) for part in saved.x]
    dweight, dshift = dy.new_empty(n_columns), dy.new_empty(n_columns)
    _call(
        "norm_backward", dy, saved.y, int(masked), *_four(saved.x), saved.x[0].shape[1], ctypes.c_long(n_rows),
        n_columns, norm.weight, saved.statistics, *_four(dparts), dweight, dshift, *_work(n_columns),
    )  # fmt: skip
    return dparts, dweight, dshift


def pool_forward(u: Tensor) -> tuple[Tensor, Tensor | None]:
    """See `rows.pool_forward`; nothing is saved."""
    y = torch.empty_like(u)
    _call("pool", u, y, ctypes.c_long(len(u)), ctypes.c_long(u[0].numel()), torch.get_num_threads())
    return y, None


def pool_backward(dy: Tensor, u: Tensor, pairs: Tensor | None) -> Tensor:
    """See `rows.pool_backward`; dy stays as it is."""
    du = torch.empty_like(u)
    _call("pool_backward", dy, u, du, ctypes.c_long(len(u)), ctypes.c_long(u[0].numel()), torch.get_num_threads())
    return du
