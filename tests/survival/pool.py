"""Files that led into code no other had reached: what coverage-guided damage starts from."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any

import dicot
from tests.survival.kind import Kind
from tests.survival.mutations import mutate

HOME = str(Path(dicot.__file__).parent) + os.sep
MOST = 300  # files that are kept of a kind
LARGEST = 1 << 20  # bytes of a file that is worth damaging again
Arc = tuple[str, int, int]  # a file of the library, and two lines of it that were run one after the other


class Pool:
    """The files of one kind that are worth more damage, and the arcs of the library's code that they lead through.

    Everything is in a file too, so that the process after one that died knows what that one had found.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.entries: list[tuple[str, bytes]] = []  # name of the damaged file, its bytes
        self.arcs: set[Arc] = set()
        self._new: set[Arc] = set()

    def load(self) -> "Pool":
        """Take over what an earlier process found."""
        if self.place.exists():
            for line in self.place.read_text().splitlines():
                name, data, arcs = json.loads(line)
                self.entries += [(name, bytes.fromhex(data))] if data else []
                self.arcs |= {(file, before, at) for file, before, at in arcs}
        return self

    def damage(self, kind: Kind, seed: int, files: dict[str, bytes]) -> tuple[str, bytes, str]:
        """Damage a sound file, or one of the pool once more."""
        dice = Random(f"{kind.name} {seed}")
        name, start, how = dice.choice(sorted(kind.ways)), None, ""
        if self.entries and dice.random() < 0.6:
            number = dice.randrange(len(self.entries))
            (name, start), how = self.entries[number], f"{number} of the pool, "
        data, ways = mutate(files[name] if start is None else start, kind.ways[name], dice)
        return name, data, f"{name}: {how}{', '.join(ways)}"

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note which arcs of the library's own code the block runs through, and no others."""
        found: set[Arc] = set()
        last: dict[int, int] = {}
        own: dict[CodeType, bool] = {}

        def enter(frame: FrameType, event: str, value: Any) -> Any:
            code = frame.f_code
            if own.setdefault(code, code.co_filename.startswith(HOME)):
                last[id(frame)] = 0
                return step
            return None

        def step(frame: FrameType, event: str, value: Any) -> Any:
            if event == "line":
                found.add((frame.f_code.co_filename[len(HOME) :], last.get(id(frame), 0), frame.f_lineno))
                last[id(frame)] = frame.f_lineno
            elif event == "return":
                last.pop(id(frame), None)
            return step

        before = sys.gettrace()
        sys.settrace(enter)
        try:
            yield
        finally:
            sys.settrace(before)
            self._new = found - self.arcs

    def learn(self, name: str, data: bytes) -> None:
        """Keep a file that led somewhere new."""
        if not self._new:
            return
        keep = len(self.entries) < MOST and len(data) <= LARGEST
        self.arcs |= self._new
        if keep:
            self.entries.append((name, data))
        with self.place.open("a") as file:
            file.write(json.dumps([name, data.hex() if keep else "", sorted(self._new)]) + "\n")
