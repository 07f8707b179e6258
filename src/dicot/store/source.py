"""What DATA of a call are: a corpus, recordings or cases; and how options and a dicot.toml say to read them."""

import glob
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from dicot.core.errors import DicotWarning, InputError, WrongCallError
from dicot.core.settings import text_of
from dicot.data import Reading, Split, Windows, inspect_recordings, suggest_windows
from dicot.data.allowance import Allowance
from dicot.data.collection import warn_of_layout
from dicot.data.datasets import is_path, load
from dicot.data.folders import RecordingFiles
from dicot.data.inspection import Inspected
from dicot.data.kinds import problem_sentences, sort_by_kind
from dicot.data.readers import known_suffixes
from dicot.data.reading import CUTTING, OF_CASES, read_toml, suffix_of, toml_of
from dicot.data.suggestion import Suggestion, label_advice, no_rate_sentence
from dicot.data.survey import LOOKED_AT, SUGGESTED
from dicot.data.tags import find_table
from dicot.store.folder import MANIFEST, Corpus
from dicot.store.vectors import MadeOf, read_source, source_of

if TYPE_CHECKING:
    from dicot.model.deployed import OnnxEmbedder
    from dicot.model.estimator import TimeSeriesEmbedder

Say = Callable[[str], None]  # shows a sentence on what was found or done

OF_CUTTING = tuple(name for name in SUGGESTED if name != "scale")  # suggestions that a cut goes by
SUGGESTED_WINDOW = 0  # in place of the time steps of a window: suggest one


def be_silent(sentence: str) -> None:
    """Show nothing."""


@final
@dataclass(frozen=True)
class DataSource:
    """DATA: a corpus, or recordings that have a `window`, or cases."""

    data: str
    corpus: Corpus | None = None
    options: dict[str, Any] = field(default_factory=dict)  # fields of a Reading; of cases those that are no policy
    scale: str | None = None  # of a fit
    allowance: Allowance | None = None  # what may be left out of recordings; None: nothing
    files: RecordingFiles | None = None  # of recordings, as far as they were read to suggest windows
    say: Say = be_silent

    @property
    def recorded(self) -> bool:
        """Tell whether windows are cut from recordings."""
        return "window" in self.options

    def as_fitted(self, model: "TimeSeriesEmbedder | OnnxEmbedder") -> dict[str, Any]:
        """Return the options with the channels that a model was fitted on, where no others are asked for."""
        channels = model.preparation_.channels
        names_channels = self.recorded or "case" in self.options
        if channels is None or not names_channels:
            return self.options
        return {"channels": list(channels), **self.options}

    def windows(self) -> Windows:
        """Cut recordings into windows."""
        cut = Windows.from_folder(self.data, allowance=self.allowance, **self.options)
        n_recordings = 0 if cut.recording is None else len(set(cut.recording))
        self.say(recordings_sentence(self.data, n_recordings, cut.channels or (), cut.rate))
        return cut

    def split(self, holdout: tuple[float, int] | None = None, **policies: Any) -> Split:
        """Load cases by these policies, and say what a table was taken for."""
        if holdout is not None and is_path(self.data):
            policies["holdout"] = holdout
        split = load(self.data, **policies, **self.options)
        if split.about:
            self.say(f"Read {self.data}: {split.about}")
        if self.data.lower().endswith((".npz", ".npy")):  # other files say what their channels are
            layout = self.options.get("layout", "nct")
            warn_of_layout(split.train.n_channels, split.train.n_times, layout)
        return split


def recordings_sentence(data: str, n_recordings: int, channels: Sequence[str], rate: float | None) -> str:
    """Say what was read."""
    rate_text = "" if rate is None else f" at {rate:g} per second"
    return f"Read {data}: {n_recordings} recording(s) of {', '.join(channels)}{rate_text}"


def find_source(
    data: str,
    options: Mapping[str, Any],
    *,
    usual_window: int | None = None,
    before: Path | None = None,
    allowance: Allowance | None = None,
    say: Say = be_silent,
) -> DataSource:
    """Tell what DATA are, by options of reading and the dicot.toml beside them.

    usual_window : time steps of a window of recordings for which nobody says any: SUGGESTED_WINDOW takes what is
        suggested for them, None refuses them
    before : vectors; where nothing at all is said of the reading, recordings are cut as for these
    allowance : what may be left out of recordings
    """
    options = dict(options)
    scale = options.pop("scale", None)
    corpus = corpus_at(data)
    if corpus is not None:
        if options:
            raise WrongCallError(f"{data} is a corpus, whose windows are cut already. Leave out {min(options)}.")
        return DataSource(data, corpus, scale=scale, say=say)

    # A folder is one also where a data set has its name: nothing else has a dicot.toml inside.
    is_file = is_path(data) or Path(data).is_dir()
    toml = toml_of(data) if is_file else None
    of_toml = {} if toml is None else read_toml(toml)
    files = RecordingFiles(data) if is_file else None
    says_window = "window" in {**of_toml, **options}
    if files is not None and not says_window and usual_window is not None and _holds_recordings_alone(data):
        if before is not None and not (options or of_toml):
            options = _as_before(before, say)
        if "window" not in options:
            options |= _usual_options(files, {**of_toml, **options}, usual_window, say)

    if "window" in {**of_toml, **options}:
        source = DataSource(data, None, options, scale, allowance, files, say)
        return _of_recordings(source, toml, of_toml)
    if of_toml:
        raise InputError(f"{toml} has no window, so {data} cannot be cut. Add one there, or give --window.")
    return DataSource(data, None, _options_of_cases(data, options, is_file), scale, say=say)


def _of_recordings(source: DataSource, toml: Path | None, of_toml: dict[str, Any]) -> DataSource:
    """Return recordings with what their dicot.toml says as well; options win."""
    refused = sorted(source.options.keys() & set(OF_CASES))
    if refused:
        raise WrongCallError(f"{refused[0]} is for files of cases; with a window DATA are recordings. Leave it out.")
    if of_toml:
        source.say(f"Options of {toml}: {', '.join(of_toml)}")
    scale_of_toml = of_toml.pop("scale", None)
    options = {**of_toml, **source.options}
    say_table(source.data, options, source.say)
    return replace(source, options=options, scale=source.scale or scale_of_toml)


def _holds_recordings_alone(data: str) -> bool:
    """Tell whether DATA can be nothing but recordings."""
    path = Path(data)
    return path.is_dir() or glob.has_magic(data) or suffix_of(path) not in known_suffixes("cases")


def _options_of_cases(data: str, options: dict[str, Any], is_file: bool) -> dict[str, Any]:
    """Return the options of cases; those of recordings are refused, and of a data set by name all."""
    refused = sorted(options.keys() & set(CUTTING))
    if refused:
        raise WrongCallError(f"{refused[0]} is for recordings. Give --window too, or leave it out.")
    # Missing values are a policy, which whoever loads the cases gives.
    options = {name: value for name, value in options.items() if name != "missing"}
    if options and not is_file:
        raise WrongCallError(f"{data!r} is a data set by name; {min(options)} is for files. Leave it out.")
    return options


def _as_before(vectors: Path, say: Say) -> dict[str, Any]:
    """Return how recordings were read and cut for vectors; nothing where these are not there."""
    made = read_source(vectors) if vectors.exists() else None
    if made is None or made.kind != "recordings":
        return {}
    options = {name: value for name, value in made.options.items() if name not in (*OF_CASES, "scale")}
    if "window" in options:
        say(f"Windows of {options['window']}, as in {vectors}")
    return options


def _usual_options(files: RecordingFiles, options: dict[str, Any], usual_window: int, say: Say) -> dict[str, Any]:
    """Return a window of so many time steps, or what is suggested for the recordings."""
    if usual_window == SUGGESTED_WINDOW:
        return _suggested(files, options, say)
    say(f"Windows of {usual_window} time steps, as the model was fitted on")
    return {"window": usual_window}


def _suggested(files: RecordingFiles, options: dict[str, Any], say: Say) -> dict[str, Any]:
    """Choose windows and what else is needed to cut recordings, as `dicot inspect` suggests it, and say why."""
    looked = Reading(**{name: value for name, value in options.items() if name in LOOKED_AT})
    kinds = sort_by_kind(inspect_recordings(files, looked))
    recordings = kinds.readable
    if not recordings:
        raise InputError(" ".join(problem_sentences(kinds.unreadable)))

    advice = suggest_windows(recordings, looked)
    chosen: dict[str, Any] = {}
    for name in (*OF_CUTTING, *_channels_if_they_differ(recordings, advice)):
        if name in advice.reasons and name not in options:
            chosen[name] = getattr(advice.reading, name)
            say(f"{name} {text_of(chosen[name])}: {advice.reasons[name]}")
    without_rate = no_rate_sentence(recordings)
    if without_rate and "rate" not in options:
        say(without_rate)
    has_table = find_table(files.source, looked.table) is not None
    for sentence in label_advice(recordings, looked, has_table).sentences:
        warnings.warn(sentence, DicotWarning, stacklevel=2)
    say("For other windows say, for example, --window 5s, or write and edit a dicot.toml: dicot inspect --write")
    return chosen


def _channels_if_they_differ(recordings: Sequence[Inspected], advice: Suggestion) -> tuple[str, ...]:
    """Return the name of the option where not all recordings have the same channels."""
    shared = set(advice.reading.channels or ())
    return () if all(set(row.channels) == shared for row in recordings) else ("channels",)


def corpus_at(data: str) -> Corpus | None:
    """Open DATA where they are a corpus; None where they are none."""
    return Corpus.open(data) if (Path(data) / MANIFEST).is_file() else None


def say_table(data: str | list[str], options: Mapping[str, Any], say: Say) -> None:
    """Say which table of labels was found, where nobody named one."""
    table = None if "table" in options else find_table(data)
    if table is not None:
        say(f"Labels of {table}, which lies there; --table '' leaves it out")


def vectors_to_compare(data: str, out: Path) -> MadeOf | None:
    """Say what vectors were made of, if they may be up to date; None where they are not of these recordings."""
    made = source_of(out) if out.exists() else None
    if made is None or made.kind != "recordings" or not made.is_of(data):
        return None
    return made
