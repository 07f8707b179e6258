"""dicot label: labels given by hand, kept in a file with their history."""

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dicot.cli import options as opt
from dicot.cli.paths import check_inputs, check_outputs
from dicot.cli.tables import cell, show_columns
from dicot.core.errors import InputError, WrongCallError, naming

if TYPE_CHECKING:
    from dicot.store.vectors import Vectors
    from dicot.use.labels.store import Key

label = typer.Typer(help="Labels given by hand, and what to label next.", no_args_is_help=True)
Store = Annotated[Path, typer.Argument(help="The file of labels, such as labels.sqlite.")]
VectorFile = Annotated[Path, typer.Option(help="Vectors that `dicot embed` wrote from recordings.")]


@label.command()
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
    with LabelStore(store) as kept:
        old = kept.current().get((recording, start, end))
        kept.set([(recording, start, end)], name, by)
        count = len(kept.current())
    before = "" if old is None else f" (was {old})"
    typer.echo(f"{_said((recording, start, end))}: {name}{before}. {store} has {count} label(s).")


@label.command("show")
def show_labels(store: Store) -> None:
    """List the labels, and how many there are of each."""
    from dicot.use.labels.store import LabelStore

    with LabelStore(store, read_only=True) as kept:
        labels = kept.current()
    rows = [(*((key, "", "") if isinstance(key, str) else key), value) for key, value in labels.items()]
    rows.sort(key=lambda row: (row[0], isinstance(row[1], str), row[1]))
    show_columns({title: [row[at] for row in rows] for at, title in enumerate(("recording", "start", "end", "label"))})
    counts = Counter(map(cell, labels.values()))
    said = ", ".join(f"{n} {name}" for name, n in counts.most_common())
    typer.echo(f"{len(labels)} label(s) in {store}{said and ': '}{said}")


@label.command("suggest")
def suggest_windows(
    store: Store,
    vectors: VectorFile,
    k: Annotated[int, typer.Option("--number", "-n", min=1, help="How many windows to suggest.")] = 10,
) -> None:
    """List the windows of VECTORS to label next, the most useful first; each by a name that `dicot label add` takes."""
    from dicot.use.labels.given import labels_of
    from dicot.use.labels.suggestion import suggest
    from dicot.use.labels.tables import read_labels

    known = _placed(vectors)
    if not store.exists():
        typer.echo(f"There is no {store} yet: these are suggestions without any label.")
    given = labels_of(vectors, known, store) if store.exists() and read_labels(store) else None
    with naming(vectors):
        rows = suggest(known.x, given, k)
    names = [_window(known, row) for row in rows.tolist()]
    columns = {name: values[rows] for name, values in known.columns().items() if name != "label"}
    show_columns({"window": names, "row": rows.tolist(), **columns})
    words = ["dicot", "label", "add", str(store), names[0], "LABEL", "--vectors", str(vectors)]
    typer.echo(f"Next: {shlex.join(words)}")


@label.command()
def undo(
    store: Store, n: Annotated[int, typer.Option("--number", "-n", min=1, help="How many to take back.")] = 1
) -> None:
    """Take back what was labelled last, whoever did it; the history keeps it."""
    from dicot.use.labels.store import LabelStore

    if not store.exists():
        raise InputError(f"There is no label store at {store}. Name another file.")
    with LabelStore(store) as kept:
        changed = kept.undo(n)
    for key, value in changed.items():
        typer.echo(f"{_said(key)}: {'no label' if value is None else cell(value)}")
    if not changed:
        typer.echo(f"Nothing is left to take back in {store}.")


@label.command("export")
def export_labels(
    store: Store,
    out: Annotated[Path, typer.Option(help="A .csv, or a .json for Label Studio.")],
    vectors: Annotated[Path | None, typer.Option(help="Vectors of recordings with dates, for UTC.")] = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Write the labels of windows and ranges to a table, or as tasks of Label Studio."""
    from dicot.store.vectors import read_vectors
    from dicot.use.labels.store import LabelStore

    check_inputs("vectors", vectors)
    check_outputs(out, overwrite=overwrite, inputs=(store, vectors))
    begun = None if vectors is None else read_vectors(vectors).begun()
    with LabelStore(store, read_only=True) as kept:
        typer.echo(f"Wrote {kept.export(out, begun)} label(s) to {out}")


@label.command("import")
def import_labels(
    store: Store,
    file: Annotated[Path, typer.Argument(help="A .csv with recording (or file), start, end and label, or a .json.")],
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
    from dicot.use.labels.given import labels_of
    from dicot.use.labels.store import LabelStore
    from dicot.use.labels.tables import read_labels
    from dicot.use.labels.windows import check_recordings

    labelled = _vectors_beside(store) if vectors is None else vectors
    known = None if labelled is None else _placed(labelled)
    labels = read_labels(file, None if known is None else known.begun())
    if not labels:
        raise InputError(f"{file} holds no labels. Name another file.")
    if labelled is not None and known is not None:
        recordings = known.places()[0].astype(str).tolist()
        check_recordings(labels, file, recordings, labelled)
        labels_of(labelled, known, file)
    with LabelStore(store) as kept:
        kept.set(list(labels), list(labels.values()), by or file.name)
        typer.echo(f"Took {len(labels)} label(s) from {file}. {store} has {len(kept.current())} label(s).")
    if labelled is not None:
        typer.echo(f"Their recordings and times were compared with {labelled}.")
    else:
        words = ["dicot", "label", "import", str(store), str(file), "--vectors", "v.parquet"]
        typer.echo(
            "Whether their recordings exist was not checked, because no vectors are named. To check them, name the "
            f"vectors: {shlex.join(words)}"
        )


def _vectors_beside(store: Path) -> Path | None:
    """Return the vectors to which a file of labels belongs by its name; None where that is not clear."""
    from dicot.store.vectors import SUFFIXES, read_vectors

    ending = ".labels.sqlite"
    if not store.name.endswith(ending):
        return None
    stem = store.name.removesuffix(ending)
    beside = [path for suffix in SUFFIXES if (path := store.with_name(stem + suffix)).is_file()]
    if len(beside) != 1 or not read_vectors(beside[0]).placed:
        return None
    return beside[0]


@label.command("check")
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

    import numpy as np

    from dicot.data.labels import as_text
    from dicot.store.vectors import TABLES, check_out, read_vectors, write_columns
    from dicot.use.labels.doubt import Doubt, probably_wrong, too_few
    from dicot.use.labels.given import labels_of

    if out is not None:
        check_out(out, TABLES)
    known = read_vectors(vectors, finite=True)
    given = as_text(labels_of(vectors, known, labels))
    given[given == "-1"] = ""
    with naming(labels or vectors):
        name, groups = known.held_together(2, given != "") or ("", None)
        doubts = probably_wrong(known.x, given, groups)
    rows = [doubt.row for doubt in doubts]
    said = {title: [getattr(doubt, title) for doubt in doubts] for title in Doubt._fields[1:-1]}
    said["near"] = [", ".join(f"{given[row]} ({_window(known, row)})" for row in doubt.near) for doubt in doubts]
    if doubts:
        shown = {"window": [_window(known, row) for row in rows], **said}
        texts = {title: [v if isinstance(v, str) else f"{v:.3g}" for v in column] for title, column in shown.items()}
        show_columns({title: column[:k] for title, column in texts.items()})
    how = "by hiding labels" if groups is None else f"by hiding the labels of whole {name}s"
    few, found = too_few(given), f"{len(doubts)} of {np.count_nonzero(given)} label(s) are probably wrong, {how}."
    typer.echo(" ".join(filter(None, [found if doubts or not few else "", few])))
    if out is not None:
        about = {title: values[rows] for title, values in known.columns().items() if title != "label"}
        write_columns(out, {"row": np.array(rows, int), **about, **{title: np.array(said[title]) for title in said}})
        typer.echo(f"Wrote {out}")


@label.command()
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
        found = agreement(*(labels_of(vectors, known, path) for path in (first, second)))
    else:
        one, two = read_labels(first), read_labels(second)
        found = agreement(list(one.values()), [two.get(key) for key in one])
    if pairs := [*found.disagreements]:
        sides = {str(path): [pair[side] for pair in pairs] for side, path in enumerate((first, second))}
        show_columns({**sides, "windows": found.disagreements.values()})
    typer.echo(str(found))


def _window(known: "Vectors", row: int) -> str:
    """Name a window as `dicot label add` takes it."""
    if known.recording is None or known.start is None or known.end is None:
        return str(row)
    return f"{known.recording[row]}@{cell((known.start[row] + known.end[row]) / 2)}"


def _placed(path: Path) -> "Vectors":
    from dicot.store.vectors import read_vectors

    known = read_vectors(path, finite=True)
    with naming(path):
        known.places()
    return known


def _said(key: "Key") -> str:
    return key if isinstance(key, str) else f"{key[0]}, {cell(key[1])} to {cell(key[2])} s"
