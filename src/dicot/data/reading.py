"""Reading: how files become windows, in one object for options, dicot.toml, models and stores."""

import glob
import json
import math
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import takewhile
from numbers import Real
from pathlib import Path, PurePath
from typing import Any, TypeVar, final

import numpy as np

from dicot.core.errors import InputError, did_you_mean, is_whole
from dicot.core.settings import how_to_set
from dicot.data.cases import LAYOUTS, MISSING
from dicot.data.clocks import UNITS
from dicot.data.namepattern import NamePattern
from dicot.data.timestamps import GAP

FILE = "dicot.toml"
AnyPurePath = TypeVar("AnyPurePath", bound=PurePath)
Source = str | Path | Sequence[str | Path]  # a folder, a pattern such as "data/*.csv", a file, or a list of these
_SECONDS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_LENGTH = re.compile(r"\s*(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>[a-z%]*)\s*")
_MOST = 2**40  # time steps, more than any recording has
# Fields that only recordings have.
CUTTING = (
    "window",
    "stride",
    "rate",
    "resample",
    "unit",
    "duplicates",
    "gap",
    "keep_tail",
    "names",
    "join",
    "table",
    "table_unit",
)
DUPLICATES = ("error", "mean", "first")
_CHOICES = {
    "duplicates": [*DUPLICATES],
    "unit": [*UNITS],
    "table_unit": [*UNITS, "steps"],
    "missing": [*MISSING],
    "scale": ["dataset", "case"],
    "layout": [*LAYOUTS],
}
OF_CASES = ("case", "header", "layout")  # fields that only files of cases have


@final
@dataclass(frozen=True)
class Reading:
    """How recordings are read and cut into windows, or how cases are found in a file.

    None means that nothing was said; where a field has another default, that one then holds.
    """

    window: str | int | None = None  # time steps, or a time such as "2.56s"; None: the file holds cases, cut already
    stride: str | int = "50%"  # time steps, a time, or a share of the window
    time: str | None = None  # the column of time stamps, or that orders a case; "" for none
    unit: str | None = None  # of time stamps that are numbers: "s", "ms", "us" or "ns"
    channels: tuple[str, ...] | None = None  # the columns of values, in this order
    rate: float | None = None  # time steps per second; recordings with time stamps are resampled to it
    label: str | None = None  # the column or array of labels; of several names, "a,b", the first is it
    group: str | None = None  # the column or array of groups, such as people
    resample: bool = False  # put uneven time steps, and those of another rate, on an even grid
    duplicates: str = "error"  # rows of one time stamp: or "mean" of them, or the "first"
    missing: str = "error"  # or "interpolate" or "zero", for NaN
    gap: float = GAP  # a step between time stamps that is longer than so many usual steps is a gap
    keep_tail: bool = False  # cover the end of a recording by a last window that ends there
    scale: str | None = None  # of a fit: "dataset" or "case"
    case: str | None = None  # of a long table: the column that names the case
    ignore: tuple[str, ...] | None = None  # columns of a table that hold no values: no channels, no label
    header: bool | None = None  # of a .csv with one case per row: whether the first row holds names; None: look
    layout: str = "nct"  # or "ntc", of cases in an .npz or .npy
    names: str | None = None  # of recordings, "{activity}_{subject}_{trial}": label and group may name its fields
    join: str | None = None  # the field of names that tells devices whose recordings of the same time become one
    table: str | None = None  # the .csv of labels of recordings or their ranges; "" for none, also if one is found
    table_unit: str | None = None  # of start and end in that table: "s", "ms", "us", "ns", or "steps" for time steps

    def __post_init__(self) -> None:
        problems = []
        for field in fields(self):
            value: Any = getattr(self, field.name)
            value = field.default if value is None else tuple(value) if isinstance(value, list) else value
            if field.name == "table" and value and isinstance(value, str | Path):
                value = str(Path(value).expanduser().absolute())
            problems.append(_problem(field.name, value))
            if not problems[-1] and field.name in ("rate", "gap") and value is not None:
                value = float(min(value, sys.float_info.max))
            object.__setattr__(self, field.name, int(value) if isinstance(value, np.integer) else value)
        problems.append(self._problem_of_join())
        if any(problems):
            raise InputError(" ".join(filter(None, problems)))

    def replace(self, **changes: Any) -> "Reading":
        """Return a reading with some fields changed."""
        _refuse_unknown(changes)
        return replace(self, **changes)

    def _problem_of_join(self) -> str:
        """Say why files of several devices cannot be joined; nothing where they can, or nobody asks for it."""
        if self.join is None:
            return ""
        fields = NamePattern(self.names).fields if isinstance(self.names, str) else ()
        if self.join not in fields or len(fields) < 2:
            example = f"'{{subject}}_{{{self.join}}}'"
            return f"join={self.join!r} must be a field of names, beside another one: --names {example}."
        if self.join in (self.label, self.group):
            return f"{self.join!r} cannot be label or group too: a joined recording has all of them. Leave one out."
        return ""

    @property
    def even(self) -> bool:
        """Tell whether recordings are put on an even grid."""
        return self.resample or self.rate is not None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, without fields that are None."""
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        return {key: value for key, value in plain.items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Reading":
        """Make a reading of what `to_dict` gave; anybody may have written it."""
        _refuse_unknown(data)
        return cls(**data)

    @classmethod
    def from_toml(cls, path: Path) -> "Reading":
        """Read a dicot.toml."""
        return cls(**read_toml(path))

    def to_toml(self, reasons: Mapping[str, str] | None = None) -> str:
        """Write a dicot.toml of what differs from the defaults; `reasons` stand as comments above their keys."""
        reasons, plain, usual = reasons or {}, self.to_dict(), Reading().to_dict()
        lines = [
            "# How these recordings are read and cut. `dicot pretrain`, `embed`, `evaluate` and `inspect` go by it;",
            "# options on the command line win. Suggested by `dicot inspect`: change what you know better.",
        ]
        for key in sorted(_TOML, key=lambda key: key in reasons):
            if key in plain and (key in reasons or plain[key] != usual.get(key)):
                lines += ["", f"# {reasons[key]}"] if reasons.get(key) else []
                lines.append(f"{key} = {json.dumps(plain[key], ensure_ascii=False)}")
            elif reasons.get(key):
                lines += ["", f"# no {key}: {reasons[key]}"]
        return "\n".join(lines) + "\n"

    def steps(self, rate: float | None) -> tuple[int, int]:
        """Return window and stride in time steps, at so many per second."""
        if self.window is None:
            raise InputError(f"Say how long a window is, in time steps or as a time: {how_to_set('window', '2.56s')}.")
        length = time_steps(self.window, rate)
        return length, time_steps(self.stride, rate, length)


_TOML = [field.name for field in fields(Reading) if field.name not in (*OF_CASES, "keep_tail")]


def _refuse_unknown(data: Mapping[str, Any], known: Sequence[str] = ()) -> None:
    known = known or [field.name for field in fields(Reading)]
    if unknown := [str(key) for key in data if key not in known]:
        raise InputError(" ".join(f"Unknown key {key!r}. {did_you_mean(key, known)}" for key in unknown))


def _problem(key: str, value: Any) -> str:
    """Say what is wrong with a value; nothing where it is sound."""
    number = isinstance(value, Real | np.floating) and not isinstance(value, bool)
    match key:
        case _ if value is None:
            return ""
        case "window" | "stride":
            share = ' or a share such as "50%"' if key == "stride" else ""
            sound, words = _is_length(value, key), f'time steps or a time such as "2.56s"{share}'
        case "channels" | "ignore":
            names = isinstance(value, tuple) and all(isinstance(name, str) for name in value)
            sound = names and bool(value) and len(set(value)) == len(value)
            words = 'a list of names such as ["x", "y"], each once'
        case "rate":
            sound, words = number and 0 < value <= sys.float_info.max, "a positive number of time steps per second"
        case "gap":
            sound, words = number and value > 1, "a number of usual steps above 1"
        case "table" | "names":
            sound, words = isinstance(value, str), "the path of a .csv, and names a pattern such as '{label}_{group}'"
            if sound and key == "names":
                NamePattern(value)
        case "resample" | "keep_tail" | "header":
            sound, words = isinstance(value, bool), "true or false"
        case _ if key in _CHOICES:
            sound, words = isinstance(value, str) and value in _CHOICES[key], f"one of {', '.join(_CHOICES[key])}"
        case _:
            sound, words = isinstance(value, str), "the name of a column"
    return "" if sound else f"{key} must be {words}; got {str(value)[:80]!r}."


def _is_length(value: Any, key: str) -> bool:
    if not isinstance(value, str):
        return is_whole(value, 1) and value <= _MOST
    match = _LENGTH.fullmatch(value.lower())
    if match is None or not float(match["number"]) > 0:
        return False
    whole = not match["unit"] and float(match["number"]).is_integer()
    return whole or match["unit"] in _SECONDS or (key == "stride" and match["unit"] == "%")


def time_steps(value: str | int, rate: float | None, window: int | None = None) -> int:
    """Return the time steps of a window, or of the stride of a `window`: a number, a time, or a share of it."""
    what = "window" if window is None else "stride"
    if problem := _problem(what, value):
        raise InputError(problem)
    match = None if isinstance(value, int | np.integer) else _LENGTH.fullmatch(value.lower())
    if match is None or not match["unit"]:
        return int(float(value))
    if match["unit"] == "%":
        return round(max(1.0, (window or 1) * float(match["number"]) / 100))
    if rate is None:
        raise InputError(
            f"{what} {value} needs time stamps or a rate. Name the column of time stamps (--time), say the rate (--set "
            f"rate=50), or give the {what} in time steps: --{what} 128."
        )
    steps = float(match["number"]) * _SECONDS[match["unit"]] * rate
    if not 0.5 < steps <= _MOST:
        raise InputError(
            f"{what} {value} is {steps:.3g} time steps at {rate:g} per second. Choose another {what}; if the time "
            "stamps count milliseconds, say --set unit=ms."
        )
    return round(steps)


def seconds_of(text: str, option: str) -> float:
    """Return the seconds of a time such as "5s", "500ms", "1min" or "2d"; a number alone is seconds."""
    match = _LENGTH.fullmatch(text.strip().lower())
    if match is None or (match["unit"] and match["unit"] not in _SECONDS):
        raise InputError(f"{option} takes a time such as 5s, 500ms, 1min or 2d; got {text[:40]!r}.")
    return float(match["number"]) * _SECONDS.get(match["unit"], 1.0)


def least_time(text: str | None, option: str, usual: str, has_rate: bool) -> float | None:
    """Return the time that an option says, in seconds, or in time steps where no rate is known; None: nobody said any.

    A time with a unit is refused where no rate is known: nobody can tell how many time steps it has.
    """
    if has_rate:
        return seconds_of(text or usual, option)
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) < 1:
        raise InputError(
            f"{option} {text[:40]} is a time, and these vectors do not know how many time steps a second has. Give "
            f"time steps, such as {option} 256, or embed the recordings again with --time or --set rate=50."
        )
    return float(text)


def seconds_text(seconds: float) -> str:
    """Write a time with three digits, as `time_steps` reads it."""
    digits = max(0, 2 - math.floor(math.log10(seconds))) if seconds > 0 else 0
    return f"{np.format_float_positional(round(seconds, digits), trim='-')}s"


def toml_of(source: Source) -> Path:
    """Return where the dicot.toml of recordings lies, or would: in their folder, or where a pattern begins."""
    sources = [source] if isinstance(source, str | Path) else list(source)
    paths = [Path(one).expanduser() for one in sources]
    folders = list(dict.fromkeys(path if path.is_dir() else before_pattern(path.parent) for path in paths))
    if len(folders) != 1:
        said = ", ".join(map(str, folders[:3]))
        raise InputError(f"{FILE} lies beside recordings of one folder; these are in {said}. Name one folder.")
    return folders[0] / FILE


def before_pattern(path: AnyPurePath) -> AnyPurePath:
    """Return the folder where a pattern begins."""
    return type(path)(*takewhile(lambda part: not glob.has_magic(part), path.parts))


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a dicot.toml says, checked; nothing where there is none."""
    if not path.is_file():
        return {}
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
        _refuse_unknown(said, _TOML)
        if said.get("table"):  # lies beside it
            said["table"] = str(path.parent / said["table"])
        plain = Reading(**said).to_dict()
        return {key: plain[key] for key in said}
    except (OSError, ValueError, RecursionError) as error:
        remedy = "Correct it, or write it anew: dicot inspect FOLDER --write --overwrite"
        raise InputError(f"{path}: {error} {remedy}") from error


def suffix_of(path: PurePath) -> str:
    """Return the end of a file's name that says its kind, in small letters."""
    return ".csv.gz" if path.name.lower().endswith(".csv.gz") else path.suffix.lower()


def stem_of(path: PurePath) -> str:
    """Return a file's name without the end that says its kind."""
    return path.name[: len(path.name) - len(suffix_of(path))]
