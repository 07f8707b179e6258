"""SQLite files of others: copied without a trace, and what SQLite says in words that help."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from dicot.errors import DicotError, InputError, OutputError

UNFINISHED = ("-wal", "-journal")  # files beside it that hold changes which are not in the file itself yet

_PERMISSION = (
    "Ask for permission to write to the file and its folder, copy it and the files beside it that begin with its name "
    "to a folder of your own, or name another ledger"
)
_WAIT = "Another process holds it: wait for that one to end, and run the same command again"
REMEDIES = {
    sqlite3.SQLITE_FULL: "The disk is full: free some space and run the same command again, which goes on from here",
    **dict.fromkeys((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN), _PERMISSION),
    sqlite3.SQLITE_IOERR: "The disk may be full or broken: mend that and run the same command again",
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), _WAIT),
    sqlite3.SQLITE_NOLFS: "The file is too large for this disk: name a ledger elsewhere",
}


# What SQLite quotes of a damaged file in its own message may be no text.
ERRORS = (sqlite3.Error, UnicodeDecodeError)


def refusal(path: Path, error: sqlite3.Error | UnicodeDecodeError) -> DicotError:
    """The error for a ledger that cannot be used; raise it from `error`."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # Python's own errors have none
    if code in REMEDIES:
        return OutputError(f"The ledger {path} cannot be used ({error}). {REMEDIES[code]}.")
    return InputError(f"{path} cannot be opened as a ledger ({error}). It is another file or damaged: name another.")


def snapshot(path: Path, patience: float) -> sqlite3.Connection:
    """A whole database in memory, as it is at this moment. The file is not changed and nothing stays beside it."""
    given_up = time.monotonic() + patience
    while True:
        before = _state(path)
        # A log beside the file may be growing just now, and is read with locks; otherwise the file is all there is, and
        # can be read where no lock can be made, such as in a read-only folder.
        logged = any(size for size, _ in before[1:])
        memory = sqlite3.connect(":memory:", isolation_level=None)
        try:
            how = "mode=ro" if logged else "immutable=1"
            source = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=patience)
            with closing(source):
                source.backup(memory)
            if logged or _state(path) == before:
                _check(memory, path)
                return memory
        except ERRORS as error:
            memory.close()
            if logged or _state(path) == before:
                raise refusal(path, error) from error
        except BaseException:
            memory.close()
            raise
        memory.close()
        if time.monotonic() > given_up:
            raise OutputError(f"The ledger {path} changes all the time. Run the same command again a little later.")


def _state(path: Path) -> list[tuple[int, int]]:
    """Size and time of the file and of those beside it that belong to it."""
    out = []
    for one in (path, *(path.with_name(path.name + end) for end in UNFINISHED)):
        try:
            facts = one.stat()
            out.append((facts.st_size, facts.st_mtime_ns))
        except OSError:
            out.append((0, 0))
    return out


def _check(database: sqlite3.Connection, path: Path) -> None:
    found = database.execute("PRAGMA integrity_check(1)").fetchall()
    if found != [("ok",)]:
        said = " ".join(str(found[0][0]).split()) if found else "it cannot be checked"
        raise InputError(f"{path} is damaged ({said}). Merge an export or a copy of it into a new ledger.")
