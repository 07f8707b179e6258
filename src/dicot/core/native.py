"""Functions in C that were compiled when this library was built; see hatch_build.py.

A function takes cases and writes a row of results for each. No case depends on the others, so threads share the cases.
Without the libraries, in an installation from source on a machine without a compiler, PyTorch's operators do the same
work. The last bits differ.
"""

import ctypes
import platform
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dicot.core.errors import SlowWarning

if TYPE_CHECKING:  # `dicot --version` asks what is built, and does not wait for torch
    from torch import Tensor

PACKAGE = Path(__file__).resolve().parents[1]
SOURCES = ("model/kernels.c", "nets/encoders/universal.c")
SUFFIX = {"Windows": ".dll", "Darwin": ".dylib"}.get(platform.system(), ".so")
MISSING = (
    "This dicot was installed without its C code, because there was no C compiler. The default model embeds 3 to 7 "
    "times slower on a CPU. Install gcc or clang, and then dicot again (in a clone: python hatch_build.py)."
)


def path_of(source: str) -> Path:
    """Return where the library of a C file lies: beside it, under a name that Python does not take for a module."""
    path = PACKAGE / source
    return path.with_name(f"lib{path.stem}{SUFFIX}")


def is_built() -> bool:
    """Tell whether this installation has all its C code."""
    return all(path_of(source).exists() for source in SOURCES)


class NativeLibrary:
    """The compiled functions of one of the SOURCES."""

    def __init__(self, source: str) -> None:
        self.path = path_of(source)

    @cached_property
    def library(self) -> ctypes.CDLL | None:
        """The loaded library, or None where it was not built. That is said once in a process."""
        if not self.path.exists():
            warn_of_slow_work()
            return None
        return ctypes.CDLL(str(self.path))

    def call(self, name: str, cases: "Tensor", results: "Tensor", *arguments: "Tensor | int | float") -> None:
        """Compute `results` (N, ...) of `cases` (N, ...) in as many threads as PyTorch uses.

        The function takes the cases, their number, the results and then these arguments: tensors as addresses, numbers
        as long long and double. Python's lock is free while it works.
        """
        import torch

        assert self.library is not None
        # The library has each function once for every kind of processor.
        function = getattr(self.library, f"{name}_{self.library.processor_kind()}")
        others = [_argument(value) for value in arguments]

        def compute(start: int, stop: int) -> None:
            function(_argument(cases[start:stop]), _argument(stop - start), _argument(results[start:stop]), *others)

        n_threads = max(1, min(torch.get_num_threads(), len(cases)))
        if n_threads == 1:
            compute(0, len(cases))
            return
        bounds = [len(cases) * number // n_threads for number in range(n_threads + 1)]
        # Threads are made for each call: they take a tenth of a millisecond, and none is left for a forked process.
        with ThreadPoolExecutor(n_threads) as threads:
            list(threads.map(compute, bounds[:-1], bounds[1:]))


def _argument(value: "Tensor | int | float") -> Any:
    if isinstance(value, int):
        return ctypes.c_longlong(value)
    if isinstance(value, float):
        return ctypes.c_double(value)
    assert value.is_contiguous(), "C goes through memory"
    return ctypes.c_void_p(value.data_ptr())


@cache
def warn_of_slow_work() -> None:
    """Say once in a process that the C code is missing, and what to do."""
    warnings.warn(MISSING, SlowWarning, stacklevel=4)
