"""The text forms of the UCR and UEA archives: .ts and .arff (a header, a line @data, one case per line) and .tsv.

.arff files are not read by aeon, which fills a case that lacks values by repeating one (`1,1` after `1,2,1` becomes
1, 1), stumbles over comments and double quotes, leaves labels in their quotes and accepts any label.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from dicot.core.errors import InputError
from dicot.data.policies import Array
from dicot.data.texts import plain_text, text_array

_YES_NO = {"true": True, "false": False}
_QUOTES = "'\""


@dataclass
class TextHeader:
    """What stands above @data; None where the file does not say."""

    problem: str = ""
    univariate: bool | None = None
    n_channels: int | None = None
    equal_length: bool | None = None
    timestamps: bool = False
    classes: tuple[str, ...] | None = None  # None without class labels
    target: bool = False  # a number to predict instead of a class
    n_attributes: int = 0  # of an .arff, those inside a relational one left out
    other: dict[str, str] = field(default_factory=dict)  # tags that change nothing here

    @property
    def labelled(self) -> bool:
        return self.classes is not None or self.target

    def check_label(self, label: str) -> str:
        """Return the label as the header spells it, 1 for 1.0; a ValueError if it is neither class nor number."""
        if self.classes is None:
            float(label)
            return label
        if label in self.classes:
            return plain_text(label)
        # Archive files write 1.0 for 1 and do not keep to one case.
        same = [name for name in self.classes if _loose(name) == _loose(label)]
        if len(same) == 1:
            return plain_text(same[0])
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

    header: TextHeader
    n_cases: int
    n_channels: int
    n_times: int | None  # None where the lengths differ


def numbered_lines(path: Path, comments: str) -> Iterator[tuple[int, str]]:
    """Return the lines that are neither empty nor start with one of `comments`, counted from 1."""
    try:
        # Comments may be in any encoding, and nothing outside ASCII occurs among the values.
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error}). Check the path.") from error
    numbered = ((n, line.strip()) for n, line in enumerate(text.splitlines(), 1))
    return ((n, line) for n, line in numbered if line and line[0] not in comments)


def read_cases(
    path: Path,
    header: TextHeader,
    lines: Iterable[tuple[int, str]],
    parse: Callable[[str, TextHeader], tuple[Array, str]],
    check: Callable[[Array, Array], None],
) -> tuple[list[Array], Array | None]:
    """Read the cases and the labels (None without labels); `check` compares each case with the first one.

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
        raise InputError(f"{path} has no case after its @data line. The file may be truncated; fetch it again.")
    return cases, text_array(labels) if header.labelled else None


def case_of(channels: Sequence[str]) -> Array:
    """Build (C, T) from one text of comma-separated values per channel, NaN for ?."""
    for channel in channels:
        # Python would read 1_000 and other alphabets' digits, and numpy drops NUL at the end.
        if "_" in channel or "\0" in channel or not channel.isascii():
            raise ValueError(f"values must be plain numbers, got {channel[:40]!r}")
    rows = [np.array(channel.replace("?", "nan").split(","), dtype=np.float64) for channel in channels]
    if len({len(row) for row in rows}) > 1:
        raise ValueError(f"the channels must have one length, got {sorted({len(row) for row in rows})}")
    return np.stack(rows)


def read_ts(path: str | Path) -> tuple[list[Array], Array | None]:
    """Read the cases (C, T_i) and the labels as strings (None without labels)."""
    path = Path(path)
    header, lines = _open_ts(path)

    def check(case: Array, first: Array) -> None:
        if case.shape[0] != first.shape[0]:
            raise ValueError(f"expected {first.shape[0]} channel(s) as in the first case, got {case.shape[0]}")
        if header.equal_length and case.shape[1] != first.shape[1]:
            raise ValueError(
                f"@equalLength true, but {case.shape[1]} time steps here and {first.shape[1]} in the first case"
            )

    return read_cases(path, header, lines, _ts_case, check)


def outline_ts(path: str | Path) -> Outline:
    """Return the header, number of cases and shape of the first case."""
    path = Path(path)
    header, lines = _open_ts(path)
    (first, *_), _ = read_cases(path, header, islice(lines, 1), _ts_case, lambda case, other: None)
    n_times = None if header.equal_length is False else first.shape[1]
    return Outline(header, 1 + sum(1 for _ in lines), first.shape[0], n_times)


def _open_ts(path: Path) -> tuple[TextHeader, Iterator[tuple[int, str]]]:
    """Return the header and the numbered lines after @data."""
    lines = numbered_lines(path, "#%")
    header = TextHeader()
    for number, line in lines:
        tag, *rest = line.split(maxsplit=1)  # at blanks or tabs
        if tag.lower() == "@data":
            if header.timestamps:
                raise InputError(f"{path}: @timestamps true is not supported. Write the file without time stamps.")
            return header, lines
        if not tag.startswith("@"):
            raise InputError(f"{path}, line {number}: expected a header line that starts with @, got {line[:40]!r}.")
        try:
            _read_tag(header, tag[1:].lower(), "".join(rest))
        except (ValueError, KeyError, IndexError) as error:
            raise InputError(f"{path}, line {number}: cannot read {line[:60]!r} ({error}).") from error
    raise InputError(f"{path} has no @data line. It is not a .ts file or is truncated; fetch it again.")


def _read_tag(header: TextHeader, tag: str, value: str) -> None:
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


def _ts_case(line: str, header: TextHeader) -> tuple[Array, str]:
    """Parse one data line; a ValueError says what is wrong with it."""
    channels = line.split(":")
    label = channels.pop().strip() if header.labelled else ""
    if header.labelled and (not label or "," in label):
        raise ValueError("expected a label after the last ':'")
    wanted = 1 if header.univariate else header.n_channels
    if not channels or (wanted is not None and len(channels) != wanted):
        raise ValueError(f"expected {wanted or 'at least 1'} channel(s), got {len(channels)}")
    return case_of(channels), header.check_label(label) if header.labelled else label


def read_arff(path: str | Path) -> tuple[list[Array], Array | None]:
    """Read the cases (C, T) with NaN for ?, and the labels as strings (None where the last column is a number)."""
    path = Path(path)
    header, lines = _open_arff(path)
    return read_cases(path, header, lines, _arff_case, _same_shape)


def _same_shape(case: Array, first: Array) -> None:
    if case.shape != first.shape:
        raise ValueError(f"expected shape {first.shape} as in the first case, got {case.shape}")


def outline_arff(path: str | Path) -> Outline:
    """Return the header, number of cases and shape of the first case."""
    path = Path(path)
    header, lines = _open_arff(path)
    (first, *_), _ = read_cases(path, header, islice(lines, 1), _arff_case, _same_shape)
    return Outline(header, 1 + sum(1 for _ in lines), first.shape[0], first.shape[1])


def _open_arff(path: Path) -> tuple[TextHeader, Iterator[tuple[int, str]]]:
    """Return the header and the numbered lines after @data."""
    lines = numbered_lines(path, "%")
    header, inside = TextHeader(univariate=True), ""
    for number, line in lines:
        tag, *words = line.split(maxsplit=1)
        rest = "".join(words)
        if tag.lower() == "@data":
            if not header.labelled:
                raise InputError(f"{path}: the last @attribute must be the class, such as {{a,b}}, or a number.")
            return header, lines
        if tag.lower() not in ("@relation", "@attribute", "@end"):
            raise InputError(
                f"{path}, line {number}: expected @relation, @attribute, @end or @data, got {line[:40]!r}."
            )
        if tag.lower() == "@attribute" and not inside:
            try:
                inside = _read_attribute(header, rest)
            except ValueError as error:
                raise InputError(f"{path}, line {number}: cannot read {line[:60]!r} ({error}).") from error
        elif tag.lower() == "@end":
            if not inside or rest.strip(_QUOTES) != inside:
                raise InputError(
                    f"{path}, line {number}: expected the end of {inside or 'nothing'}, got {line[:60]!r}."
                )
            inside = ""
        elif tag.lower() == "@relation":
            header.problem = rest.strip(_QUOTES)
    raise InputError(f"{path} has no @data line. It is not an .arff file or is truncated; fetch it again.")


def _read_attribute(header: TextHeader, text: str) -> str:
    """Take from the last attribute what the label is: a class of {...}, or a number to predict.

    Return the name of a relational attribute, whose own attributes follow; otherwise nothing.
    """
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


def _arff_case(line: str, header: TextHeader) -> tuple[Array, str]:
    """Parse one data line; a ValueError says what is wrong with it."""
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
    return case_of(channels), header.check_label(label)


def read_tsv(path: str | Path) -> tuple[Array, Array]:
    """Read the cases (N, 1, T) with their padding, and the labels as strings."""
    labels = _tsv_labels(Path(path))
    try:
        with np.errstate(over="ignore"):  # too large becomes inf, which is refused later with the case named
            table = np.loadtxt(path, delimiter="\t", ndmin=2, converters={0: lambda _: 0.0}, comments=None)
    except ValueError as error:
        raise InputError(f"{path}: {error}. Expected a label and numbers between tabs in every line.") from error
    if table.shape[1] < 2:
        raise InputError(f"{path} has one column; expected a label and numbers between tabs in every line.")
    return np.ascontiguousarray(table[:, None, 1:]), text_array(labels)


def outline_tsv(path: str | Path) -> Outline:
    """Return number of cases, columns of the first one and classes."""
    labels = _tsv_labels(Path(path))
    with Path(path).open(encoding="utf-8") as file:
        n_times = file.readline().count("\t")
    return Outline(TextHeader(univariate=True, classes=tuple(sorted(set(labels)))), len(labels), 1, n_times)


def _tsv_labels(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8") as file:
            labels = [plain_text(line.partition("\t")[0].strip()) for line in file if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error}). Check the path.") from error
    if not labels:
        raise InputError(f"{path} is empty. Fetch it again.")
    if any("\0" in label for label in labels):  # numpy drops it at the end, so that two classes become one
        raise InputError(f"{path} has a label that holds a NUL character. The file is damaged; fetch it again.")
    return labels
