"""python -m tests.golden PATH [--only KIND,KIND]: recompute every vector file found in PATH.

One line per file with the largest error; exits non-zero on a mismatch, on an unknown kind, or where nothing was found.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from tests.golden import KINDS


def check_file(path: Path) -> tuple[bool, str]:
    """Whether the file holds, and the line to print."""
    if path.stem not in KINDS:
        return False, f"FAIL {path.stem:20} unknown kind; known: {', '.join(KINDS)}"
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as vectors:
            result = KINDS[path.stem](dict(vectors))
    except Exception as error:  # a file that cannot be checked is a failed file, and the others still count
        return False, f"FAIL {path.stem:20} {type(error).__name__}: {error}"
    if result.failures or not result.count:
        reason = "; ".join(result.failures[:3]) or "the file holds no case"
        return False, f"FAIL {path.stem:20} {len(result.failures)} of {result.count} comparisons: {reason}"
    return True, f"ok   {path.stem:20} {result.count} comparisons, largest error {result.largest_error:.3g}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, help="a folder with .npz files, or one file")
    parser.add_argument("--only", default="", help="comma-separated kinds")
    options = parser.parse_args(arguments)
    only = {kind for kind in options.only.split(",") if kind}
    found = sorted(options.path.glob("*.npz")) if options.path.is_dir() else [options.path]
    files = [path for path in found if path.is_file() and (not only or path.stem in only)]
    missing = only - {path.stem for path in files}
    for kind in sorted(missing):
        print(f"FAIL {kind:20} no such file in {options.path}")
    if not files:
        print(f"FAIL nothing to check in {options.path}")
        return 1
    failed = bool(missing)
    for path in files:
        holds, line = check_file(path)
        print(line, flush=True)
        failed |= not holds
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
