"""dicot.toml: how recordings are read and cut, kept beside them so that commands stay short."""

import glob
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dicot.core.errors import InputError, did_you_mean
from dicot.data.folders import Source
from dicot.data.inspection import Inspected, Suggestion

FILE = "dicot.toml"
_LARGEST = 2**20  # bytes
_LENGTH = 'a whole number of time steps or text such as "2.56s"'
# Key -> the types that it may have, and these in words. The keys are options of `windows_from`, and the scale of a fit.
KEYS: dict[str, tuple[tuple[type, ...], str]] = {
    "window": ((str, int), _LENGTH),
    "stride": ((str, int), _LENGTH.replace("2.56s", "50%")),
    "time": ((str,), "the name of a column"),
    "unit": ((str,), "text: s, ms, us or ns"),
    "channels": ((list,), 'a list of names such as ["x", "y"]'),
    "rate": ((int, float), "a number of time steps per second"),
    "resample": ((bool,), "true or false"),
    "label": ((str,), "the name of a column"),
    "group": ((str,), "the name of a column"),
    "missing": ((str,), "text: error, interpolate or zero"),
    "gap": ((int, float), "a number of usual steps"),
    "scale": ((str,), "text: dataset or case"),
}


def choices_file(source: Source) -> Path:
    """Return where the dicot.toml of recordings lies, or would: in their folder, or where a pattern begins."""
    sources = [source] if isinstance(source, str | Path) else list(source)
    folders = list(dict.fromkeys(_folder_of(Path(one).expanduser()) for one in sources))
    if len(folders) != 1:
        said = ", ".join(map(str, folders[:3]))
        raise InputError(f"{FILE} lies beside recordings of one folder; these are in {said}. Name one folder.")
    return folders[0] / FILE


def _folder_of(path: Path) -> Path:
    if path.is_dir():
        return path
    folder = path.parent
    while glob.has_magic(str(folder)):
        folder = folder.parent
    return folder


def read_choices(path: Path) -> dict[str, Any]:
    """Return what a dicot.toml says; nothing where there is none."""
    if not path.is_file():
        return {}
    again = "Correct it, or write it anew by `dicot inspect FOLDER --write --force`."
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError(f"{path} has {path.stat().st_size:,} bytes, more than such a file can need. {again}")
        choices = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read as TOML: {error}. {again}") from error
    problems = [problem for key, value in choices.items() if (problem := problem_of(key, value))]
    if problems:
        raise InputError(f"{path}: {' '.join(problems)} {again}")
    return choices


def problem_of(key: str, value: Any) -> str:
    """Say what is wrong with an entry; nothing where it is sound."""
    if key not in KEYS:
        return f"Unknown key {key!r}. {did_you_mean(key, KEYS)}"
    types, words = KEYS[key]
    sound = isinstance(value, types) and (bool in types or not isinstance(value, bool))
    if sound and isinstance(value, list):
        sound = bool(value) and all(isinstance(name, str) and name for name in value)
    return "" if sound else f"{key!r} must be {words}; got {json.dumps(value, default=str)}."


def common_channels(rows: Sequence[Inspected]) -> list[str]:
    """Return the channels that all recordings have, in the order of the first."""
    return [name for name in rows[0].channels if all(name in row.channels for row in rows)]


def choices_text(rows: Sequence[Inspected], suggestion: Suggestion, given: Mapping[str, Any]) -> str:
    """Write a dicot.toml: what a user said, the channels that all readable recordings have, and what is suggested."""
    sound = [row for row in rows if not row.problem]
    common = common_channels(sound)
    lines = [
        "# How these recordings are read and cut. `dicot pretrain`, `embed`, `evaluate` and `inspect` go by it;",
        "# options on the command line win. Suggested by `dicot inspect`: change what you know better.",
    ]
    said = {key: value for key, value in given.items() if value is not None and key != "channels"}
    lines += [""] * bool(said) + [f"{key} = {json.dumps(value)}" for key, value in said.items()]
    if common:
        of = "those asked for" if given.get("channels") else "all columns of numbers"
        if any(set(row.channels) != set(common) for row in sound):
            of = "those that all recordings have"
        lines += ["", f"# {of}", f"channels = {json.dumps(common, ensure_ascii=False)}"]
    for key in ("window", "stride", "rate", "missing", "scale"):
        value, reason = getattr(suggestion, key), getattr(suggestion, f"{key}_reason")
        if value is not None:
            lines += ["", f"# {reason}", f"{key} = {json.dumps(value)}"]
        elif reason:
            lines += ["", f"# no {key}: {reason}"]
    return "\n".join(lines) + "\n"
