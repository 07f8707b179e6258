"""dicot label: labels given by hand, kept in a file with their history."""

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dicot.cli import options as opt
from dicot.cli.tables import cell, show_columns
from dicot.core.errors import InputError

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
    from dicot.core.errors import naming
    from dicot.store.search import EmbeddingIndex
    from dicot.use.labels.store import LabelStore

    if not name.strip():
        raise InputError("LABEL is empty. Write a name; `dicot label undo` takes the last label away.")
    known = _placed(vectors)
    with naming(vectors):
        row = opt.row_meant(EmbeddingIndex(known.x, **known.columns()), window, opt.AT)
    if not 0 <= row < len(known):
        raise InputError(f"{vectors} has no row {row}; it has rows 0 to {len(known) - 1}.")
    recording, start, end = (values[row].item() for values in known.places())
    with LabelStore(store) as kept:
        old = kept.current().get((recording, start, end))
        kept.set([(recording, start, end)], name.strip(), by)
        count = len(kept.current())
    before = "" if old is None else f" (was {old})"
    typer.echo(f"{_said((recording, start, end))}: {name.strip()}{before}. {store} has {count} label(s).")


@label.command("show")
def show_labels(store: Store) -> None:
    """List the labels, and how many there are of each."""
    from dicot.use.labels.store import LabelStore

    with LabelStore(store, read_only=True) as kept:
        labels = kept.current()
    keys = [(key, "", "") if isinstance(key, str) else key for key in labels]
    places = {title: [key[number] for key in keys] for number, title in enumerate(("recording", "start", "end"))}
    show_columns({**places, "label": labels.values()})
    counts = Counter(map(cell, labels.values()))
    said = ", ".join(f"{n} {name}" for name, n in counts.most_common())
    typer.echo(f"{len(labels)} label(s) in {store}{said and ': '}{said}")


@label.command("suggest")
def suggest_windows(
    store: Store,
    vectors: VectorFile,
    k: Annotated[int, typer.Option("--number", "-n", help="How many windows to suggest.")] = 10,
) -> None:
    """List the windows of VECTORS to label next, the most useful first; each by a name that `dicot label add` takes."""
    from dicot.core.errors import naming
    from dicot.use.labels.store import put_on_windows, read_labels
    from dicot.use.labels.suggestion import suggest

    known = _placed(vectors)
    labels = read_labels(store) if store.exists() else {}
    if not store.exists():
        typer.echo(f"There is no {store} yet: these are suggestions without any label.")
    with naming(store):
        given, lost = put_on_windows(labels, *known.places())
    opt.say_lost(store, vectors, lost, len(labels))
    with naming(vectors):
        rows = suggest(known.x, given if labels else None, k)
    recording, start, end = known.places()
    names = [f"{recording[row]}@{cell((start[row] + end[row]) / 2)}" for row in rows.tolist()]
    columns = {name: values[rows] for name, values in known.columns().items() if name != "label"}
    show_columns({"window": names, "row": rows.tolist(), **columns})
    words = ["dicot", "label", "add", str(store), names[0], "LABEL", "--vectors", str(vectors)]
    typer.echo(f"Next: {shlex.join(words)}")


@label.command()
def undo(store: Store, n: Annotated[int, typer.Option("--number", "-n", help="How many to take back.")] = 1) -> None:
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


def _placed(path: Path) -> "Vectors":
    from dicot.core.errors import naming
    from dicot.store.vectors import read_vectors

    known = read_vectors(path, finite=True)
    with naming(path):
        known.places()
    return known


def _said(key: "Key") -> str:
    return key if isinstance(key, str) else f"{key[0]}, {cell(key[1])} to {cell(key[2])} s"
