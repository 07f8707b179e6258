"""Peak memory, measured in processes of their own: fit, transform and `dicot embed` on a file of 300 MB."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SHAPE = (300, 1000, 256)  # many channels: much data for little arithmetic
MEGABYTES = 4 * np.prod(SHAPE) / 2**20  # 293

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the peak")

HEAD = """
import sys
import numpy as np
from pathlib import Path
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> Path:
    """A large file of float32, written piece by piece, and a model for it."""
    from dicot import TimeSeriesEmbedder
    from dicot.data import Windows

    folder = tmp_path_factory.mktemp("large")
    noise = np.random.default_rng(0).normal(5, 2, size=(20, *SHAPE[1:])).astype(np.float32)
    file = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, SHAPE)
    for start in range(0, len(file), len(noise)):
        file[start : start + len(noise)] = noise
    del file
    model = TimeSeriesEmbedder("dicot", dim=16, steps=1, prepare={"scale": "dataset"}, random_state=0, device="cpu")
    model.fit(Windows(noise)).save_pretrained(folder / "model")
    return folder


def measured(code: str, folder: Path) -> float:
    """The peak in MB of a process that runs this code, imports included."""
    words = [sys.executable, "-c", f"{HEAD}{code}\nprint(peak())", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


@pytest.mark.slow
def test_transform_takes_less_memory_than_the_file(recording):
    code = """
from dicot import TimeSeriesEmbedder
model = TimeSeriesEmbedder.from_pretrained(sys.argv[1] + "/model", device="cpu")
model.transform(np.load(sys.argv[1] + "/x.npy", mmap_mode="r"))
"""
    assert measured(code, recording) < 600  # of which torch alone takes half


@pytest.mark.slow
def test_embedding_a_file_takes_less_memory_than_the_file(recording):
    code = """
from dicot.cli import app
app(["embed", sys.argv[1] + "/model", sys.argv[1] + "/x.npy", "--out", sys.argv[1] + "/v.npz", "--device", "cpu"],
    standalone_mode=False)
"""
    assert measured(code, recording) < 600


@pytest.mark.slow
@pytest.mark.parametrize("scale", [None, "dataset"])
def test_fit_makes_one_copy(recording, scale):
    code = f"""
from dicot import TimeSeriesEmbedder
x = np.load(sys.argv[1] + "/x.npy", mmap_mode="r")
how = {{"recipe": {{"batch_size": 2}}, "prepare": {{"scale": {scale!r}}}}}
TimeSeriesEmbedder("dicot", dim=16, steps=1, random_state=0, device="cpu", **how).fit(x)
"""
    assert measured(code, recording) < 600 + MEGABYTES


@pytest.mark.slow
def test_embedding_recordings_holds_one_at_a_time(recording):
    folder = recording / "recordings"
    folder.mkdir()
    x = np.random.default_rng(0).normal(5, 2, size=(SHAPE[1], 30 * SHAPE[2])).astype(np.float32)
    for number in range(10):  # of 29 MB
        np.savez(folder / f"{number}.npz", X=x)
    code = """
from dicot.cli import app
app(["embed", sys.argv[1] + "/model", sys.argv[1] + "/recordings", "--window", "256", "--stride", "100%",
     "--out", sys.argv[1] + "/v.parquet", "--device", "cpu"], standalone_mode=False)
"""
    # Up to 256 MB of recordings are kept, so that none is read twice; all, with their windows, would be 600 more.
    assert measured(code, recording) < 950
