"""What --set and the options of reading say: read once, and sorted by whom it concerns."""

import inspect
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

from dicot.core.errors import InputError, WrongCallError, did_you_mean, is_whole

OF_CASES = ("case", "header", "layout")  # of a file of cases
OF_RECORDINGS = (  # of how recordings are cut
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
)
OF_BOTH = ("time", "channels", "label", "group", "missing", "scale", "ignore")
READING = (*OF_BOTH, *OF_CASES, *OF_RECORDINGS)

ENCODER = ("encoder", "encoder_params", "family", "dim")
FEATURES = ("pooling", "calibrate", "bank", "n_components")
RECIPE = ("batch_size", "lr", "weight_decay", "betas", "warmup", "schedule", "precision")

# Values that stay text, also where they look like a number.
TEXTS = (
    "time",
    "label",
    "group",
    "case",
    "unit",
    "duplicates",
    "window",
    "stride",
    "names",
    "join",
    "table",
    "table_unit",
)
# Settings of earlier versions, and what to do instead.
GONE = {
    "memory": "Where memory is short, lower batch_size or --workers, or use shorter windows.",
    "gpu_memory": "Where a GPU's memory is short, lower batch_size, or use shorter windows.",
}
LISTS = ("channels", "ignore")  # names, separated by commas
WORDS = {"True": True, "False": False, "None": None}  # as Python writes them; JSON has its own


@final
@dataclass(frozen=True)
class Settings:
    """Settings by whom they concern; each group has only those that were given."""

    reading: dict[str, Any]  # fields of a Reading
    own: dict[str, Any]  # of the command itself, such as `holdout` of `dicot evaluate`
    encoder: dict[str, Any]
    features: dict[str, Any]
    recipe: dict[str, Any]
    others: dict[str, Any]  # what no group has: settings of a method, or mistakes
    known: tuple[str, ...]  # the names of all groups

    def of_model(self) -> dict[str, Any]:
        """Return arguments of a TimeSeriesEmbedder, but for the method and how cases are prepared."""
        groups = {"features": self.features, "recipe": self.recipe}
        return self.encoder | {name: settings for name, settings in groups.items() if settings}

    def of_method(self, methods: Iterable[type] = ()) -> dict[str, Any]:
        """Return settings of one of these methods; a name that none of them has is refused."""
        known = list(self.known)
        for method in methods:
            known += [name for name in inspect.signature(method).parameters if name != "encoder"]
        for name in self.others:
            if name not in known:
                suggestion = did_you_mean(name[:40], known)
                raise WrongCallError(f"Unknown setting {name[:40]!r}. {suggestion}")
        return self.others


def sort_settings(
    texts: Mapping[str, str],
    *,
    reading: Sequence[str] = READING,
    own: Sequence[str] = (),
    of_model: bool = False,
) -> Settings:
    """Sort settings by group; `own` are those that only this command has.

    Unless they are for a model too, which may have a method with settings of its own, a name that
    is in no group is refused.
    """
    values = {name: value_of(name, text) for name, text in texts.items()}
    groups = {"own": own, "reading": reading, "encoder": (), "features": (), "recipe": ()}
    if of_model:
        groups |= {"encoder": ENCODER, "features": FEATURES, "recipe": RECIPE}
    sorted_values: dict[str, dict[str, Any]] = {}
    for group, names in groups.items():
        sorted_values[group] = {name: values.pop(name) for name in names if name in values}
    settings = Settings(
        **sorted_values,
        others=values,
        known=tuple(name for names in groups.values() for name in names),
    )

    _check_reading({name: values for name, values in settings.reading.items() if name in READING})
    whole_number("dim", settings.encoder)
    if not of_model:
        settings.of_method()
    return settings


def _check_reading(values: Mapping[str, Any]) -> None:
    """Refuse a value that a field of a Reading does not take."""
    if values:
        from dicot.data.reading import Reading

        with checking_options():
            Reading(**values)


def whole_number(name: str, settings: Mapping[str, Any]) -> int | None:
    """Return this setting if it was given: a whole number of at least 1."""
    value = settings.get(name)
    if value is not None and not is_whole(value, 1):
        raise WrongCallError(f"{name} must be a whole number, 1 or more; got {value!r}.")
    return value


def texts_of(pairs: Iterable[str] | None) -> dict[str, str]:
    """Read what --set was given: name=value, as often as it stands there."""
    texts = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        if not equals or not name.strip():
            raise WrongCallError(f"--set takes name=value; got {pair[:80]!r}.")
        refuse_gone(name.strip())
        texts[name.strip()] = text
    return texts


def refuse_gone(name: str) -> None:
    """Refuse a setting of earlier versions by saying what to do instead."""
    if name in GONE:
        raise WrongCallError(f"The setting {name} is gone. {GONE[name]}")


def value_of(name: str, text: str) -> Any:
    """Read a value as JSON; names of columns and what is no JSON stay text."""
    if name in LISTS:
        return [part.strip() for part in text.split(",")]
    if name in TEXTS:
        return text
    if text in WORDS:
        return WORDS[text]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # no JSON, a number of thousands of digits, or lists too deep
        return text


@contextmanager
def checking_options() -> Iterator[None]:
    """Turn what the library says of a value that came from an option into a WrongCallError."""
    try:
        yield
    except WrongCallError:
        raise
    except InputError as error:
        raise WrongCallError(str(error)) from error
