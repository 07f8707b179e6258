"""dicot label: labels given by hand, kept in a file with their history."""

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dicot.cli import options as opt
from dicot.cli.commands import command
from dicot.cli.paths import check_inputs, check_outputs, check_table
from dicot.cli.tables import cell, show_columns, write_table
from dicot.core.errors import InputError, WrongCallError, naming

if TYPE_CHECKING:
    from dicot.store.vectors import Vectors

label = typer.Typer(help="Labels given by hand, and what to label next.", no_args_is_help=True)
Store = Annotated[Path, typer.Argument(help="The file of labels, such as labels.sqlite.")]
VectorFile = Annotated[Path, typer.Option(help="Vectors that `dicot embed` wrote from recordings.")]
BESIDE = ".labels.sqlite"  # ends the name of a file of labels that lies beside vectors


@command(label)
def add(
    store: Store,
    window: Annotated[str, typer.Argument(metavar=opt.AT, help="The window, such as monday@12.5, or its row.")],
    name: Annotated[str, typer.Argument(metavar="LABEL")],
    vectors: VectorFile,
    by: Annotated[str, typer.Option(help="Who says so, for the history.")] = "",
) -> None:
    """Give one window of VECTORS a label; the file is made where it is not there, and an older label is kept in it."""
    from dicot.data.labels import plain_text
    from dicot.store.search import EmbeddingIndex
    from dicot.use.labels.names import key_name
    from dicot.use.labels.store import LabelStore

    name = plain_text(name.strip())
    if not name:
        raise WrongCallError("LABEL is empty. Write a name; `dicot label undo` takes the last label away.")
    known = _placed(vectors)
    with naming(vectors):
        row = opt.row_meant(EmbeddingIndex(known.x, **known.columns()), window, opt.AT)
    if not 0 <= row < len(known):
        raise InputError(f"{vectors} has no row {row}; it has rows 0 to {len(known) - 1}.")
    recording, start, end = (values[row].item() for values in known.places())
    key = recording, start, end
    with LabelStore(store) as labels:
        old = labels.current().get(key)
        labels.set([key], name, by)
        n_labels = len(labels.current())
    before = "" if old is None else f" (was {old})"
    typer.echo(f"{key_name(key)}: {name}{before}. {store} has {n_labels} label(s).")


@command(label, "show")
def show_labels(store: Store) -> None:
    """List the labels, and how many there are of each."""
    from dicot.use.labels.store import LabelStore

    with LabelStore(store, read_only=True) as opened:
        labels = opened.current()
    rows = []
    for key, value in labels.items():
        place = (key, "", "") if isinstance(key, str) else key
        rows.append((*place, value))
    # Numbers come before dates, which are text.
    rows.sort(key=lambda row: (row[0], isinstance(row[1], str), row[1]))
    titles = ("recording", "start", "end", "label")
    show_columns({title: [row[place] for row in rows] for place, title in enumerate(titles)})
    counts = Counter(map(cell, labels.values())).most_common()
    of_each = ", ".join(f"{count} {name}" for name, count in counts)
    typer.echo(f"{len(labels)} label(s) in {store}{of_each and ': '}{of_each}")


@command(label, "suggest")
def suggest_windows(
    store: Store,
    vectors: VectorFile,
    k: Annotated[int, typer.Option("--number", "-n", min=1, help="How many windows to suggest.")] = 10,
) -> None:
    """List the windows of VECTORS to label next, the most useful first; each by a name that `dicot label add` takes."""
    from dicot.use.labels.given import labels_of
    from dicot.use.labels.names import window_name
    from dicot.use.labels.suggestion import suggest
    from dicot.use.labels.tables import read_labels

    known = _placed(vectors)
    labels = None
    if not store.exists():
        typer.echo(f"There is no {store} yet: these are suggestions without any label.")
    elif read_labels(store):
        labels = labels_of(vectors, known, store)
    with naming(vectors):
        rows = suggest(known.x, labels, k).tolist()
    names = [window_name(known, row) for row in rows]
    columns = {name: values[rows] for name, values in known.columns().items() if name != "label"}
    show_columns({"window": names, "row": rows, **columns})
    words = ["dicot", "label", "add", str(store), names[0], "LABEL", "--vectors", str(vectors)]
    typer.echo(f"Next: {shlex.join(words)}")


@command(label)
def undo(
    store: Store,
    n: Annotated[int, typer.Option("--number", "-n", min=1, help="How many to take back.")] = 1,
) -> None:
    """Take back what was labelled last, whoever did it; the history keeps it."""
    from dicot.use.labels.names import key_name
    from dicot.use.labels.store import LabelStore

    if not store.exists():
        raise InputError(f"There is no label store at {store}. Name another file.")
    with LabelStore(store) as labels:
        changed = labels.undo(n)
    for key, value in changed.items():
        typer.echo(f"{key_name(key)}: {'no label' if value is None else cell(value)}")
    if not changed:
        typer.echo(f"Nothing is left to take back in {store}.")


@command(label, "export")
def export_labels(
    store: Store,
    out: Annotated[Path, typer.Option(help="A .csv, or a .json for Label Studio.")],
    vectors: Annotated[Path | None, typer.Option(help="Vectors of recordings with dates, for times in UTC.")] = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Write the labels of windows and ranges to a table, or as tasks of Label Studio."""
    from dicot.store.vectors import read_vectors
    from dicot.use.labels.store import LabelStore

    check_inputs("vectors", vectors)
    check_outputs(out, overwrite=overwrite, inputs=(store, vectors))
    begun = None if vectors is None else read_vectors(vectors).begun()
    with LabelStore(store, read_only=True) as labels:
        typer.echo(f"Wrote {labels.export(out, begun)} label(s) to {out}")


@command(label, "import")
def import_labels(
    store: Store,
    file: Annotated[
        Path,
        typer.Argument(help="A .csv with recording (or file), start, end and label, or a .json."),
    ],
    vectors: Annotated[
        Path | None,
        typer.Option(help="Vectors of the recordings, to check the labels by; default: those beside STORE."),
    ] = None,
    by: Annotated[str, typer.Option(help="Who says so, for the history; default: the file.")] = "",
) -> None:
    """Take labels of windows and ranges from a table, or from what Label Studio exported as JSON; one undo for all.

    Labels of recordings that VECTORS do not have are refused, and those that are on no window are named. Without
    --vectors those beside STORE count, such as walks.npz beside walks.labels.sqlite. Times of a .json that are dates
    need vectors too.
    """
    from dicot.use.labels.given import check_labels_of
    from dicot.use.labels.store import LabelStore
    from dicot.use.labels.tables import read_labels

    labelled = _vectors_beside(store) if vectors is None else vectors
    known = None if labelled is None else _placed(labelled)
    labels = read_labels(file, None if known is None else known.begun())
    if not labels:
        raise InputError(f"{file} holds no labels. Name another file.")
    if labelled is not None and known is not None:
        check_labels_of(labelled, known, file, labels)
    with LabelStore(store) as opened:
        opened.set(list(labels), list(labels.values()), by or file.name)
        n_labels = len(opened.current())
    typer.echo(f"Took {len(labels)} label(s) from {file}. {store} has {n_labels} label(s).")
    if labelled is not None:
        typer.echo(f"Their recordings and times were compared with {labelled}.")
        return
    words = ["dicot", "label", "import", str(store), str(file), "--vectors", "v.parquet"]
    typer.echo(
        "Whether their recordings exist was not checked, because no vectors are named. To check them, name the "
        f"vectors: {shlex.join(words)}"
    )


def _vectors_beside(store: Path) -> Path | None:
    """Return the vectors to which a file of labels belongs by its name; None where that is not clear."""
    from dicot.store.vectors import SUFFIXES, read_vectors

    if not store.name.endswith(BESIDE):
        return None
    stem = store.name.removesuffix(BESIDE)
    paths = [store.with_name(stem + suffix) for suffix in SUFFIXES]
    there = [path for path in paths if path.is_file()]
    if len(there) != 1 or not read_vectors(there[0]).placed:
        return None
    return there[0]


@command(label, "check")
def check_labels(
    vectors: opt.VectorsArgument,
    labels: opt.Labels = None,
    out: Annotated[Path | None, typer.Option(help="A .csv or .parquet for the list.")] = None,
    k: Annotated[int, typer.Option("--number", "-n", min=0, help="How many to show.")] = 20,
    overwrite: opt.Overwrite = False,
) -> None:
    """List labels that are probably wrong, the least probable first, each with what the others say.

    A label is hidden, with those of its group or else recording, and predicted from the others. `given` is the
    probability that the label is right, and less than a half. `near` are the nearest windows among the others.
    """
    check_inputs("vectors", vectors)
    check_inputs("file", labels)
    check_outputs(out, overwrite=overwrite, inputs=(vectors, labels))
    check_table(out)

    from dicot.store.vectors import read_vectors
    from dicot.use.labels.doubtful import doubtful_labels
    from dicot.use.labels.names import window_name

    known = read_vectors(vectors, finite=True)
    doubtful = doubtful_labels(vectors, known, labels)
    if doubtful.doubts:
        shown: dict[str, list[str]] = {"window": [window_name(known, row) for row in doubtful.rows[:k]]}
        for title, values in doubtful.columns().items():
            shown[title] = [value if isinstance(value, str) else f"{value:.3g}" for value in values[:k]]
        show_columns(shown)
    typer.echo(doubtful.sentence())
    write_table(out, doubtful.table())


@command(label)
def agree(
    first: Annotated[Path, typer.Argument(help="The labels of one person.")],
    second: Annotated[Path, typer.Argument(help="The labels of another.")],
    vectors: Annotated[Path | None, typer.Option(help="Vectors whose windows to compare, for ranges.")] = None,
) -> None:
    """Say how far two people gave the same labels: the share of equal ones, Cohen's kappa, and where they differ."""
    from dicot.use.labels.agreement import agreement
    from dicot.use.labels.given import labels_of
    from dicot.use.labels.tables import read_labels

    if vectors is not None:
        known = _placed(vectors)
        found = agreement(labels_of(vectors, known, first), labels_of(vectors, known, second))
    else:
        labels, others = read_labels(first), read_labels(second)
        found = agreement(list(labels.values()), [others.get(key) for key in labels])
    pairs = list(found.disagreements)
    if pairs:
        sides = {
            str(first): [of_first for of_first, _ in pairs],
            str(second): [of_second for _, of_second in pairs],
        }
        show_columns({**sides, "windows": found.disagreements.values()})
    typer.echo(str(found))


def _placed(path: Path) -> "Vectors":
    """Read vectors that know their places."""
    from dicot.store.vectors import read_vectors

    known = read_vectors(path, finite=True)
    with naming(path):
        known.places()
    return known
