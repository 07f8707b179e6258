"""The 128 univariate (UCR 2018) and 30 multivariate (UEA 2018) archive sets with their sizes."""

from pathlib import Path

from dicot.data.datasets.base import Sizes

# Archive, name, training cases, test cases, channels, time steps, classes; "-" is not known, or differs between cases.
_ARCHIVES = [line.split() for line in Path(__file__).with_name("archives.txt").read_text(encoding="utf-8").splitlines()]
UCR = tuple(name for archive, name, *_ in _ARCHIVES if archive == "ucr")
UEA = tuple(name for archive, name, *_ in _ARCHIVES if archive == "uea")
OFFICIAL = {name: Sizes(*(None if size == "-" else int(size) for size in sizes)) for _, name, *sizes in _ARCHIVES}
