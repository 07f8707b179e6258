"""The speed benchmark from top to bottom: everything in one run, as ratios."""

import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import torch

from dicot.errors import InputError
from dicot.gpu.device import resolve_device
from dicot.speed.accuracy import accuracy_section
from dicot.speed.archive import archive_sections
from dicot.speed.embedding import embedding_section
from dicot.speed.memory import memory_section
from dicot.speed.scaling import scaling_sections
from dicot.speed.sections import Section
from dicot.speed.shapes import CPU, CUDA, METHOD_SHAPES, QUICK, Effort, Shape, effort_for
from dicot.speed.steps import method_section, step_sections

PRECISIONS = {"cpu": ("float32",), "cuda": ("float32", "tf32")}


@dataclass(frozen=True)
class Options:
    """What to measure. Without `shapes`, `precisions` and numbers: what the device is held to."""

    device: str = "auto"
    quick: bool = False
    precisions: tuple[str, ...] = ()
    shapes: tuple[Shape, ...] = ()
    turns: int | None = None
    steps: int | None = None
    checked: int | None = None
    accuracy: bool = False
    methods: bool = False
    scaling: bool = False
    embedding: bool = False
    archive: bool = False
    step: bool = True
    draw: bool = False


@dataclass
class Result:
    """What was found. `agrees`: the losses are those of eager float32, within the tolerance."""

    kind: str  # of device: cpu or cuda
    machine: str
    sections: list[Section] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    agrees: bool = True


def run_benchmark(options: Options, on_section: Callable[[Result], None] = lambda result: None) -> Result:
    """Measure; `on_section` sees the result whenever a part was added to it."""
    place = resolve_device(options.device)
    precisions = options.precisions or PRECISIONS[place.type]
    unknown = set(precisions) - set(PRECISIONS["cuda"])
    if unknown:
        raise InputError(f"precision must be float32 or tf32; got {', '.join(sorted(unknown))}.")
    result = Result(place.type, machine(place))
    for section in _sections(options, str(place), precisions, result):
        result.sections.append(section)
        on_section(result)
    return result


def _sections(options: Options, device: str, precisions: Sequence[str], result: Result) -> Iterator[Section]:
    kind = torch.device(device).type
    shapes = options.shapes or (QUICK if options.quick else CUDA if kind == "cuda" else CPU)
    if options.step:
        steps, agreement, result.ratios, result.agrees = step_sections(
            shapes, precisions, device, partial(_effort, options)
        )
        yield from (steps, agreement)
    if options.accuracy:
        yield accuracy_section(precisions, device)
    if options.methods:
        of_methods = partial(_effort, options, methods=True)
        yield method_section(options.shapes or METHOD_SHAPES, precisions, device, of_methods)
    if options.scaling:
        yield from scaling_sections(precisions[-1], device, draw=options.draw)
        yield memory_section(shapes, device)
    if options.embedding:
        yield embedding_section(shapes, device)
    if options.archive:
        yield from archive_sections(precisions[-1], device)


def _effort(options: Options, shape: Shape, kind: str, methods: bool = False) -> Effort:
    """The usual effort, but for what the user said; more turns are more runs of ours on a CPU alone."""
    effort = effort_for(shape, kind, methods=methods)
    if options.turns is not None:
        effort = replace(effort, turns=options.turns, runs=options.turns if kind == "cpu" else 1)
    if options.steps is not None:
        effort = replace(effort, steps=options.steps)
    return effort if options.checked is None else replace(effort, checked=options.checked)


def machine(place: torch.device) -> str:
    """Where this was measured, in one line."""
    if place.type == "cuda":
        return f"{torch.cuda.get_device_name(place)}, CUDA {torch.version.cuda}, torch {torch.__version__}"
    return f"CPU ({platform.machine()}), {torch.get_num_threads()} threads, torch {torch.__version__}"
