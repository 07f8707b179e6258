"""dicot classify: a label for every window, learnt from a few, and how far it can be trusted."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.cli.paths import check_inputs, check_outputs
from dicot.cli.tables import show_columns
from dicot.core.errors import InputError, WrongCallError
from dicot.core.progress import Bar

if TYPE_CHECKING:
    from dicot.data.cases import Array
    from dicot.use.labels.accuracy import HonestAccuracy


MOST_CLASSES = 12  # of a confusion matrix that a terminal has room for


def classify(
    vectors: opt.VectorsArgument,
    labels: opt.Labels = None,
    out: Annotated[Path | None, typer.Option(help="A .csv or .parquet for the predictions.")] = None,
    save: Annotated[Path | None, typer.Option(help="A .safetensors for `dicot predict` and `dicot export`.")] = None,
    drawn: Annotated[bool, typer.Option("--drawn", help="Labelled windows were drawn, not chosen.")] = False,
    no_accuracy: Annotated[
        bool,
        typer.Option(
            "--no-accuracy",
            help="Skip measuring the accuracy, which fits up to 25 more classifiers; a nightly retrain needs none.",
        ),
    ] = False,
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
    if drawn and no_accuracy:
        raise WrongCallError("--drawn is for the accuracy, which --no-accuracy does not measure. Give one of them.")
    check_inputs("vectors", vectors)
    check_inputs("file", labels)
    check_outputs(out, save, overwrite=overwrite, inputs=(vectors, labels))

    import numpy as np

    from dicot.core.errors import naming
    from dicot.model.fewlabels import FewLabelClassifier
    from dicot.model.head import check_head_file
    from dicot.store.vectors import TABLES, check_out, read_vectors, write_columns
    from dicot.use.labels.given import labels_of

    if out is not None:
        check_out(out, TABLES)
    if save is not None:
        check_head_file(save)
    known = read_vectors(vectors, finite=True)
    given = labels_of(vectors, known, labels)
    numbers = _class_numbers(labels or vectors, given)
    with naming(vectors):
        people = known.held_together(2)
        name, groups = known.held_together(2, numbers >= 0) or people or known.held_together(1) or ("group", None)
    if people is not None and people[0] != name:
        opt.warn(f"All labels are of one {people[0]}: nothing is known of other {people[0]}s. Label windows of more.")
    model = FewLabelClassifier().fit(known.x, given)
    given_counts = [int((numbers == number).sum()) for number in range(len(model.classes_))]
    predicted = [int((model.transduction_ == name).sum()) for name in model.classes_]
    counts: dict[str, Any] = {"class": _whole(model.classes_), "given": given_counts, "predicted": predicted}
    if no_accuracy:
        show_columns(counts)
        typer.echo("The accuracy was not measured (--no-accuracy).")
    else:
        _show_accuracy(_measured(known.x, given, groups, name, drawn), counts)
    if out is not None:
        about = {name: values for name, values in known.columns().items() if name != "label"}
        part = {} if known.part is None else {"part": known.part}
        classes = _whole(model.classes_)
        said = {
            "given": np.ma.masked_array(classes[numbers], numbers < 0),  # type: ignore[no-untyped-call]
            "predicted": classes[np.searchsorted(model.classes_, model.transduction_)],
        }
        chances = {f"p_{name}": model.label_distributions_[:, number] for number, name in enumerate(classes)}
        write_columns(out, {**part, **about, **said, **chances})
        typer.echo(f"Wrote {out}")
    if save is not None:
        # A classifier knows the model of its vectors, and how recordings were cut for them.
        source = None if known.source is None else replace(known.source, recordings={}).to_dict()
        typer.echo(f"Wrote {replace(model.head_, model=known.model, source=source).save(save)}")


def _measured(x: "Array", given: "Array", groups: "Array | None", group_name: str, drawn: bool) -> "HonestAccuracy":
    """Measure how often the classifier is right, by hiding labels; a bar shows how far it is."""
    from dicot.use.labels.accuracy import honest_accuracy

    with Bar("accuracy", 100) as bar:
        return honest_accuracy(
            x,
            given,
            groups,
            group_name=group_name,
            suggested=not drawn,
            on_fit=lambda done, total: bar.update(100 * done // total),
        )


def _show_accuracy(accuracy: "HonestAccuracy", counts: dict[str, Any]) -> None:
    """Show the counts of each class with its recall and precision, the accuracy, and what it does not tell."""
    columns = dict(counts)
    if scores := accuracy.per_class:
        columns["found (recall)"] = [_percent(score.recall) for score in scores]
        columns["right (precision)"] = [_percent(score.precision) for score in scores]
    show_columns(columns)
    typer.echo(str(accuracy))
    if measured := accuracy.measured():
        typer.echo(measured)

    if accuracy.n_scored and len(accuracy.classes) <= MOST_CLASSES:
        typer.echo("Held-out labels, one class a row, by what was answered:")
        names = [str(name) for name in counts["class"]]
        answers = zip(names, zip(*accuracy.confusion, strict=True), strict=True)
        show_columns({"class": names, **{f"as {name}": [f"{n:.3g}" for n in column] for name, column in answers}})
    for warning in accuracy.warnings:
        opt.warn(warning)


def _class_numbers(source: Path, given: "Array") -> "Array":
    """Return the number of each window's class, -1 where it has no label; the error names the file of the labels."""
    from dicot.model.fewlabels import class_numbers

    try:
        return class_numbers(given, len(given))[1]
    except ValueError as error:
        raise InputError(f"{source}: {error}") from error


def _percent(share: float) -> str:
    return "not known" if share != share else f"{100 * share:.1f} %"


def _whole(classes: "Array") -> "Array":
    """Return whole numbers as such: beside unknown labels, NaN, they had become 1.0 and so on."""
    return classes.astype(int) if classes.dtype.kind == "f" and (classes % 1 == 0).all() else classes
