"""Arguments and options that several commands have."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from dicot.cli.settings import READING, Settings, checking_options, sort_settings, texts_of
from dicot.core.errors import InputError, WrongCallError, lookup
from dicot.core.settings import OPTIONS

if TYPE_CHECKING:
    from dicot.data.allowance import Allowance
    from dicot.store.search import EmbeddingIndex
    from dicot.use.judging import JudgedVectors

AT = "RECORDING@SECONDS"


def _device(text: str) -> str:
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", text):
        raise WrongCallError(f"--device takes auto, cpu, cuda or cuda:N; got {text[:40]!r}.")
    return text


def _share(value: float) -> float:
    if not 0 < value < 1:
        raise WrongCallError(f"--alarm takes a share between 0 and 1, such as 0.05; got {value:g}.")
    return value


DATA = "a data set by name (`dicot list datasets`), a file of cases, a corpus, or"
DATA_HELP = f"{DATA.capitalize()}, with --window or a dicot.toml, a folder, a pattern or a file of recordings."
DataArgument = Annotated[str, typer.Argument(help=DATA_HELP)]
VectorsArgument = Annotated[Path, typer.Argument(help="Vectors that `dicot embed` wrote.")]
Method = Annotated[str | None, typer.Option(help="See `dicot list methods`; default: the preset's.")]
Preset = Annotated[str | None, typer.Option(help="See `dicot list presets`; default: instant, or paper with --method.")]
Steps = Annotated[int | None, typer.Option(min=1, help="Training steps; default: the preset's number.")]
Device = Annotated[str, typer.Option(callback=_device, help="auto, cpu, cuda or cuda:N.")]
Alpha = Annotated[float, typer.Option("--alarm", callback=_share, help="The share of false alarms to allow.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there already.")]
Ray = Annotated[str | None, typer.Option(help="A Ray cluster: host:port, auto, or local to start one here.")]
Plot = Annotated[Path | None, typer.Option(help="Draw the windows on a page, an .html.")]
Series = Annotated[str | None, typer.Option("--data", help="Where the series are now, if they were moved.")]
Labels = Annotated[Path | None, typer.Option(help="A file of labels; default: those in VECTORS.")]
Features = Annotated[str | None, typer.Option(help="Judge by: vector, levels (of each channel), or both, the default.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at a file that cannot be read; without it the rest is done.")
]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any other setting; repeat for more.")
]


@final
@dataclass(frozen=True)
class ReadingOptions:
    """How a command reads DATA; what has no option of its own is said by --set."""

    window: Annotated[
        str | None,
        typer.Option(help="Length of a window of recordings: time steps, or a time such as 2.56s."),
    ] = None
    stride: Annotated[
        str | None,
        typer.Option(help="From one window to the next: time steps, a time, or a share; default: 50%."),
    ] = None
    time: Annotated[
        str | None,
        typer.Option(help="The column of time stamps, or of what orders the rows of a case."),
    ] = None
    channels: Annotated[str | None, typer.Option(help="The columns of values, separated by commas.")] = None
    ignore: Annotated[str | None, typer.Option(help="Columns to leave out, separated by commas.")] = None
    label: Annotated[
        str | None,
        typer.Option(help="The column, array or field of --names that holds the labels."),
    ] = None
    group: Annotated[
        str | None,
        typer.Option(help="The column, array or field of --names that holds the groups, such as people."),
    ] = None
    names: Annotated[str | None, typer.Option(help="How files are called: '{activity}_{subject}_{trial}'.")] = None
    table: Annotated[
        str | None,
        typer.Option(help="A .csv of labels with the columns file, label, and start, end, group."),
    ] = None
    join: Annotated[
        str | None,
        typer.Option(help="The field of --names that tells devices; their recordings become one."),
    ] = None
    duplicates: Annotated[
        str | None,
        typer.Option(help="Rows of the same time stamp: mean, first, or error, the default."),
    ] = None
    strict: Strict = False
    allow_partial: Annotated[
        bool,
        typer.Option("--allow-partial", help="Go on where more than a fifth of the rows lies in no window."),
    ] = False
    set_: Set = None

    @cached_property
    def texts(self) -> dict[str, str]:
        """What was said of the reading by options and --set, as it was written; --set wins."""
        texts = {}
        for field in fields(self):
            if field.name in OPTIONS and getattr(self, field.name) is not None:
                texts[field.name] = getattr(self, field.name)
        return texts | texts_of(self.set_)

    def by_group(
        self, *, reading: Sequence[str] = READING, own: Sequence[str] = (), of_model: bool = False
    ) -> Settings:
        """Return what was said, by whom it concerns; see `sort_settings`."""
        return sort_settings(self.texts, reading=reading, own=own, of_model=of_model)

    def words(self) -> list[str]:
        """Write what was said of the reading as a command has it."""
        options = {field.name for field in fields(self)}
        words = []
        for name, text in self.texts.items():
            if name in READING:
                words += [f"--{name}", text] if name in options else ["--set", f"{name}={text}"]
        return words

    @cached_property
    def allowance(self) -> "Allowance":
        """What may be left out of recordings, and what was."""
        from dicot.data.allowance import Allowance

        return Allowance(bad_files=not self.strict, partial=self.allow_partial)


@final
@dataclass(frozen=True)
class SeriesOptions:
    """The recordings behind vectors: where they are, and what happens where one cannot be read."""

    data: Series = None
    strict: Strict = False

    @cached_property
    def allowance(self) -> "Allowance":
        """Which recordings were left out, if any may be."""
        from dicot.data.allowance import Allowance

        return Allowance(bad_files=not self.strict)


@final
@dataclass(frozen=True)
class ShownOptions:
    """How many hits are listed, and whether they are drawn."""

    top: Annotated[int, typer.Option(min=1, help="How many to list.")] = 20
    plot: Plot = None


@final
@dataclass(frozen=True)
class JudgingOptions:
    """What windows are judged by, and the recordings behind them."""

    features: Features = None
    data: Series = None
    strict: Strict = False

    @cached_property
    def series(self) -> SeriesOptions:
        return SeriesOptions(self.data, self.strict)

    def read(self, vectors: Path) -> "JudgedVectors":
        """Read vectors and what their windows are judged by."""
        from dicot.store.vectors import read_vectors
        from dicot.use.features import FEATURES
        from dicot.use.judging import judge

        if self.features is not None:
            with checking_options():
                lookup(FEATURES, self.features, "--features")
        known = read_vectors(vectors, finite=True)
        return judge(vectors, known, self.features, self.data, self.series.allowance)


def given(**options: Any) -> dict[str, Any]:
    """Keep only what the user set; the rest is left to the library's defaults."""
    return {name: value for name, value in options.items() if value is not None}


def names_in(text: str | None) -> tuple[str, ...]:
    """Read names that are separated by commas."""
    return tuple(filter(None, map(str.strip, text.split(",")))) if text else ()


def seeds_in(text: str | None) -> tuple[int, ...]:
    names = names_in(text)
    if not all(name.isdecimal() and int(name) < 2**32 for name in names):
        raise WrongCallError(f"--seeds takes whole numbers from 0 to 4294967295, separated by commas; got {text!r}.")
    return tuple(map(int, names))


def row_meant(index: "EmbeddingIndex", text: str, option: str) -> int:
    """Find the row of the window that is meant: RECORDING@SECONDS, or its number."""
    recording, at, place = text.rpartition("@")
    try:
        return index.row_at(recording, float(place)) if at else int(text)
    except InputError:
        raise
    except ValueError as error:
        raise WrongCallError(f"{option} takes {AT} or the number of a row; got {text!r}.") from error


def warn(sentence: str) -> None:
    typer.secho(f"Warning: {sentence}", fg="yellow", err=True)
