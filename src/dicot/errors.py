"""What can go wrong, each with a sentence that says what was expected, what came and what to do."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

T = TypeVar("T")


class DicotError(Exception):
    """Base of every error raised on purpose by this library."""


class InputError(DicotError, ValueError):
    """Data or parameters that cannot be used as they are."""


class ModelFileError(DicotError, ValueError):
    """A model or checkpoint on disk that is missing, foreign, truncated or does not fit."""


class OutputError(DicotError, OSError):
    """Something that could not be written: the disk is full or read-only, or permission is missing."""


class NonFiniteLossError(DicotError, ArithmeticError):
    """The training loss became NaN or infinite."""


class MissingExtraError(DicotError, ImportError):
    """An optional dependency is needed and not installed."""


class MissingDataError(DicotError, FileNotFoundError):
    """A data set is not on this machine and could not be fetched."""


class LostWorkerError(DicotError, RuntimeError):
    """A process that ended in the middle of its work."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence that suggests the closest known name, or lists them all."""
    names = sorted(known)
    plain = {n.lower().replace("-", "").replace("_", ""): n for n in names}
    close = get_close_matches(name.lower().replace("-", "").replace("_", ""), plain, n=1, cutoff=0.6)
    return f"Did you mean {plain[close[0]]!r}?" if close else f"Known: {', '.join(names)}."


def lookup(registry: Mapping[str, T], name: str, kind: str) -> T:
    """The entry called `name`, or an error that suggests the closest one."""
    if name in registry:
        return registry[name]
    raise InputError(f"Unknown {kind} {name!r}. {did_you_mean(str(name), registry)}")


def need_extra(package: str, extra: str, purpose: str) -> MissingExtraError:
    """The error for an optional package that is not there; raise it from the ImportError."""
    return MissingExtraError(f"{purpose} needs {package}, which is not installed. Run: pip install 'dicot[{extra}]'")
