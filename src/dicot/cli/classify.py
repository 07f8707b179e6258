"""dicot classify: a label for every window, learned from a few, and how far it can be trusted."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from dicot.cli import options as opt
from dicot.cli.paths import check_inputs, check_outputs, check_table
from dicot.cli.tables import show_columns, write_table
from dicot.core.errors import WrongCallError
from dicot.core.progress import Bar

if TYPE_CHECKING:
    from dicot.use.labels.accuracy import HonestAccuracy
    from dicot.use.labels.classified import ClassifiedWindows

MOST_CLASSES = 12  # of a confusion matrix that a terminal has room for


@final
@dataclass(frozen=True)
class AccuracyOptions:
    """How the accuracy is measured."""

    drawn: Annotated[
        bool,
        typer.Option("--drawn", help="Labelled windows were drawn at random, not chosen."),
    ] = False
    no_accuracy: Annotated[
        bool,
        typer.Option(
            "--no-accuracy",
            help="Skip measuring the accuracy, which fits up to 25 more classifiers; a nightly retrain needs none.",
        ),
    ] = False

    def check(self) -> None:
        if self.drawn and self.no_accuracy:
            raise WrongCallError("--drawn is for the accuracy, which --no-accuracy does not measure. Give one of them.")


def classify(
    vectors: opt.VectorsArgument,
    measure: AccuracyOptions,
    labels: opt.Labels = None,
    out: Annotated[Path | None, typer.Option(help="A .csv or .parquet for the predictions.")] = None,
    save: Annotated[Path | None, typer.Option(help="A .safetensors for `dicot predict` and `dicot export`.")] = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Predict a label for every window of VECTORS from the labels of some, and say how often that may be right.

    A file of labels is one that `dicot label` wrote, a .csv with recording, start, end and label, or a .json of Label
    Studio. They may be ranges: a window takes the label that covers more than half of it.

    The table holds the label that was given, the one predicted, and the probability of each class, p_CLASS. A window
    that has a label keeps it, with probability 1. The accuracy is about the others: labels are hidden and predicted,
    those of whole groups together, or else recordings, where there are some. Recall and precision of each class and
    the confusion matrix are of these hidden labels too.
    """
    measure.check()
    check_inputs("vectors", vectors)
    check_inputs("file", labels)
    check_outputs(out, save, overwrite=overwrite, inputs=(vectors, labels))
    check_table(out)

    from dicot.model.head import check_head_file
    from dicot.store.vectors import read_vectors
    from dicot.use.labels.classified import classify_windows

    if save is not None:
        check_head_file(save)
    classified = classify_windows(vectors, read_vectors(vectors, finite=True), labels)
    if measure.no_accuracy:
        show_columns(classified.counts())
        typer.echo("The accuracy was not measured (--no-accuracy).")
    else:
        _show_accuracy(_measured(classified, measure.drawn), classified.counts())
    write_table(out, classified.columns() if out is not None else {})
    if save is not None:
        typer.echo(f"Wrote {classified.save(save)}")


def _measured(classified: "ClassifiedWindows", drawn: bool) -> "HonestAccuracy":
    with Bar("accuracy", 100) as bar:
        return classified.accuracy(drawn=drawn, on_fit=lambda done, total: bar.update(100 * done // total))


def _show_accuracy(accuracy: "HonestAccuracy", counts: dict[str, Any]) -> None:
    """Show the counts of each class with its recall and precision, the accuracy, and what it does not tell."""
    columns = dict(counts)
    scores = accuracy.per_class
    if scores:
        columns["found (recall)"] = [_percent(score.recall) for score in scores]
        columns["right (precision)"] = [_percent(score.precision) for score in scores]
    show_columns(columns)
    typer.echo(str(accuracy))
    measured = accuracy.measured()
    if measured:
        typer.echo(measured)
    if accuracy.n_scored and len(accuracy.classes) <= MOST_CLASSES:
        _show_confusion(accuracy, [str(name) for name in counts["class"]])
    for warning in accuracy.warnings:
        opt.warn(warning)


def _show_confusion(accuracy: "HonestAccuracy", names: list[str]) -> None:
    typer.echo("Held-out labels, one class a row, by what was answered:")
    columns: dict[str, list[str]] = {"class": names}
    for name, answers in zip(names, zip(*accuracy.confusion, strict=True), strict=True):
        columns[f"as {name}"] = [f"{count:.3g}" for count in answers]
    show_columns(columns)


def _percent(share: float) -> str:
    return "not known" if share != share else f"{100 * share:.1f} %"
