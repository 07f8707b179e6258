"""dicot stream: windows, labels and vectors of samples while they are measured."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from dicot.cli import exitcodes
from dicot.cli.paths import check_model
from dicot.core.errors import InputError

if TYPE_CHECKING:
    from dicot.model.stream import Stream

HEAD_SUFFIX = ".safetensors"


@final
@dataclass(frozen=True)
class WindowOptions:
    """How samples are cut into windows."""

    window: Annotated[
        str | None,
        typer.Option(help="Time steps, or a time such as 2.56s; default: MODEL's."),
    ] = None
    stride: Annotated[
        str | None,
        typer.Option(help="Time steps, a time, or a share; default: HEAD's, or 50%."),
    ] = None
    rate: Annotated[float | None, typer.Option(help="Time steps per second; default: MODEL's.")] = None


@final
@dataclass(frozen=True)
class SampleOptions:
    """Where samples come from, and how they are read."""

    time: Annotated[
        str,
        typer.Option(help="The column of time stamps: seconds, or dates in ISO 8601."),
    ] = "time"
    connect: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Read from a socket in place of the standard input."),
    ] = None
    strict: Annotated[bool, typer.Option("--strict", help="End at the first line that cannot be used.")] = False


def stream(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL|HEAD",
            help="MODEL: an .onnx file, a folder of `dicot pretrain`, or dicot-base. HEAD: a classifier of "
            "`dicot classify --save`, which knows its model and the window.",
        ),
    ],
    cutting: WindowOptions,
    samples: SampleOptions,
    state: Annotated[Path | None, typer.Option(help="Go on from the state in this file, and keep it there.")] = None,
    vectors: Annotated[bool, typer.Option("--vectors/--no-vectors", help="Write the vector of each window.")] = True,
) -> None:
    """Read samples as lines of a .csv, and write a line of JSON for each window as soon as its last sample is there.

    The first line names the columns. Without a column of time stamps the samples follow each other without gaps. A line
    that cannot be used is named on stderr and left out where there are time stamps (exit code 3 at the end); without
    them it ends the stream, because all later samples would have the wrong time.
    """
    from dicot.model.box import in_box
    from dicot.model.edge import SampleLines, answer_lines, lines_of, read_state

    check_model(in_box(model))
    try:
        opened = _open(model, cutting, read_state(state))
        lines = SampleLines(lines_of(samples.connect), opened.channels, samples.time)
        if lines.left_out:
            _tell(f"Not used, because the model has no such channel: {', '.join(lines.left_out)}")
        counts = answer_lines(
            opened,
            lines,
            typer.echo,
            _tell,
            with_vector=vectors,
            strict=samples.strict,
            state_file=state,
        )
    except InputError:
        raise
    except ValueError as error:
        # edge.py stands alone and does not know dicot's own error.
        raise InputError(str(error)) from error
    _tell(f"{counts.samples} samples, {counts.windows} windows, {counts.bad} lines left out.")
    if counts.bad:
        raise typer.Exit(exitcodes.PARTIAL)


def _open(path: Path, cutting: WindowOptions, state: dict[str, Any] | None) -> "Stream":
    """Open a stream of a model; or of a classifier, by the model and the cutting that it knows."""
    if path.suffix == HEAD_SUFFIX:
        from dicot.use.predictions import SavedClassifier

        classifier = SavedClassifier.load(path)
        return classifier.stream(window=cutting.window, stride=cutting.stride, rate=cutting.rate, state=state)
    from dicot.model.stream import Stream

    stride = cutting.stride or "50%"
    return Stream(path, window=cutting.window, stride=stride, rate=cutting.rate, state=state)


def _tell(sentence: str) -> None:
    """Show a sentence beside the lines of JSON, which a program reads."""
    typer.echo(sentence, err=True)
