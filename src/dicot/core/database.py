"""SQLite files that several processes write to: one way to open them, to change them, and to say what went wrong."""

import errno
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from dicot.core import __version__
from dicot.core.errors import DicotError, InputError, OutputError
from dicot.core.storage import REMEDY, writing

PATIENCE = 60.0  # seconds that a writer waits for another
UNFINISHED = ("-wal", "-journal")  # files beside it that hold changes which are not in the file itself yet

# What is no fault of the file: it can be used once the disk, its permissions or another process allow it.
_NAMES = ("FULL", "READONLY", "PERM", "CANTOPEN", "IOERR", "BUSY", "LOCKED", "NOLFS")
PASSING = {getattr(sqlite3, f"SQLITE_{name}") for name in _NAMES}

# What SQLite quotes of a damaged file in its own message may be no text.
ERRORS = (sqlite3.Error, UnicodeDecodeError)


def open_tables(
    path: Path, what: str, schema: Mapping[str, str], version: int, *, read_only: bool
) -> sqlite3.Connection:
    """Open a file with these tables, or make it; `schema` has their statements by name, `what` is it to the user.

    With `read_only` it is a copy in memory, as the file is now: that may be read-only, and is never changed.
    """
    if read_only and not path.exists():
        raise InputError(f"There is no {what} at {path}. Name another file, or write one first.")
    database = (snapshot if read_only else connect)(path, what)
    database.row_factory = sqlite3.Row
    try:
        with transaction(database, path, what, "DEFERRED"):  # before anything is changed, a journal mode too
            if not _is_made(database, path, what, schema, version) and read_only:
                raise InputError(f"{path} is no {what}: there is nothing in it. Name another file.")
        with translated(path, what):
            keep_log(database)
        with transaction(database, path, what):  # of several processes that meet at a new file, one makes the tables
            if not _is_made(database, path, what, schema, version):
                for statement in (*schema.values(), f"PRAGMA user_version = {version}"):
                    database.execute(statement)
        if read_only:
            database.execute("PRAGMA query_only = ON")
    except BaseException:
        database.close()
        raise
    return database


def _is_made(database: sqlite3.Connection, path: Path, what: str, schema: Mapping[str, str], version: int) -> bool:
    """Tell whether the tables are there; refuse a file with others."""
    (found,) = database.execute("PRAGMA user_version").fetchone()  # 0 of a new file
    tables = dict(database.execute("SELECT name, sql FROM sqlite_master WHERE name NOT GLOB 'sqlite_*'").fetchall())
    if (found, tables) in ((0, {}), (version, dict(schema))):
        return bool(found)
    if found != version and schema.keys() & tables.keys():
        raise InputError(
            f"{path} is a {what} of version {found}; dicot {__version__} reads version {version}. Install the dicot "
            "that wrote it."
        )
    raise InputError(f"{path} is no {what}: it is a database with other tables. Name another file.")


def connect(path: Path, what: str) -> sqlite3.Connection:
    """Open a file, or make an empty one, to read and write. `what` is what the file is to the user."""
    with writing(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "Is a directory")
        path.parent.mkdir(parents=True, exist_ok=True)
    with translated(path, what):
        return sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)


def keep_log(database: sqlite3.Connection) -> None:
    """Write changes ahead into a log, forced to disk: a kill loses nothing that was committed.

    Where several processes meet at a new file, SQLite refuses this one without waiting.
    """
    given_up = time.monotonic() + PATIENCE
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > given_up:
                raise
            time.sleep(0.05)
    database.execute("PRAGMA synchronous = FULL")


@contextmanager
def transaction(database: sqlite3.Connection, path: Path, what: str, kind: str = "IMMEDIATE") -> Iterator[None]:
    """All of the block or nothing; DEFERRED sees one moment and does not keep others from writing."""
    with translated(path, what):
        database.execute(f"BEGIN {kind}")
        try:
            yield
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:  # SQLite may have given it up itself, for want of space for one
                database.execute("ROLLBACK")
            raise


@contextmanager
def translated(path: Path, what: str) -> Iterator[None]:
    """What SQLite says becomes an error of ours that names the file."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a mistake of this code
    except ERRORS as error:
        raise refusal(path, what, error) from error


def refusal(path: Path, what: str, error: sqlite3.Error | UnicodeDecodeError) -> DicotError:
    """The error for a file that cannot be used; raise it from `error`."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # Python's own errors have none
    if code in PASSING:
        remedy = f"Another process may hold it: wait for that one. {REMEDY}"
        return OutputError(f"The {what} {path} cannot be used ({error}). {remedy}")
    return InputError(f"{path} cannot be opened as a {what} ({error}). It is another file or damaged: name another.")


def snapshot(path: Path, what: str) -> sqlite3.Connection:
    """A whole database in memory, as it is at this moment. The file is not changed and nothing stays beside it."""
    given_up = time.monotonic() + PATIENCE
    while True:
        before = _state(path)
        # A log beside the file may be growing just now, and is read with locks; otherwise the file is all there is, and
        # can be read where no lock can be made, such as in a read-only folder.
        logged = any(size for size, _ in before[1:])
        memory = sqlite3.connect(":memory:", isolation_level=None)
        try:
            how = "mode=ro" if logged else "immutable=1"
            source = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=PATIENCE)
            with closing(source):
                source.backup(memory)
            if logged or _state(path) == before:
                answer = memory.execute("PRAGMA integrity_check(1)").fetchall()
                if answer != [("ok",)]:
                    complaint = " ".join(str(answer).split())
                    raise InputError(f"{path} is damaged ({complaint}). Take a copy of it over into a new {what}.")
                return memory
        except ERRORS as error:
            memory.close()
            if logged or _state(path) == before:
                raise refusal(path, what, error) from error
        except BaseException:
            memory.close()
            raise
        memory.close()
        if time.monotonic() > given_up:
            raise OutputError(f"The {what} {path} changes all the time. Run the same command again a little later.")


def _state(path: Path) -> list[tuple[int, int]]:
    """Size and time of the file and of those beside it that belong to it."""
    out = [(0, 0)] * (1 + len(UNFINISHED))
    for number, end in enumerate(("", *UNFINISHED)):
        with suppress(OSError):  # it may go at any moment
            facts = path.with_name(path.name + end).stat()
            out[number] = facts.st_size, facts.st_mtime_ns
    return out
