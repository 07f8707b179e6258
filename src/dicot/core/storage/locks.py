"""One process at a time at a file, by a lock that the system takes back when its process ends, however it ends."""

import errno
import fcntl
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from dicot.core.errors import DicotWarning, OutputError
from dicot.core.storage import writing

LOCK = ".lock"  # the name of the file inside a folder
_HELD = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def only_writer(path: Path, *, folder: bool = False) -> Iterator[None]:
    """Keep other processes from writing `path` by this function; one that holds it already is named in an error.

    The lock is on a hidden file beside `path`, or inside it where that is a `folder` that others may not write beside,
    such as a disk of its own. It is removed in the end. What a kill leaves of it locks nothing.
    """
    place, name = (path, LOCK) if folder else (path.parent, f".{path.name}.lock")
    made = [one for one in (place, *place.parents) if not one.exists()]
    lock = place / name
    try:
        with writing(path):
            place.mkdir(parents=True, exist_ok=True)
            file = _locked(path, lock)
        try:
            yield
        finally:
            with suppress(OSError):  # a lock file that stays locks nothing
                lock.unlink()
            file.close()
    finally:
        with suppress(OSError):  # one that holds something stays
            for one in made:
                one.rmdir()


def _locked(path: Path, lock: Path) -> BinaryIO:
    """Open the lock file with its lock held."""
    while True:
        file = os.fdopen(os.open(lock, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                warnings.warn(
                    f"{path.parent} is on a disk without locks: see that no other process writes {path}.",
                    DicotWarning,
                    stacklevel=4,
                )
                return file
            holder = file.read(200).decode("utf-8", "replace").strip()
            file.close()
            if error.errno in _HELD:
                raise OutputError(
                    f"{path} is being written by another process{holder and f', {holder}'}. Wait until that one has "
                    "ended, end it, or choose another place."
                ) from error
            raise
        # Whoever held it before may have removed the file in the meantime: then this is a lock on nothing.
        with suppress(FileNotFoundError):
            if os.path.samestat(lock.stat(), os.fstat(file.fileno())):
                break
        file.close()
    file.truncate(0)
    now = datetime.now().astimezone()
    file.write(f"number {os.getpid()} on {socket.gethostname()}, since {now:%Y-%m-%d %H:%M:%S}\n".encode())
    file.flush()
    return file
