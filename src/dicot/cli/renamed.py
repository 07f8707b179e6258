"""Names of the release before: commands that answer with their new name, and options that --set has taken over."""

from typing import Any, final

import typer
from typer.core import TyperCommand, TyperGroup

from dicot.core.errors import InputError

COMMANDS = {
    "corpus info": "dicot inspect CORPUS",
    "corpus embed": "dicot embed MODEL CORPUS --out FOLDER",
    "bench export": "dicot bench SUITE --dry-run --export FILE",
    "data list": "dicot list datasets",
    "data show": "dicot list datasets NAME",
    "data check": "dicot list datasets --check",
}
# Options that are settings now: `--dim 8` is read as `--set dim=8`.
SETTINGS = (
    *("encoder", "dim", "batch-size", "lr", "schedule", "precision", "pooling", "bank", "n-components", "family"),
    *("layout", "unequal", "missing", "scale", "case", "ignore", "rate", "unit", "gap"),
    *("checkpoint-seconds", "memory", "gpu-memory", "subsets", "holdout", "split-seed", "protocols"),
    *("actors", "cpus-per-actor", "gpus-per-actor", "sample", "sets", "seeds", "steps", "workers"),
)
SWITCHES = ("calibrate", "resample", "header")


def refuse_renamed(ctx: Any, args: list[str]) -> None:
    """Answer the name of a command that was renamed with its new one."""
    name = " ".join([*ctx.command_path.split()[1:], args[0]])
    if name in COMMANDS:
        raise InputError(f"`dicot {name}` is now `{COMMANDS[name]}`.")


@final
class CommandGroup(TyperGroup):
    """Commands, of which those that were renamed say so."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        refuse_renamed(ctx, args)
        return super().resolve_command(ctx, args)


@final
class Command(TyperCommand):
    """A command; where it has --set, options of the release before are read as settings."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        known = {word for one in self.params for word in (*one.opts, *one.secondary_opts)}
        return super().parse_args(ctx, _as_settings(args, known) if "--set" in known else args)


def _as_settings(args: list[str], known: set[str]) -> list[str]:
    words, left = [], list(args)
    while left:
        word = left.pop(0)
        flag, equals, value = word.partition("=")
        name = flag.removeprefix("--")
        if flag in known or not flag.startswith("--"):
            words.append(word)
            continue
        if name.removeprefix("no-") in SWITCHES:
            name, value = name.removeprefix("no-"), "false" if name.startswith("no-") else "true"
        elif name in SETTINGS and (equals or left):
            value = value if equals else left.pop(0)
        else:
            words.append(word)
            continue
        setting = f"{name.replace('-', '_')}={value}"
        typer.echo(f"Note: {flag} is now --set {setting}", err=True)
        words += ["--set", setting]
    return words
