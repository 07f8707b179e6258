"""Commands as a user types them, in this process."""

from typer.testing import CliRunner

from dicot.cli import app


def dicot(*words: object, code: int = 0, stdin: str | None = None) -> str:
    """What `dicot WORDS` prints; an error of the library is raised, and another exit code is a failure."""
    result = CliRunner().invoke(app, [str(word) for word in words], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output
