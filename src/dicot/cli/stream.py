"""dicot stream: windows, labels and vectors of samples while they are measured."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import exitcodes
from dicot.cli.paths import check_model
from dicot.core.errors import InputError

if TYPE_CHECKING:
    from dicot.model.stream import Stream

HEAD_SUFFIX = ".safetensors"


def stream(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL|HEAD",
            help="MODEL: an .onnx file, a folder of `dicot pretrain`, or dicot-base. HEAD: a classifier of "
            "`dicot classify --save`, which knows its model and the window.",
        ),
    ],
    window: Annotated[str | None, typer.Option(help="Time steps, or a time such as 2.56s; default: MODEL's.")] = None,
    stride: Annotated[str | None, typer.Option(help="Time steps, a time, or a share; default: HEAD's, or 50%.")] = None,
    rate: Annotated[float | None, typer.Option(help="Time steps per second; default: MODEL's.")] = None,
    time: Annotated[str, typer.Option(help="The column of time stamps: seconds, or dates in ISO 8601.")] = "time",
    connect: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Read from a socket in place of the standard input.")
    ] = None,
    state: Annotated[Path | None, typer.Option(help="Go on from the state in this file, and keep it there.")] = None,
    vectors: Annotated[bool, typer.Option("--vectors/--no-vectors", help="Write the vector of each window.")] = True,
    strict: Annotated[bool, typer.Option("--strict", help="End at the first line that cannot be used.")] = False,
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
        opened = _open(model, window, stride, rate, read_state(state))
        lines = SampleLines(lines_of(connect), opened.channels, time)
        if lines.left_out:
            typer.echo(f"Not used, because the model has no such channel: {', '.join(lines.left_out)}", err=True)
        counts = answer_lines(
            opened,
            lines,
            typer.echo,
            lambda sentence: typer.echo(sentence, err=True),
            with_vector=vectors,
            strict=strict,
            state_file=state,
        )
    except InputError:
        raise
    except ValueError as error:
        # edge.py stands alone and does not know dicot's own error.
        raise InputError(str(error)) from error
    typer.echo(f"{counts.samples} samples, {counts.windows} windows, {counts.bad} lines left out.", err=True)
    if counts.bad:
        raise typer.Exit(exitcodes.PARTIAL)


def _open(
    path: Path, window: str | None, stride: str | None, rate: float | None, state: dict[str, Any] | None
) -> "Stream":
    """Open a stream of a model; or of a classifier, by the model and the cutting that it knows."""
    from dicot.model.stream import Stream

    if path.suffix != HEAD_SUFFIX:
        return Stream(path, window=window, stride=stride or "50%", rate=rate, state=state)

    from dicot.core.errors import naming
    from dicot.model.head import Head
    from dicot.store.vectors import MadeOf
    from dicot.use.why import model_behind

    head = Head.load(path)
    with naming(path):
        trained_on = None if head.source is None else MadeOf.from_dict(head.source)
        model = model_behind(head.model, trained_on.at or None if trained_on else None)
    if trained_on is None or trained_on.kind != "recordings":
        return Stream(model, window=window, stride=stride or "50%", rate=rate, head=head, state=state)
    return Stream(
        model,
        window=window or trained_on.n_times,
        stride=stride or trained_on.stride or "50%",
        rate=rate or trained_on.rate,
        head=head,
        state=state,
    )
