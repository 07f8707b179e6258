"""dicot predict: a saved classifier on new recordings, without learning anything from them."""

import hashlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from dicot.cli import options as opt
from dicot.cli.embed import hash_of, load_embedder, place_of, show_run
from dicot.cli.sources import DataSource, find_source
from dicot.cli.tables import show_columns
from dicot.core.errors import InputError

if TYPE_CHECKING:
    from dicot.data.cases import Array
    from dicot.store.predictions import PredictionTable
    from dicot.store.vectors import MadeOf


class Predictor(NamedTuple):
    """What turns windows into rows of a table of predictions."""

    table: "PredictionTable"
    of_windows: "Callable[[Any], Array]"
    digest: str  # tells classifiers apart
    made: "MadeOf | None"  # how recordings were cut for it
    n_times: int | None  # of a window that its model was fitted on, where it was on one length
    of_vectors: "Callable[[Array], Array] | None" = None
    model: str | None = None  # the hash of the model whose vectors it takes


@opt.reads
def predict(
    head: Annotated[Path, typer.Argument(help="What `dicot classify --save` wrote, or an .onnx with a classifier.")],
    data: Annotated[str, typer.Argument(metavar="RECORDINGS", help="A folder, a pattern, a file, or vectors of them.")],
    out: Annotated[Path, typer.Option(help="A .parquet or .csv, one row per window.")],
    ranges: Annotated[Path | None, typer.Option(help="A .csv of runs of equal predictions.")] = None,
    append: Annotated[bool, typer.Option("--append", help="Predict only what is new; of a .parquet.")] = False,
    model: Annotated[str | None, typer.Option(help="Where HEAD's model is now, if it was moved.")] = None,
    device: opt.Device = "auto",
    *,
    said: opt.Settings,
) -> None:
    """Predict the label of every window of RECORDINGS by a classifier that was saved; nothing is learnt from them.

    HEAD knows its model and how recordings are cut; options say otherwise where needed. The table has recording, start
    and end of each window, the predicted label, the probability of each class, p_CLASS, and outlier_p: how many windows
    in a hundred of those that HEAD learnt from lie as far from the others. A run that was killed is continued by the
    same command.
    """
    import numpy as np

    from dicot.store.embedding import embed_recordings
    from dicot.store.predictions import OUTLIER, PREDICTED, reading_of, runs
    from dicot.store.vectors import TABLES, are_vectors, check_out, write_columns

    check_out(out, TABLES)
    if ranges is not None:
        check_out(ranges, (".csv",))
    if append and out.suffix != ".parquet":
        raise InputError(f"--append needs a .parquet, which says what it was made of; got {out}.")
    reading = said.take(*opt.READING)
    said.rest()
    by = _predictor(head, model, device, reading.get("missing"))
    if are_vectors(data):
        if append or reading:
            raise InputError(f"{data} holds vectors, which are cut already. Leave out --append and how to read them.")
        columns = _of_vectors(by, head, data)
        write_columns(out, columns)
        typer.echo(f"Wrote {out}")
    else:
        own, like = reading_of(by.made), None
        source = DataSource(data, None, {**own, **reading}) if own else find_source(data, reading, by.n_times)
        if not source.recorded:
            raise InputError(f"{data} is not read as recordings. Say how long a window is: --window.")
        if own and by.made is not None and by.made.channels is not None:
            like = by.made.channels, by.made.rate
        how: Any = {"append": append, "model_at": place_of(head), "like": like, "form": by.table.form}
        done = embed_recordings(by.of_windows, by.digest, out, data, source.options, **how)
        show_run(data, out, done, "numbers", append)
        columns = by.table.columns
    names, counts = np.unique(columns[PREDICTED], return_counts=True)
    show_columns({"class": names, "windows": counts})
    if OUTLIER in columns:
        odd = int((columns[OUTLIER] <= 0.05).sum())
        typer.echo(
            f"{odd} of {len(columns[OUTLIER])} windows have {OUTLIER} <= 0.05: they are unlike what HEAD learnt from."
        )
    if ranges is not None:
        merged = runs(columns)
        write_columns(ranges, merged)
        typer.echo(f"Wrote {ranges}: {len(merged['start'])} ranges")


def _predictor(head: Path, model: str | None, device: str, missing: str | None) -> Predictor:
    """Load a classifier and its model, which must be the very one whose vectors it has learnt."""
    import numpy as np

    from dicot.core.errors import CalibrationWarning, naming
    from dicot.model.box import BOX, in_box
    from dicot.model.fewlabels import Head
    from dicot.store.predictions import PredictionTable
    from dicot.store.vectors import MadeOf
    from dicot.use.outliers import EmbeddingOutlierDetector

    if head.suffix == ".onnx":
        whole: Any = load_embedder(head, device, missing=missing)
        table = PredictionTable(whole.classes, False)
        if not whole.classes:
            raise InputError(f"{head} has no classifier. Export it with one: dicot export MODEL --classifier FILE.")
        return Predictor(table, whole.predict_proba, hash_of(head), None, whole.preparation_.n_times)
    kept = Head.load(head)
    with naming(head):
        made = None if kept.source is None else MadeOf.from_dict(kept.source)
    boxed = next((name for name, path in BOX.items() if hash_of(path) == kept.model), None)
    place = model or boxed or (made.at if made is not None else "")
    if not place:
        raise InputError(f"{head} does not say where its model is. Name it: --model MODEL.")
    path = in_box(place)
    if kept.model is not None and hash_of(path) != kept.model:
        raise InputError(
            f"{head} is of vectors of the model {kept.model[:12]}, and {path} is {hash_of(path)[:12]}. Name that very "
            "model by --model, or train the classifier on vectors of this one: dicot embed, then dicot classify --save."
        )
    embedder = load_embedder(path, device, missing=missing)
    detector = None
    if kept.reference is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            detector = EmbeddingOutlierDetector().fit(kept.reference, groups=kept.together)

    def of_vectors(x: "Array") -> "Array":
        known = [kept.predict_proba(x), *([] if detector is None else [detector.p_values(x)[:, None]])]
        return np.asarray(np.concatenate(known, axis=1), np.float32)

    return Predictor(
        PredictionTable(kept.classes, detector is not None),
        lambda windows: of_vectors(embedder.transform(windows)),
        hashlib.sha256(head.read_bytes()).hexdigest(),
        made,
        embedder.preparation_.n_times,
        of_vectors,
        kept.model,
    )


def _of_vectors(by: Predictor, head: Path, data: str) -> "dict[str, Array]":
    """Return the table of vectors that are there."""
    from dicot.store.vectors import read_vectors

    known = read_vectors(data, finite=True)
    if by.of_vectors is None:
        raise InputError(f"{head} takes recordings; {data} holds vectors. Name the recordings.")
    if None not in (by.model, known.model) and by.model != known.model:
        raise InputError(f"{data} was made by another model than the one of {head}. Embed it by that model.")
    return by.table.fill(by.of_vectors(known.x), known.columns())
