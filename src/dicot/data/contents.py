"""What a file of recordings held, in a few words that are kept: enough to see later whether it has changed since."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from dicot.data.collection import Windows
from dicot.data.naming import naming
from dicot.data.texts import as_text
from dicot.data.wfdb import wfdb_signal_files

CHEAP = 2**24  # bytes that are hashed in any case; of a larger file the same size and time of change are believed


def facts_of(file: Path) -> dict[str, Any]:
    """Return size, time of change and hash of a file, together with those that it names."""
    size, changed = _state(file)  # before it is read: a file that grows meanwhile is seen to differ later
    return {"file": str(file.resolve()), "bytes": size, "changed": changed, "sha256": _hash(file)}


def is_as_before(file: Path, facts: dict[str, Any]) -> bool:
    """Tell whether a file holds what it did; where only its size is known, that decides."""
    size, changed = _state(file)
    if size != facts["bytes"]:
        return False
    if facts.get("sha256") is None or (size > CHEAP and changed == facts.get("changed")):
        return True
    return _hash(file) == str(facts["sha256"])


def are_facts(entry: Any) -> bool:
    """Tell whether what a file says of another is whole; older ones have neither time nor hashes."""
    if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
        return False
    hashes = all(isinstance(entry.get(key), str | None) for key in ("sha256", "windows"))
    return hashes and isinstance(entry.get("bytes"), int) and isinstance(entry.get("changed"), int | None)


def windows_hash(windows: Windows | None) -> str:
    """Hash windows with all that is known of them, whatever order they come in."""
    whole = hashlib.sha256()
    if windows is not None:
        assert windows.recording is not None and windows.start is not None and windows.end is not None
        n = len(windows)
        texts = [np.full(n, "") if part is None else as_text(part) for part in (windows.y, windows.group)]
        for row in np.lexsort((windows.end, windows.start, windows.recording)).tolist():
            about = [windows.recording[row], float(windows.start[row]), float(windows.end[row])]
            whole.update(repr([str(about[0]), *about[1:], *(str(text[row]) for text in texts)]).encode())
            # float32 also where some of a recording are kept with more digits: that depends on how long it is
            whole.update(np.ascontiguousarray(windows.x[row], "<f4").tobytes())
    return whole.hexdigest()


def _files(file: Path) -> list[Path]:
    """List the files that a recording is read from: a WFDB header names those of its signals."""
    return [file, *(wfdb_signal_files(file.with_suffix("")) if file.suffix.lower() == ".hea" else [])]


def _state(file: Path) -> tuple[int, int]:
    with naming(file):
        found = [one.stat() for one in _files(file)]
    return sum(one.st_size for one in found), max(one.st_mtime_ns for one in found)


def _hash(file: Path) -> str:
    whole = hashlib.sha256()
    with naming(file):
        for one in _files(file):
            with one.open("rb") as opened:
                whole.update(hashlib.file_digest(opened, "sha256").digest())
    return whole.hexdigest()
