"""How the commands that are not yet written with ReadingOptions take the options of reading and --set."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from dicot.cli.exitcodes import end
from dicot.cli.settings import FEATURES, OF_CASES, OF_RECORDINGS, READING, RECIPE, checking_options, refuse_gone
from dicot.cli.settings import value_of as _value
from dicot.core.errors import WrongCallError, did_you_mean, is_whole

if TYPE_CHECKING:
    from dicot.data.allowance import Allowance

CASES, CUTTING = OF_CASES, OF_RECORDINGS
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at a file that cannot be read; without it the rest is done.")
]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any other setting; repeat for more.")
]


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


def reads(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading and --set; it gets what they say as its argument `said`."""
    own = [one for one in inspect.signature(command).parameters.values() if one.name != "said"]
    shared = inspect.signature(_reading_options).parameters

    @wraps(command)
    def run(**given: Any) -> None:
        options: dict[str, Any] = {name: given.pop(name) for name in shared}
        pairs = options.pop("set_")
        strict, allow_partial = options.pop("strict"), options.pop("allow_partial")
        said = SettingsBag(pairs, options, strict=strict, allow_partial=allow_partial)
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


@final
class SettingsBag:
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
            refuse_gone(name.strip())
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
        arguments |= {} if (dim := self.take_count("dim")) is None else {"dim": dim}
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


def _check_reading(settings: Mapping[str, Any]) -> None:
    """Refuse a value that a field of a Reading does not take; other settings are checked by whom they are for."""
    read = {name: value for name, value in settings.items() if name in READING}
    if read:
        from dicot.data.reading import Reading

        Reading(**read)
