"""Fixtures that tests of the paper share with those of benchmarks and reports."""

from tests.bench.conftest import data, toy
from tests.report.conftest import quick

__all__ = ["data", "quick", "toy"]
