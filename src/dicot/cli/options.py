"""Options that several commands share, and how they become arguments of the library."""

import glob
import json
import reprlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dicot.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dicot.data import Windows
    from dicot.data.datasets import Split
    from dicot.model.deployed import OnnxEmbedder
    from dicot.model.estimator import TimeSeriesEmbedder
    from dicot.store.corpus import Corpus
    from dicot.store.search import EmbeddingIndex
    from dicot.use.labels.store import Key

AT = "RECORDING@SECONDS"
INTERRUPTED = 130  # exit code: 128 and the number of SIGINT, as shells have it

DataArgument = Annotated[
    str,
    typer.Argument(
        help="A data set by name (see `dicot list datasets`) or a .npz, .npy, .csv, .parquet, .ts, .tsv or .arff file."
    ),
]
ModelArgument = Annotated[Path, typer.Argument(help="A folder written by `dicot pretrain`.")]
Method = Annotated[str | None, typer.Option(help="See `dicot list methods`; default: the preset's.")]
Preset = Annotated[
    str | None,
    typer.Option(
        help="Method, features and recipe where no option says; see `dicot list presets`. Default: best, or paper with "
        "--method."
    ),
]
Encoder = Annotated[str, typer.Option(help="See `dicot list encoders`.")]
Dim = Annotated[int, typer.Option(help="Features of the encoder.")]
Steps = Annotated[int | None, typer.Option(help="Training steps; default: the preset's number.")]
BatchSize = Annotated[int | None, typer.Option(help="Cases per step; default: the preset's number.")]
Rate = Annotated[float | None, typer.Option(help="Peak learning rate; default: the paper's 3e-4.")]
Schedule = Annotated[str | None, typer.Option(help="per_step (the paper) or per_epoch (the authors' code).")]
Precision = Annotated[str | None, typer.Option(help="float32, tf32 (faster on a GPU) or float64; default: float32.")]
Pooling = Annotated[str | None, typer.Option(help="See `dicot list poolings`; default: the preset's.")]
Calibrate = Annotated[
    bool | None,
    typer.Option(
        "--calibrate/--no-calibrate",
        help="After training, set BatchNorm's statistics by a pass of the training cases; default: the preset's.",
    ),
]
Difference = Annotated[
    bool | None,
    typer.Option("--difference/--no-difference", help="Embed each case's first difference too; default: the preset's."),
]
Bank = Annotated[
    str | None,
    typer.Option(help="A fixed bank of kernels beside the encoder: 84 to 9996 features, or mixed; 0 for none."),
]
Components = Annotated[
    int | None, typer.Option(help="Compress embeddings to at most so many numbers, up to 2048; 0: as they are.")
]
Family = Annotated[str | None, typer.Option(help="Recipe of ucr, uea or large sets; default: the data set's own.")]
Setting = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the method, name=value; repeat for more. Example: k=[2,5]"),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
Layout = Annotated[str, typer.Option(help="Axes of arrays in a file: nct or ntc.")]
Unequal = Annotated[str | None, typer.Option(help="Cases of unequal length: error, pad, crop or resample.")]
Missing = Annotated[str | None, typer.Option(help="NaN: error, interpolate or zero.")]
Scale = Annotated[str | None, typer.Option(help="dataset or case; default: values as they are.")]
RecordedArgument = Annotated[
    str,
    typer.Argument(
        help="A data set by name (see `dicot list datasets`) or a .npz, .npy, .csv, .parquet, .ts, .tsv or .arff file; "
        "with --window, or a dicot.toml beside them, a folder, a pattern or a file of recordings; or a corpus."
    ),
]
Window = Annotated[
    str | None, typer.Option(help="DATA are recordings: cut windows of so many time steps, or a time such as 2.56s.")
]
Stride = Annotated[str | None, typer.Option(help="With --window: time steps, a time, or a share; default: 50%.")]
SamplingRate = Annotated[
    float | None, typer.Option("--rate", help="Recordings: time steps per second; others are resampled to it.")
]
Resample = Annotated[
    bool | None,
    typer.Option("--resample/--no-resample", help="Recordings: put uneven time steps on an even grid."),
]
Unit = Annotated[str | None, typer.Option(help="Recordings: of time stamps that are numbers, s, ms, us or ns.")]
Gap = Annotated[
    float | None,
    typer.Option(help="Recordings: steps between time stamps so many times as long as usual are gaps; default: 1.5."),
]
Memory = Annotated[
    str | None,
    typer.Option(
        help="How much memory may be taken, such as 4GB; default: half of what is free. Refused if too little."
    ),
]
GpuMemory = Annotated[
    str | None,
    typer.Option(help="How much of a GPU's memory may be taken, such as 8GiB; default: all. Enforced by torch."),
]
Ray = Annotated[
    str | None,
    typer.Option("--ray", help="A Ray cluster: host:port, auto for this machine's, local to start one here."),
]
GpusPerActor = Annotated[
    float | None,
    typer.Option(min=0, help="On Ray: GPUs of each process, 0.25 for a quarter; default: that, where there are any."),
]
Case = Annotated[str | None, typer.Option(help="Long tables: the column that names the case.")]
Time = Annotated[
    str | None, typer.Option(help="Long tables: the column that orders a case. Recordings: that of time stamps.")
]
Channels = Annotated[
    str | None, typer.Option(help="Long tables and recordings: columns of values, separated by commas.")
]
Label = Annotated[
    str | None, typer.Option(help="The column of labels in a table (also first or last), or their array in an .npz.")
]
Group = Annotated[str | None, typer.Option(help="The column of groups, such as subjects, or their array in an .npz.")]
Ignore = Annotated[str | None, typer.Option(help="Tables: columns that hold no values, separated by commas.")]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="One case per row: whether the first row holds names; default: look."),
]


def given(**options: Any) -> dict[str, Any]:
    """Keep only what the user set; the rest is left to the library's defaults."""
    return {name: value for name, value in options.items() if value is not None}


def columns(
    case: str | None,
    time: str | None,
    channels: str | None,
    label: str | None,
    group: str | None,
    ignore: str | None,
    header: bool | None,
) -> dict[str, Any]:
    """Collect the column options of a table file."""
    names = {"channels": channels, "ignore": ignore}
    several = {key: [n.strip() for n in text.split(",")] for key, text in names.items() if text is not None}
    return given(case=case, time=time, label=label, group=group, header=header, **several)


def settings(pairs: list[str] | None) -> dict[str, Any] | None:
    """Parse --set name=value pairs; a value that is not JSON is taken as text."""
    out: dict[str, Any] = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(f"--set takes name=value; got {reprlib.repr(pair)}.")
        try:
            out[name.strip()] = json.loads(value)
        except ValueError:  # no JSON, or a number of thousands of digits
            out[name.strip()] = value
        except RecursionError as error:
            raise InputError(f"--set {name.strip()[:40]} is a list of lists too deep to read. Give a value.") from error
    return out or None


def row_meant(index: "EmbeddingIndex", text: str, option: str) -> int:
    """Find the row of the window that is meant: RECORDING@SECONDS, or its number."""
    recording, at, place = text.rpartition("@")
    try:
        return index.row_at(recording, float(place)) if at else int(text)
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{option} takes {AT} or the number of a row; got {text!r}.") from error


def say_lost(labels: Path, vectors: Path, lost: "list[Key]", count: int) -> None:
    """Warn of labels that are on no window of the vectors; where all are, that is an error."""
    if not lost:
        return
    said = f"{len(lost)} of {count} label(s) of {labels} are on no window of {vectors}; the first is on {lost[0]!r}."
    if len(lost) == count:
        raise InputError(f"{said} Name the vectors that were labelled, with the same windows.")
    typer.secho(f"Warning: {said}", fg="yellow", err=True)


def whole_numbers(text: str, option: str) -> list[int]:
    """Parse whole numbers separated by commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(f"{option} takes whole numbers separated by commas; got {text!r}.") from error


def bank(text: str | None) -> int | str | None:
    """Parse --bank, a number of features or a name."""
    try:
        return text if text is None else int(text)
    except ValueError:
        return text


def load_data(
    data: str,
    layout: str,
    policies: dict[str, Any],
    table: dict[str, Any],
    holdout: tuple[float, int] | None = None,
) -> "Split":
    """Load a named data set or a file; column options, another layout and `holdout` are for files alone."""
    from dicot.data.collection import warn_of_layout
    from dicot.data.datasets import is_path, load

    if not is_path(data) and (table or layout != "nct"):
        raise InputError(f"{data!r} is a data set by name; --layout and column options are for files.")
    if is_path(data):
        table = {**table, **given(holdout=holdout), **({"layout": layout} if layout != "nct" else {})}
    split = load(data, **policies, **table)
    show_read(data, split.about)
    if is_path(data) and data.lower().endswith((".npz", ".npy")):  # other files say what their channels are
        warn_of_layout(split.train.n_channels, split.train.n_times, layout)
    return split


def corpus_at(data: str, said: dict[str, Any]) -> "Corpus | None":
    """Open DATA where they are a corpus; refuse what was said when it was built. None where they are none."""
    from dicot.store.corpus import Corpus
    from dicot.store.corpus.manifest import MANIFEST

    if not (Path(data).is_dir() and (Path(data) / MANIFEST).is_file()):
        return None
    opened = Corpus.open(data)
    if refused := sorted(given(**said)):
        raise InputError(f"{data} is a corpus, whose windows are cut already. Leave out --{refused[0]}.")
    return opened


class Recorded(NamedTuple):
    """DATA that are recordings: how they are cut, and how windows are scaled for a fit."""

    options: dict[str, Any]  # fields of a Reading
    scale: str | None


def recorded(
    data: str,
    table: dict[str, Any],
    *,
    scale: str | None = None,
    window: str | int | None = None,
    usual: int | None = None,
    **options: Any,
) -> Recorded | None:
    """Return how DATA are cut by options and the dicot.toml beside them; None where they are no recordings.

    `usual` are the time steps of a window of a folder or pattern for which neither says any.
    """
    from dicot.data.datasets import is_path
    from dicot.data.reading import read_toml, toml_of

    # A folder is one also where a data set has its name: nothing else has a dicot.toml inside.
    path = toml_of(data) if is_path(data) or Path(data).is_dir() else None
    kept = {} if path is None else read_toml(path)
    asked = given(**options)
    several = path is not None and (Path(data).is_dir() or glob.has_magic(data))
    if window is None and "window" not in kept and several and usual is not None:
        typer.echo(f"Windows of {usual} time steps, as the model was fitted on")
        window = usual
    if window is None and "window" not in kept:
        if kept:
            raise InputError(f"{path} has no window, so {data} cannot be cut. Add one there, or give --window.")
        if asked.keys() - {"missing"}:
            names = ", ".join(f"--{name}" for name in options if name != "missing")
            raise InputError(f"{names} are for recordings. Give --window too, or leave out --{min(asked)}.")
        return None
    if refused := sorted({"case", "ignore", "header"} & table.keys()):
        raise InputError(f"--{refused[0]} is for tables of cases; with --window DATA are recordings. Leave it out.")
    if kept:
        typer.echo(f"Options of {path}: {', '.join(kept)}")
    kept_scale = kept.pop("scale", None)
    return Recorded({**kept, **given(window=window), **asked, **table}, kept_scale if scale is None else scale)


def as_fitted(options: dict[str, Any], model: "TimeSeriesEmbedder | OnnxEmbedder") -> dict[str, Any]:
    """Read the channels that a model was fitted on, where no others are asked for: further columns are left alone."""
    channels = model.preparation_.channels
    return options if channels is None else {"channels": list(channels), **options}


def load_recordings(data: str, options: dict[str, Any]) -> "Windows":
    """Cut a folder, a pattern or a file of recordings into windows, and say what they are."""
    from dicot.data.folders import windows as read_windows
    from dicot.data.reading import Reading

    windows = read_windows(data, Reading(**options))
    recordings = len(set(windows.recording)) if windows.recording is not None else 0
    show_recordings(data, recordings, windows.channels or (), windows.rate)
    return windows


def show_recordings(data: str, count: int, channels: "Sequence[str]", rate: float | None) -> None:
    """Say what recordings were read."""
    rate_text = "" if rate is None else f" at {rate:g} per second"
    typer.echo(f"Read {data}: {count} recording(s) of {', '.join(channels)}{rate_text}")


def show_read(data: str, about: str) -> None:
    """Say what a table was taken for, so that a wrong guess is seen."""
    if about:
        typer.echo(f"Read {data}: {about}")
