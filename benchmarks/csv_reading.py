"""What it takes to read a long CSV file: CPU-seconds, and memory at the peak beyond the windows.

Usage: python -m benchmarks.csv_reading [--rows 1000000]
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from dicot.data import Windows

PART = 10_000  # rows that are written at once, so that writing takes little memory


def write_table(path: Path, n_rows: int) -> None:
    """Write a column of time stamps and six channels, about 59 MB for a million rows."""
    rng = np.random.default_rng(0)
    for start in range(0, n_rows, PART):
        rows = np.arange(start, min(n_rows, start + PART))
        frame = pd.DataFrame(rng.normal(size=(len(rows), 6)).round(5), columns=list("abcdef"))
        frame.insert(0, "time", rows / 50)
        frame.to_csv(path, mode="a", header=start == 0, index=False)


def peak() -> int:
    """Return the most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Read a file of `--rows` rows, and say what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    n_rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.csv", Path(folder) / "large.csv"
        write_table(small, 1000)
        write_table(large, n_rows)
        Windows.from_folder(small, 128, 128)  # loads the libraries
        before, started = peak(), time.process_time()
        windows = Windows.from_folder(large, 128, 128)
        seconds, beyond = time.process_time() - started, peak() - before - windows.x.nbytes
        megabytes = large.stat().st_size / 1e6
    print(f"{n_rows:,} rows, {megabytes:.0f} MB: {seconds:.1f} CPU-seconds, {beyond / 1e6:.0f} MB beyond the windows")


if __name__ == "__main__":
    main()
