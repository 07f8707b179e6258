"""What .ts and .arff files have in common: a header, a line @data, then one case per line."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dicot.data.policies import Array
from dicot.errors import InputError


@dataclass
class Header:
    """What stands above @data; None where the file does not say."""

    problem: str = ""
    univariate: bool | None = None
    n_channels: int | None = None
    equal_length: bool | None = None
    timestamps: bool = False
    classes: tuple[str, ...] | None = None  # None without class labels
    target: bool = False  # a number to predict instead of a class
    other: dict[str, str] = field(default_factory=dict)  # tags that change nothing here

    @property
    def labelled(self) -> bool:
        return self.classes is not None or self.target

    def check_label(self, label: str) -> str:
        """The label as the header spells it; a ValueError where it is none of the classes, or no number to predict."""
        if self.classes is None:
            float(label)
            return label
        if label in self.classes:
            return label
        # Archive files write 1.0 for 1 and do not keep to one case.
        same = [name for name in self.classes if _loose(name) == _loose(label)]
        if len(same) == 1:
            return same[0]
        some = ", ".join(self.classes[:10]) + (" ..." if len(self.classes) > 10 else "")
        raise ValueError(f"expected a label of {some} at the end, got {label!r}")


def _loose(label: str) -> str | float:
    try:
        return float(label)
    except ValueError:
        return label.lower()


@dataclass(frozen=True)
class Outline:
    """What can be told about a file without reading its values."""

    header: Header
    n_cases: int
    n_channels: int
    n_times: int | None  # None where the lengths differ


def numbered_lines(path: Path, comments: str) -> Iterator[tuple[int, str]]:
    """The lines that say something, counted from 1; those that start with one of `comments` do not."""
    try:
        # Comments may be in any encoding, and nothing outside ASCII occurs among the values.
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error}). Check the path.") from error
    numbered = ((n, line.strip()) for n, line in enumerate(text.splitlines(), 1))
    return ((n, line) for n, line in numbered if line and line[0] not in comments)


def read_cases(
    path: Path,
    header: Header,
    lines: Iterable[tuple[int, str]],
    parse: Callable[[str, Header], tuple[Array, str]],
    check: Callable[[Array, Array], None],
) -> tuple[list[Array], Array | None]:
    """The cases and the labels (None without labels); `check` holds each case against the first one.

    Both functions say by a ValueError what is wrong.
    """
    cases: list[Array] = []
    labels: list[str] = []
    for number, line in lines:
        try:
            case, label = parse(line, header)
            if cases:
                check(case, cases[0])
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}. The file may be truncated; fetch it again.") from error
        cases.append(case)
        labels.append(label)
    if not cases:
        raise InputError(f"{path} holds no case after its @data line. The file may be truncated; fetch it again.")
    return cases, np.array(labels) if header.labelled else None


def case_of(channels: Sequence[str]) -> Array:
    """(C, T) from one text of comma-separated values per channel, NaN for ?."""
    for channel in channels:
        if "_" in channel or not channel.isascii():  # Python would read 1_000 and other alphabets' digits
            raise ValueError(f"values must be plain numbers, got {channel[:40]!r}")
    rows = [np.array(channel.replace("?", "nan").split(","), dtype=np.float64) for channel in channels]
    if len({len(row) for row in rows}) > 1:
        raise ValueError(f"the channels must have one length, got {sorted({len(row) for row in rows})}")
    return np.stack(rows)
