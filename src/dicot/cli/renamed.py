"""Names of the release before: commands that answer with their new name, and options that are settings now."""

from typing import Any, final

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
    """A command; where it has --set, an unknown option is answered with the setting that it may mean."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        known = {word for one in self.get_params(ctx) for word in (*one.opts, *one.secondary_opts)}
        for word in args if "--set" in known else ():
            flag = word.partition("=")[0]
            if flag.startswith("--") and flag not in known:
                setting = flag.removeprefix("--").removeprefix("no-").replace("-", "_")
                raise InputError(
                    f"There is no option {flag[:40]}. If it is a setting, write --set {setting[:40]}=VALUE."
                )
        return super().parse_args(ctx, args)
