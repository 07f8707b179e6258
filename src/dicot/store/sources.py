"""The files that a corpus is built of: folders, patterns and files of this machine, and URLs by fsspec.

A file behind a URL is copied beside the corpus for as long as it is read, so that the readers of recordings need not
know where it came from.
"""

import glob
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from dicot.core.errors import DicotError, InputError, brief, need_extra
from dicot.data.readers import below_named, by_name, known_suffixes, suffix_of
from dicot.data.reading import before_pattern

SCHEME = "://"
STAMPS = ("mtime", "LastModified", "last_modified", "updated", "created", "ETag", "etag")  # of file systems


@dataclass(frozen=True)
class Origin:
    """A file, its recording's name among all, and what tells whether it is still the same."""

    file: str  # an absolute path, or a URL
    name: str
    bytes: int
    changed: str

    @property
    def is_url(self) -> bool:
        """Tell whether the file has to be fetched."""
        return SCHEME in self.file


def find_origins(sources: Sequence[str | Path]) -> list[Origin]:
    """List the files of all sources, each once, sorted, with names that none shares."""
    local = [one for one in sources if SCHEME not in str(one)]
    found: dict[str, tuple[PurePath, int, str]] = {}  # the path below what was named, size, and when it was changed
    for one in reversed(sources):  # a file that is named twice has the name of the first time
        if SCHEME in str(one):
            found |= _behind(str(one))
    if local or not sources:
        for path, below in below_named(local):
            known = path.stat()
            found[str(path.resolve())] = below, known.st_size, str(known.st_mtime_ns)
    named = by_name((file, found[file][0]) for file in sorted(found))
    return [Origin(file, name, *found[file][1:]) for name, file in named.items()]


def _file_system(url: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError as error:
        raise need_extra("fsspec", "fsspec", f"Reading {url}") from error
    try:
        system, path = fsspec.core.url_to_fs(url)
    except Exception as error:  # each of its file systems has errors of its own
        raise InputError(f"{url} cannot be reached ({brief(error)}). Check the address.") from error
    return system, path


def _behind(url: str) -> dict[str, tuple[PurePath, int, str]]:
    """Return the files of a URL of a folder, a pattern or a file, as `find_origins` wants them."""
    system, path = _file_system(url)
    try:
        if glob.has_magic(path):
            files, root = [str(file) for file in system.glob(path)], before_pattern(PurePosixPath(path))
        else:
            is_folder = system.isdir(path)
            files, root = [str(file) for file in system.find(path)] if is_folder else [path], PurePosixPath(path)
            root = root if is_folder else root.parent
            if files == [path] and not system.exists(path):
                raise InputError(f"There is no file or folder {url}. Check the address.")
        suffixes = known_suffixes("recordings")
        known = files if files == [path] else [one for one in files if suffix_of(PurePosixPath(one)) in suffixes]
        if not known:
            raise InputError(f"{url} holds no recording ({', '.join(suffixes)}). Check the address.")
        found: dict[str, tuple[PurePath, int, str]] = {}
        for file in known:
            info = system.info(file)
            stamp = next((str(info[key]) for key in STAMPS if info.get(key) is not None), "")
            below = PurePosixPath(file).relative_to(root)
            found[system.unstrip_protocol(file)] = below, int(info.get("size") or 0), stamp
    except DicotError:
        raise
    except Exception as error:
        raise InputError(f"{url} cannot be listed ({brief(error)}). Check the address.") from error
    return found


@contextmanager
def at_hand(origin: Origin, beside: Path) -> Iterator[Path]:
    """Give the file as one of this machine; what is behind a URL is copied into a folder that is removed again."""
    if not origin.is_url:
        yield Path(origin.file)
        return
    system, path = _file_system(origin.file)
    beside.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=beside, prefix="fetched-"))
    try:
        parts = PurePosixPath(path)
        wanted = [path]
        if parts.suffix.lower() == ".hea":  # the signals lie beside it, under its name
            wanted += [str(file) for file in system.glob(f"{parts.parent}/{glob.escape(parts.stem)}.*")]
        try:
            for file in dict.fromkeys(wanted):
                system.get_file(file, str(folder / PurePosixPath(file).name))
        except Exception as error:
            raise InputError(
                f"{origin.file} cannot be fetched ({brief(error)}). Try again, or leave it out."
            ) from error
        yield folder / parts.name
    finally:
        shutil.rmtree(folder, ignore_errors=True)
