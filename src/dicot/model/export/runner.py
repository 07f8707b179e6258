"""A copy of edge.py beside an exported file: all that a machine without dicot and torch needs to run it."""

from pathlib import Path

from dicot.core import __version__
from dicot.core.errors import InputError
from dicot.core.storage import check_writable, write_atomic

EDGE = Path(__file__).parent.parent / "edge.py"


def check_runner(path: Path) -> None:
    """Refuse a name that cannot be written before any work is done."""
    if path.suffix != ".py":
        raise InputError(f"{path} has the suffix {path.suffix!r}; give the name of a .py file.")
    check_writable(path)


def write_runner(path: str | Path) -> Path:
    """Write the copy, with the version that it came from on top."""
    path = Path(path)
    check_runner(path)
    note = f"# Written by `dicot export` {__version__}. Change src/dicot/model/edge.py instead of this copy.\n"
    write_atomic(path, note.encode() + EDGE.read_bytes())
    return path
