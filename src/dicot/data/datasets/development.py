"""Which data sets a setting may be chosen on. All others are only reported: nothing is chosen by their scores."""

from pathlib import Path

# Half of the archives' sets that were at hand, drawn once, and two large sets.
DEVELOPMENT = tuple(Path(__file__).with_name("development.txt").read_text(encoding="utf-8").split())
