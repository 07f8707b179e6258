"""Work in a process of its own: asked for an answer, left alone, killed at a moment or at a call to the file system."""

import ctypes
import math
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, NamedTuple

from dicot.core.errors import DicotError

# What is reported before the file system is changed. `open` counts where it may write.
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink", "os.chmod"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
LOOK = 0.002  # seconds between two looks at a process
FILES = 0.01  # seconds between two looks at its files
# Looks until one that does not end is itself a finding: ten minutes or more, and none while everything is stopped.
PATIENCE = 300_000
REFUSED = 3  # exit code: an error of ours
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
Work = Callable[[Path], Any]


class HangError(Exception):
    """A process that did not end."""


class Ended(NamedTuple):
    """How a process ended: 0, REFUSED, another exit code, or minus a signal; and what it left on the screen."""

    code: int
    said: str


def ask(work: Work, folder: Path) -> Any:
    """What `work` returns, computed in a new process: whatever threads it starts, this one stays fit to be forked."""
    mine, theirs = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        try:
            theirs.send((True, work(folder)))
        except BaseException:
            theirs.send((False, traceback.format_exc()))
        finally:
            os._exit(0)
    theirs.close()
    try:
        answered = any(mine.poll(LOOK) for _ in range(PATIENCE))
        done, answer = mine.recv() if answered else (False, "no answer")
    except EOFError:
        done, answer = False, "the process died"
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not done:
        raise AssertionError(answer)
    return answer


class Run:
    """`work` in a process; what it prints is kept. With `calls` it kills itself before that call to the file system."""

    def __init__(self, work: Work, folder: Path, calls: int = 0, before: Callable[[], Any] | None = None) -> None:
        # Not beside the folder, whose disk may be full.
        self._place = Path(tempfile.mkdtemp())
        self._log, self._counted, self._calls = self._place / "log", self._place / "calls", 0
        self.changes = 0  # of its files, that were seen by `watch`
        self.started = time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            self._carry_out(work, folder, calls, before)

    def _carry_out(self, work: Work, folder: Path, calls: int, before: Callable[[], Any] | None) -> None:
        code = 1
        try:
            os.setpgid(0, 0)
            ctypes.CDLL(None).prctl(DIES_WITH_PARENT, signal.SIGKILL)
            screen = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(screen, 1)
            os.dup2(screen, 2)
            sys.stdout = sys.stderr = os.fdopen(screen, "w")  # whatever stood in their place
            signal.signal(signal.SIGINT, signal.default_int_handler)
            count = _count_calls(folder, calls)
            if before is not None:
                before()
            work(folder)
            code = 0
        except DicotError as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            code = REFUSED
        except SystemExit as error:  # of a command, which has said why
            code = 0 if error.code in (0, None) else REFUSED if error.code == 1 else int(error.code)  # type: ignore[arg-type]
        except BaseException:
            traceback.print_exc()
        finally:
            if code == 0:
                with suppress(OSError):  # where no file may be that large
                    self._counted.write_text(str(count[0]))
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def wait(self, seconds: float) -> Ended | None:
        """How it ended; None where it is still at work after so many seconds."""
        until = time.monotonic() + seconds
        while (ended := self._look()) is None and time.monotonic() < until:
            time.sleep(LOOK)
        return ended

    def watch(self, folder: Path, changes: float = math.inf) -> Ended | None:
        """Wait until files below `folder` have been seen to change so often; how it ended, where that came first.

        What its own processes write counts as well, and how fast the machine is does not.
        """
        seen, self.changes = _stamps(folder), 0
        for _ in range(PATIENCE):
            if (ended := self._look()) is not None or self.changes >= changes:
                return ended
            time.sleep(FILES)
            if (now := _stamps(folder)) != seen:
                seen, self.changes = now, self.changes + 1
        raise HangError(f"no end after {PATIENCE} looks at its files: {self.kill().said[-1000:]}")

    def _look(self) -> Ended | None:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return self._ended(status) if pid else None

    def end(self) -> Ended:
        """Wait for the end, which must come."""
        for _ in range(PATIENCE):
            if (ended := self._look()) is not None:
                return ended
            time.sleep(LOOK)
        raise HangError(f"no end after {PATIENCE} looks at it: {self.kill().said[-1000:]}")

    def kill(self) -> Ended:
        """SIGKILL to this process alone, as by the system when memory is short."""
        os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        return self._ended(status)

    def _ended(self, status: int) -> Ended:
        said = self._log.read_text(errors="replace") if self._log.exists() else ""
        self._calls = int(self._counted.read_text() or 0) if self._counted.exists() else 0
        shutil.rmtree(self._place)
        return Ended(os.waitstatus_to_exitcode(status), said)

    def calls(self) -> int:
        """How many calls to the file system a run made that was left alone."""
        return self._calls


def _stamps(folder: Path) -> set[tuple[str, int, int]]:
    """The files below a folder, and when each was written last."""
    found = set()
    for path in folder.rglob("*"):
        with suppress(OSError):  # removed meanwhile
            facts = path.stat()
            found.add((str(path), facts.st_size, facts.st_mtime_ns))
    return found


def children(pid: int) -> list[int]:
    """The processes that a process has started for work, of Python's own helpers none."""
    return [child for child in _children(pid) if "resource_tracker" not in _words(child)]


def actors(pid: int) -> list[int]:
    """The actors of a Ray cluster that a process has started: they call themselves so."""
    below = [pid]
    for one in below:
        below += _children(one)
    return [one for one in below if _words(one).startswith("ray::_Actor")]


def is_alive(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()] + [
            int(word)
            for task in Path(f"/proc/{pid}/task").iterdir()
            if task.name != str(pid)
            for word in (task / "children").read_text().split()
        ]
    except OSError:
        return []


def _words(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return "resource_tracker"


def _count_calls(folder: Path, last: int) -> list[int]:
    """Count what changes files in or beside `folder`, and die before call number `last`."""
    count, home = [0], str(folder)

    def hear(event: str, given: tuple[Any, ...]) -> None:
        if event != "open" and event not in CHANGES:
            return
        # An `open` by a file's number has been counted when that was made.
        named = isinstance(given[0], str | bytes | os.PathLike) and os.fsdecode(given[0]).startswith(home)
        if not named or (event == "open" and not (isinstance(given[2], int) and given[2] & WRITING)):
            return
        count[0] += 1
        if count[0] == last:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hear)
    return count
