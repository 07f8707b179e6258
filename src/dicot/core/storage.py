"""Files that are written whole or not at all, hashes inside them, locks, and the folders for data and for a cache."""

import errno
import glob
import hashlib
import json
import os
import platform
import re
import secrets
import socket
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from dicot.core import __version__
from dicot.core.errors import (
    DicotError,
    DicotWarning,
    InputError,
    ModelFileError,
    OutputError,
    listed,
    need_extra,
    quoted,
)

try:
    import fcntl
except ImportError:  # on Windows: `check_platform` says so
    fcntl = None  # type: ignore[assignment]

SEAL = "content_sha256"
REMEDY = "Free some space, get permission to write there, or choose another place."
TENSORS = b'"sha256":"'  # the mark in the header of a .safetensors file, in an entry of its metadata
OPEN = "0" * 64  # what is written before the hash is known
LOCK = ".lock"  # the name of the file inside a folder
_HELD = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


def check_platform() -> None:
    """Refuse to work where files cannot be locked, which is on Windows."""
    if fcntl is None:
        raise DicotError(
            f"dicot needs Linux or macOS for now: {platform.system()} has no lock of files that a kill releases. On "
            "Windows install it in WSL, the Linux that comes with Windows: wsl --install."
        )


def cache_folder() -> Path:
    """Return DICOT_CACHE, or else the user's usual folder for such files; it may not exist yet."""
    if own := os.environ.get("DICOT_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dicot"


def user_folder() -> Path | None:
    """Return the folder that DICOT_DATA names, if it is set."""
    root = os.environ.get("DICOT_DATA")
    if root and not Path(root).is_dir():
        raise InputError(f"DICOT_DATA names {root}, which is not a folder. Correct or unset the variable.")
    return Path(root) if root else None


def data_folders() -> list[Path]:
    """List the folders that are searched for data sets, in this order; new ones are written into the first."""
    user = user_folder()
    return [cache_folder()] if user is None else [user, cache_folder()]


def cannot_use(error: OSError) -> str:
    """Put into words what the operating system refuses, without knowing what the file was for."""
    return f"{error.filename or 'A file or the screen'}: {error.strerror or repr(error)}. {REMEDY}"


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Turn what the operating system refuses inside a block that writes at `path` into an OutputError."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or repr(error)}. {REMEDY}") from error


def check_writable(path: Path, *, folder: bool = False) -> None:
    """Refuse at once, before any work is done, a file, or a `folder`, that could not be written later."""
    with writing(path):
        if path.is_dir() and not folder:
            raise IsADirectoryError(errno.EISDIR, "Is a directory")
        whole = path.absolute()
        place = next(one for one in (whole, *whole.parents) if one.exists())
        if place == whole and not place.is_dir():
            place = place.parent  # a file to be replaced
        if not place.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{place} is not a folder")
        tempfile.TemporaryFile(dir=place).close()


def refuse_existing(path: Path, overwrite: bool, remedy: str = "choose another name") -> None:
    """Refuse to replace what is at a path, unless the user has said that it may be; `remedy` is what else to do."""
    if overwrite or not path.exists():
        return
    if path.is_dir():
        inside = listed(sorted(file.name for file in path.iterdir()))
        raise InputError(
            f"{path} is a folder that holds {inside or 'nothing'}. Say --overwrite to replace files of the same names, "
            "or choose another folder."
        )
    raise InputError(f"{path} is there already. Say --overwrite to replace it, or {remedy}.")


def write_atomic(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write a file with these bytes, whole or not at all."""
    with atomic_file(path, private=private) as file:
        file.write(data)


@contextmanager
def atomic_file(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """Open a file beside the target that is forced to disk and put in place in one step at the end."""
    check_platform()
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path)
        file, temporary = _beside(path)
        try:
            with file:
                if private:
                    temporary.chmod(0o600)
                yield file
                file.flush()
                os.fsync(file.fileno())
                temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    # Two files that were put in place one after the other reach the disk in this order, where a system can.
    with suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def arrow() -> tuple[Any, Any]:
    """Return pyarrow and its module for .parquet files, or say how to install them."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise need_extra("pyarrow", "tables", "A .parquet file") from error
    return pyarrow, parquet


def format_of(name: str, version: int) -> dict[str, Any]:
    """Return the entries of a config file that `check_format` reads."""
    return {"format": name, "format_version": version, "library_version": __version__}


def check_format(path: Path, config: Any, name: str, version: int) -> dict[str, Any]:
    """Return what was read from a config file, or say that another program or version wrote it."""
    if not isinstance(config, dict) or config.get("format") != name:
        raise ModelFileError(f"{path} was not written by dicot: its format is not {name!r}.")
    if config.get("format_version") != version:
        raise ModelFileError(
            f"{path} has format version {quoted(config.get('format_version'))}; this dicot {__version__} reads "
            f"{version}. Install the version that wrote it, {quoted(config.get('library_version'))}."
        )
    return config


def sealed(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a file of JSON is to hold, with a hash of it: damage that leaves it JSON is noticed too."""
    plain = {key: value for key, value in config.items() if key != SEAL}
    text = json.dumps(plain, sort_keys=True, allow_nan=False)
    return {**plain, SEAL: hashlib.sha256(text.encode()).hexdigest()}


def check_seal(config: Mapping[str, Any]) -> None:
    """Refuse what was read from a file of JSON where it is not what was sealed."""
    if config.get(SEAL) != sealed(json.loads(json.dumps(config)))[SEAL]:
        raise ValueError("its content does not fit to its hash")


def remove_leftovers(path: Path) -> None:
    """Remove what `atomic_file` left beside `path` when a process was killed inside it."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.????????"):
        with suppress(OSError), left.open("r+b") as file:  # one that is still written is locked
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


def _beside(path: Path) -> tuple[BinaryIO, Path]:
    """Open a new file that `remove_leftovers` finds, and lock it; on a disk without locks nothing is removed."""
    while True:
        place = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        file = place.open("x+b")
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        if place.exists():  # else it was removed before it was locked
            return file, place
        file.close()


def with_hash(data: bytes, mark: bytes) -> bytes:
    """Return the content of a file with its own hash in place of the zeros behind a mark, which tells where it is."""
    digest = hashlib.sha256(data).hexdigest().encode()
    whole = data.replace(mark + OPEN.encode(), mark + digest, 1)
    assert whole != data, "there is no place for a hash"
    return whole


def has_hash(data: bytes, mark: bytes) -> bool:
    return _found(data, mark) is not None


def check_hash(data: bytes, mark: bytes) -> None:
    """Raise a ValueError that says why the hash of a file is not that of its content."""
    seal = _found(data, mark)
    if seal is None:
        raise ValueError("it has no hash")
    bare = data[: seal.start(1)] + OPEN.encode() + data[seal.end(1) :]
    if hashlib.sha256(bare).hexdigest().encode() != seal.group(1):
        raise ValueError("its hash does not match its contents")


def _found(data: bytes, mark: bytes) -> re.Match[bytes] | None:
    return re.search(re.escape(mark) + rb"([0-9a-f]{64})", data)


@contextmanager
def only_writer(path: Path, *, folder: bool = False) -> Iterator[None]:
    """Keep other processes from writing `path` by this function; one that holds it already is named in an error.

    The lock is on a hidden file beside `path`, or inside it where that is a `folder` that others may not write beside,
    such as a disk of its own. It is removed in the end. What a kill leaves of it locks nothing.
    """
    check_platform()
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
