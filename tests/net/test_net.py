"""The net holds: what the library computes is what was frozen."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_nothing_differs_from_what_was_frozen() -> None:
    command = [sys.executable, "-m", "tests.net", "check"]
    root, alone = Path(__file__).parents[2], {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=root, env=alone, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "DIFFERS" not in done.stdout, done.stdout + done.stderr
