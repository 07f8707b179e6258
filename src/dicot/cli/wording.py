"""Errors and warnings of the library in the words of the shell: `unequal="pad"` becomes `--unequal pad`."""

import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer

from dicot.core.errors import DicotWarning

# Parameters of the library whose option has another name.
_OTHER_NAMES = {"random_state": "--seed", "method_params": "--set"}
_VALUE = r'"([\w.+-]*)"'


def flags(app: typer.Typer, words: list[str]) -> dict[str, str]:
    """Parameter -> option of the command that these words call."""
    command: Any = typer.main.get_command(app)
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    options = {p.name: p.opts[0] for p in command.params if p.opts[0].startswith("--")}
    return options | {name: flag for name, flag in _OTHER_NAMES.items() if flag in options.values()}


def in_shell(message: str, flags: Mapping[str, str]) -> str:
    """A sentence that names parameters as one that names options, where the command has them."""
    if not flags:
        return message
    name = rf"(?<![\w./-])(?P<name>{'|'.join(map(re.escape, flags))})"
    values = rf"=(?P<values>{_VALUE}(?:(?:, | or ){_VALUE})*)"
    message = re.sub(name + values, lambda m: f"{flags[m['name']]} {m['values'].replace(chr(34), '')}", message)
    message = re.sub(rf"{name}='(?P<value>[^']*)'", lambda m: f"{flags[m['name']]} {m['value']}", message)
    message = re.sub(rf"{name}=(?P<value>\d[\w.]*)", lambda m: f"{flags[m['name']]} {m['value']}", message)
    message = re.sub(rf"{name}(?:=(?!\w)|(?= must be ))", lambda m: flags[m["name"]], message)
    # Sentences for both readers name the option after the parameter, in parentheses: once is enough here.
    message = re.sub(r"(--[a-z-]+) and (--[a-z-]+) \(\1, \2\)", r"\1 and \2", message)
    return re.sub(r"(--[a-z-]+)((?: [\w.]+)?) \(\1(?:\2)?\)", r"\1\2", message)


@contextmanager
def plain_warnings(app: typer.Typer) -> Iterator[None]:
    """A user of the command line is told once what to look at, in a line, not in which of our files it was noticed."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", DicotWarning)
        usual, told = warnings.showwarning, set[str]()

        def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if not issubclass(category, UserWarning):
                usual(message, category, *where, **more)
            elif str(message) not in told:
                told.add(str(message))
                typer.secho(f"Warning: {in_shell(str(message), flags(app, sys.argv[1:]))}", fg="yellow", err=True)

        warnings.showwarning = show
        yield
