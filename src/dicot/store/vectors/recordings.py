"""Recordings embedded into a file of vectors: file by file, killed it goes on, and later only what is new.

What is finished lies beside the output in a hidden folder: plan.json says what it belongs to, and every file of
recordings has an .npz there, written whole or not at all. The folder is removed when the output is in place. An
interrupted run that is started again with the same recordings, options and model takes up what it finds there, and
the output has the bytes of a run that was left alone. Two runs at once would take each other's parts for their own, so
the second is refused.
"""

import json
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from dicot.core.errors import DicotWarning, InputError, NoWindowError
from dicot.core.progress import Bar
from dicot.core.storage import atomic_file, remove_leftovers, write_atomic, writing
from dicot.core.storage.locks import only_writer
from dicot.data import Windows
from dicot.data.columns import join_column
from dicot.data.contents import are_facts, facts_of, is_as_before, windows_hash
from dicot.data.cutting import LeftOut, without_noise
from dicot.data.folders import RecordingStream, file_name_of, refuse_mistaken
from dicot.data.naming import listed, naming
from dicot.data.npyfile import load_npz
from dicot.data.pieces import pieces, release
from dicot.data.policies import Array
from dicot.data.reading import Reading, Source
from dicot.data.texts import plain_values
from dicot.store.vectors.layout import COLUMNS, KEEP_SOURCE
from dicot.store.vectors.reading import Vectors, read_vectors
from dicot.store.vectors.writing import (
    ABOUT,
    RowFile,
    check_vector_file,
    row_files,
    source_of_recordings,
    write_vectors,
)

PLAN = "plan.json"
HASH = "hash"  # of all windows of a file of recordings, beside those in its part that are new
LEFT = "left"  # how many of its time steps lie in no window
USUAL = {"stride": "50%"}  # of options that are not given
AGAIN = "Write another file, or leave out --append to write this one anew."
Places = dict[tuple[str, float, float], tuple[float, float]]  # recording, start, end -> start, end as they are written


class EmbeddingRun(NamedTuple):
    """What a run did."""

    added: int  # vectors
    there: int  # vectors that the file had before
    n_features: int
    recordings: int  # that have a window in the file
    files: int  # that were new
    continued: int  # files that an interrupted run had finished
    channels: tuple[str, ...]
    rate: float | None


def embed_recordings(
    embed: Callable[[Windows], Array],
    model: str,
    out: Path,
    data: Source,
    options: Mapping[str, Any],
    *,
    append: bool = False,
) -> EmbeddingRun:
    """Cut recordings into windows, embed them and write vectors that know their place.

    Parameters
    ----------
    embed : windows -> vectors (N, F)
    model : the hash of the model that `embed` is of
    out : the file to write, of a kind that `write_vectors` knows
    data : a folder, a pattern, a file or a list of these
    options : fields of a Reading: window, stride, channels and so on
    append : keep the vectors that the file has and embed only windows that are not among them
    """
    check_vector_file(out)
    if append and out.suffix not in KEEP_SOURCE:
        raise InputError(f"{out} cannot be appended to: only {' and '.join(KEEP_SOURCE)} say what they were made of.")
    with only_writer(out), row_files(out) as make:
        remove_leftovers(out)
        old = read_vectors(out, make=make) if append and out.exists() else None
        return _run(embed, model, out, data, {**USUAL, **options}, old, make)


def _run(
    embed: Callable[[Windows], Array],
    model: str,
    out: Path,
    data: Source,
    options: Mapping[str, Any],
    old: Vectors | None,
    make: Callable[[int, int], RowFile],
) -> EmbeddingRun:
    """Embed what is not among the `old` vectors, and write all of them."""
    held = None if old is None else _held(out, old.source, options, model)
    before = {} if held is None else held["recordings"]
    facts: dict[str, dict[str, Any]] = {}
    with Bar("read", 100) as bar:
        stream = RecordingStream(
            data,
            Reading.from_dict(options),
            only=lambda named: _new_files(out, before, named, facts),
            known=None if held is None else (tuple(held["channels"]), held["rate"]),
            on_file=lambda done, total: bar.update(100 * done // total, f"% of {total} files"),
        )
    source = _source(stream, data, options, model, held, {name: facts[name] for name in stream.files})
    known: Places = {}
    if old is not None and held is not None:
        _refuse_other_windows(out, held, source)
        _refuse_same_names(out, before, source["recordings"])
        _refuse_taken_names(before, np.unique(old.places()[0]).tolist(), stream)
        known = _places(old, stream.files.keys() & before.keys(), before.keys(), held["rate"])
        _refuse_changed(out, before, stream, known)
        _warn_of_sizes(out, before)
    parts = _FinishedParts(out, old is not None, source, list(stream.files))
    with Bar("embed", len(stream.files)) as bar:
        for done, name in enumerate(stream.files):
            bar.update(done, name)
            if not parts.has(name):
                windows = stream.windows(name)
                arrays = _embedded(embed, _known_or_not(windows, known, False))
                about = {HASH: np.array(windows_hash(windows)), LEFT: np.array(stream.left[name])}
                parts.write(name, arrays | about)
    result = _write(out, parts, old, make, source, stream)
    parts.remove()
    return result


def _held(out: Path, source: dict[str, Any] | None, options: Mapping[str, Any], model: str) -> dict[str, Any]:
    """Return the source of the file that is appended to; refuse one of another model or of other windows."""
    if source is None or source.get("kind") != "recordings":
        raise InputError(f"{out} does not say which recordings it was made of. {AGAIN}")
    wrong = [key for key in ("options", "recordings") if not isinstance(source.get(key), dict)]
    for key in ("channels", "data"):
        names = source.get(key)
        wrong += [] if isinstance(names, list) and all(isinstance(name, str) for name in names) else [key]
    wrong += [key for key in ("n_times", "stride") if not isinstance(source.get(key), int)]
    if not wrong:
        wrong = [name for name, entry in source["recordings"].items() if not are_facts(entry)]
    if wrong or not isinstance(source.get("rate", ""), float | int | None) or not isinstance(source.get("model"), str):
        raise InputError(f"{out} is damaged: what it says about its recordings cannot be used. {AGAIN}")
    if source["model"] != model:
        raise InputError(f"{out} was made by the model {source['model'][:12]}, and this one is {model[:12]}. {AGAIN}")
    was = source["options"]
    for key in sorted((was.keys() | options.keys()) - {"window", "stride"}):  # these two are compared in time steps
        if was.get(key) != options.get(key):
            raise InputError(
                f"{out} was made with {_said(key, was.get(key))}; now {_said(key, options.get(key))}. {AGAIN}"
            )
    return source


def _said(key: str, value: Any) -> str:
    shown = ",".join(value) if isinstance(value, list) else value
    return f"no --{key}" if value in (None, False) else f"--{key} {shown}"


def _source(
    stream: RecordingStream,
    data: Source,
    options: Mapping[str, Any],
    model: str,
    held: Mapping[str, Any] | None,
    facts: Mapping[str, dict[str, Any]],
) -> dict[str, Any]:
    """Say what the file will hold, what it has already before what is new."""
    cut = stream.cut
    source = source_of_recordings(data, options, facts, cut.channels, cut.rate, cut.length, cut.stride, model)
    if held is not None:
        source["data"] = list(dict.fromkeys([*held["data"], *source["data"]]))
        source["recordings"] = held["recordings"] | source["recordings"]
    return source


def _refuse_other_windows(out: Path, held: Mapping[str, Any], source: Mapping[str, Any]) -> None:
    for key, option in (("n_times", "window"), ("stride", "stride")):
        if held[key] != source[key]:
            raise InputError(
                f"{out} was made with --{option} {held['options'].get(option)}, {held[key]} time steps; now "
                f"--{option} {source['options'][option]} are {source[key]}. {AGAIN}"
            )


def _new_files(
    out: Path, before: Mapping[str, Any], named: Mapping[str, Path], facts: dict[str, dict[str, Any]]
) -> dict[str, Path]:
    """Return the files that are new or have changed, and put what they hold into `facts`.

    What a file holds decides, not its name alone: one that was embedded under another name is not embedded again.
    """
    by_file: dict[str, str] = {}
    for name, entry in before.items():
        if (other := by_file.setdefault(entry["file"], name)) != name:
            raise InputError(f"{out} has the windows of {entry['file']} twice, as {other!r} and as {name!r}. {AGAIN}")
    by_hash = {entry["sha256"]: name for name, entry in before.items() if entry.get("sha256")}
    new: dict[str, Path] = {}
    renamed: list[str] = []
    for name, file in named.items():
        entry, old = before.get(name), by_file.get(str(file.resolve()))
        if old == name and is_as_before(file, before[name]):
            continue
        facts[name] = facts_of(file)
        if entry is None and old is not None and not is_as_before(file, before[old]):
            raise InputError(
                f"{out} has {file} as {old!r}. Below what was named now it is {name!r}, and it has changed since. "
                f"Name the folder that was named then. {AGAIN}"
            )
        if entry is None and old is None:
            old = by_hash.get(facts[name]["sha256"])
            old = None if old in named else old  # a copy beside it is a recording of its own
        if entry is None and old is not None:
            renamed.append(f"{name} (there as {old})")
        elif entry is None or entry.get("sha256") != facts[name]["sha256"]:
            new[name] = file
    if renamed:
        warnings.warn(
            f"{out} has the windows of {listed(renamed)} under another name, which they keep. Leave out --append to "
            "have all recordings named by their paths below what was named.",
            DicotWarning,
            stacklevel=7,
        )
    return new


def _refuse_taken_names(before: Mapping[str, Any], old: Sequence[str], stream: RecordingStream) -> None:
    """Refuse recordings, old or new, that would be taken for those of another file."""
    files = {**{name: entry["file"] for name, entry in before.items()}, **stream.files}
    for recordings, own in ((old, before), (stream.lengths, stream.files)):
        for one in recordings:
            if (name := file_name_of(one, own)) is not None:
                refuse_mistaken([one], name, files)


def _refuse_same_names(out: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for name in before.keys() & now.keys():
        if before[name]["file"] != now[name]["file"]:
            raise InputError(
                f"{out} has a recording {name!r} of the file {before[name]['file']}; {now[name]['file']} has the same "
                "name. Rename the new one, or write another file."
            )


def _refuse_changed(out: Path, before: Mapping[str, Any], stream: RecordingStream, known: Places) -> None:
    """Refuse files that do not hold the windows any more that were embedded; those that have only grown do."""
    for name in (name for name in stream.files if before.get(name, {}).get("sha256") is not None):
        there = _known_or_not(stream.windows(name), known, True)
        if before[name].get("windows") not in (windows_hash(there), windows_hash(_as_written(there, known))):
            raise InputError(
                f"{stream.files[name]} has changed since {out} was made of it: windows that were embedded are gone, "
                f"or have other values, labels or groups. Put the former file back. {AGAIN}"
            )


def _warn_of_sizes(out: Path, before: Mapping[str, Any]) -> None:
    if unknown := [name for name, entry in before.items() if entry.get("sha256") is None]:
        warnings.warn(
            f"{out} was written by an older version, which kept of recordings only the size: whether {listed(unknown)} "
            "have changed is told by that alone. Leave out --append once to have it told by their content.",
            DicotWarning,
            stacklevel=4,
        )


def _places(old: Vectors, grown: Set[str], names: Set[str], rate: float | None) -> Places:
    """Return the windows that a file has of recordings that have grown since."""
    if not grown:
        return {}
    recording, start, end = old.places()
    own = [file_name_of(name, names) in grown for name in recording.tolist()]
    written = zip(start[own].tolist(), end[own].tolist(), strict=True)
    times = [without_noise(one[own], rate).tolist() for one in (start, end)]
    return dict(zip(zip(recording[own].tolist(), *times, strict=True), written, strict=True))


def _as_written(windows: Windows | None, known: Places) -> Windows | None:
    """Return windows with the times that a file has of them: older versions did not round these."""
    if windows is None:
        return None
    places = zip(windows.recording.tolist(), windows.start.tolist(), windows.end.tolist(), strict=True)  # type: ignore[union-attr]
    start, end = np.array([known[place] for place in places]).T
    return replace(windows, start=start, end=end)


def _known_or_not(windows: Windows | None, known: Places, wanted: bool) -> Windows | None:
    """Return the windows that are known, or those that are not; None where there is none."""
    if windows is None or not (known or wanted):
        return windows
    assert windows.recording is not None and windows.start is not None and windows.end is not None
    places = zip(windows.recording.tolist(), windows.start.tolist(), windows.end.tolist(), strict=True)
    taken = np.array([(place in known) == wanted for place in places])
    return windows.subset(taken) if taken.any() else None


def _embedded(embed: Callable[[Windows], Array], windows: Windows | None) -> dict[str, Array]:
    """Return the vectors of windows and what is known of them; nothing where there are none."""
    if windows is None:
        return {}
    about = {key: getattr(windows, key) for key in ABOUT}
    return {"X": embed(windows), **{key: values for key, values in about.items() if values is not None}}


@final
class _FinishedParts:
    """The finished parts of a run, one for each file of recordings."""

    def __init__(self, out: Path, append: bool, source: Mapping[str, Any], names: Sequence[str]) -> None:
        self.folder = out.parent / f".{out.name}.parts"
        self.paths = {name: self.folder / f"{number:06d}.npz" for number, name in enumerate(names)}
        base = out.stat().st_mtime_ns if append and out.exists() else None
        self._plan = json.dumps({"source": source, "base": base}, sort_keys=True).encode()
        plan = self.folder / PLAN
        if self.folder.exists() and not (plan.is_file() and plan.read_bytes() == self._plan):
            self.remove()  # of another run, or cut off before its plan
        self.found = sum(map(self.has, names))

    def has(self, name: str) -> bool:
        """Tell whether the part of this file is finished."""
        return self.paths[name].is_file()

    def write(self, name: str, arrays: Mapping[str, Array]) -> None:
        """Keep the part of a file."""
        if not (self.folder / PLAN).exists():
            write_atomic(self.folder / PLAN, self._plan)
        content: dict[str, Any] = dict(arrays)
        with atomic_file(self.paths[name]) as file:
            np.savez(file, **content)

    def read(self, keys: Sequence[str]) -> Iterator[dict[str, Array]]:
        """Yield these arrays of every part that has any, one part after the other."""
        for path in self.paths.values():
            with naming(path):
                arrays = load_npz(path, keys)
            if arrays:
                yield arrays

    def facts(self) -> tuple[dict[str, str], LeftOut]:
        """Return the hash of all windows of every file, and how many time steps of all lie in no window."""
        out, left = {}, LeftOut()
        for name, path in self.paths.items():
            with naming(path):
                held = load_npz(path, [HASH, LEFT])
                if held.keys() != {HASH, LEFT}:
                    raise InputError(f"the part is damaged. Remove {self.folder}, and run the same command again.")
                out[name], left = str(held[HASH]), left.plus(held[LEFT].tolist())
        return out, left

    def remove(self) -> None:
        """Remove all parts."""
        with writing(self.folder):
            if self.folder.exists():
                shutil.rmtree(self.folder)


def _write(
    out: Path,
    parts: _FinishedParts,
    old: Vectors | None,
    make: Callable[[int, int], RowFile],
    source: Mapping[str, Any],
    stream: RecordingStream,
) -> EmbeddingRun:
    """Join what the file has and all parts into the output; without anything new it stays as it is."""
    there = 0 if old is None else len(old)
    about = list(parts.read(ABOUT))
    added = sum(len(part["start"]) for part in about)
    if not there and not added:
        parts.remove()
        raise NoWindowError(
            f"No recording is as long as a window of {stream.cut.length} time steps; the longest stretch "
            f"without a gap has {max(stream.lengths.values())}. Use a smaller window= (--window)."
        )
    held = [] if old is None else [{COLUMNS[name]: values for name, values in old.columns().items()}]
    for option, key in (("label", "y"), ("group", "group")):
        if held and source["options"].get(option) is not None and key in held[0]:
            held[0][key] = plain_values(held[0][key])  # files of older versions have 1.0 for 1
    counts = [len(part["start"]) for part in (*held, *about)]
    columns = {key: join_column([part.get(key) for part in (*held, *about)], counts) for key in ABOUT}
    width = old.x.shape[1] if old is not None else next(parts.read(["X"]))["X"].shape[1]
    channels, rate = tuple(source["channels"]), source["rate"]
    recordings = len(np.unique(columns["recording"]))  # type: ignore[arg-type]
    result = EmbeddingRun(added, there, width, recordings, len(parts.paths), parts.found, channels, rate)
    if added:
        rows, at = make(there + added, width), 0
        for block in chain([] if old is None else [old.x], (part["X"] for part in parts.read(["X"]))):
            for piece in pieces((len(block), 1, width)):
                rows[slice(at + piece.start, at + piece.stop)] = block[piece]
                release(block[piece])
            at += len(block)
        known = {key: values for key, values in columns.items() if values is not None}
        hashes, left = parts.facts()
        stream.warn(known["recording"], known["start"], known["end"], left)
        entries = {
            name: {**entry, **({"windows": hashes[name]} if name in hashes else {})}
            for name, entry in source["recordings"].items()
        }
        write_vectors(out, {"": {"X": rows.read(), **known}}, {**source, "recordings": entries})
    return result
