"""The 128 univariate (UCR 2018) and 30 multivariate (UEA 2018) archive sets with their sizes, and six large sets."""

from pathlib import Path

from dicot.data.datasets.base import Sizes


def _lines(file: str) -> list[str]:
    return Path(__file__).with_name(file).read_text(encoding="utf-8").splitlines()


# Archive, name, training cases, test cases, channels, time steps, classes; "-" is not known, or differs between cases.
_ARCHIVES = [line.split() for line in _lines("archives.txt")]
UCR = tuple(name for archive, name, *_ in _ARCHIVES if archive == "ucr")
UEA = tuple(name for archive, name, *_ in _ARCHIVES if archive == "uea")
LARGE = ("ecg", "harth", "pamap2-paper", "skoda-paper", "sleep", "wisdm2")  # of the Di-COT paper
OFFICIAL = {name: Sizes(*(None if size == "-" else int(size) for size in sizes)) for _, name, *sizes in _ARCHIVES}
# The sets that a setting may be chosen on: half of the archives' that were at hand, drawn once, and two large ones. All
# others are only reported: nothing is chosen by their scores.
DEVELOPMENT = tuple(_lines("development.txt"))
