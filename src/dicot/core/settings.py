"""How a setting is written in a command and in Python: messages say both, the command first and ready to paste."""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

# Settings of reading that have an option of their own in every command. Others are given by --set.
OPTIONS = frozenset(
    {"window", "stride", "time", "channels", "ignore", "label", "group", "names", "table", "join", "duplicates"}
)
_MOST_TWICE = 3  # names in a list up to which a message writes them for Python, too

COLUMN = "COLUMN"  # stands for the name of a column that the message cannot know
COLUMNS = ("NAME", "NAME")  # the same of several

Value = str | float | bool | Sequence[str]


def how_to_set(name: str, value: Value) -> str:
    """Say how a setting is given: `--set unit=ms (in Python unit="ms")`."""
    return f"{as_option(name, value)} (in Python {_in_python(name, value)})"


def how_to_prepare(name: str, value: str) -> str:
    """Say how a policy for cases is set: of a command, where cases are made or loaded, and of an estimator."""
    return f'{as_option(name, value)} (in Python {name}="{value}"; of an estimator prepare={{"{name}": "{value}"}})'


def as_option(name: str, value: Value) -> str:
    """Write a setting as an option of a command, ready to paste."""
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, str):
        text = value
    elif isinstance(value, int | float):
        text = f"{value:.9g}"
    else:
        text = ",".join(value)
    return f"--{name} {shlex.quote(text)}" if name in OPTIONS else f"--set {shlex.quote(f'{name}={text}')}"


def text_of(value: Any) -> str:
    """Write the value of a setting as a command takes it; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def words_of(texts: Mapping[str, str]) -> list[str]:
    """Write settings as the words of a command: those with an option of their own by that."""
    words = []
    for name, text in texts.items():
        words += [f"--{name}", text] if name in OPTIONS else ["--set", f"{name}={text}"]
    return words


def _in_python(name: str, value: Value) -> str:
    if isinstance(value, bool):
        return f"{name}={value}"
    if isinstance(value, str):
        return f"{name}={json.dumps(value, ensure_ascii=False)}"
    if isinstance(value, int | float):
        return f"{name}={value:.9g}"
    names = ", ".join(json.dumps(item, ensure_ascii=False) for item in value) if len(value) <= _MOST_TWICE else "..."
    return f"{name}=[{names}]"
