"""How a function becomes a command: dataclasses among its parameters become options, each field one."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, ParamSpec, final, get_type_hints

import typer
from typer.core import TyperCommand

from dicot.cli.settings import refuse_gone
from dicot.core.errors import WrongCallError

P = ParamSpec("P")


@final
class Command(TyperCommand):
    """A command; where it has --set, an unknown option is answered with the setting that it may mean."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        options: set[str] = set()
        for parameter in self.get_params(ctx):
            options.update(parameter.opts, parameter.secondary_opts)
        if "--set" in options:
            for word in args:
                _refuse_unknown(word.partition("=")[0], options)
        return super().parse_args(ctx, args)


def _refuse_unknown(flag: str, options: set[str]) -> None:
    if not flag.startswith("--") or flag in options:
        return
    setting = flag.removeprefix("--").removeprefix("no-").replace("-", "_")
    refuse_gone(setting)
    raise WrongCallError(f"There is no option {flag[:40]}. If it is a setting, write --set {setting[:40]}=VALUE.")


def command(app: typer.Typer, name: str | None = None) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Make a function a command of `app`, and return the function as it was.

    A parameter that is a dataclass, such as `reading: ReadingOptions`, becomes one option for each
    of its fields, written as typer wants them: Annotated[type, typer.Option(...)].
    """

    def register(function: Callable[P, None]) -> Callable[P, None]:
        app.command(name, cls=Command)(_with_options_of_dataclasses(function))
        return function

    return register


def _with_options_of_dataclasses(function: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that typer, which reads signatures, sees fields in place of dataclasses."""
    hints = get_type_hints(function, include_extras=True)
    classes: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    def run(**values: Any) -> None:
        for name, kind in classes.items():
            values[name] = kind(**{field.name: values.pop(field.name) for field in fields(kind)})
        function(**values)

    shown: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in classes:
            shown.append(parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hints[name]))
    for kind in classes.values():
        shown += _parameters_of(kind)

    wrapper: Any = run
    wrapper.__name__ = function.__name__
    wrapper.__doc__ = function.__doc__
    wrapper.__signature__ = inspect.Signature(shown)
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def _parameters_of(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=_default_of(field),
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]


def _default_of(field: Field[Any]) -> Any:
    return inspect.Parameter.empty if field.default is MISSING else field.default
