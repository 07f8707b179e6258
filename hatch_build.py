"""Compiles the two C files of the library; `python hatch_build.py` does it in place, for work in a clone.

The build backend runs the same when it makes a wheel or an editable install. The files know nothing of Python, so a
wheel serves every Python version of a platform. They are found beside their sources and loaded with ctypes, see
src/dicot/core/native.py.

Each file is compiled once for each kind of processor, and the library chooses when it is loaded: nothing depends on
the machine that builds. Tried with gcc on Linux, x86-64. Written down but not tried: Linux on ARM, macOS, and Windows,
where it has to be clang, because Microsoft's compiler does not know the vectors that the code is written in.
"""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # `python hatch_build.py` does without the build backend
    BuildHookInterface = object

ROOT = Path(__file__).resolve().parent
INCLUDED = ROOT / "src/dicot/core"
SOURCES = (ROOT / "src/dicot/model/kernels.c", ROOT / "src/dicot/nets/encoders/universal.c")

SUFFIXES = {"Windows": ".dll", "Darwin": ".dylib"}  # elsewhere .so
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fvisibility=hidden")

# The numbers are those of `processor_kind` in native.h. Products and sums are fused where the processor can: sums in
# kernels.c are exact either way, and those of universal.c are as near to the exact ones.
AVX2 = ("-mavx2", "-mfma", "-mbmi2")
AVX512 = (*AVX2, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl")
FLAGS_BY_KIND = {"x86_64": ((), AVX2, AVX512)}


def library_of(source: Path) -> Path:
    """Return where the library of a C file lies: beside it, under a name that Python does not take for a module."""
    return source.with_name(f"lib{source.stem}{SUFFIXES.get(platform.system(), '.so')}")


def find_compiler() -> str | None:
    """Return the C compiler: the one that the variable CC names, or the first of the usual names."""
    names = ("clang",) if platform.system() == "Windows" else COMPILERS
    paths = [os.environ.get("CC", ""), *map(shutil.which, names)]
    return next((path for path in paths if path), None)


def compile_library(compiler: str, source: Path) -> None:
    """Compile a C file for every kind of processor into one library."""
    machine = platform.machine().lower().replace("amd64", "x86_64")
    position = () if platform.system() == "Windows" else ("-fPIC",)
    mathematics = () if platform.system() == "Windows" else ("-lm",)

    with tempfile.TemporaryDirectory(dir=source.parent, prefix=".build-") as folder:
        objects = []
        for kind, flags in enumerate(FLAGS_BY_KIND.get(machine, ((),))):
            built = Path(folder, f"{source.stem}-{kind}.o")
            kinds = (f"-DPROCESSOR_KIND={kind}", *flags)
            run(*shlex.split(compiler), *FLAGS, *position, *kinds, f"-I{INCLUDED}", "-c", str(source), "-o", str(built))
            objects.append(str(built))
        library = Path(folder, library_of(source).name)
        run(*shlex.split(compiler), "-shared", *objects, *mathematics, "-o", str(library))
        # Replaced as a whole: another process may be loading it.
        library.replace(library_of(source))


def run(*command: str) -> None:
    """Run the compiler; where it fails, the error holds what it said."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)} failed:\n{done.stderr}")


def compile_all() -> list[Path]:
    """Compile both files, and return the libraries."""
    compiler = find_compiler()
    if compiler is None:
        raise OSError("there is no C compiler: install gcc or clang, or name one in the variable CC")
    for source in SOURCES:
        compile_library(compiler, source)
    return [library_of(source) for source in SOURCES]


def is_current() -> bool:
    """Tell whether both libraries are there and not older than what they are made of."""
    libraries = [library_of(source) for source in SOURCES]
    if not all(library.exists() for library in libraries):
        return False
    newest = max(path.stat().st_mtime for path in (*SOURCES, INCLUDED / "native.h", Path(__file__)))
    return min(library.stat().st_mtime for library in libraries) >= newest


def platform_tag() -> str:
    """Return the platform of a wheel with the libraries, such as linux_x86_64."""
    if platform.system() == "Darwin":
        # Python itself may be made for two kinds of processor; the libraries are made for this one.
        oldest = "11_0" if platform.machine() == "arm64" else "10_13"
        return f"macosx_{oldest}_{platform.machine()}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


class NativeBuildHook(BuildHookInterface):  # type: ignore[misc]
    """Puts the libraries into a wheel. Without a compiler the wheel has none, works, and is slower."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        try:
            libraries = compile_all()
        except (OSError, subprocess.SubprocessError) as error:
            self.app.display_warning(f"dicot is built without its C code, so embedding will be slower: {error}")
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag()}"
        build_data["artifacts"] += [f"/{library.relative_to(ROOT).as_posix()}" for library in libraries]


if __name__ == "__main__":
    try:
        compiled = compile_all()
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"Error: {error}")
    for library in compiled:
        print(f"Wrote {library.relative_to(ROOT)}")
