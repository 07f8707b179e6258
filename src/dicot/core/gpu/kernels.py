"""Own CUDA kernels: a file of them, compiled by NVRTC at first use and launched on the current stream.

That takes a fraction of a second, once: the code is stored in the user's cache folder. Where it is not possible the log
says why, and those who would have used the kernels use PyTorch's operators.
"""

import ctypes
import hashlib
import logging
import struct
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dicot.core.gpu.machine_code import use_code

log = logging.getLogger(__name__)
Size = tuple[int, int, int]  # of a grid or block
BUFFER, BUFFER_SIZE, END = 1, 2, 0  # of cuLaunchKernel's `extra`


class Compiled(NamedTuple):
    driver: Any  # the CUDA driver's library
    functions: dict[str, Any]
    module: Any  # owns the functions


class KernelFile:
    """The kernels in a .cu file of a package.

    arguments: those of each kernel as a C struct: P an address, i an int, f a float, d a double
    """

    def __init__(self, package: str, file: str, arguments: Mapping[str, str]) -> None:
        self.package, self.file, self.arguments = package, file, dict(arguments)
        self._loaded: dict[torch.device, Compiled | None] = {}

    def on(self, device: torch.device) -> Compiled | None:
        """Load the kernels for a device, or return None where they cannot be compiled."""
        if device not in self._loaded:
            self._loaded[device] = self._load(device)
        return self._loaded[device]

    def _load(self, device: torch.device) -> Compiled | None:
        try:
            from torch.cuda._utils import _check_cuda, _get_gpu_runtime_library

            driver: Any = _get_gpu_runtime_library()
            module, functions = ctypes.c_void_p(), {name: ctypes.c_void_p() for name in self.arguments}
            with torch.cuda.device(device):
                torch.empty(0, device=device)  # a context for the driver
                _check_cuda(driver.cuModuleLoadData(ctypes.byref(module), self._code(device)))
                for name, function in functions.items():
                    _check_cuda(driver.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
            return Compiled(driver, functions, module)
        except (ImportError, AttributeError, TypeError, RuntimeError, OSError) as error:
            log.warning("%s could not be compiled, PyTorch's operators are used instead: %s", self.file, error)
            return None

    def _code(self, device: torch.device) -> bytes:
        """Return machine code for the device, from the cache folder where it was compiled before."""
        from torch.cuda._utils import _nvrtc_compile

        source = files(self.package).joinpath(self.file).read_text(encoding="utf-8")
        key = f"{source}\n{torch.cuda.get_device_capability(device)} {torch.__version__} {torch.version.cuda}"
        stem = f"kernels-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
        first = next(iter(self.arguments))
        code: bytes = use_code(stem, ".ptx", lambda: _nvrtc_compile(source, first)[0], Path.read_bytes)
        return code

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
