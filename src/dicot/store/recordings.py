"""Recordings embedded into a file of vectors: file by file, killed it goes on, and later only what is new.

What is finished lies beside the output in a hidden store, a unit for every file of recordings. It is removed when the
output is in place. A run that is started again with the same recordings, options and model takes up what it finds
there, and the output has the bytes of a run that was left alone. A second run at the same time is refused.
"""

import shutil
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dicot.core.errors import DicotWarning, InputError, listed
from dicot.core.progress import Bar
from dicot.core.storage import remove_leftovers
from dicot.core.storage.locks import only_writer
from dicot.data import Windows
from dicot.data.cases import Array, blocks
from dicot.data.cutting import LeftOut, no_window
from dicot.data.labels import join_column
from dicot.data.readers import file_name_of, refuse_mistaken
from dicot.data.reading import Reading, Source
from dicot.data.stream import RecordingStream, facts_of, is_as_before, windows_hash
from dicot.store.folder import (
    VECTORS,
    Shard,
    Store,
    UnfinishedStore,
    finish_unit,
    known_of,
    write_manifest,
    write_shard,
)
from dicot.store.made_of import MadeOf
from dicot.store.vectors import (
    COLUMNS,
    RowFile,
    Vectors,
    check_vector_file,
    read_vectors,
    row_files,
    write_vectors,
)

AGAIN = "Write another file, or leave out --append to write this one anew."
Facts = dict[str, dict[str, Any]]  # by the name of a file of recordings
Place = tuple[str, float, float]  # recording, start and end of a window


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
    out : the .parquet or .npz to write
    data : a folder, a pattern, a file or a list of these
    options : how recordings become windows, fields of Reading: window, stride, channels and so on
    append : keep the vectors that the file has and embed only windows that are not among them
    """
    check_vector_file(out)
    with only_writer(out), row_files(out) as make:
        remove_leftovers(out)
        old = read_vectors(out, make=make) if append and out.exists() else None
        return _run(embed, model, out, data, Reading(**options), old, make)


def _run(
    embed: Callable[[Windows], Array],
    model: str,
    out: Path,
    data: Source,
    reading: Reading,
    old: Vectors | None,
    make: Callable[[int, int], RowFile],
) -> EmbeddingRun:
    """Embed what is not among the `old` vectors, and write all of them."""
    held = None if old is None else _held(out, old, reading, model)
    before: Facts = {} if held is None else held.recordings
    facts: Facts = {}
    with Bar("read", 100) as bar:
        stream = RecordingStream(
            data,
            reading,
            only=lambda named: _new_files(out, before, named, facts),
            known=None if held is None else (held.channels or (), held.rate),
            on_file=lambda done, total: bar.update(100 * done // total, f"% of {total} files"),
        )
    cut, given = stream.cut, [data] if isinstance(data, str | Path) else data
    places = tuple(str(Path(one).expanduser().absolute()) for one in given)
    now = {name: facts[name] for name in stream.files}
    made = MadeOf("recordings", places, reading.to_dict(), model, cut.channels, cut.rate, cut.length, cut.stride, now)
    known: set[Place] = set()
    if old is not None and held is not None:
        known = _places_of_grown(old, stream.files.keys() & before.keys(), before)
        _refuse_to_append(out, held, made, old, stream, known)
        both = tuple(dict.fromkeys([*held.data, *places]))
        made = replace(made, data=both, recordings=before | now)
    plan = {"source": made.to_dict(), "base": out.stat().st_mtime_ns if old is not None else None}
    work = UnfinishedStore(out.parent / f".{out.name}.parts", plan, overwrite=True)
    units = {name: f"{number:06d}" for number, name in enumerate(stream.files)}
    continued = len(units) if work.finished else sum(work.note(unit) is not None for unit in units.values())
    store = work.finished or _embedded(embed, work, units, stream, known, plan)
    there, added = 0 if old is None else len(old), 0 if store is None else len(store)
    if not there and not added:
        shutil.rmtree(work.folder)
        raise no_window(cut.length, max(stream.lengths.values()))
    columns = {} if old is None else old.columns()
    if store is not None:
        columns = _write(out, old, store, make, made, stream)
    shutil.rmtree(work.folder)
    n_features = store.shape[1] if store is not None else old.x.shape[1]  # type: ignore[union-attr]
    n_recordings = len(np.unique(columns["recording"]))
    return EmbeddingRun(added, there, n_features, n_recordings, len(units), continued, cut.channels, cut.rate)


def _embedded(
    embed: Callable[[Windows], Array],
    work: UnfinishedStore,
    units: Mapping[str, str],
    stream: RecordingStream,
    known: set[Place],
    plan: Mapping[str, Any],
) -> Store | None:
    """Embed the windows of all files that are not `known`; None where there are none."""
    with Bar("embed", len(units)) as bar:
        for done, (name, unit) in enumerate(units.items()):
            bar.update(done, name)
            if work.note(unit) is None:
                windows = stream.windows(name)
                new = _chosen(windows, known, False)
                note: dict[str, Any] = {"windows": windows_hash(windows), "left": list(stream.left[name])}
                shards = []
                if new is not None:
                    vectors = embed(new)
                    shards.append(write_shard(work.folder, f"{unit}-000", vectors, known_of(new)))
                    note["features"] = vectors.shape[1]
                finish_unit(work.folder, unit, shards, note)
    notes = {name: work.note(unit) or {} for name, unit in units.items()}
    shards = [Shard(**one) for note in notes.values() for one in note["shards"]]
    if not shards:
        return None
    widths = {note["features"] for note in notes.values() if note["shards"]}
    return write_manifest(work.folder, VECTORS, [*widths], shards, {"plan": plan, "notes": notes})


def _write(
    out: Path,
    old: Vectors | None,
    store: Store,
    make: Callable[[int, int], RowFile],
    made: MadeOf,
    stream: RecordingStream,
) -> dict[str, Array]:
    """Join what the file has and what is new into the output, and return what is known of all vectors."""
    parts = [*([] if old is None else [old.x]), *store.maps()]
    abouts = [*([] if old is None else [old.columns()]), store.columns()]
    counts = [*([] if old is None else [len(old)]), len(store)]
    joined = {name: join_column([about.get(name) for about in abouts], counts) for name in COLUMNS}
    columns = {name: values for name, values in joined.items() if values is not None}
    rows, at = make(sum(counts), store.shape[1]), 0
    for part in parts:
        for piece, block in blocks(part):
            rows[slice(at + piece.start, at + piece.stop)] = block
        at += len(part)
    left, facts = LeftOut(), dict(made.recordings)
    for name, note in store.about["notes"].items():
        facts[name] = {**facts[name], "windows": note["windows"]}
        left = left.plus(note["left"])
    stream.warn(columns["recording"], columns["start"], columns["end"], left)
    arrays = {COLUMNS[name]: values for name, values in columns.items()}
    write_vectors(out, {"": {"X": rows.read(), **arrays}}, replace(made, recordings=facts))
    return columns


def _held(out: Path, old: Vectors, reading: Reading, model: str) -> MadeOf:
    """Return what the file that is appended to was made of; refuse another model or other options."""
    held = None if old.source is None else MadeOf.from_dict(old.source, str(out))
    if held is None or held.kind != "recordings":
        raise InputError(f"{out} does not say which recordings it was made of. {AGAIN}")
    if not all(entry.get("sha256") for entry in held.recordings.values()):
        raise InputError(f"{out} does not say what its recordings held, so nobody can tell what is new. {AGAIN}")
    if held.model != model:
        raise InputError(f"{out} was made by the model {held.model[:12]}, and this one is {model[:12]}. {AGAIN}")
    was, now = Reading.from_dict(held.options).to_dict(), reading.to_dict()
    for key in sorted((was.keys() | now.keys()) - {"window", "stride"}):  # these two are compared in time steps
        if was.get(key) != now.get(key):
            raise InputError(f"{out} was made with {key}={was.get(key)}; now {key}={now.get(key)}. {AGAIN}")
    return held


def _new_files(out: Path, before: Facts, named: Mapping[str, Path], facts: Facts) -> dict[str, Path]:
    """Return the files that are new or have changed, and put what they hold into `facts`.

    What a file holds decides, not its name alone: one that was embedded under another name is not embedded again.
    """
    by_file = {entry["file"]: name for name, entry in before.items()}
    by_hash = {entry["sha256"]: name for name, entry in before.items()}
    new: dict[str, Path] = {}
    renamed: list[str] = []
    for name, file in named.items():
        entry, old = before.get(name), by_file.get(str(file.resolve()))
        if old == name and is_as_before(file, before[name]):
            continue
        facts[name] = facts_of(file)
        if entry is None and old is not None and before[old]["sha256"] != facts[name]["sha256"]:
            raise InputError(
                f"{out} has {file} as {old!r}. Below what was named now it is {name!r}, and it has changed since. "
                f"Name the folder that was named then. {AGAIN}"
            )
        if entry is None and old is None:
            old = by_hash.get(facts[name]["sha256"])
            old = None if old in named else old  # a copy beside it is a recording of its own
        if entry is None and old is not None:
            renamed.append(f"{name} (there as {old})")
        elif entry is None or entry["sha256"] != facts[name]["sha256"]:
            new[name] = file
    if renamed:
        warnings.warn(
            f"{out} has the windows of {listed(renamed)} under another name, which they keep. Leave out --append to "
            "have all recordings named by their paths below what was named.",
            DicotWarning,
            stacklevel=7,
        )
    return new


def _refuse_to_append(
    out: Path, held: MadeOf, made: MadeOf, old: Vectors, stream: RecordingStream, known: set[Place]
) -> None:
    """Refuse other windows, names that two files would share, and recordings that have changed and not only grown."""
    before = held.recordings
    for option, was, now in (("window", held.n_times, made.n_times), ("stride", held.stride, made.stride)):
        if was != now:
            raise InputError(
                f"{out} was made with --{option} {held.options.get(option)}, {was} time steps; now --{option} "
                f"{made.options[option]} are {now}. {AGAIN}"
            )
    for name in before.keys() & stream.files.keys():
        if before[name]["file"] != made.recordings[name]["file"]:
            raise InputError(
                f"{out} has a recording {name!r} of the file {before[name]['file']}; {stream.files[name]} has the same "
                "name. Rename the new one, or write another file."
            )
        there = _chosen(stream.windows(name), known, True)
        if windows_hash(there) != before[name].get("windows"):
            raise InputError(
                f"{stream.files[name]} has changed since {out} was made of it: windows that were embedded are gone, "
                f"or have other values, labels or groups. Put the former file back. {AGAIN}"
            )
    files = {**{name: entry["file"] for name, entry in before.items()}, **stream.files}
    for recordings, own in ((np.unique(old.places()[0]).tolist(), before), (stream.lengths, stream.files)):
        for one in recordings:
            if (found := file_name_of(one, own)) is not None:
                refuse_mistaken([one], found, files)


def _places_of_grown(old: Vectors, grown: set[str], before: Facts) -> set[Place]:
    """Return the windows that a file has of recordings that have changed since."""
    if not grown:
        return set()
    places = zip(*(values.tolist() for values in old.places()), strict=True)
    return {place for place in places if file_name_of(place[0], before) in grown}


def _chosen(windows: Windows | None, known: set[Place], wanted: bool) -> Windows | None:
    """Return the windows that are known, or those that are not; None where there is none."""
    if windows is None or not (known or wanted):
        return windows
    assert windows.recording is not None and windows.start is not None and windows.end is not None
    places = zip(windows.recording.tolist(), windows.start.tolist(), windows.end.tolist(), strict=True)
    taken = np.array([(place in known) == wanted for place in places])
    return windows.subset(taken) if taken.any() else None
