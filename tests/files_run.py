"""python -m tests.files_run: the files of src/dicot that a small fit and a small `dicot embed` run through."""

import inspect
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from dicot import TimeSeriesEmbedder
from tests.commands import dicot

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "dicot"


def files_run(work: Callable[[], object]) -> list[str]:
    """Return the files in which a function ran; what a file does when it is imported does not count."""
    found: set[str] = set()
    importing = 0

    def note(frame, event: str, _) -> None:
        nonlocal importing
        code = frame.f_code
        if code.co_name == "<module>":
            importing += {"call": 1, "return": -1}.get(event, 0)
        elif event == "call" and not importing and code.co_flags & inspect.CO_OPTIMIZED:
            found.add(code.co_filename)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    paths = (Path(name) for name in found)
    return sorted(path.relative_to(PACKAGE).as_posix() for path in paths if path.is_relative_to(PACKAGE))


def of_fit() -> list[str]:
    """Return the files of a fit by the default preset."""
    x = np.random.default_rng(0).normal(size=(24, 2, 64)).astype(np.float32)
    return files_run(lambda: TimeSeriesEmbedder(steps=3, device="cpu").fit(x))


def of_embed() -> list[str]:
    """Return the files of `dicot embed` for a folder with two recordings."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        rng = np.random.default_rng(0)
        for number in range(2):
            rows = "\n".join(",".join(f"{value:.4f}" for value in row) for row in rng.normal(size=(300, 2)))
            (folder / "in" / f"{number}.csv").write_text(f"x,y\n{rows}\n")
        model = TimeSeriesEmbedder(steps=2, device="cpu").fit(rng.normal(size=(12, 2, 50)).astype(np.float32))
        model.save_pretrained(folder / "model")
        call = ("embed", folder / "model", folder / "in", "--window", "50", "--out", folder / "vectors.npz")
        return files_run(lambda: dicot(*map(str, call), "--device", "cpu"))


if __name__ == "__main__":
    torch.set_num_threads(1)
    for title, files in (("fit", of_fit()), ("dicot embed", of_embed())):
        sys.stdout.write("\n".join([f"{title}: {len(files)} files", *(f"  {file}" for file in files), ""]))
