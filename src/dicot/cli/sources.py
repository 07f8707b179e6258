"""What DATA of a command are: a corpus, recordings or cases; and how options and dicot.toml say to read them."""

import glob
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import typer

from dicot.cli.options import CASES, CUTTING, text_of, warn
from dicot.core.errors import InputError, WrongCallError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dicot.data import Split, Windows
    from dicot.data.allowance import Allowance
    from dicot.data.folders import RecordingFiles
    from dicot.model.deployed import OnnxEmbedder
    from dicot.model.estimator import TimeSeriesEmbedder
    from dicot.store.folder import Corpus

# What a look at recordings goes by.
LOOKED_AT = (
    "time",
    "unit",
    "duplicates",
    "channels",
    "ignore",
    "label",
    "group",
    "gap",
    "names",
    "join",
    "table",
    "table_unit",
)


@final
@dataclass(frozen=True)
class DataSource:
    """DATA: a corpus, or recordings that have a `window`, or cases."""

    data: str
    corpus: "Corpus | None" = None
    options: dict[str, Any] = field(default_factory=dict)  # fields of a Reading; of cases those that are no policy
    scale: str | None = None  # of a fit
    allowance: "Allowance | None" = None  # what may be left out of recordings; None: nothing
    files: "RecordingFiles | None" = None  # of recordings, as far as they were read to suggest windows

    @property
    def recorded(self) -> bool:
        """Tell whether windows are cut from recordings."""
        return "window" in self.options

    def as_fitted(self, model: "TimeSeriesEmbedder | OnnxEmbedder") -> dict[str, Any]:
        """Return the options with the channels that a model was fitted on, where no others are asked for."""
        channels = model.preparation_.channels
        named = self.recorded or "case" in self.options
        return {"channels": list(channels), **self.options} if channels is not None and named else self.options

    def windows(self) -> "Windows":
        from dicot.data import Windows

        cut = Windows.from_folder(self.data, allowance=self.allowance, **self.options)
        count = 0 if cut.recording is None else len(set(cut.recording))
        show_recordings(self.data, count, cut.channels or (), cut.rate)
        return cut

    def split(self, holdout: tuple[float, int] | None = None, **policies: Any) -> "Split":
        """Load cases by these policies, and say what a table was taken for."""
        from dicot.data.collection import warn_of_layout
        from dicot.data.datasets import is_path, load

        more = {"holdout": holdout} if holdout is not None and is_path(self.data) else {}
        split = load(self.data, **policies, **self.options, **more)
        if split.about:
            typer.echo(f"Read {self.data}: {split.about}")
        if is_path(self.data) and self.data.lower().endswith((".npz", ".npy")):  # others say what their channels are
            warn_of_layout(split.train.n_channels, split.train.n_times, self.options.get("layout", "nct"))
        return split


def find_source(
    data: str,
    said: dict[str, Any],
    usual: int | None = None,
    before: Path | None = None,
    allowance: "Allowance | None" = None,
) -> DataSource:
    """Tell what DATA are, by what was said of their reading and the dicot.toml beside them.

    `usual` are the time steps of a window of recordings for which neither says any: 0 takes what is suggested for
    them, None refuses them. Where nothing at all is said, they are cut as for the vectors that are there `before`.
    `allowance` says what may be left out of recordings.
    """
    from dicot.data.datasets import is_path
    from dicot.data.folders import RecordingFiles
    from dicot.data.readers import known_suffixes
    from dicot.data.reading import read_toml, suffix_of, toml_of

    said, scale = dict(said), said.get("scale")
    files: RecordingFiles | None = None
    said.pop("scale", None)
    corpus = corpus_at(data)
    if corpus is not None:
        if said:
            raise WrongCallError(f"{data} is a corpus, whose windows are cut already. Leave out {min(said)}.")
        return DataSource(data, corpus, scale=scale)
    # A folder is one also where a data set has its name: nothing else has a dicot.toml inside.
    file = is_path(data) or Path(data).is_dir()
    path = toml_of(data) if file else None
    kept = {} if path is None else read_toml(path)
    only_recorded = Path(data).is_dir() or glob.has_magic(data) or suffix_of(Path(data)) not in known_suffixes("cases")
    if "window" not in (said | kept) and usual is not None and file and only_recorded:
        said |= _as_before(before) if before is not None and not said | kept else {}
        if "window" in said:
            typer.echo(f"Windows of {said['window']}, as in {before}")
        elif usual:
            typer.echo(f"Windows of {usual} time steps, as the model was fitted on")
            said["window"] = usual
        else:
            files = RecordingFiles(data)
            said |= _suggested(files, data, said | kept)
    if "window" in (said | kept):
        if refused := sorted(said.keys() & set(CASES)):
            raise WrongCallError(
                f"{refused[0]} is for files of cases; with a window DATA are recordings. Leave it out."
            )
        if kept:
            typer.echo(f"Options of {path}: {', '.join(kept)}")
        scale = kept.pop("scale", None) if scale is None else scale
        say_table(data, {**kept, **said})
        return DataSource(data, None, {**kept, **said}, scale, allowance, files)
    if kept:
        raise InputError(f"{path} has no window, so {data} cannot be cut. Add one there, or give --window.")
    if refused := sorted(said.keys() & set(CUTTING)):
        raise WrongCallError(f"{refused[0]} is for recordings. Give --window too, or leave it out.")
    said.pop("missing", None)  # a policy, which whoever loads the cases gives
    if said and not file:
        raise WrongCallError(f"{data!r} is a data set by name; {min(said)} is for files. Leave it out.")
    return DataSource(data, None, said, scale)


def _as_before(vectors: Path) -> dict[str, Any]:
    """Return how recordings were read and cut for vectors; nothing where these are not there."""
    from dicot.store.vectors import read_vectors

    made = read_vectors(vectors).source if vectors.exists() else None
    options = made.options if made is not None and made.kind == "recordings" else {}
    return {name: value for name, value in options.items() if name not in (*CASES, "scale")}


def _suggested(files: "RecordingFiles", data: str, said: dict[str, Any]) -> dict[str, Any]:
    """Choose windows and what else is needed to cut recordings, as `dicot inspect` suggests it, and say why."""
    from dicot.data import Reading, inspect_recordings, suggest_windows
    from dicot.data.kinds import problem_sentences, sort_by_kind
    from dicot.data.suggestion import label_advice, no_rate_sentence
    from dicot.data.tags import find_table

    looked = Reading(**{name: value for name, value in said.items() if name in LOOKED_AT})
    kinds = sort_by_kind(inspect_recordings(files, looked))
    readable = kinds.readable
    if not readable:
        raise InputError(" ".join(problem_sentences(kinds.unreadable)))
    advice = suggest_windows(readable, looked)
    differ = ("channels",) * any(set(row.channels) != set(advice.reading.channels or ()) for row in readable)
    chosen = {}
    for name in ("unit", "window", "stride", "gap", "resample", "rate", "missing", *differ):
        if name in advice.reasons and name not in said:
            chosen[name] = getattr(advice.reading, name)
            typer.echo(f"{name} {text_of(chosen[name])}: {advice.reasons[name]}")
    if "rate" not in said and (sentence := no_rate_sentence(readable)):
        typer.echo(sentence)
    has_table = find_table(data, looked.table) is not None
    for sentence in label_advice(readable, looked, has_table).sentences:
        warn(sentence)
    typer.echo("For other windows say, for example, --window 5s, or write and edit a dicot.toml: dicot inspect --write")
    return chosen


def corpus_at(data: str) -> "Corpus | None":
    """Open DATA where they are a corpus; None where they are none."""
    from dicot.store.folder import MANIFEST, Corpus

    return Corpus.open(data) if (Path(data) / MANIFEST).is_file() else None


def say_table(data: "str | list[str]", options: dict[str, Any]) -> None:
    """Say which table of labels was found, where nobody named one."""
    from dicot.data.tags import find_table

    if "table" not in options and (found := find_table(data)) is not None:
        typer.echo(f"Labels of {found}, which lies there; --table '' leaves it out")


def show_recordings(data: str, count: int, channels: "Sequence[str]", rate: float | None) -> None:
    rate_text = "" if rate is None else f" at {rate:g} per second"
    typer.echo(f"Read {data}: {count} recording(s) of {', '.join(channels)}{rate_text}")
