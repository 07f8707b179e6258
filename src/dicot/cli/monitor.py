"""dicot monitor: whether a new week, device or class is still what the reference was."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import typer

from dicot.cli import options as opt
from dicot.cli.exitcodes import CANNOT_TELL, CHANGE_FOUND, end
from dicot.cli.pages import check_plot, write_page
from dicot.cli.paths import check_inputs, check_outputs
from dicot.cli.tables import show_columns

if TYPE_CHECKING:
    from dicot.judge.report.page import Summary
    from dicot.judge.report.windows import WindowsPage
    from dicot.use.monitoring import Comparison
    from dicot.use.sides import ExchangedUnit, Sides


@final
@dataclass(frozen=True)
class ComparisonOptions:
    """What is compared, and by which test."""

    by: Annotated[
        str | None,
        typer.Option(help="Compare parts of NEW: recording, group, label, week or day."),
    ] = None
    unit: Annotated[
        str | None,
        typer.Option(
            help="ExchangedUnit that the test permutes as a whole: group, recording, week, day, window, "
            "or a block of time such as 10min."
        ),
    ] = None
    head: Annotated[
        Path | None,
        typer.Option(help="A saved classifier: compare shares of predicted classes."),
    ] = None
    alpha: opt.Alpha = 0.05


def monitor(
    reference: Annotated[Path, typer.Argument(help="Vectors of what is known to be fine.")],
    new: Annotated[Path, typer.Argument(help="Vectors or predictions of what is new, by the same model.")],
    out: Annotated[Path, typer.Option(help="The page, an .html.")],
    test: ComparisonOptions,
    series: opt.SeriesOptions,
    top: Annotated[int, typer.Option(min=0, help="How many windows to draw; 0 needs no recordings.")] = 9,
    overwrite: opt.Overwrite = False,
) -> None:
    """Compare NEW with REFERENCE: distances, shares of classes, a test for a change, and a page with pictures.

    The test exchanges whole recordings, or groups where none is in both files: windows of one recording are no
    independent evidence. With few recordings compare blocks of time, such as --unit 10min. --by label compares each
    class with the same class of the reference. Shares of classes predicted by --head are tested, too; shares of labels
    that somebody gave are only shown. Exit code 0: no change was found; 4: an alarm; 5: too little for a verdict.
    """
    check_inputs("vectors", reference, new)
    check_inputs("classifier", test.head)
    check_outputs(out, overwrite=overwrite, inputs=(reference, new, test.head))
    check_plot(out, series.data, "--out")

    from dicot.judge.report.drift import columns_of
    from dicot.judge.report.page import Summary
    from dicot.use.blockadvice import short_blocks_warning
    from dicot.use.sides import ExchangedUnit, Sides

    sides = Sides.read(reference, new)
    classes = sides.classes(test.head)
    unit = sides.usual_unit() if test.unit is None else ExchangedUnit.of(test.unit)
    short_blocks = short_blocks_warning(sides.vectors, unit.seconds, test.alpha)
    if short_blocks:
        opt.warn(short_blocks)
    found = sides.compare(unit, classes, test.by, test.alpha)
    doubt = sides.doubt_about_fit()

    table = columns_of(found, unit.name)
    show_columns(table)
    sentences = _verdict(found, sides, unit, bool(short_blocks), doubt)
    changes = sides.changes(found, classes, series.data if top else "")
    for sentence in (*sentences, *changes):
        typer.echo(sentence)
    explore = shlex.join(["dicot", "explore", str(new)])
    summary = Summary("What has changed most", changes, table, (explore,))
    page = _page(found, sides, sentences, summary, top)
    write_page(out, page, new, sides.new.vectors, series)

    if found.alarms() and not doubt:
        raise typer.Exit(CHANGE_FOUND)
    if found.alarms() or found.undecided():
        raise typer.Exit(CANNOT_TELL)
    end(series.allowance)


def _verdict(found: "Comparison", sides: "Sides", unit: "ExchangedUnit", short_blocks: bool, doubt: str) -> list[str]:
    from dicot.judge.report.drift import verdict
    from dicot.use.blockadvice import remedy_for_few_units

    if doubt and found.alarms():
        return [f"Cannot tell whether anything has changed. {doubt}"]
    remedy = ""
    if found.undecided():
        remedy = remedy_for_few_units(sides.vectors, unit.seconds, found.alpha)
    sentences = verdict(found, unit.name, remedy, short_blocks)
    return [*sentences, doubt] if doubt else sentences


def _page(found: "Comparison", sides: "Sides", sentences: list[str], summary: "Summary", top: int) -> "WindowsPage":
    """Draw what has changed, and the new windows that lie farthest from the reference."""
    from dicot.judge.report.drift import drift_figure
    from dicot.judge.report.windows import WindowsPage

    old, new = sides.reference, sides.new
    facts = {}
    for row in sides.farthest(found, top):
        p, distance = found.outlier_p[row], found.distance[row]
        facts[row] = {"p": f"{p:.3f}", "distance": f"{distance:.3f}"}
    counts = f"Reference: {old.path}, {len(old.vectors)} windows. New: {new.path}, {len(new.vectors)} windows."
    lead = [*sentences, counts]
    if facts:
        lead.append("Below: the new windows that lie farthest from the reference.")
    title = f"{new.path.name} against {old.path.name}"
    return WindowsPage(title, lead, facts, figure=drift_figure(found), summary=summary)
