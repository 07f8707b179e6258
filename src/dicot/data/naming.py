"""Names in errors: the file that one came from, and a list that does not fill the screen."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dicot.core.errors import DicotError, InputError, brief

MOST_NAMED = 12


def listed(names: Sequence[str]) -> str:
    """Write names in a sentence, and of many only how many more there are."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn errors inside into InputErrors that name the file."""
    try:
        yield
    except InputError as error:
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}") from error
    except (DicotError, MemoryError):
        raise
    except Exception as error:  # libraries have many for what a damaged file may hold
        raise InputError(
            f"{path} cannot be read as {path.suffix} ({brief(error)}). "
            "The file may be truncated or hold another format; write or fetch it again."
        ) from error
