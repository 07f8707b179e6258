"""Dataclasses among the parameters of a command become its options, and --set is sorted by whom it concerns."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from dicot.cli.commands import command
from dicot.cli.settings import OF_CASES, READING, Settings, sort_settings, texts_of
from dicot.core.errors import WrongCallError
from dicot.methods import METHODS


@dataclass(frozen=True)
class Cutting:
    length: Annotated[int, typer.Option(min=1, help="Time steps.")]
    name: Annotated[str, typer.Option("--called", help="Its name.")] = "cut"
    parts: Annotated[list[Path] | None, typer.Option(help="Files.")] = None


def test_a_command_gets_the_object_made_of_its_options() -> None:
    app, calls = typer.Typer(), []

    @command(app)
    def cut(data: Annotated[str, typer.Argument()], how: Cutting, loud: bool = False) -> None:
        """Cut DATA."""
        calls.append((data, how, loud))

    def run(*words: str) -> int:
        return CliRunner().invoke(app, words).exit_code

    assert run("x", "--length", "3", "--parts", "a", "--parts", "b", "--loud") == 0
    assert run("x", "--length", "3", "--called", "z") == 0
    assert calls == [
        ("x", Cutting(3, parts=[Path("a"), Path("b")]), True),
        ("x", Cutting(3, "z"), False),
    ]
    assert run("x") == run("x", "--length", "0") == run("x", "--length", "3", "--name", "z") == 2
    cut("y", Cutting(1))  # the function itself stays what it was
    assert calls[-1] == ("y", Cutting(1), False)


def settings(*pairs: str, own: tuple[str, ...] = (), of_model: bool = True) -> Settings:
    return sort_settings(texts_of(pairs), own=own, of_model=of_model)


def test_settings_are_sorted_by_whom_they_concern() -> None:
    pairs = ("rate=50", "window=3", "channels=x, y", "dim=8", "lr=1e-3", "bank=True", "holdout=0.2", "k=[2,5]")
    sorted_settings = settings(*pairs, own=("holdout",))
    assert sorted_settings.reading == {"rate": 50, "window": "3", "channels": ["x", "y"]}
    assert sorted_settings.own == {"holdout": 0.2}
    assert sorted_settings.of_model() == {"dim": 8, "features": {"bank": True}, "recipe": {"lr": 1e-3}}
    assert sorted_settings.of_method([METHODS["dicot"]]) == {"k": [2, 5]}


def test_a_setting_that_nobody_takes_is_refused() -> None:
    with pytest.raises(WrongCallError, match=r"Unknown setting 'holdot'. Did you mean 'holdout'"):
        settings("holdot=1", own=("holdout",)).of_method()
    with pytest.raises(WrongCallError, match="Unknown setting 'lr'"):
        settings("lr=1", of_model=False)
    with pytest.raises(WrongCallError, match="Unknown setting 'case'"):
        sort_settings({"case": "id"}, reading=tuple(name for name in READING if name not in OF_CASES))
    for pair, message in {"lr": "name=value", "dim=0": "dim must be a whole number", "rate=-1": "rate must be"}.items():
        with pytest.raises(WrongCallError, match=message):
            settings(pair)
