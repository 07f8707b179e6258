"""Machine code that is compiled at first use and stored in the user's cache folder.

What is loaded from there runs with the user's rights, so it is loaded only where nobody else can have written it:
from a folder and a file that belong to the user and are writable by nobody else. The file's name ends with the hash of
its content, so that a truncated or damaged one is recognised, and made again.
"""

import hashlib
import logging
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dicot.core.storage import cache_folder, write_atomic

log = logging.getLogger(__name__)
T = TypeVar("T")


def use_code(stem: str, suffix: str, make: Callable[[], bytes], use: Callable[[Path], T]) -> T:
    """Call `use` with the path of the code called `stem`; what is not in the cache yet is made first.

    Where nothing can be stored safely the code goes to a temporary folder, which is removed afterwards.
    """
    try:
        folder = _private_folder()
        cached = _find(folder, stem, suffix)
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        log.info("compiled code cannot be stored: %s", error)
        folder, cached = None, None
    if cached is not None:
        return use(cached)
    code = make()
    if folder is not None:
        try:
            return use(_store(folder, stem, suffix, code))
        except OSError as error:
            log.info("compiled code cannot be stored: %s", error)
    with tempfile.TemporaryDirectory(prefix="dicot-") as fresh:
        return use(_store(Path(fresh), stem, suffix, code))


def _private_folder() -> Path:
    """Return the cache's folder for code, which no other user can write to or replace."""
    cache = cache_folder()
    folder = cache / f"code-{_user()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if fault := _exposed(folder):
        raise PermissionError(f"{folder} {fault}")
    around = cache.stat()
    if around.st_mode & stat.S_IWOTH and not around.st_mode & stat.S_ISVTX:
        raise PermissionError(f"{cache} is writable by everybody")
    return folder


def _exposed(path: Path) -> str:
    """Say why others may have written this file or folder; empty where they cannot."""
    facts = path.stat()
    if os.name == "nt":
        return ""
    if facts.st_uid != _user():
        return f"belongs to another user ({facts.st_uid})"
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"is writable by others ({stat.filemode(facts.st_mode)})"
    return ""


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0  # Windows has no such numbers


def _find(folder: Path, stem: str, suffix: str) -> Path | None:
    """Return the path of code stored earlier, if it is as it was written; a damaged file is removed."""
    for path in sorted(folder.glob(f"{stem}-*{suffix}")):
        fault = _exposed(path)
        if not fault and path == _named(folder, stem, suffix, path.read_bytes()):
            return path
        log.info("%s %s and is made again", path, fault or "is damaged")
        path.unlink(missing_ok=True)
    return None


def _store(folder: Path, stem: str, suffix: str, code: bytes) -> Path:
    path = _named(folder, stem, suffix, code)
    write_atomic(path, code, private=True)
    return path


def _named(folder: Path, stem: str, suffix: str, code: bytes) -> Path:
    return folder / f"{stem}-{hashlib.sha256(code).hexdigest()[:32]}{suffix}"
