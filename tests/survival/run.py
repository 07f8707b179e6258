"""The run: damaged files, read one after another in a process that may not hang, grow or die."""

import faulthandler
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from dicot.core import errors
from dicot.core.errors import DicotError
from tests.survival.kind import Kind, UnreadableError
from tests.survival.mutations import mutate
from tests.survival.pool import Pool

PACKAGE = Path(errors.__file__).parent  # the library itself, whatever the folders above are called
WORK = 10  # seconds of the processor for one file
WAIT = 300  # seconds in all; on a busy machine the work may take a while
PATIENCE = 600  # until a process that does not even answer to its alarm is killed
MEMORY = 500 << 20  # bytes beyond what reading the sound file needs
LOOKS = 100  # at the clock until WAIT or PATIENCE is over: while everything is stopped there is none
SOUND = -1  # in place of a seed: the file as it was made


class Outcome(NamedTuple):
    """What became of one file."""

    kind: str
    seed: int
    verdict: str  # ours, right or wrong
    cause: str = ""  # the same for what has one cause: type and place of a foreign error
    detail: str = ""


class TooSlowError(BaseException):
    """The alarm; nothing of the library may catch it."""


_looks = [0]  # at the clock, while the present file is read


def survive(kind: Kind, seeds: Sequence[int], keep: Path | None = None, pool: Pool | None = None) -> Iterator[Outcome]:
    """An outcome for each seed. A process that dies or hangs costs the file it was at, and the next goes on.

    `keep` is a folder in which damaged files are left: all of them, or with a `pool` those that were read wrong.
    With a pool, what is damaged depends on what earlier files led to.
    """
    left = list(seeds)
    with tempfile.TemporaryDirectory() as place:
        files = _make(kind, Path(place) / "sound")
        while left:
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(reader)
                _work(kind, left, files, Path(place), writer, keep, pool)
            os.close(writer)
            at = SOUND
            for answer in _answers(reader):
                if answer is None:  # silent for too long
                    os.kill(child, signal.SIGKILL)
                    break
                at = left[0]
                if answer:
                    yield Outcome(*answer)
                    left = left[1:] if answer[1] != SOUND else []
            _, status = os.waitpid(child, 0)
            os.close(reader)
            if left:
                how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "an early end"
                yield Outcome(kind.name, at, "wrong", f"the process died ({how})")
                left = left[1:] if at != SOUND else []


def _make(kind: Kind, folder: Path) -> dict[str, bytes]:
    folder.mkdir()
    kind.make(folder)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _answers(reader: int) -> Iterator[Any]:
    """What the process says, line by line; None when it has said nothing for too long."""
    rest = b""
    while True:
        if not any(select.select([reader], [], [], PATIENCE / LOOKS)[0] for _ in range(LOOKS)):
            yield None
            return
        data = os.read(reader, 65536)
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        yield from map(json.loads, lines)


def _work(
    kind: Kind,
    seeds: Sequence[int],
    files: dict[str, bytes],
    place: Path,
    writer: int,
    keep: Path | None,
    pool: Pool | None,
) -> None:
    """In the new process: everything, and then out without the clean-up that belongs to the old one."""

    def say(answer: Sequence[Any]) -> None:
        os.write(writer, json.dumps(answer).encode() + b"\n")

    def alarm(number: int, frame: Any) -> None:
        _looks[0] += 1
        if number == signal.SIGPROF or _looks[0] == LOOKS:
            raise TooSlowError

    status = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        warnings.simplefilter("ignore")
        faulthandler.disable()  # that a process died is said in one line
        signal.signal(signal.SIGALRM, alarm)
        signal.signal(signal.SIGPROF, alarm)
        sound, complaint = _sound(kind, place / "sound")
        if complaint:
            say(Outcome(kind.name, SOUND, "wrong", "the sound file is not read right", complaint))
        else:
            _limit_memory()
            if pool is not None:
                pool.load()
            say([])
            for seed in seeds:
                say(_one(kind, seed, files, sound, place, keep, pool))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _sound(kind: Kind, folder: Path) -> tuple[Any, str]:
    """What is read from the sound files, and what is wrong with it."""
    try:
        result = kind.read(folder)
        return result, kind.judge(folder, result, result)
    except Exception as error:
        return None, _cause(error)


def _limit_memory() -> None:
    """An allocation beyond the limit fails. Counted is what may be written to, not address space set aside."""
    status = Path("/proc/self/status").read_text()
    held = next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (held + MEMORY, held + MEMORY))


def damage(kind: Kind, seed: int, files: dict[str, bytes]) -> tuple[str, bytes, str]:
    """Which of the sound files is damaged, its new bytes, and how they came about."""
    dice = Random(f"{kind.name} {seed}")
    name = dice.choice(sorted(kind.ways))
    data, ways = mutate(files[name], kind.ways[name], dice)
    return name, data, f"{name}: {', '.join(ways)}"


def _one(
    kind: Kind,
    seed: int,
    files: dict[str, bytes],
    sound: Any,
    place: Path,
    keep: Path | None,
    pool: Pool | None = None,
) -> Outcome:
    name, data, how = damage(kind, seed, files) if pool is None else pool.damage(kind, seed, files)
    damaged = data
    folder = place / str(seed)
    for path, content in {**files, name: data}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    if kind.seal is not None:
        kind.seal(folder)
        data = (folder / name).read_bytes()
    kept = None if keep is None else keep / f"{kind.name}-{seed}"
    if kept is not None:  # before it is read, which may be its end
        shutil.copytree(folder, kept, dirs_exist_ok=True)
    _looks[0] = 0
    signal.setitimer(signal.ITIMER_REAL, WAIT / LOOKS, WAIT / LOOKS)
    signal.setitimer(signal.ITIMER_PROF, WORK)
    try:
        with nullcontext() if pool is None else pool.watched():
            verdict, cause = _verdict(kind, folder, sound)
    except TooSlowError as error:
        verdict, cause = "wrong", f"no answer within {WORK} s, {_place(error)}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
    if verdict != "wrong" and kind.only_reads and (folder / name).read_bytes() != data:
        verdict, cause = "wrong", "reading has changed the file"
    shutil.rmtree(folder, ignore_errors=True)
    if pool is not None:
        pool.learn(name, damaged)
        if kept is not None and verdict != "wrong":
            shutil.rmtree(kept, ignore_errors=True)
    return Outcome(kind.name, seed, verdict, cause.partition("|")[0], f"{how} {cause.partition('|')[2]}".strip())


def _verdict(kind: Kind, folder: Path, sound: Any) -> tuple[str, str]:
    """ours, right or wrong, and of the last the cause, | and details."""
    try:
        result = kind.read(folder)
    except DicotError as error:
        if _for_memory(error):
            return "wrong", f"more than {MEMORY >> 20} MB, {_place(error)}|{error}"
        complaint = kind.refused(folder)
        return ("wrong", f"{complaint}|{error}") if complaint else ("ours", "")
    except Exception as error:
        if _for_memory(error):
            return "wrong", f"more than {MEMORY >> 20} MB, {_place(error)}|{error}"
        return "wrong", _cause(error)
    try:
        complaint = kind.judge(folder, result, sound)
    except UnreadableError as error:
        return "wrong", f"taken, though it cannot be read right|{error}"
    except Exception as error:
        return "wrong", f"the judge failed: {_cause(error)}"
    return ("wrong", f"read wrong|{complaint}") if complaint else ("right", "")


def _for_memory(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError) or "allocate memory" in str(error) or "bad_alloc" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _cause(error: BaseException) -> str:
    return f"{type(error).__name__}, {_place(error)}|{str(error)[:200]}"


def _place(error: BaseException) -> str:
    """The last line of the library that it came through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(PACKAGE)]
    return f"{'/'.join(Path(frames[-1].filename).parts[-2:])}:{frames[-1].name}" if frames else "outside the library"
