"""Files that are either whole or not there, and the folder for those that can be made again."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dicot.errors import OutputError

REMEDIES = {
    errno.ENOSPC: "Free some space on that disk, or choose another place",
    errno.EDQUOT: "Free some space of your quota, or choose another place",
    errno.EROFS: "That file system is read-only; choose another place",
    errno.EACCES: "Ask for permission to write there, or choose another place",
    errno.EPERM: "Ask for permission to write there, or choose another place",
    errno.ENOTDIR: "A part of that path is a file; choose another place",
    errno.EEXIST: "A part of that path is a file; choose another place",
    errno.EISDIR: "That is a folder; give the name of a file",
    errno.ENAMETOOLONG: "Choose a shorter name",
}


def cache_folder() -> Path:
    """DICOT_CACHE, else the user's usual place for such files; it may not exist yet."""
    if own := os.environ.get("DICOT_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dicot"


def cannot_write(path: str | Path, error: Exception) -> OutputError:
    """The error for something at `path` that the operating system refuses to write; raise it from `error`."""
    number = getattr(error, "errno", None)
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    remedy = REMEDIES.get(number or 0, "Mend this, or choose another place")
    return OutputError(f"{path} cannot be written: {said}. {remedy}.")


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """For a block that writes at `path` and below: what the operating system refuses becomes an OutputError."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise cannot_write(path, error) from error


def write_atomic(path: Path, data: bytes) -> None:
    """Write beside the target, force it to disk, then put it in place in one step."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, 0o666 & ~umask)  # mkstemp makes it private
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
