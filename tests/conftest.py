"""What many tests need: small unlabelled data."""

import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from dicot.data import Windows

sys.path.insert(0, str(Path(__file__).parents[1]))

import hatch_build

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would every command that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure() -> None:
    """Compile the C code where it is missing or older than its source, as an editable install does."""
    if not hatch_build.is_current() and hatch_build.find_compiler() is not None:
        hatch_build.compile_all()


def make_waves() -> Windows:
    """24 noisy sine waves of 2 channels in three classes of frequency."""
    rng = np.random.default_rng(0)
    y = np.arange(24) % 3
    time = np.linspace(0, 1, 32)
    phase = rng.uniform(0, 6, size=(24, 2, 1))
    x = np.sin(2 * np.pi * (2 + 3 * y[:, None, None]) * time + phase) + 0.1 * rng.normal(size=(24, 2, 32))
    return Windows(x.astype(np.float32), y, name="waves")


@pytest.fixture
def waves() -> Windows:
    return make_waves()


@pytest.fixture(autouse=True)
def _unknown_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that run side by side are told to be 80 columns wide; commands then print for such a screen."""
    monkeypatch.delenv("COLUMNS", raising=False)
