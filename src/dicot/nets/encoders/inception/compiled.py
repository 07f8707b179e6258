"""Functions in C for the CPU, compiled with the system's C compiler at first use and stored in the user's cache folder.

It takes about a second. Where there is no compiler, or DICOT_NATIVE=0 is set, PyTorch's operators do the work, and the
log says so.
"""

import ctypes
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from functools import lru_cache, partial
from importlib.resources import files
from pathlib import Path

from torch import Tensor

from dicot.core.gpu.machine_code import use_code

log = logging.getLogger(__name__)

FLAGS = ["-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fopenmp", "-fPIC"]


@lru_cache(maxsize=8)
def compiled(package: str, name: str) -> ctypes.CDLL | None:
    """Load the functions of a C file of a package, or return None where they cannot be compiled."""
    if os.environ.get("DICOT_NATIVE", "1") == "0":
        log.info("DICOT_NATIVE=0: PyTorch's operators are used")
        return None
    try:
        return _library(package, name)
    except (OSError, subprocess.SubprocessError, LookupError) as error:
        log.info("the C functions could not be compiled, PyTorch's operators are used instead: %s", error)
        return None


def address(tensor: Tensor | None) -> ctypes.c_void_p:
    """Return where a tensor lies in memory, for a C function; None is the null pointer."""
    assert tensor is None or tensor.is_contiguous(), "C goes through memory"
    return ctypes.c_void_p(None if tensor is None else tensor.data_ptr())


def _library(package: str, name: str) -> ctypes.CDLL:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise LookupError("no C compiler")
    source = files(package).joinpath(name).read_text(encoding="utf-8")
    threads = _openmp()
    key = "\n".join([source, *FLAGS, threads, platform.platform(), _processor()])
    stem = f"{Path(name).stem}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
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
        path = line.split(maxsplit=5)[-1]  # behind five columns; it may hold spaces
        if "libgomp" in path:
            return path
    raise LookupError("torch has no GNU OpenMP library loaded")


def _processor() -> str:
    """Return the processor's flags, which -march=native depends on."""
    return next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")), "")
