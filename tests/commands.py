"""Commands as a user types them, in this process."""

import typer
from typer.testing import CliRunner

from bench.__main__ import app as bench_app
from dicot.cli import app


def dicot(*words: object, code: int = 0, stdin: str | None = None) -> str:
    """What `dicot WORDS` prints; an error of the library is raised, and another exit code is a failure."""
    return invoke(app, words, code, stdin)


def bench(*words: object, code: int = 0) -> str:
    """What `python -m bench WORDS` prints; as with `dicot`."""
    return invoke(bench_app, words, code, None)


def invoke(commands: typer.Typer, words: tuple[object, ...], code: int, stdin: str | None) -> str:
    result = CliRunner().invoke(commands, [str(word) for word in words], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output
