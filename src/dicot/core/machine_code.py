"""C functions and CUDA kernels of this library: compiled at first use, stored in the user's cache folder.

Compiling takes about a second. Where it is not possible, or DICOT_NATIVE=0 is set (for C), PyTorch's operators do the
work, and what is missing is said once.

What is loaded from the cache runs with the user's rights. So it is loaded only from a folder and a file that belong to
the user and that nobody else can write to.
"""

import ctypes
import hashlib
import logging
import os
import platform
import shutil
import stat
import struct
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from dicot.core.errors import SlowWarning
from dicot.core.storage import cache_folder, write_atomic

log = logging.getLogger(__name__)
T = TypeVar("T")
FLAGS = ["-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fopenmp", "-fPIC"]
Size = tuple[int, int, int]  # of a grid or block
BUFFER, BUFFER_SIZE, END = 1, 2, 0  # of cuLaunchKernel's `extra`


class CFile:
    """The functions in a .c file of a package. Each takes the number of threads as its last argument."""

    def __init__(self, package: str, file: str) -> None:
        self.package, self.file = package, file

    @cached_property
    def library(self) -> ctypes.CDLL | None:
        """The compiled functions, or None where they cannot be compiled."""
        if os.environ.get("DICOT_NATIVE", "1") == "0":
            log.info("DICOT_NATIVE=0: PyTorch's operators are used")
            return None
        try:
            source = files(self.package).joinpath(self.file).read_text(encoding="utf-8")
            threads = _openmp()
            key = "\n".join([source, *FLAGS, threads, platform.platform(), _processor()])
            stem = f"{Path(self.file).stem}-{_digest(key.encode())}"
            return use_code(stem, ".so", lambda: _compile(source, threads), lambda path: ctypes.CDLL(str(path)))
        except (OSError, subprocess.SubprocessError, LookupError) as error:
            log.info("%s could not be compiled: %s", self.file, error)
            warn_of_slow_work(str(error))
            return None

    def call(self, name: str, *arguments: Tensor | int | float | None) -> None:
        """Call a function: a tensor is passed as its address, None as null, numbers as long and double."""
        getattr(self.library, name)(*map(_argument, arguments), ctypes.c_long(torch.get_num_threads()))


@cache
def warn_of_slow_work(reason: str) -> None:
    """Say once in a process, for all files of C, that these could not be compiled and what to do."""
    remedy = "Set DICOT_NATIVE=0 to go on without this sentence."
    if _compiler() is None:
        remedy = f"Install one, such as gcc. {remedy}"
    elif platform.system() != "Linux":
        remedy = f"They are for Linux so far. {remedy}"
    warnings.warn(
        f"dicot's functions in C could not be compiled ({reason}). PyTorch's operators do the same work, and "
        f"embedding takes 2.5 to 5 times as long. {remedy}",
        SlowWarning,
        stacklevel=3,
    )


def _argument(value: Tensor | int | float | None) -> Any:
    if isinstance(value, int):
        return ctypes.c_long(value)
    if isinstance(value, float):
        return ctypes.c_double(value)
    assert value is None or value.is_contiguous(), "C goes through memory"
    return ctypes.c_void_p(None if value is None else value.data_ptr())


def _compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc")


def _compile(source: str, threads: str) -> bytes:
    compiler = _compiler()
    if compiler is None:
        raise LookupError("there is no C compiler")
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


class Kernels(NamedTuple):
    """Compiled kernels of a file."""

    driver: Any  # the CUDA driver's library
    functions: dict[str, Any]
    module: Any  # owns the functions


class KernelFile:
    """The kernels in a .cu file of a package, compiled by NVRTC and launched on the current stream.

    arguments: those of each kernel as a C struct: P an address, i an int, f a float, d a double
    """

    def __init__(self, package: str, file: str, arguments: Mapping[str, str]) -> None:
        self.package, self.file, self.arguments = package, file, dict(arguments)
        self._loaded: dict[torch.device, Kernels | None] = {}

    def on(self, device: torch.device) -> Kernels | None:
        """Load the kernels for a device, or return None where they cannot be compiled."""
        if device not in self._loaded:
            self._loaded[device] = self._load(device)
        return self._loaded[device]

    def _load(self, device: torch.device) -> Kernels | None:
        try:
            from torch.cuda._utils import _check_cuda, _get_gpu_runtime_library, _nvrtc_compile

            source = files(self.package).joinpath(self.file).read_text(encoding="utf-8")
            versions = f"{torch.cuda.get_device_capability(device)} {torch.__version__} {torch.version.cuda}"
            stem = f"{Path(self.file).stem}-{_digest((source + versions).encode())}"
            first = next(iter(self.arguments))
            code = use_code(stem, ".ptx", lambda: _nvrtc_compile(source, first)[0], Path.read_bytes)
            driver: Any = _get_gpu_runtime_library()
            module, functions = ctypes.c_void_p(), {name: ctypes.c_void_p() for name in self.arguments}
            with torch.cuda.device(device):
                torch.empty(0, device=device)  # a context for the driver
                _check_cuda(driver.cuModuleLoadData(ctypes.byref(module), code))
                for name, function in functions.items():
                    _check_cuda(driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
            return Kernels(driver, functions, module)
        except (ImportError, AttributeError, TypeError, RuntimeError, OSError) as error:
            log.warning("%s could not be compiled, PyTorch's operators are used instead: %s", self.file, error)
            return None

    def launch(self, name: str, device: torch.device, grid: Size, block: Size, *args: Any, shared: int = 0) -> None:
        """Start a kernel with so many bytes of `shared` memory for each block; tensors must be contiguous."""
        loaded = self.on(device)
        assert loaded is not None
        assert all(arg.is_contiguous() for arg in args if isinstance(arg, Tensor)), "kernels go through memory"
        layout = self.arguments[name]
        values = (arg.data_ptr() if isinstance(arg, Tensor) else arg for arg in args)
        packed = ctypes.create_string_buffer(struct.pack(layout, *values))
        size = ctypes.c_size_t(struct.calcsize(layout))
        extra = (ctypes.c_void_p * 5)(BUFFER, ctypes.addressof(packed), BUFFER_SIZE, ctypes.addressof(size), END)
        stream = ctypes.c_void_p(torch._C._cuda_getCurrentRawStream(device.index))
        status = loaded.driver.cuLaunchKernel(loaded.functions[name], *grid, *block, shared, stream, None, extra)
        if status:
            raise RuntimeError(f"The CUDA kernel {name} could not be launched: the driver says {status}.")


def use_code(stem: str, suffix: str, make: Callable[[], bytes], use: Callable[[Path], T]) -> T:
    """Call `use` with the path of the code called `stem`; what is not in the cache yet is made first.

    The file's name ends with the hash of its content: a truncated or damaged one is recognised, and made again. Where
    nothing can be stored safely, the code goes to a temporary folder that is removed afterwards.
    """
    with ExitStack() as stack:
        try:
            folder = _private_folder()
            for path in sorted(folder.glob(f"{stem}-*{suffix}")):
                if not _exposed(path) and path.name == f"{stem}-{_digest(path.read_bytes())}{suffix}":
                    return use(path)
                path.unlink(missing_ok=True)
        except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
            log.info("compiled code cannot be stored: %s", error)
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dicot-")))
        code = make()
        path = folder / f"{stem}-{_digest(code)}{suffix}"
        write_atomic(path, code, private=True)
        return use(path)


def _digest(code: bytes) -> str:
    return hashlib.sha256(code).hexdigest()[:16]


def _private_folder() -> Path:
    """Return the cache's folder for code, which no other user can write to or replace."""
    cache = cache_folder()
    folder = cache / f"code-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if fault := _exposed(folder):
        raise PermissionError(f"{folder} {fault}")
    around = cache.stat().st_mode
    if around & stat.S_IWOTH and not around & stat.S_ISVTX:
        raise PermissionError(f"{cache} is writable by everybody")
    return folder


def _exposed(path: Path) -> str:
    """Say why others may have written this file or folder; empty where they cannot."""
    facts = path.stat()
    if facts.st_uid != os.getuid():
        return f"belongs to another user ({facts.st_uid})"
    shared = facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return f"is writable by others ({stat.filemode(facts.st_mode)})" if shared else ""
