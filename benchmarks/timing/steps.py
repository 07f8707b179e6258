"""The main table: a training step by the plain loop, by ours, and what it must cost; and whether the losses agree."""

from collections.abc import Callable, Iterable, Sequence

import torch

from benchmarks.timing.agreement import EARLY, ROUNDING, Agreement, check_losses
from benchmarks.timing.floors import Ceilings, best_of, measure_ceilings, step_work
from benchmarks.timing.sections import Row, Section, Value
from benchmarks.timing.shapes import Effort, Shape, effort_for
from benchmarks.timing.turns import StepSeconds, time_method, time_shape
from dicot.core.progress import Bar
from dicot.methods import METHODS

EffortFor = Callable[[Shape, str], Effort]
ALL_IN = (
    "Ours all in is the whole run of the given length, graph capture and all that is built on the way included, "
    "divided by its steps; ours the steps between two reads of the losses after the first. "
    "The ratio is that of plain to all in."
)


def step_sections(
    shapes: Sequence[Shape], precisions: Sequence[str], device: str, effort: EffortFor = effort_for
) -> tuple[Section, Section, list[float], bool]:
    """Make the table of ratios and the table of agreement; also return the ratios and whether all losses agree."""
    kind = torch.device(device).type
    units = [(shape, precision) for precision in precisions for shape in shapes]
    pairs: list[StepSeconds] = []
    agreements: list[tuple[str, Agreement]] = []
    turns = sum(effort(shape, kind).turns + 1 for shape, _ in units)
    with Bar("steps", turns) as bar:
        done = 0

        def turn() -> None:
            nonlocal done
            done += 1
            bar.update(done, f"{shape} {precision}")

        ceilings = {precision: measure_ceilings(device, precision) for precision in precisions}
        for shape, precision in units:
            work = effort(shape, kind)
            pair = time_shape(shape, precision, device, work, turn)
            pairs.append(pair)
            agreements.append((f"{shape} {precision}", check_losses(shape, precision, work.checked, device)))
            turn()
    for precision, before in ceilings.items():  # once more: a machine that was busy with something else has none
        ceilings[precision] = best_of(before, measure_ceilings(device, precision))
    rows = [_step_row(*unit, pair, ceilings[unit[1]], kind) for unit, pair in zip(units, pairs, strict=True)]
    ratios = [pair.ratio(kind) for pair in pairs]
    timed = ("plain ms", "ours ms", *(("ours all in ms", "steps") if kind == "cuda" else ()), "ratio")
    columns = ("B, T, C, precision", *timed, "operations ms", "bytes ms")
    note = (
        f"Medians, plain and ours in turns with the same draws of k. {ALL_IN if kind == 'cuda' else ''} Operations and "
        f"bytes: what the network as defined must compute and move, at {_ceilings(ceilings)}, measured in this run."
    )
    steps = Section("steps", "A training step of Di-COT", columns, tuple(rows), note.replace("  ", " "))
    return steps, _agreement_section(agreements), ratios, all(one.holds for _, one in agreements)


def _step_row(shape: Shape, precision: str, pair: StepSeconds, ceilings: Ceilings, kind: str) -> Row:
    work = step_work(shape)
    floors = 1e3 * work.operations / ceilings.operations, 1e3 * work.bytes / ceilings.bytes
    return f"{shape} {precision}", (*_times(pair, kind), *floors)


def _times(pair: StepSeconds, kind: str) -> tuple[Value, ...]:
    whole = (1e3 * pair.all_in, str(pair.length)) if kind == "cuda" else ()
    return 1e3 * pair.plain, 1e3 * pair.ours, *whole, pair.ratio(kind)


def _ceilings(by_precision: dict[str, Ceilings]) -> str:
    products = ", ".join(f"{one.operations / 1e12:.3g} TFLOP/s ({name})" for name, one in by_precision.items())
    return f"{products} and {max(one.bytes for one in by_precision.values()) / 1e9:.3g} GB/s"


def _agreement_section(agreements: Sequence[tuple[str, Agreement]]) -> Section:
    rows = tuple(
        (
            label,
            (
                str(one.steps),
                one.early,
                f"{one.tolerance.early:g}",
                one.mean,
                f"{one.tolerance.mean:g}",
                one.chaos,
                "yes" if one.holds else "NO",
            ),
        )
        for label, one in agreements
    )
    columns = (
        "B, T, C, precision",
        "steps",
        f"first {EARLY}",
        "tolerance",
        "mean of all",
        "tolerance of mean",
        "chaos",
        "agrees",
    )
    note = (
        f"Relative deviation of our losses from eager float32, same seed, batches and plans: the largest of the first "
        f"{EARLY} steps and the mean of all. Chaos is the mean deviation of ours from itself when the initial weights "
        f"change by {ROUNDING:g}: training amplifies rounding, whichever way it is done."
    )
    return Section("agreement", "Losses beside eager float32", columns, rows, note)


def method_section(
    shapes: Sequence[Shape], precisions: Sequence[str], device: str, effort: EffortFor, names: Iterable[str] = METHODS
) -> Section:
    """Time methods of the registry by their plain loop and by ours."""
    kind = torch.device(device).type
    units = [(name, shape, precision) for shape in shapes for precision in precisions for name in names]
    rows: list[Row] = []
    if units and kind == "cuda":  # what a process builds once, libraries and kernels, is not the first method's
        name, shape, precision = units[0]
        time_method(name, shape, precision, device, effort(shape, kind), lambda: None)
    with Bar("methods", len(units)) as bar:
        for number, (name, shape, precision) in enumerate(units):
            bar.update(number, f"{name} {shape} {precision}")
            pair = time_method(name, shape, precision, device, effort(shape, kind), lambda: None)
            rows.append((f"{name} {shape} {precision}", _times(pair, kind)))
    timed = ("plain ms", "ours ms", *(("ours all in ms", "steps") if kind == "cuda" else ()), "ratio")
    note = (
        "Plain: the same method around the encoder's definition, eager, with deterministic algorithms, a DataLoader, "
        f"PyTorch's AdamW and .item() every step. {ALL_IN if kind == 'cuda' else ''}"
    )
    columns = ("method, B, T, C, precision", *timed)
    return Section("methods", "Every method beside its plain loop", columns, tuple(rows), note.strip())
