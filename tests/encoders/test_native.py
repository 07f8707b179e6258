"""Code in C that was compiled when the library was built, and an installation without it."""

import subprocess
import sys

import pytest
import torch

from dicot.core import native
from dicot.core.errors import SlowWarning
from dicot.core.native import NativeLibrary


def test_what_is_slow_without_the_code_is_said_once(tmp_path, monkeypatch):
    monkeypatch.setattr(native, "PACKAGE", tmp_path)
    native.warn_of_slow_work.cache_clear()
    libraries = [NativeLibrary(source) for source in native.SOURCES]
    with pytest.warns(SlowWarning, match=r"no C compiler.*3 to 7 times slower.*Install gcc or clang") as warned:
        assert [library.library for library in libraries] == [None, None]
    assert len(warned) == 1
    assert not native.is_built()


def test_the_version_tells_that_the_code_is_missing_and_does_not_wait_for_torch(tmp_path):
    script = f"""
import sys
from pathlib import Path
from dicot.core import native
native.PACKAGE = Path({str(tmp_path)!r})
from dicot.cli import main
sys.argv = ["dicot", "--version"]
try:
    main()
finally:
    assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first.startswith("dicot ") and "slower" in second


@pytest.mark.parametrize("n_cases", [1, 2, 7])
def test_threads_share_the_cases(n_cases, monkeypatch):
    """Every case is computed once, and its results are written where they belong."""
    calls = []

    class Library:
        def processor_kind(self):
            return 1

        def add_1(self, *arguments):
            calls.append([argument.value for argument in arguments])

    library = NativeLibrary("model/kernels.c")
    monkeypatch.setattr(library, "library", Library())
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    cases, results = torch.zeros(n_cases, 5), torch.zeros(n_cases, 2)
    library.call("add", cases, results, 4, 0.5)
    assert sum(count for _, count, *_ in calls) == n_cases
    starts = sorted((first - cases.data_ptr()) // 20 for first, *_ in calls)
    assert starts == sorted((result - results.data_ptr()) // 8 for _, _, result, *_ in calls)
    assert all(others == [4, 0.5] for _, _, _, *others in calls)
