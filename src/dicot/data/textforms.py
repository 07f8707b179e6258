"""The text forms of the UCR and UEA archives: .ts and .arff (a header, a line @data, one case per line) and .tsv.

.arff files are not read by aeon, which fills a case that lacks values by repeating one (`1,1` after `1,2,1` becomes
1, 1), stumbles over comments and double quotes, leaves labels in their quotes and accepts any label.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dicot.core.errors import InputError, naming
from dicot.data.cases import Array
from dicot.data.labels import plain_text

_YES_NO = {"true": True, "false": False}
_QUOTES = "'\""
_COMMENTS = {".ts": "#%", ".arff": "%", ".tsv": ""}
Case = tuple[Array, str]  # (C, T) and its label, "" where there is none


@dataclass
class TextHeader:
    """What stands above the cases; None where the file does not say."""

    univariate: bool | None = None
    n_channels: int | None = None
    equal_length: bool | None = None
    classes: tuple[str, ...] | None = None  # None without class labels
    target: bool = False  # a number to predict instead of a class
    inside: bool = False  # of an .arff: the attributes of a relational one follow

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
    path = Path(path)
    with naming(path):
        # Comments may be in any encoding, and nothing outside ASCII occurs among the values.
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    suffix = path.suffix.lower()
    header = TextHeader() if suffix == ".ts" else TextHeader(univariate=True, equal_length=True)
    read_tag, parse = {".ts": (_ts_tag, _ts_case), ".arff": (_arff_tag, _arff_case)}.get(suffix, (_ts_tag, _tsv_case))
    above = suffix != ".tsv"
    cases: list[Case] = []
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line[0] in _COMMENTS[suffix]:
            continue
        try:
            if not above:
                cases.append(parse(line, header))
                first, case = cases[0][0], cases[-1][0]
                if len(case) != len(first) or (header.equal_length and case.shape != first.shape):
                    raise ValueError(f"expected shape {first.shape} as in the first case, got {case.shape}")
            elif not line.startswith("@"):
                raise ValueError("expected a line @data before the cases")
            elif line.lower() == "@data":
                above = False
            else:
                tag, *rest = line[1:].split(maxsplit=1)  # at blanks or tabs
                read_tag(header, tag.lower(), "".join(rest))
        except (ValueError, KeyError, IndexError) as error:
            raise InputError(f"{path}, line {number}: {error}. The file may be truncated; fetch it again.") from error
    if not cases:
        raise InputError(f"{path} holds no case. It is empty or truncated; fetch it again.")
    labels = np.array([label for _, label in cases], dtype=np.str_) if header.labelled or suffix == ".tsv" else None
    return [case for case, _ in cases], labels


def _ts_tag(header: TextHeader, tag: str, value: str) -> None:
    words = value.split()
    match tag:
        case "univariate":
            header.univariate = _YES_NO[value.lower()]
        case "equallength":
            header.equal_length = _YES_NO[value.lower()]
        case "dimension" | "dimensions":
            header.n_channels = int(value)
        case "classlabel":
            header.classes = tuple(words[1:]) if _YES_NO[words[0].lower()] else None
        case "targetlabel":
            header.target = _YES_NO[words[0].lower()]


def _arff_tag(header: TextHeader, tag: str, text: str) -> None:
    """Take from the last attribute what the label is: a class of {...}, or a number to predict."""
    if tag == "end":
        header.inside = False
    if tag != "attribute" or header.inside:
        return
    kind = text.split()[-1].lower()
    names = text[text.index("{") + 1 : -1].split(",") if text.endswith("}") else None
    header.classes = None if names is None else tuple(name.strip().strip(_QUOTES) for name in names)
    header.target, header.inside = kind in ("numeric", "real", "integer"), kind == "relational"
    header.univariate = header.univariate and not header.inside


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
    wanted = 1 if header.univariate else header.n_channels or len(channels)
    if len(channels) != wanted or "," in label:
        raise ValueError(f"expected {wanted} channel(s) and, if the header says so, a label; got {len(channels)}")
    return _values(channels), header.check_label(label) if header.labelled else ""


def _arff_case(line: str, header: TextHeader) -> Case:
    if header.univariate:
        values, _, label = line.rpartition(",")
        channels = [values]
    else:
        end = line.index(line[0], 1) if line[0] in _QUOTES else 0
        if not end:
            raise ValueError("expected all channels in one field between quotation marks")
        channels, label = line[1:end].split("\\n"), line[end + 1 :].strip().removeprefix(",")
    return _values(channels), header.check_label(label.strip().strip(_QUOTES))


def _tsv_case(line: str, header: TextHeader) -> Case:
    label, _, values = line.partition("\t")
    return _values([values], "\t"), plain_text(label.strip())
