"""What an unfinished build remembers: a plan, and a small file for every source that was looked at or cut.

A note counts while its source is the same file and, once cut, while everything settled for all sources is the same.
"""

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any, final

from dicot.core.errors import InputError
from dicot.core.storage import remove_leftovers, write_atomic, writing
from dicot.store.corpus.files import Note
from dicot.store.corpus.sources import Origin

FOLDER = ".building"
PLAN = "plan.json"


@final
class Notes:
    """The notes of one build."""

    def __init__(self, corpus: Path, plan: dict[str, Any]) -> None:
        self.folder, self.corpus = corpus / FOLDER, corpus
        self._plan = json.dumps(plan, sort_keys=True, allow_nan=False).encode()

    def begin(self) -> None:
        """Take up what another run of the same plan has left; refuse that of another plan."""
        path = self.folder / PLAN
        if path.is_file() and path.read_bytes() != self._plan:
            raise InputError(
                f"{self.corpus} holds an unfinished corpus of other sources or options. Give the same ones to continue "
                "it, choose another folder, or begin anew (--overwrite)."
            )
        if not path.is_file():
            self.remove()
            write_atomic(path, self._plan)

    def read(self, kind: str, number: int, origin: Origin, settled: str = "") -> Note | None:
        """Return what was noted of a source; None where it has to be done again."""
        try:
            note = json.loads((self.folder / f"{kind}-{number:06d}.json").read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError):
            return None  # damaged by another program: the work is done again
        same = isinstance(note, dict) and note.get("origin") == asdict(origin) and note.get("settled") == settled
        return note["note"] if same else None

    def write(self, kind: str, number: int, origin: Origin, note: Note, settled: str = "") -> None:
        """Note what became of a source."""
        path = self.folder / f"{kind}-{number:06d}.json"
        remove_leftovers(path)
        whole = {"origin": asdict(origin), "settled": settled, "note": note}
        write_atomic(path, json.dumps(whole, allow_nan=False).encode())

    def remove(self) -> None:
        """Forget everything."""
        with writing(self.folder):
            if self.folder.exists():
                shutil.rmtree(self.folder)
