"""The .tsv form of the UCR archive: one case per line, its label first, NaN at the end of a shorter case."""

from pathlib import Path

import numpy as np

from dicot.data.datalines import Header, Outline
from dicot.data.policies import Array
from dicot.errors import InputError


def read_tsv(path: str | Path) -> tuple[Array, Array]:
    """The cases (N, 1, T) with their padding, and the labels as strings."""
    labels = _labels(Path(path))
    try:
        with np.errstate(over="ignore"):  # too large becomes inf, which is refused later with the case named
            table = np.loadtxt(path, delimiter="\t", ndmin=2, converters={0: lambda _: 0.0})
    except ValueError as error:
        raise InputError(f"{path}: {error}. Expected a label and numbers between tabs in every line.") from error
    if table.shape[1] < 2:
        raise InputError(f"{path} has one column; expected a label and numbers between tabs in every line.")
    return np.ascontiguousarray(table[:, None, 1:]), np.array(labels)


def outline_tsv(path: str | Path) -> Outline:
    """Number of cases, columns of the first one and classes."""
    labels = _labels(Path(path))
    with Path(path).open(encoding="utf-8") as file:
        n_times = file.readline().count("\t")
    return Outline(Header(univariate=True, classes=tuple(sorted(set(labels)))), len(labels), 1, n_times)


def _labels(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8") as file:
            labels = [line.partition("\t")[0].strip() for line in file if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error}). Check the path.") from error
    if not labels:
        raise InputError(f"{path} is empty. Fetch it again.")
    return labels
