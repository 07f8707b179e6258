"""python -m bench speed: training and embedding beside a plain loop, as ratios.

Everything is measured in one run on one machine; the last line is the smallest ratio of a training step.
"""

import platform
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

import pandas as pd
import torch
import typer

from bench.options import Device, names
from bench.speed.agreement import EARLY, ROUNDING, check_losses
from bench.speed.embedding import BATCH, embedding_rows
from bench.speed.shapes import CPU, CUDA, METHOD_SHAPES, Shape, effort_for, parse_shape
from bench.speed.steps import method_row, time_dicot
from bench.tables import Row, markdown
from dicot.core.device import resolve_device
from dicot.core.storage import write_atomic
from dicot.methods import METHODS

USUAL_PRECISIONS = {"cpu": "float32", "cuda": "float32,tf32"}

STEPS_NOTE = (
    "Medians, plain and ours in turns with the same draws of k. Ours all in (on a GPU) is the whole run of the given "
    "length, graph capture and all that is built on the way included, divided by its steps; ours the steps between "
    "two reads of the losses after the first. There the ratio is that of plain to all in."
)
AGREEMENT_NOTE = (
    "Relative deviation of our losses from eager float32, same seed, batches and plans: the largest of the first "
    f"{EARLY} steps and the mean of all. Chaos is the mean deviation of ours from itself when the initial weights "
    f"change by {ROUNDING:g}: training amplifies rounding, whichever way it is done."
)
METHODS_NOTE = (
    "Plain: the same method around the encoder's definition, eager, with deterministic algorithms, a DataLoader, "
    "PyTorch's AdamW and .item() every step."
)
EMBEDDING_NOTE = (
    f"Eval mode, batches of {BATCH}, from host memory and back. The deviation is that of ours from eager float32 "
    "through the encoder's definition with the same weights, relative to the largest value."
)


@dataclass(frozen=True)
class Section:
    """A table of the page."""

    name: str
    title: str
    rows: Sequence[Row]
    note: str


def speed(
    device: Device = "auto",
    precision: Annotated[str | None, typer.Option(help="float32, tf32 or both: float32,tf32.")] = None,
    shape: Annotated[list[str] | None, typer.Option(help="batch,time steps,channels; repeat for more.")] = None,
    step: Annotated[bool, typer.Option(help="The training step of Di-COT.")] = True,
    methods: Annotated[bool, typer.Option("--methods", help="Also every method beside its plain loop.")] = False,
    embedding: Annotated[bool, typer.Option("--embedding", help="Also the throughput of embedding.")] = False,
    out: Annotated[Path | None, typer.Option(help="Folder for the page and its .csv.")] = None,
) -> None:
    """Training steps beside a plain loop, as ratios; exit code 1 where losses leave the tolerance."""
    resolved = resolve_device(device)
    device, kind = str(resolved), resolved.type
    precisions = names(precision or USUAL_PRECISIONS[kind], ("float32", "tf32"))
    given = [parse_shape(text) for text in shape or ()]
    shapes = given or list(CUDA if kind == "cuda" else CPU)

    sections: list[Section] = []
    if step:
        sections += step_sections(shapes, precisions, device)
    if methods:
        sections.append(method_section(given or METHOD_SHAPES, precisions, device))
    if embedding:
        lengths = dict.fromkeys(shape._replace(batch=BATCH) for shape in shapes)
        rows = [row for length in lengths for row in embedding_rows(length, device)]
        sections.append(Section("embedding", "Embedding", rows, EMBEDDING_NOTE))

    page = page_of(sections, machine(resolved))
    typer.echo(page)
    if out is not None:
        write_page(out, page_name(kind), page, sections)
    if step:
        typer.echo(f"min ratio {min(float(row['ratio']) for row in sections[0].rows):.2f}")
        if any(row["agrees"] == "NO" for row in sections[1].rows):
            typer.secho("Error: the losses are not those of eager float32; see the table above.", fg="red", err=True)
            raise typer.Exit(1)


def step_sections(shapes: Sequence[Shape], precisions: Sequence[str], device: str) -> list[Section]:
    """The table of ratios, and whether the losses agree."""
    kind = torch.device(device).type
    ratios: list[Row] = []
    agreements: list[Row] = []
    for precision in precisions:
        for shape in shapes:
            label = {"B, T, C, precision": f"{shape} {precision}"}
            effort = effort_for(shape, kind)
            ratios.append({**label, **time_dicot(shape, precision, device, effort).row(kind)})
            agreements.append({**label, **check_losses(shape, precision, effort.checked, device).row()})
            typer.echo(f"{shape} {precision}: ratio {ratios[-1]['ratio']:.2f}", err=True)
    return [
        Section("steps", "A training step of Di-COT", ratios, STEPS_NOTE),
        Section("agreement", "Losses beside eager float32", agreements, AGREEMENT_NOTE),
    ]


def method_section(shapes: Sequence[Shape], precisions: Sequence[str], device: str) -> Section:
    """Every method of the registry by its plain loop and by ours."""
    kind = torch.device(device).type
    if kind == "cuda":
        # Libraries and kernels are built once in a process, and the first method should not be charged for it.
        first = shapes[0]
        method_row(next(iter(METHODS)), first, precisions[0], device, effort_for(first, kind, methods=True))
    rows = []
    for shape in shapes:
        for precision in precisions:
            for name in METHODS:
                rows.append(method_row(name, shape, precision, device, effort_for(shape, kind, methods=True)))
                typer.echo(f"{name} {shape} {precision}: ratio {rows[-1]['ratio']:.2f}", err=True)
    return Section("methods", "Every method beside its plain loop", rows, METHODS_NOTE)


def page_name(kind: str, processor: str | None = None) -> str:
    """Name the page of a kind of device: ARM processors have one of their own beside that of x86."""
    is_arm = (processor or platform.machine()).lower().startswith(("arm", "aarch"))
    return f"speed-{kind}-arm" if kind == "cpu" and is_arm else f"speed-{kind}"


def machine(device: torch.device) -> str:
    """Say in one line where this was measured."""
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, CUDA {torch.version.cuda}, torch {torch.__version__}"
    return f"CPU ({platform.machine()}), {torch.get_num_threads()} threads, torch {torch.__version__}"


def page_of(sections: Sequence[Section], where: str) -> str:
    """The command that made it, and every table with its note."""
    command = shlex.join(["python", "-m", "bench", *sys.argv[1:]])
    parts = [f"# Speed on {where}\n", f"`{command}`, {date.today().isoformat()}.\n"]
    for section in sections:
        parts.append(f"## {section.title}\n\n{markdown(section.rows)}\n{section.note}\n")
    return "\n".join(parts)


def write_page(folder: Path, name: str, page: str, sections: Sequence[Section]) -> None:
    """Write NAME.md, and NAME.csv with every number, not rounded."""
    numbers = []
    for section in sections:
        for row in section.rows:
            label, *columns = row
            for column in columns:
                numbers.append([section.name, row[label], column, row[column]])
    table = pd.DataFrame(numbers, columns=["section", "row", "column", "value"])
    write_atomic(folder / f"{name}.md", page.encode())
    write_atomic(folder / f"{name}.csv", table.to_csv(index=False).encode())
