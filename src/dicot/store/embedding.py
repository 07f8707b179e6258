"""Vectors of recordings, in one file, and of a corpus, in a folder: unit by unit, and killed it goes on.

A unit is a file of recordings, several small files, or a shard of the corpus. What is finished lies in an unfinished
store: the folder itself, or one that is hidden beside the file and removed when that is in place. The same call with
the same source, options and model takes it up, and the bytes are those of a run that was left alone.
"""

import shutil
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from dicot.core.errors import DicotWarning, InputError, listed
from dicot.core.progress import Bar
from dicot.core.storage import only_writer
from dicot.data import Windows
from dicot.data.allowance import Allowance
from dicot.data.cases import Array, blocks
from dicot.data.coverage import Coverage, refuse_partial
from dicot.data.cutting import LeftOut, no_window
from dicot.data.devices import files_beside
from dicot.data.folders import RecordingFiles, file_name_of, files_to_read
from dicot.data.looking import Common, warn_of_bad_files
from dicot.data.reading import Reading, Source
from dicot.data.stream import RecordingStream, facts_of, is_as_before, windows_hash
from dicot.data.tags import Tag, tags_of, told_of
from dicot.store.folder import (
    VECTORS,
    Store,
    UnfinishedStore,
    finish_unit,
    join_columns,
    known_of,
    write_shard,
)
from dicot.store.vectors import (
    COLUMNS,
    MadeOf,
    RowFile,
    Vectors,
    check_out,
    other_columns,
    read_vectors,
    write_vectors,
)

AGAIN = "Write another file, or write --overwrite in place of --append to replace this one."
Facts = dict[str, dict[str, Any]]  # by the name of a file of recordings
Place = tuple[str, float, float]  # recording, start and end of a window


# Of very many small files several are one unit, because what a unit writes is forced to disk six times.
_UNITS = 32  # of small files: a run that is killed loses at most such a share of its work
_SMALL = 2**20  # bytes of the files of one unit


def _embed_unit(
    embed: Callable[[Windows], Array],
    parts: Sequence[Windows],
    folder: Path,
    unit: str,
    note: Mapping[str, Any],
) -> None:
    """Embed the windows of a unit and write their vectors, whole or not at all; without any, only the note."""
    shards = []
    if parts:
        counts = [len(part) for part in parts]
        columns = join_columns([known_of(part) for part in parts], counts)
        vectors = np.concatenate([embed(windows) for windows in _joined(parts)])
        shards.append(write_shard(folder, unit, vectors, columns))
        note = {**note, "features": vectors.shape[1]}
    finish_unit(folder, unit, shards, note)


class FittedModel(NamedTuple):
    """A model that was fitted to the recordings which it embeds."""

    embed: Callable[[Windows], Array]
    hash: str
    at: str  # the folder where it is kept


def _joined(parts: Sequence[Windows]) -> Iterator[Windows]:
    """Join windows of several files, those of one type of number that follow each other."""
    for _, run in groupby(parts, key=lambda part: part.x.dtype):
        alike = list(run)
        if len(alike) == 1:
            yield alike[0]
            continue
        columns: dict[str, Any] = {**join_columns([known_of(part) for part in alike], [len(part) for part in alike])}
        y = columns.pop("label", None)
        x = np.concatenate([part.x for part in alike])
        yield Windows(x, y, channels=alike[0].channels, rate=alike[0].rate, **columns)


def _units_of(facts: Facts) -> dict[str, tuple[str, ...]]:
    """Divide files into units, by their sizes alone: a run that goes on has the same ones."""
    at_most = max(1, len(facts) // _UNITS)
    groups: list[list[str]] = []
    n_bytes = 0
    for name, known in facts.items():
        n_bytes += known["bytes"]
        if not groups or len(groups[-1]) == at_most or n_bytes > _SMALL:
            groups.append([])
            n_bytes = known["bytes"]
        groups[-1].append(name)
    return {f"{number:06d}": tuple(names) for number, names in enumerate(groups)}


class EmbeddingRun(NamedTuple):
    """What a run over recordings did."""

    added: int  # vectors
    there: int  # vectors that the file had before
    n_features: int
    recordings: int  # that have a window in the file
    files: int  # that were new
    continued: int  # files that an interrupted run had finished
    channels: tuple[str, ...]
    rate: float | None


@dataclass(frozen=True)
class Earlier:
    """Vectors that are appended to."""

    out: Path
    vectors: Vectors
    made: MadeOf  # what they were made of

    @property
    def n_recordings(self) -> int:
        return len(np.unique(self.vectors.places()[0]))


def embed_recordings(
    embed: Callable[[Windows], Array] | None,
    model: str,
    out: Path,
    data: Source | RecordingFiles,
    options: Mapping[str, Any],
    *,
    append: bool = False,
    model_at: str = "",
    like: Common | None = None,
    more: Callable[[Array], Mapping[str, Array]] = lambda vectors: {},
    allowance: Allowance | None = None,
    fit: Callable[[RecordingStream], FittedModel] | None = None,
) -> EmbeddingRun:
    """Cut recordings into windows, embed them and write vectors that know their place.

    Parameters
    ----------
    embed : windows -> vectors (N, F), by the model whose hash is `model` and which is at `model_at`
    fit : makes these three of the recordings, where the model is fitted to them; not for what is appended
    data, options : recordings, and fields of a Reading: window, stride, channels and so on
    append : keep the vectors that the file has and embed only windows that are not among them
    like : channels and rate that recordings must have; without it, those of what is appended to, or of each other
    more : vectors (N, F) -> further columns (N,) of a .parquet
    allowance : whether files that cannot be used may be left out, and more than a fifth may lie in no window; what is
        left out is kept in it. By default both are errors. Files that are left out are not among the recordings that
        the file says it was made of
    """
    allowance = Allowance() if allowance is None else allowance
    check_out(out)
    reading = Reading(**options)
    files = RecordingFiles.of(data)
    with only_writer(out):
        earlier = _earlier(out, reading, model, more) if append and out.exists() else None
        facts_before = {} if earlier is None else earlier.made.recordings
        common = like if earlier is None else (earlier.made.channels or (), earlier.made.rate)
        facts: Facts = {}

        def new_files(named: Mapping[str, Path], tags: Mapping[str, Tag]) -> dict[str, Path]:
            facts.update(_facts_of_new_files(out, facts_before, named, told_of(tags), allowance, reading))
            return {name: named[name] for name in facts}

        with Bar("read", 100) as bar:
            stream = RecordingStream(
                files,
                reading,
                only=new_files,
                known=common,
                on_file=lambda done, total: bar.update(100 * done // total, f"% of {total} files"),
                allowance=allowance,
            )
        if fit is not None:
            chosen = fit(stream)
        else:
            assert embed is not None
            chosen = FittedModel(embed, model, model_at)

        made = _made_of(files.source, reading, chosen, stream, earlier)
        known = set() if earlier is None else _known_places(earlier, made, stream)
        made = replace(made, recordings=facts_before | {name: facts[name] for name in stream.files})
        return _Run(out, stream, made, earlier, known).finish(chosen.embed, more)


def _earlier(out: Path, reading: Reading, model: str, more: Callable[[Array], Mapping[str, Array]]) -> Earlier:
    """Return the vectors that are appended to; refuse those of another model, of other options or with more columns."""
    vectors = read_vectors(out, make=partial(RowFile, out))
    _refuse_to_drop_columns(out, more(vectors.x[:1]).keys())
    return Earlier(out, vectors, _held(out, vectors, reading, model))


def _made_of(
    source: Source, reading: Reading, model: FittedModel, stream: RecordingStream, earlier: Earlier | None
) -> MadeOf:
    """Say what the vectors are made of, but for the recordings."""
    sources = [source] if isinstance(source, str | Path) else source
    places = [str(Path(one).expanduser().absolute()) for one in sources]
    if earlier is not None:
        places = [*earlier.made.data, *places]
    cut = stream.cut
    return MadeOf(
        "recordings",
        tuple(dict.fromkeys(places)),
        reading.to_dict(),
        model.hash,
        cut.channels,
        cut.rate,
        cut.length,
        cut.stride,
        {},
        model.at,
    )


@final
@dataclass(frozen=True)
class _Run:
    """What is left to do once all recordings were looked at: cut, embed and write."""

    out: Path
    stream: RecordingStream
    made: MadeOf
    earlier: Earlier | None
    known: set[Place]  # windows of recordings that have grown, which have vectors

    def finish(self, embed: Callable[[Windows], Array], more: Callable[[Array], Mapping[str, Array]]) -> EmbeddingRun:
        """Embed what is new and write it behind the vectors that are there."""
        stream, earlier = self.stream, self.earlier
        self._refuse_what_cutting_cannot_mend()
        base = None if earlier is None else self.out.stat().st_mtime_ns
        plan = {"source": self.made.to_dict(), "base": base}
        work = UnfinishedStore(self.out.parent / f".{self.out.name}.parts", plan, overwrite=True)
        units = _units_of({name: self.made.recordings[name] for name in stream.files})
        finished = [unit for unit in units if work.finished is not None or work.note(unit) is not None]
        n_continued = sum(len(units[unit]) for unit in finished)

        new = work.finished or _embed_new(embed, work, units, stream, self.known)
        stores = [store for store in (None if earlier is None else earlier.vectors, new) if store is not None]
        if not stores:
            shutil.rmtree(work.folder)
            raise no_window(stream.cut.length, max(stream.lengths.values(), default=0))
        columns = join_columns([store.columns() for store in stores], [len(store) for store in stores])
        n_features = _parts_of(stores[-1])[-1].shape[1]
        if new is None:
            stream.warn_of_short(columns)
        else:
            self._write(new, columns, more)
        shutil.rmtree(work.folder)
        return EmbeddingRun(
            added=0 if new is None else len(new),
            there=0 if earlier is None else len(earlier.vectors),
            n_features=n_features,
            recordings=len(np.unique(columns["recording"])),
            files=len(stream.files),
            continued=n_continued,
            channels=stream.cut.channels,
            rate=stream.cut.rate,
        )

    def _refuse_what_cutting_cannot_mend(self) -> None:
        """Refuse recordings too many of which are certainly too short, before any work is done."""
        coverage = self.stream.coverage_before_cutting()
        some_window_is_possible = len(coverage.reasons) < len(coverage.longest)
        if some_window_is_possible and not self.stream.allowance.partial:
            self._refuse_partial(coverage)

    def _refuse_partial(self, coverage: Coverage) -> None:
        cut, allowance, earlier = self.stream.cut, self.stream.allowance, self.earlier
        if earlier is None:
            refuse_partial(coverage, cut, allowance)
            return
        n_rows = len(earlier.vectors) * cut.stride
        refuse_partial(coverage, cut, allowance, recordings_before=earlier.n_recordings, rows_before=n_rows)

    def _write(self, new: Store, columns: Mapping[str, Array], more: Callable[[Array], Mapping[str, Array]]) -> None:
        """Write the vectors that are there and the new ones, with what was noted of the new files."""
        notes: Facts = new.about["notes"]
        facts = dict(self.made.recordings)
        left = LeftOut()
        for name, note in notes.items():
            facts[name] = {**facts[name], "windows": note["windows"]}
            left = left.plus(note["left"])
        self._refuse_partial(Coverage.of_all(Coverage(**note.get("coverage", {})) for note in notes.values()))
        self.stream.warn(columns, left)

        parts = [] if self.earlier is None else _parts_of(self.earlier.vectors)
        x = _stacked(self.out, [*parts, *_parts_of(new)])
        arrays = {COLUMNS[name]: values for name, values in columns.items()}
        write_vectors(self.out, {"": {"X": x, **arrays}}, replace(self.made, recordings=facts), more(x))


def _parts_of(vectors: Vectors | Store) -> list[Array]:
    return [vectors.x] if isinstance(vectors, Vectors) else list(vectors.maps())


def _stacked(out: Path, parts: Sequence[Array]) -> Array:
    """Put vectors one behind the other in a file beside `out`, a few at a time."""
    rows = RowFile(out, sum(map(len, parts)), parts[-1].shape[1])
    first = 0
    for part in parts:
        for piece, block in blocks(part):
            rows[slice(first + piece.start, first + piece.stop)] = block
        first += len(part)
    return rows.read()


def _refuse_to_drop_columns(out: Path, written: Collection[str]) -> None:
    """Refuse to append where that would drop columns that are in the file and that this run does not write."""
    predictions = {name for name in other_columns(out) if name == "predicted" or name.startswith("p_")}
    # Who predicts anew replaces the predictions that were there.
    dropped = [name for name in other_columns(out) if name not in written and not (written and name in predictions)]
    if not dropped:
        return
    is_of_predictions = predictions >= set(dropped)
    remedy = "Append to it with dicot predict HEAD ... --append" if is_of_predictions else "Leave these columns out"
    raise InputError(f"{out} has columns that would be lost: {listed(dropped)}. {remedy}, or embed into another file.")


def is_current(
    held: MadeOf, model: str, data: Source, options: Mapping[str, Any], allowance: Allowance | None = None
) -> bool:
    """Tell whether vectors are what embedding the same data now would give; of a file of cases nothing tells.

    Files that could not be used then, and cannot now, are kept in the allowance, if it says that they may be left out.
    """
    allowance = Allowance() if allowance is None else allowance
    if held.model != model or held.kind == "file":
        return False
    if held.kind == "name":
        return held.options == dict(options)
    reading, before = _reading_like(held, options), held.recordings
    named = files_to_read(data, reading)
    if Reading.from_dict(held.options) != reading or before.keys() - named.keys():
        return False
    told = told_of(tags_of(data, named, reading))
    if not all(told.get(n) == facts.get("told") and is_as_before(named[n], facts) for n, facts in before.items()):
        return False
    new_files = {name: file for name, file in named.items() if name not in before}
    if not new_files or not allowance.bad_files:
        return not new_files
    common = (held.channels or (), held.rate)
    stream = RecordingStream(data, reading, only=lambda named, tags: new_files, known=common, allowance=allowance)
    return not stream.files


def lost_by_renewal(held: MadeOf, model: str, data: Source, options: Mapping[str, Any]) -> str:
    """Say what vectors have that embedding the same data anew would not give; empty where it is nothing."""
    if held.model != model:
        return f"was made by another model, {held.model[:12]}"
    if held.kind != "recordings":
        return "" if held.options == dict(options) else "was made with other options"
    reading = _reading_like(held, options)
    was, now = Reading.from_dict(held.options).to_dict(), reading.to_dict()
    differing = sorted(key for key in was.keys() | now.keys() if was.get(key) != now.get(key))
    if differing:
        before = ", ".join(f"{key}={was.get(key)}" for key in differing)
        after = ", ".join(f"{key}={now.get(key)}" for key in differing)
        return f"was made with {before}; now {after}"
    named = files_to_read(data, reading)
    if gone := sorted(held.recordings.keys() - named.keys()):
        return f"has windows of {listed(gone)}, which {data} does not hold any more"
    tags = told_of(tags_of(data, named, reading))
    if untold := sorted(name for name, entry in held.recordings.items() if entry.get("told") and name not in tags):
        return f"has labels or groups of {listed(untold)}, which nothing gives now"
    return ""


def _reading_like(held: MadeOf, options: Mapping[str, Any]) -> Reading:
    """Return the options as those of vectors where they differ only in words: all channels, or all of them by name.

    Vectors that a model was fitted for have all channels unnamed; the model names them when it is used again.
    """
    reading = Reading(**options)
    names_channels = Reading.from_dict(held.options).channels is not None
    if not names_channels and reading.channels is not None and set(reading.channels) == set(held.channels or ()):
        return reading.replace(channels=None)
    return reading


def _embed_new(
    embed: Callable[[Windows], Array],
    work: UnfinishedStore,
    units: Mapping[str, tuple[str, ...]],
    stream: RecordingStream,
    known: set[Place],
) -> Store | None:
    """Embed the windows of all files that are not `known`; None where there are none."""
    with Bar("embed", len(stream.files)) as bar:
        done = 0
        for unit, names in units.items():
            if work.note(unit) is None:
                bar.update(done, names[0])
                parts, files = _cut_files(stream, names, known)
                _embed_unit(embed, parts, work.folder, unit, {"files": files})
            done += len(names)
    notes = [work.note(unit) or {} for unit in units]
    files = {name: note for unit in notes for name, note in unit["files"].items()}
    widths = {note["features"] for note in notes if note["shards"]}
    return work.finish(VECTORS, [*widths], notes, {"notes": files}) if widths else None


def _cut_files(stream: RecordingStream, names: Sequence[str], known: set[Place]) -> tuple[list[Windows], Facts]:
    """Cut files; return their windows that are not `known`, and what is noted of each file."""
    windows, files = stream.cut_files(names)
    new = [_chosen(part, known, False) for part in windows]
    notes = {
        name: {"windows": file.windows, "left": list(file.left), "coverage": asdict(file.coverage)}
        for name, file in files.items()
    }
    return [part for part in new if part is not None], notes


def _held(out: Path, old: Vectors, reading: Reading, model: str) -> MadeOf:
    """Return what the file that is appended to was made of; refuse another model or other options."""
    held = old.source
    if held is None or not all(entry.get("sha256") for entry in held.recordings.values()) or not held.recordings:
        raise InputError(f"{out} does not say which recordings it was made of, and what they held. {AGAIN}")
    if held.model != model:
        raise InputError(f"{out} was made by the model {held.model[:12]}, and this one is {model[:12]}. {AGAIN}")
    was, now = Reading.from_dict(held.options).to_dict(), reading.to_dict()
    for said in (was, now):
        if said.get("channels") is None and held.channels is not None:
            said["channels"] = list(held.channels)  # all that the recordings had: a model names them where nobody does
    for key in sorted((was.keys() | now.keys()) - {"window", "stride"}):  # these two are compared in time steps
        if was.get(key) != now.get(key):
            raise InputError(f"{out} was made with {key}={was.get(key)}; now {key}={now.get(key)}. {AGAIN}")
    return held


def _facts_of_new_files(
    out: Path,
    before: Facts,
    named: Mapping[str, Path],
    told: Mapping[str, str],
    allowance: Allowance,
    reading: Reading,
) -> Facts:
    """Return what the files hold that have something new, under whatever name."""
    name_by_file = {entry["file"]: name for name, entry in before.items()}
    name_by_hash = {entry["sha256"]: name for name, entry in before.items() if name not in named}
    new: Facts = {}
    renamed: list[str] = []
    for name, file in named.items():
        name_then = name_by_file.get(str(file.resolve())) if name_by_file else None
        if name_then == name:
            as_before = allowance.attempt(name, file, partial(is_as_before, file, before[name]))
            if as_before and told.get(name) != before[name].get("told"):
                raise InputError(f"{file} has another label or group than when {out} was made. {AGAIN}")
            if as_before or as_before is None:  # it cannot be opened: what was embedded of it before stays
                continue
        facts = allowance.attempt(name, file, partial(facts_of, file, files_beside(file, reading)))
        if facts is None:
            continue
        digest = facts["sha256"]
        if name not in before and name_then is not None and before[name_then]["sha256"] != digest:
            raise InputError(
                f"{out} has {file} as {name_then!r}. Below what was named now it is {name!r}, and it has changed "
                f"since. Name the folder that was named then. {AGAIN}"
            )
        # A copy beside a recording is a recording of its own.
        known_as = name if name in before else name_then or name_by_hash.get(digest)
        if known_as is None or before[known_as]["sha256"] != digest:
            new[name] = facts | ({"told": told[name]} if name in told else {})
        elif known_as != name:
            renamed.append(f"{name} (there as {known_as})")
    if renamed:
        said = f"{out} has the windows of {listed(renamed)} under another name, which they keep."
        remedy = "To have them named anew, write --overwrite in place of --append."
        warnings.warn(f"{said} {remedy}", DicotWarning, stacklevel=6)
    return new


def _known_places(earlier: Earlier, made: MadeOf, stream: RecordingStream) -> set[Place]:
    """Return the windows that a file has of recordings that have grown since; refuse all other changes."""
    out, made_before = earlier.out, earlier.made
    for option, was, now in (
        ("window", made_before.n_times, made.n_times),
        ("stride", made_before.stride, made.stride),
    ):
        if was != now:
            raise InputError(
                f"{out} was made with --{option} {made_before.options.get(option)}, {was} time steps; now --{option} "
                f"{made.options[option]} are {now}. {AGAIN}"
            )
    before = made_before.recordings
    grown = before.keys() & stream.files.keys()
    known: set[Place] = set()
    if grown:
        places = zip(*(values.tolist() for values in earlier.vectors.places()), strict=True)
        known = {place for place in places if file_name_of(place[0], before) in grown}
    for name in sorted(grown):
        if before[name].get("windows") is None:
            raise InputError(
                f"{stream.files[name]} has grown, and {out} was selected from vectors that had more windows of it. "
                "Append to these, and select again."
            )
        refuse_changed = partial(_refuse_changed, name, earlier, stream, known)
        if stream.allowance.attempt(name, stream.files[name], refuse_changed) is None:  # its former windows stay
            del stream.files[name]
    warn_of_bad_files(stream.allowance)
    return known


def _refuse_changed(name: str, earlier: Earlier, stream: RecordingStream, known: set[Place]) -> bool:
    """Refuse a recording whose former windows are not the same; True where they are."""
    out, file, entry = earlier.out, stream.files[name], earlier.made.recordings[name]
    if windows_hash(_chosen(stream.windows(name), known, True)) != entry["windows"]:
        raise InputError(
            f"{file} has changed since {out} was made of it, in values, labels or groups, or is another file than "
            f"{entry['file']}. Put that one back. {AGAIN}"
        )
    return True


def _chosen(windows: Windows | None, known: set[Place], wanted: bool) -> Windows | None:
    """Return the windows that are known, or those that are not; None where there is none."""
    if windows is None or not (known or wanted):
        return windows
    assert windows.recording is not None and windows.start is not None and windows.end is not None
    places = zip(windows.recording.tolist(), windows.start.tolist(), windows.end.tolist(), strict=True)
    taken = np.array([(place in known) == wanted for place in places])
    return windows.subset(taken) if taken.any() else None
