"""Labels by row: those given by hand, in a label store as `dicot label` writes it, over those of the file."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from dicot.core.errors import InputError, quoted
from dicot.data.labels import as_text, is_number, labelled
from dicot.store.vectors import Vectors
from dicot.use.labels.store import Key, Label, LabelStore
from dicot.use.labels.windows import WindowKeys

TICK = 50_000_000  # nanoseconds; clocks of files are coarser than those of machines
LONGEST = 200  # characters of a label
Range: TypeAlias = tuple[str, float, float]  # recording, start and end in seconds
BY, CONFIRMED = "explorer", "explorer, confirmed"  # who gave a label, in the history


class ChangedMeanwhileError(InputError):
    """Somebody else has changed what is to be changed since it was looked at."""


def window_keys(known: Vectors) -> WindowKeys:
    """Name the windows in a label store: by their places, or where they have none by their number, such as "test 7"."""
    if known.placed:
        return WindowKeys.of_places(*known.places())
    if known.part is None:
        return WindowKeys([f"case {row}" for row in range(len(known))])
    first = {part: int(np.argmax(known.part == part)) for part in np.unique(known.part).tolist()}
    return WindowKeys([f"{part} {row - first[part]}" for row, part in enumerate(known.part.tolist())])


class Given(NamedTuple):
    """What a label store said when it was read."""

    hand: dict[int, str]  # labels given by hand, by row
    lost: list[Key]  # keys that are on no window
    all: NDArray[np.str_]  # (N,) the label of every window, given by hand or else the file's; "" where there is none
    names: list[str]  # every label in the order of its number key, as the store keeps it; then the file's
    ranges: dict[Range, str]  # every key with times in seconds, the oldest first
    can_undo: bool  # whether there is anything to take back


@final
class HandLabels:
    """The labels of all windows; the store is read anew when it has changed, for other processes may write to it.

    Colours are numbered in the order in which names are first seen here; number keys by the order that the store keeps.
    """

    def __init__(self, store: Path, known: Vectors, *, read_only: bool = False) -> None:
        self.store, self._read_only = store, read_only
        self._keys = window_keys(known)
        given = np.full(len(known), "") if known.label is None else known.label
        self._file = np.where(labelled(given), as_text(given), "")  # (N,) "": nothing
        self._in_file = _in_order(set(self._file.tolist()) - {""})
        self._names: list[str] = []
        self._file_codes: NDArray[np.int32] | None = None
        self._lock = Lock()
        self._read: tuple[Any, Given] | None = None  # with what the file looked like before

    def given(self) -> Given:
        """Return all labels as they are now."""
        looks, now = self._looks(), time.time_ns()
        if self._read is not None and self._read[0] == looks:
            return self._read[1]
        current: dict[Key, Label] = {}
        kept: list[Label] = []
        can_undo = False
        if self.store.exists():
            with LabelStore(self.store, read_only=self._read_only) as store:
                current, kept, can_undo = store.current(), store.names(), store.can_undo()
        rows, lost = self._keys.rows_of(current)
        hand = {row: as_text(label) for row, label in rows.items()}
        names = dict.fromkeys([*map(as_text, kept), *self._in_file])
        ranges = {
            (key[0], float(key[1]), float(key[2])): as_text(label)
            for key, label in current.items()
            if not isinstance(key, str) and not isinstance(key[1], str)
        }
        given = Given(hand, lost, _over(self._file, hand), list(names), ranges, can_undo)
        # A file may change twice within one tick of its clock: what changed just now is read again the next time.
        if all(now - changed > TICK for changed, *_ in looks):
            self._read = looks, given
        return given

    def by_hand(self) -> NDArray[np.str_]:
        """Return the labels (N,) that were given by hand, "" where there is none."""
        return _over(np.full(len(self._file), ""), self.given().hand)

    def confirmed(self) -> set[int]:
        """Return the rows whose label somebody has looked at again and called right."""
        if not self.store.exists():
            return set()
        with LabelStore(self.store) as kept:
            last = {change.key: change for change in kept.history()}
        right = {key: change.new for key, change in last.items() if change.new is not None and change.by == CONFIRMED}
        return set(self._keys.rows_of(right)[0])

    def to_learn_from(self) -> NDArray[np.str_]:
        """Return the labels (N,) that a classifier may use.

        Where the file knows the label of every window, those given by hand alone: all else is there to compare with.
        """
        return self.by_hand() if (self._file != "").all() else self.given().all

    def codes(self, labels: Iterable[str]) -> NDArray[np.int32]:
        """Return the numbers of names of labels, -1 for none."""
        with self._lock:
            values, inverse = np.unique(np.array(list(labels), dtype=str), return_inverse=True)
            seen = [*self.given().names, *_in_order(set(values.tolist()) - {""})]
            self._names = list(dict.fromkeys([*self._names, *seen]))
            numbers = {"": -1} | {name: number for number, name in enumerate(self._names)}
            return np.array([numbers[name] for name in values.tolist()], np.int32)[inverse]

    def current_codes(self) -> NDArray[np.int32]:
        """Return the number of every window's label (N,), -1 for none; of the file's they are looked up once."""
        if self._file_codes is None:
            self._file_codes = self.codes(self._file)
        out, hand = self._file_codes.copy(), self.given().hand
        out[list(hand)] = self.codes(hand.values())
        return out

    def names(self) -> list[str]:
        """Return every name that was seen, by the number of its colour."""
        self.codes([])
        return list(self._names)

    def set(self, rows: Sequence[int], label: str | None, by: str = BY) -> None:
        """Give windows a label, or take the labels that were given by hand away."""
        name = _checked(label)
        if name is None and not self.store.exists():
            return
        with LabelStore(self.store) as kept, kept.editing():
            now = kept.current()
            keys = self._keys.keys_of(rows, now)
            if name is not None:
                kept.add_names(self._in_file)  # the keys that the page shows stay theirs, whatever the file knows later
                kept.set(keys, _as_stored(name, now.values()), by)
            elif given := [key for key in keys if key in now]:
                kept.remove(given, BY)
            elif any(row in self._keys.rows_of(now)[0] for row in rows):
                raise InputError("The label is that of a range over the window. Take it away there: press o.")

    def change(self, ranges: Mapping[Range, str | None], seen: Mapping[Range, str | None]) -> None:
        """Give ranges of recordings their labels, or take them away with None: one undo takes all of it back.

        `seen` has the label of each range as it was before, None for a range that was not there. Where somebody else
        changed one of them in the meantime, nothing is changed.
        """
        names = {place: _checked(label) for place, label in ranges.items()}
        with LabelStore(self.store) as kept, kept.editing():
            current = kept.current()
            for place, name in names.items():
                there = as_text(current[place]) if place in current else None
                # Where two people say the same of one place, the second has nothing to be asked about.
                if there != seen[place] and (there is None or there != name):
                    raise _changed_meanwhile(place, there)
            kept.add_names(self._in_file)
            labels: dict[Key, Label | None] = {}
            for place, name in names.items():
                labels[place] = None if name is None else _as_stored(name, current.values())
            kept.change(labels, BY)

    def exported(self, form: str, begun: Mapping[str, float]) -> str:
        """Return all labels as a table ("csv") or as tasks of Label Studio ("json")."""
        if not self.store.exists():
            raise InputError("There is nothing to export: label some ranges or windows first.")
        with LabelStore(self.store) as kept:
            return kept.to_csv(begun) if form == "csv" else kept.to_json(begun)

    def undo(self) -> list[int]:
        """Take back what was labelled last, whoever did it, and return the rows that changed."""
        if not self.store.exists():
            return []
        with LabelStore(self.store) as kept:
            changed = kept.undo(1, BY)
        return sorted(self._keys.rows_of(dict.fromkeys(changed, ""))[0])

    def _looks(self) -> tuple[tuple[int, ...], ...]:
        """Return what changes with the store: it writes to a log beside it first."""
        looks = []
        for file in (self.store, self.store.with_name(f"{self.store.name}-wal")):
            with suppress(FileNotFoundError):  # the log goes when nobody writes
                one = file.stat()
                looks.append((one.st_mtime_ns, one.st_size, one.st_ino))
        return tuple(looks)


def _changed_meanwhile(place: Range, label: str | None) -> ChangedMeanwhileError:
    recording, start, end = place
    now = "has no label any more" if label is None else f"is labelled {quoted(label)} now"
    return ChangedMeanwhileError(
        f"Somebody else was faster: {recording} from {start:.10g} to {end:.10g} s {now}. Nothing was changed; the page "
        "shows what is there."
    )


def _checked(label: str | None) -> str | None:
    name = None if label is None else label.strip()
    if name is not None and (not name or len(name) > LONGEST or not name.isprintable() or name == "-1"):
        raise InputError(f"A label is 1 to {LONGEST} characters of text, and not -1; got {quoted(name)}.")
    return name


def _over(labels: NDArray[np.str_], hand: dict[int, str]) -> NDArray[np.str_]:
    """Return labels with those given by hand in place of their own."""
    out = labels.astype(object)
    out[list(hand)] = list(hand.values())
    return out.astype(str)


def _in_order(names: set[str]) -> list[str]:
    """Sort names, numbers among them by size."""
    return sorted(names, key=lambda name: (0, float(name), name) if is_number(name) else (1, 0.0, name))


def _as_stored(name: str, labels: Iterable[Label]) -> Label:
    """Return a label as the store has it: one whose labels are numbers must not get text beside them."""
    same = {as_text(label): label for label in labels}
    if name in same or not same or any(isinstance(label, str) for label in same.values()):
        return same.get(name, name)
    if not is_number(name):
        raise InputError(f"The labels of this store are numbers; got {name!r}. Give a number.")
    return int(name) if name.lstrip("+-").isdigit() else float(name)  # a float rounds long ones
