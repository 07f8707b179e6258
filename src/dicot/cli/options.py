"""What several commands share: how DATA are read, and --set for what has no option of its own."""

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer
from typer.core import TyperCommand

from dicot.cli.exitcodes import PARTIAL
from dicot.core.errors import InputError, WrongCallError, did_you_mean, is_whole
from dicot.core.processes.launcher import find_place, is_launched

if TYPE_CHECKING:
    from dicot.data.allowance import Allowance
    from dicot.data.cases import Array
    from dicot.store.search import EmbeddingIndex
    from dicot.store.vectors import Vectors

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

# Settings by whom they concern. `dicot pretrain --set` takes all of them, and those of the method.
CASES = ("case", "header", "layout")  # of a file of cases
CUTTING = (
    "window",
    "stride",
    "rate",
    "resample",
    "unit",
    "duplicates",
    "gap",
    "names",
    "join",
    "table",
    "table_unit",
)  # of recordings
READING = ("time", "channels", "label", "group", "missing", "scale", "ignore", *CASES, *CUTTING)
FEATURES = ("pooling", "calibrate", "bank", "n_components")
RECIPE = ("batch_size", "lr", "weight_decay", "betas", "warmup", "schedule", "precision")
LISTS = ("channels", "ignore")
TEXTS = (
    "time",
    "label",
    "group",
    "case",
    "unit",
    "duplicates",
    "window",
    "stride",
    "memory",
    "gpu_memory",
    "names",
    "join",
    "table",
    "table_unit",
)


def _reading_options(
    window: Annotated[str | None, typer.Option(help="Of recordings: time steps, or a time such as 2.56s.")] = None,
    stride: Annotated[str | None, typer.Option(help="Time steps, a time, or a share; default: 50%.")] = None,
    time: Annotated[str | None, typer.Option(help="The column of time stamps, or that orders a case.")] = None,
    channels: Annotated[str | None, typer.Option(help="The columns of values, separated by commas.")] = None,
    ignore: Annotated[str | None, typer.Option(help="Columns to leave out, separated by commas.")] = None,
    label: Annotated[str | None, typer.Option(help="The column, array or field of names with the labels.")] = None,
    group: Annotated[str | None, typer.Option(help="The same of groups, such as people.")] = None,
    names: Annotated[str | None, typer.Option(help="How files are called: '{activity}_{subject}_{trial}'.")] = None,
    table: Annotated[str | None, typer.Option(help="A .csv of labels: file, label, and start, end, group.")] = None,
    join: Annotated[
        str | None, typer.Option(help="The field of --names that tells devices, whose recordings become one.")
    ] = None,
    duplicates: Annotated[
        str | None, typer.Option(help="Rows of one time stamp: mean, first, or error, the default.")
    ] = None,
    strict: Strict = False,
    allow_partial: Annotated[
        bool, typer.Option("--allow-partial", help="Go on where more than a fifth lies in no window.")
    ] = False,
    set_: Set = None,
) -> None: ...


@final
class Command(TyperCommand):
    """A command; where it has --set, an unknown option is answered with the setting that it may mean."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        known = {word for one in self.get_params(ctx) for word in (*one.opts, *one.secondary_opts)}
        for word in args if "--set" in known else ():
            flag = word.partition("=")[0]
            if flag.startswith("--") and flag not in known:
                setting = flag.removeprefix("--").removeprefix("no-").replace("-", "_")
                raise WrongCallError(
                    f"There is no option {flag[:40]}. If it is a setting, write --set {setting[:40]}=VALUE."
                )
        return super().parse_args(ctx, args)


def reads(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading and --set; it gets what they say as its argument `said`."""
    own = [one for one in inspect.signature(command).parameters.values() if one.name != "said"]
    shared = inspect.signature(_reading_options).parameters

    @wraps(command)
    def run(**given: Any) -> None:
        options: dict[str, Any] = {name: given.pop(name) for name in shared}
        pairs = options.pop("set_")
        strict, allow_partial = options.pop("strict"), options.pop("allow_partial")
        said = Settings(pairs, options, strict=strict, allow_partial=allow_partial)
        command(**given, said=said)
        end(said.allowance)

    needed = [one for one in own if one.default is one.empty]
    others = [one for one in own if one.default is not one.empty]
    parameters = [one.replace(kind=one.KEYWORD_ONLY) for one in (*needed, *others, *shared.values())]
    shown: Any = run
    shown.__signature__ = inspect.Signature(parameters)
    shown.__annotations__ = {one.name: one.annotation for one in parameters}
    del shown.__wrapped__
    return run


def end(allowance: "Allowance") -> None:
    """End a command that has done its work: by another exit code where something was left out."""
    if not allowance:
        return
    if find_place().world > 1 and not is_launched():
        return  # torchrun and its like take any code but 0 for a failure, and start the run again
    raise typer.Exit(PARTIAL)


@final
class Settings:
    """What the options of reading and --set say; each part of a command takes what concerns it."""

    def __init__(
        self,
        pairs: Sequence[str] | None,
        options: Mapping[str, str | None] | None = None,
        *,
        strict: bool = True,
        allow_partial: bool = False,
    ) -> None:
        self._may_leave_out = {"bad_files": not strict, "partial": allow_partial}
        self.texts = {name: text for name, text in (options or {}).items() if text is not None}
        self._known: list[str] = []
        for pair in pairs or ():
            name, equals, text = pair.partition("=")
            if not equals or not name.strip():
                raise WrongCallError(f"--set takes name=value; got {pair[:80]!r}.")
            self.texts[name.strip()] = text
        self._left = dict(self.texts)

    @cached_property
    def allowance(self) -> "Allowance":
        """What may be left out of recordings, and what was."""
        from dicot.data.allowance import Allowance

        return Allowance(**self._may_leave_out)

    def take(self, *names: str) -> dict[str, Any]:
        """Return those of these settings that were given; a value that no reading can have is refused."""
        self._known += names
        taken = {name: _value(name, self._left.pop(name)) for name in names if name in self._left}
        with checking_options():
            _check_reading(taken)
        return taken

    def take_count(self, name: str) -> int | None:
        """Return this setting if it was given: a whole number of at least 1."""
        value = self.take(name).get(name)
        if value is not None and not is_whole(value, 1):
            raise WrongCallError(f"{name} must be a whole number, 1 or more; got {value!r}.")
        return value

    def take_model(self) -> dict[str, Any]:
        """Return the arguments of a TimeSeriesEmbedder that were given, but for how cases are prepared."""
        arguments = self.take("encoder", "encoder_params", "family")
        arguments |= given(dim=self.take_count("dim"))
        groups = {"features": self.take(*FEATURES), "recipe": self.take(*RECIPE)}
        return arguments | {name: settings for name, settings in groups.items() if settings}

    def rest(self, methods: Iterable[type] = ()) -> dict[str, Any]:
        """Return what nobody took: settings of one of these methods. Anything else is refused."""
        known = [name for kind in methods for name in inspect.signature(kind).parameters if name != "encoder"]
        for name in self._left:
            if name not in known:
                raise WrongCallError(
                    f"Unknown setting {name[:40]!r}. {did_you_mean(name[:40], [*self._known, *known])}"
                )
        return self.take(*self._left)

    def words(self, names: Iterable[str]) -> list[str]:
        """Write those of these settings that were given as a command has them."""
        options = inspect.signature(_reading_options).parameters
        given = [(name, text) for name, text in self.texts.items() if name in names]
        pairs = [(f"--{name}", text) if name in options else ("--set", f"{name}={text}") for name, text in given]
        return [word for pair in pairs for word in pair]


def _value(name: str, text: str) -> Any:
    """Read a value as JSON; names of columns and what is no JSON stay text."""
    if name in LISTS:
        return [part.strip() for part in text.split(",")]
    if name in TEXTS:
        return text
    if text in (words := {"True": True, "False": False, "None": None}):  # as Python has them
        return words[text]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # no JSON, a number of thousands of digits, or lists too deep
        return text


def _check_reading(settings: Mapping[str, Any]) -> None:
    """Refuse a value that a field of a Reading does not take; other settings are checked by whom they are for."""
    read = {name: value for name, value in settings.items() if name in READING}
    if read:
        from dicot.data.reading import Reading

        Reading(**read)


@contextmanager
def checking_options() -> Iterator[None]:
    """Turn what the library says of a value that came from an option into a WrongCallError."""
    try:
        yield
    except WrongCallError:
        raise
    except InputError as error:
        raise WrongCallError(str(error)) from error


def text_of(value: Any) -> str:
    """Write a setting as a command takes it; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


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


def labels_of(vectors: Path, known: "Vectors", labels: Path | None) -> "Array":
    """Return the label of each vector (N,): from a file of labels, or else from the vectors' own column."""
    from dicot.core.errors import naming
    from dicot.data.labels import labelled
    from dicot.use.labels.store import check_ranges, put_on_windows, read_labels, why_on_none

    if labels is None:
        if known.label is None or not labelled(known.label).any():
            raise InputError(f"{vectors} holds no labels. Give some by `dicot label add`, and name the file: --labels.")
        return known.label
    with naming(vectors):
        places = known.places()
    with naming(labels):
        read = read_labels(labels, known.begun())
        given, lost = put_on_windows(read, *places)
        check_ranges(read, lost, labels, places)
    if not read:
        raise InputError(f"{labels} holds no labels. Give some by `dicot label add`.")
    if lost:
        said = (
            f"{len(lost)} of {len(read)} label(s) of {labels} are on no window of {vectors}; the first is on "
            f"{lost[0]!r}. {why_on_none(lost[0], *places)}"
        )
        if len(lost) == len(read):
            raise InputError(f"{said} Name the vectors that were labelled.")
        warn(said)
    return given


def leaving_out(strict: bool) -> "Allowance":
    """Return what a command that reads the recordings behind vectors may leave out."""
    from dicot.data.allowance import Allowance

    return Allowance(bad_files=not strict)


def check_models(path: Path, model: str | None, width: int, other: Path, known: "Vectors") -> None:
    """Refuse vectors, or a classifier, of another model than that of some vectors: distances would mean nothing."""
    if width != known.x.shape[1] or len({model, known.model} - {None}) > 1:
        from dicot.store.modelplace import model_beside

        kept = model_beside(path)
        remedy = f": dicot embed {kept} DATA --out {other}" if kept.is_dir() else ""
        raise InputError(f"{path} and {other} were made by different models. Embed both by the same model{remedy}.")


def warn(sentence: str) -> None:
    typer.secho(f"Warning: {sentence}", fg="yellow", err=True)
