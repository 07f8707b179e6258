"""python benchmarks/speed.py [--device cpu --quick ...]: training and embedding beside a plain loop, as ratios.

Everything is measured in one run on one machine; the last line is the smallest ratio of a training step. Exit code 1
where the losses are not those of eager float32.
"""

import platform
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run by its path, a script finds only its own folder

from benchmarks.timing.agreement import accuracy_section
from benchmarks.timing.archive import archive_sections
from benchmarks.timing.embedding import embedding_section
from benchmarks.timing.scaling import memory_section, scaling_sections
from benchmarks.timing.sections import Measurements, Section, show, write_files
from benchmarks.timing.shapes import CPU, CUDA, METHOD_SHAPES, QUICK, Effort, Shape, effort_for, parse_shape
from benchmarks.timing.steps import method_section, step_sections
from dicot.core.device import resolve_device
from dicot.core.errors import DicotError, InputError

MEASURED_PRECISIONS = {"cpu": ("float32",), "cuda": ("float32", "tf32")}
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def speed(
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ... or auto.")] = "auto",
    quick: Annotated[bool, typer.Option("--quick", help="Three small shapes only; two minutes on two cores.")] = False,
    precision: Annotated[
        list[str] | None, typer.Option(help="float32 or tf32; repeat for more. Default: both on a GPU.")
    ] = None,
    shape: Annotated[
        list[str] | None, typer.Option(help="batch,time steps,channels instead of the usual ones; repeat for more.")
    ] = None,
    turns: Annotated[int | None, typer.Option(min=1, help="Turns of plain and ours.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Timed steps per turn.")] = None,
    checked: Annotated[int | None, typer.Option(min=1, help="Losses compared with eager float32.")] = None,
    accuracy: Annotated[bool, typer.Option("--accuracy", help="Also probe accuracy over three seeds.")] = False,
    methods: Annotated[bool, typer.Option("--methods", help="Also every method beside its plain loop.")] = False,
    scaling: Annotated[bool, typer.Option("--scaling", help="Also cost and memory against the sizes.")] = False,
    embedding: Annotated[bool, typer.Option("--embedding", help="Also the throughput of embedding.")] = False,
    archive: Annotated[bool, typer.Option("--archive", help="Also all archive sets at once (DICOT_DATA).")] = False,
    step: Annotated[bool, typer.Option(help="The training step of Di-COT, which all else is added to.")] = True,
    out: Annotated[Path | None, typer.Option(help="Folder for speed-cpu, -cpu-arm or -cuda .md, .csv, .svg.")] = None,
) -> None:
    """Training steps beside a plain loop, as ratios; exit code 1 where losses leave the tolerance."""
    resolved = resolve_device(device)
    device, kind = str(resolved), resolved.type
    precisions = tuple(precision or MEASURED_PRECISIONS[kind])
    if unknown := set(precisions) - set(MEASURED_PRECISIONS["cuda"]):
        raise InputError(f"precision must be float32 or tf32; got {', '.join(sorted(unknown))}.")
    asked = tuple(parse_shape(text) for text in shape or ())
    shapes = asked or (QUICK if quick else CUDA if kind == "cuda" else CPU)
    measured = Measurements(page_name(kind), machine(resolved))

    def effort(shape: Shape, kind: str, methods: bool = False) -> Effort:
        """Take the usual effort, except for what the user said; more turns are more runs of ours on a CPU alone."""
        usual = effort_for(shape, kind, methods=methods)
        if turns is not None:
            usual = replace(usual, turns=turns, runs=turns if kind == "cpu" else 1)
        if steps is not None:
            usual = replace(usual, steps=steps)
        return usual if checked is None else replace(usual, checked=checked)

    def sections() -> Iterator[Section]:
        if step:
            table, agreement, measured.ratios, measured.agrees = step_sections(shapes, precisions, device, effort)
            yield from (table, agreement)
        if accuracy:
            yield accuracy_section(precisions, device)
        if methods:
            yield method_section(
                asked or METHOD_SHAPES, precisions, device, lambda shape, kind: effort(shape, kind, methods=True)
            )
        if scaling:
            yield from scaling_sections(precisions[-1], device, draw=out is not None)
            yield memory_section(shapes, device)
        if embedding:
            yield embedding_section(shapes, device)
        if archive:
            yield from archive_sections(precisions[-1], device)

    command = shlex.join(["python", "benchmarks/speed.py", *sys.argv[1:]])
    for section in sections():
        measured.sections.append(section)
        show(section)
        if out is not None:  # after every part: whoever interrupts the rest keeps what there is
            write_files(out, measured, command)
    typer.echo(measured.machine)
    if out is not None:
        typer.echo(f"Wrote {measured.page}.md, .csv and figures to {out}")
    if measured.ratios:
        typer.echo(f"min ratio {min(measured.ratios):.2f}")
    if not measured.agrees:
        typer.secho("Error: the losses are not those of eager float32; see the table above.", fg="red", err=True)
        raise typer.Exit(1)


def page_name(kind: str, processor: str | None = None) -> str:
    """Name the page of a kind of device: ARM processors have one of their own beside that of x86."""
    arm = (processor or platform.machine()).lower().startswith(("arm", "aarch"))
    return f"speed-{kind}-arm" if kind == "cpu" and arm else f"speed-{kind}"


def machine(device: torch.device) -> str:
    """Say in one line where this was measured."""
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, CUDA {torch.version.cuda}, torch {torch.__version__}"
    return f"CPU ({platform.machine()}), {torch.get_num_threads()} threads, torch {torch.__version__}"


def main() -> None:
    """Run the command; an error of the library is one line."""
    try:
        app()
    except DicotError as error:
        typer.secho(f"Error: {error}", fg="red", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
