"""The text forms of the UCR and UEA archives: .ts and .arff (a header, a line @data, one case per line) and .tsv.

.arff files are not read by aeon, which fills a case that lacks values by repeating one (`1,1` after `1,2,1` becomes
1, 1), stumbles over comments and double quotes, leaves labels in their quotes and accepts any label.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dicot.core.errors import InputError, naming
from dicot.data.cases import Array
from dicot.data.labels import plain_text

_YES_NO = {"true": True, "false": False}
_QUOTES = "'\""
Lines = Iterator[tuple[int, str]]  # with their numbers
Case = tuple[Array, str]  # (C, T) and its label, "" where there is none


@dataclass
class TextHeader:
    """What stands above the cases; None where the file does not say."""

    univariate: bool | None = None
    n_channels: int | None = None
    equal_length: bool | None = None
    timestamps: bool = False
    classes: tuple[str, ...] | None = None  # None without class labels
    target: bool = False  # a number to predict instead of a class
    n_attributes: int = 0  # of an .arff, those inside a relational one left out

    @property
    def labelled(self) -> bool:
        """Tell whether every case ends in a label."""
        return self.classes is not None or self.target

    def check_label(self, label: str) -> str:
        """Return the label as the header spells it, 1 for 1.0; a ValueError if it is neither class nor number."""
        if self.classes is None:
            float(label)
            return label
        # Archive files write 1.0 for 1 and do not keep to one case.
        same = [name for name in self.classes if name == label] or [
            name for name in self.classes if _loose(name) == _loose(label)
        ]
        if len(same) != 1:
            raise ValueError(f"expected a label of {', '.join(self.classes[:10])} at the end, got {label!r}")
        return plain_text(same[0])


def _loose(label: str) -> str | float:
    try:
        return float(label)
    except ValueError:
        return label.lower()


def read_text(path: str | Path) -> tuple[list[Array], Array | None]:
    """Read the cases (C, T_i) of a .ts, .tsv or .arff, NaN for ?, and the labels as strings (None without labels)."""
    header, lines, parse = _opened(Path(path))
    cases = [case for _, case in _parsed(Path(path), header, lines, parse)]
    labels = np.array([label for _, label in cases], dtype=np.str_) if header.labelled else None
    return [case for case, _ in cases], labels


def _parsed(
    path: Path, header: TextHeader, lines: Lines, parse: Callable[[str, TextHeader], Case]
) -> Iterator[tuple[int, Case]]:
    """Yield the cases; each must have the channels of the first, and its time steps where the header says so."""
    first = None
    for number, line in lines:
        try:
            case, label = parse(line, header)
            first = case if first is None else first
            if case.shape[0] != first.shape[0] or (header.equal_length and case.shape != first.shape):
                raise ValueError(f"expected shape {first.shape} as in the first case, got {case.shape}")
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}. The file may be truncated; fetch it again.") from error
        yield number, (case, label)
    if first is None:
        raise InputError(f"{path} has no case after its @data line. It is empty or truncated; fetch it again.")


def _opened(path: Path) -> tuple[TextHeader, Lines, Callable[[str, TextHeader], Case]]:
    """Return the header, the lines after it, and what makes a case of a line."""
    with naming(path):
        # Comments may be in any encoding, and nothing outside ASCII occurs among the values.
        text = path.read_text(encoding="utf-8", errors="replace")
    suffix = path.suffix.lower()
    comments = {".ts": "#%", ".arff": "%", ".tsv": ""}[suffix]
    numbered = ((n, line.strip()) for n, line in enumerate(text.splitlines(), 1))
    lines = ((n, line) for n, line in numbered if line and line[0] not in comments)
    if suffix == ".tsv":
        return TextHeader(univariate=True, classes=(), equal_length=True), lines, _tsv_case
    header = TextHeader() if suffix == ".ts" else TextHeader(univariate=True, equal_length=True)
    read_tag, inside = (_ts_tag, "") if suffix == ".ts" else (_arff_tag, "")
    for number, line in lines:
        tag, *rest = line.split(maxsplit=1)  # at blanks or tabs
        if tag.lower() == "@data":
            if header.timestamps or (suffix == ".arff" and not header.labelled):
                raise InputError(
                    f"{path}: cases with @timestamps, or without a last @attribute such as {{a,b}}, are not read."
                )
            return header, lines, _ts_case if suffix == ".ts" else _arff_case
        try:
            if not tag.startswith("@"):
                raise ValueError("a header line starts with @")
            inside = read_tag(header, tag[1:].lower(), "".join(rest), inside)
        except (ValueError, KeyError, IndexError) as error:
            raise InputError(f"{path}, line {number}: cannot read {line[:60]!r} ({error}).") from error
    raise InputError(f"{path} has no @data line. It is truncated or holds another format; fetch it again.")


def _ts_tag(header: TextHeader, tag: str, value: str, inside: str) -> str:
    words = value.split()
    if tag in ("timestamps", "univariate", "equallength"):
        setattr(header, "equal_length" if tag == "equallength" else tag, _YES_NO[value.lower()])
    elif tag in ("dimension", "dimensions"):
        header.n_channels = int(value)
    elif tag == "classlabel":
        header.classes = tuple(words[1:]) if _YES_NO[words[0].lower()] else None
        if header.classes == ():
            raise ValueError("the names of the classes must follow")
    elif tag == "targetlabel":
        header.target = _YES_NO[words[0].lower()]
    return inside


def _arff_tag(header: TextHeader, tag: str, text: str, inside: str) -> str:
    """Take from the last attribute what the label is: a class of {...}, or a number to predict.

    Return the name of a relational attribute that begins here or goes on, whose own attributes follow.
    """
    if tag == "end":
        if not inside or text.strip(_QUOTES) != inside:
            raise ValueError(f"expected the end of {inside or 'nothing'}")
        return ""
    if tag not in ("relation", "attribute"):
        raise ValueError("expected @relation, @attribute, @end or @data")
    if tag == "relation" or inside:
        return inside
    if header.classes is not None:
        raise ValueError("only the last attribute may be a class")
    header.n_attributes += 1
    kind = text.split()[-1].lower() if text else ""
    if text.endswith("}"):
        names = text[text.index("{") + 1 : -1].split(",")
        header.classes, header.target = tuple(name.strip().strip(_QUOTES) for name in names), False
    else:
        header.classes, header.target = None, kind in ("numeric", "real", "integer")
        header.univariate = header.univariate and kind != "relational"
    return text.rsplit(maxsplit=1)[0].strip(_QUOTES) if kind == "relational" else ""


def _values(channels: list[str], separator: str = ",") -> Array:
    """Build (C, T) from one text of values per channel, NaN for ?."""
    for channel in channels:
        # Python would read 1_000 and other alphabets' digits, and numpy drops NUL at the end.
        if "_" in channel or "\0" in channel or not channel.isascii():
            raise ValueError(f"values must be plain numbers, got {channel[:40]!r}")
    rows = [np.array(channel.replace("?", "nan").split(separator), dtype=np.float64) for channel in channels]
    if len({len(row) for row in rows}) > 1:
        raise ValueError(f"the channels must have one length, got {sorted({len(row) for row in rows})}")
    return np.stack(rows)


def _ts_case(line: str, header: TextHeader) -> Case:
    channels = line.split(":")
    label = channels.pop().strip() if header.labelled else ""
    if header.labelled and (not label or "," in label):
        raise ValueError("expected a label after the last ':'")
    wanted = 1 if header.univariate else header.n_channels
    if not channels or (wanted is not None and len(channels) != wanted):
        raise ValueError(f"expected {wanted or 'at least 1'} channel(s), got {len(channels)}")
    return _values(channels), header.check_label(label) if header.labelled else label


def _arff_case(line: str, header: TextHeader) -> Case:
    if header.univariate:
        values, _, label = line.rpartition(",")
        channels, n_cells = [values], line.count(",") + 1
        if header.target and n_cells != header.n_attributes:
            raise ValueError(f"expected {header.n_attributes} cells, one for each @attribute, got {n_cells}")
    else:
        if line[0] not in _QUOTES or line.find(line[0], 1) < 0:
            raise ValueError("expected all channels in one field between quotation marks")
        end = line.index(line[0], 1)
        channels, label = line[1:end].split("\\n"), line[end + 1 :].strip().removeprefix(",")
    label = label.strip().strip(_QUOTES)
    if not label:
        raise ValueError("expected a label at the end")
    return _values(channels), header.check_label(label)


def _tsv_case(line: str, header: TextHeader) -> Case:
    label, tab, values = line.partition("\t")
    if not tab or "\0" in label:
        raise ValueError("expected a label and numbers between tabs")
    return _values([values], "\t"), plain_text(label.strip())
