"""The .ts format of the UCR and UEA archives (as written by aeon and sktime)."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from dicot.data.datalines import Header, Outline, case_of, numbered_lines, read_cases
from dicot.data.policies import Array
from dicot.errors import InputError

_YES_NO = {"true": True, "false": False}


def read_ts(path: str | Path) -> tuple[list[Array], Array | None]:
    """The cases (C, T_i) and the labels as strings (None without labels)."""
    path = Path(path)
    header, lines = _open(path)

    def check(case: Array, first: Array) -> None:
        if case.shape[0] != first.shape[0]:
            raise ValueError(f"expected {first.shape[0]} channel(s) as in the first case, got {case.shape[0]}")
        if header.equal_length and case.shape[1] != first.shape[1]:
            raise ValueError(
                f"@equalLength true, but {case.shape[1]} time steps here and {first.shape[1]} in the first case"
            )

    return read_cases(path, header, lines, _case, check)


def outline_ts(path: str | Path) -> Outline:
    """Header, number of cases and shape of the first case."""
    path = Path(path)
    header, lines = _open(path)
    (first, *_), _ = read_cases(path, header, islice(lines, 1), _case, lambda case, other: None)
    n_times = None if header.equal_length is False else first.shape[1]
    return Outline(header, 1 + sum(1 for _ in lines), first.shape[0], n_times)


def _open(path: Path) -> tuple[Header, Iterator[tuple[int, str]]]:
    """The header and the numbered lines after @data."""
    lines = numbered_lines(path, "#%")
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
        if header.classes == ():
            raise ValueError("the names of the classes must follow")
    elif tag == "targetlabel":
        header.target = _YES_NO[words[0].lower()]
    else:
        header.other[tag] = value


def _case(line: str, header: Header) -> tuple[Array, str]:
    """One data line; a ValueError says what is wrong with it."""
    channels = line.split(":")
    label = channels.pop().strip() if header.labelled else ""
    if header.labelled and (not label or "," in label):
        raise ValueError("expected a label after the last ':'")
    wanted = 1 if header.univariate else header.n_channels
    if not channels or (wanted is not None and len(channels) != wanted):
        raise ValueError(f"expected {wanted or 'at least 1'} channel(s), got {len(channels)}")
    return case_of(channels), header.check_label(label) if header.labelled else label
