"""Files that are either whole or not there, and the folder for those that can be made again."""

import os
import tempfile
from pathlib import Path


def cache_folder() -> Path:
    """DICOT_CACHE, else the user's usual place for such files; it may not exist yet."""
    if own := os.environ.get("DICOT_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dicot"


def write_atomic(path: Path, data: bytes) -> None:
    """Write beside the target, force it to disk, then put it in place in one step."""
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
