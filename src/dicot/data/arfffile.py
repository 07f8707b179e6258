"""The .arff form of the UCR and UEA archives: values then label per line, or all channels in one quoted field."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from dicot.data.datalines import Header, Outline, case_of, numbered_lines, read_cases
from dicot.data.policies import Array
from dicot.errors import InputError

_QUOTES = "'\""


def read_arff(path: str | Path) -> tuple[list[Array], Array | None]:
    """The cases (C, T) with NaN for ?, and the labels as strings (None where the last column is a number)."""
    path = Path(path)
    header, lines = _open(path)
    return read_cases(path, header, lines, _case, _same_shape)


def _same_shape(case: Array, first: Array) -> None:
    if case.shape != first.shape:
        raise ValueError(f"expected shape {first.shape} as in the first case, got {case.shape}")


def outline_arff(path: str | Path) -> Outline:
    """Header, number of cases and shape of the first case."""
    path = Path(path)
    header, lines = _open(path)
    (first, *_), _ = read_cases(path, header, islice(lines, 1), _case, _same_shape)
    return Outline(header, 1 + sum(1 for _ in lines), first.shape[0], first.shape[1])


def _open(path: Path) -> tuple[Header, Iterator[tuple[int, str]]]:
    """The header and the numbered lines after @data."""
    lines = numbered_lines(path, "%")
    header = Header(univariate=True)
    for number, line in lines:
        tag, _, rest = line.partition(" ")
        if tag.lower() == "@data":
            if not header.labelled:
                raise InputError(f"{path}: the last @attribute must be the class, such as {{a,b}}, or a number.")
            return header, lines
        if tag.lower() not in ("@relation", "@attribute", "@end"):
            raise InputError(
                f"{path}, line {number}: expected @relation, @attribute, @end or @data, got {line[:40]!r}."
            )
        if tag.lower() == "@attribute":
            try:
                _read_attribute(header, rest.strip())
            except ValueError as error:
                raise InputError(f"{path}, line {number}: cannot read {line[:60]!r} ({error}).") from error
        elif tag.lower() == "@relation":
            header.problem = rest.strip().strip(_QUOTES)
    raise InputError(f"{path} has no @data line. It is no .arff file or is truncated; fetch it again.")


def _read_attribute(header: Header, text: str) -> None:
    """The last attribute says what the label is: a class of {...}, or a number to predict."""
    kind = text.rpartition(" ")[2].lower()
    if text.endswith("}"):
        names = text[text.index("{") + 1 : -1].split(",")
        header.classes, header.target = tuple(name.strip().strip(_QUOTES) for name in names), False
    else:
        header.classes, header.target = None, kind in ("numeric", "real", "integer")
        header.univariate = header.univariate and kind != "relational"


def _case(line: str, header: Header) -> tuple[Array, str]:
    """One data line; a ValueError says what is wrong with it."""
    if header.univariate:
        values, _, label = line.rpartition(",")
        channels = [values]
    else:
        if line[0] not in _QUOTES or line.find(line[0], 1) < 0:
            raise ValueError("expected all channels in one field between quotation marks")
        end = line.index(line[0], 1)
        channels, label = line[1:end].split("\\n"), line[end + 1 :].strip().removeprefix(",")
    label = label.strip().strip(_QUOTES)
    if not label:
        raise ValueError("expected a label at the end")
    return case_of(channels), header.check_label(label)
