"""The .ts format of the UCR and UEA archives (as written by aeon and sktime)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dicot.errors import InputError
from dicot.windows.policies import Array, FloatArray

_YES_NO = {"true": True, "false": False}


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


@dataclass(frozen=True)
class Outline:
    """What can be told about a .ts file without reading its values."""

    header: Header
    n_cases: int
    n_channels: int
    n_times: int | None  # None where the lengths differ


def read_ts(path: str | Path) -> tuple[list[FloatArray], Array | None]:
    """The cases (C, T_i) and the labels as strings (None without labels)."""
    path = Path(path)
    header, lines = _open(path)
    cases: list[FloatArray] = []
    labels: list[str] = []
    for number, line in lines:
        try:
            case, label = _case(line, header)
            if cases and case.shape[0] != cases[0].shape[0]:
                raise ValueError(f"expected {cases[0].shape[0]} channel(s) as in the first case, got {case.shape[0]}")
            if cases and header.equal_length and case.shape[1] != cases[0].shape[1]:
                raise ValueError(
                    f"@equalLength true, but {case.shape[1]} time steps here and {cases[0].shape[1]} in the first case"
                )
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}. The file may be truncated; fetch it again.") from error
        cases.append(case)
        labels.append(label)
    if not cases:
        raise InputError(f"{path} holds no case after its @data line. The file may be truncated; fetch it again.")
    return cases, np.array(labels) if header.labelled else None


def outline_ts(path: str | Path) -> Outline:
    """Header, number of cases and shape of the first case."""
    path = Path(path)
    header, lines = _open(path)
    _, first = next(lines, (0, ""))
    parts = first.split(":")
    n_times = None if header.equal_length is False else parts[0].count(",") + 1
    n_cases = bool(first) + sum(1 for _ in lines)
    return Outline(header, n_cases, len(parts) - header.labelled, n_times)


def _open(path: Path) -> tuple[Header, Iterator[tuple[int, str]]]:
    """The header and the numbered lines after @data."""
    try:
        # Comments may be in any encoding, and nothing outside ASCII occurs among the values.
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error}). Check the path.") from error
    numbered = ((n, line.strip()) for n, line in enumerate(text.splitlines(), 1))
    lines = ((n, line) for n, line in numbered if line and line[0] not in "#%")
    header = Header()
    for number, line in lines:
        tag, _, value = line.partition(" ")
        if tag.lower() == "@data":
            if header.timestamps:
                raise InputError(f"{path}: @timestamps true is not supported. Write the file without time stamps.")
            return header, lines
        if not tag.startswith("@"):
            raise InputError(f"{path}, line {number}: expected a header line that starts with @, got {line[:40]!r}.")
        try:
            _read_tag(header, tag[1:].lower(), value.strip())
        except (ValueError, KeyError, IndexError) as error:
            raise InputError(f"{path}, line {number}: cannot read {line[:60]!r} ({error}).") from error
    raise InputError(f"{path} has no @data line. It is no .ts file or is truncated; fetch it again.")


def _read_tag(header: Header, tag: str, value: str) -> None:
    words = value.split()
    if tag == "problemname":
        header.problem = value
    elif tag in ("timestamps", "univariate", "equallength"):
        setattr(header, "equal_length" if tag == "equallength" else tag, _YES_NO[value.lower()])
    elif tag in ("dimension", "dimensions"):
        header.n_channels = int(value)
    elif tag == "classlabel":
        header.classes = tuple(words[1:]) if _YES_NO[words[0].lower()] else None
    elif tag == "targetlabel":
        header.target = _YES_NO[words[0].lower()]
    else:
        header.other[tag] = value


def _case(line: str, header: Header) -> tuple[FloatArray, str]:
    """One data line; a ValueError says what is wrong with it."""
    channels = line.split(":")
    label = channels.pop().strip() if header.labelled else ""
    if header.labelled and (not label or "," in label):
        raise ValueError("expected a label after the last ':'")
    wanted = 1 if header.univariate else header.n_channels
    if not channels or (wanted is not None and len(channels) != wanted):
        raise ValueError(f"expected {wanted or 'at least 1'} channel(s), got {len(channels)}")
    rows = [np.array(channel.replace("?", "nan").split(","), dtype=np.float64) for channel in channels]
    if len({len(row) for row in rows}) > 1:
        raise ValueError(f"the channels must have one length, got {sorted({len(row) for row in rows})}")
    with np.errstate(over="ignore"):  # too large for float32 becomes inf, which is refused later with the case named
        return np.stack(rows).astype(np.float32), label
