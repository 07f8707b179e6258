"""What can go wrong, each with a sentence that says what was expected, what came and what to do."""

import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from numbers import Integral
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
_LISTED, _SOME = 40, 5  # names that are listed whole, and how many are shown of more
_MOST_NAMED = 12  # names in a sentence
_LONGEST, _END = 2000, 500  # characters of a message, and how many of them are its end
_QUOTED = 80  # characters of a value
_within = reprlib.Repr()  # goes no deeper into what is nested than a few levels
_within.maxstring = _within.maxlong = _within.maxother = _QUOTED


class DicotError(Exception):
    """Base of every error raised on purpose by this library."""

    def __str__(self) -> str:
        """Cut a message that quotes half a file: what is wrong stands at its beginning, what to do at its end."""
        text = super().__str__()
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - _END]} ... {text[-_END:]}"


class InputError(DicotError, ValueError):
    """Data or parameters that cannot be used as they are."""


class SettingNeededError(InputError):
    """Files that can be read with one more setting, such as `duplicates="mean"`; commands print it ready to paste."""

    def __init__(self, message: str, **settings: str) -> None:
        super().__init__(message)
        self.settings = settings


class WrongCallError(InputError):
    """An option, an argument or a setting that a command does not take; files and data are not to blame."""


class UnlabelledDataError(InputError):
    """A data set without class labels, which cannot be used by name."""


class ModelFileError(DicotError, ValueError):
    """A model or checkpoint on disk that is missing, foreign, truncated or does not fit."""


class OutputError(DicotError, OSError):
    """Something that could not be written: the disk is full or read-only, or permission is missing."""


class NonFiniteLossError(DicotError, ArithmeticError):
    """The training loss became NaN or infinite."""


class DeviceMemoryError(DicotError, MemoryError):
    """Work that does not fit into the memory of its device."""


class MissingExtraError(DicotError, ImportError):
    """An optional dependency is needed and not installed."""


class MissingDataError(DicotError, FileNotFoundError):
    """A data set is not on this machine and could not be fetched."""


class ExportError(DicotError, RuntimeError):
    """An exported file that does not compute what its model does."""


class LostWorkerError(DicotError, RuntimeError):
    """A process that ended in the middle of its work."""


class DicotWarning(UserWarning):
    """Base of what this library warns of; the command line shows it as a line."""


class SlowWarning(DicotWarning):
    """Work that takes longer than it could."""


class UnusedKeysWarning(DicotWarning):
    """A file holds arrays that nothing was made of."""


class ShortRecordingWarning(DicotWarning):
    """A recording that is left out because it is shorter than a window."""


class LeftOutWarning(DicotWarning):
    """Time steps that lie in no window, because of gaps, another rate, or where windows end."""


class ClockWarning(DicotWarning):
    """Time stamps that go back, wrap or do not say their unit, and what was made of them."""


class WindowLengthWarning(DicotWarning):
    """Cases of another length than those that a model is fitted on."""


class CalibrationWarning(DicotWarning):
    """Too few calibration cases for the share of false alarms that was asked for."""


def brief(error: BaseException) -> str:
    """Return what an error says, cut where it quotes half a file."""
    text = str(error)
    return text if len(text) <= 300 else f"{text[:300]}..."


def quoted(value: object) -> str:
    """Write a value that came from a file into a sentence, cut where it is long."""
    text = _within.repr(value)
    return text if len(text) <= _QUOTED else f"{text[: _QUOTED - 3]}..."


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the closest known name, or list them; of very many only some."""
    names = sorted(known)
    plain = {n.lower().replace("-", "").replace("_", ""): n for n in names}
    close = get_close_matches(name.lower().replace("-", "").replace("_", ""), plain, n=1, cutoff=0.6)
    if close:
        return f"Did you mean {plain[close[0]]!r}?"
    some = names if len(names) <= _LISTED else names[:_SOME]
    return f"Known: {', '.join(some)}{f' and {len(names) - len(some)} more' if len(some) < len(names) else ''}."


def lookup(registry: Mapping[str, T], name: str, kind: str) -> T:
    """Return the entry called `name`, or raise an error that suggests the closest one."""
    if name in registry:
        return registry[name]
    raise InputError(f"Unknown {kind} {name!r}. {did_you_mean(str(name), registry)}")


def need_extra(package: str, extra: str, purpose: str) -> MissingExtraError:
    """Return the error for an optional package that is not installed; raise it from the ImportError."""
    return MissingExtraError(f"{purpose} needs {package}, which is not installed. {how_to_install(extra)}")


def how_to_install(extra: str) -> str:
    """Say how to install an extra of dicot.

    It is installed from a clone: what PyPI calls dicot is a package of another project.
    """
    return f"Run in a clone of dicot: pip install '.[{extra}]'"


def is_whole(value: object, least: int) -> bool:
    """Tell whether a parameter is a whole number of at least `least`; True and 2.0 are not."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def listed(names: Sequence[str]) -> str:
    """Write names in a sentence, and of many only how many more there are."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn errors inside into InputErrors that name the file."""
    try:
        yield
    except InputError as error:
        if str(path) in str(error):
            raise
        if isinstance(error, SettingNeededError):
            raise SettingNeededError(f"{path}: {error}", **error.settings) from error
        raise InputError(f"{path}: {error}") from error
    except DicotError:
        raise
    except MemoryError as error:
        raise InputError(f"{path} needs more memory than there is ({brief(error)}).") from error
    except Exception as error:  # libraries have many for what a damaged file may hold
        raise InputError(
            f"{path} cannot be read as {path.suffix} ({brief(error)}). "
            "The file may be truncated or hold another format; write or fetch it again."
        ) from error
