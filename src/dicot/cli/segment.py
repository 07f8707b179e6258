"""dicot segment: recordings into stretches of one activity."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dicot.cli import options as opt
from dicot.cli.behind import judged
from dicot.cli.paths import check_inputs, check_outputs
from dicot.cli.tables import show_columns
from dicot.core.errors import WrongCallError

if TYPE_CHECKING:
    from pandas import DataFrame

    from dicot.data.cases import Array
    from dicot.store.vectors import Vectors


LEAST_HELP = "Least length of a stretch, such as 5s, the default; in time steps where no rate is known."


def segment(
    vectors: opt.VectorsArgument,
    out: Annotated[Path, typer.Option(help="A .csv or .parquet for the stretches.")],
    least: Annotated[str | None, typer.Option(help=LEAST_HELP)] = None,
    labels: Annotated[Path | None, typer.Option(help="A file of labels: stretches get one of these.")] = None,
    head: Annotated[Path | None, typer.Option(help="What `dicot classify --save` wrote, in place of labels.")] = None,
    features: opt.Features = None,
    data: opt.Series = None,
    strict: opt.Strict = False,
    clusters: Annotated[int | None, typer.Option(min=1, help="Without labels: how many clusters at most.")] = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Cut the recordings of VECTORS into stretches of one activity.

    Without labels: where the vectors change; stretches that are alike get the same cluster number. With labels or a
    head: by the classifier's probabilities along time, without stretches that are shorter than --least.
    """
    if labels is not None and head is not None:
        raise WrongCallError("--labels and --head both say what the labels are. Give one of them.")
    check_inputs("vectors", vectors)
    check_inputs("file", labels)
    check_inputs("classifier", head)
    check_outputs(out, overwrite=overwrite, inputs=(vectors, labels, head))

    import numpy as np

    from dicot.core.errors import naming
    from dicot.data.reading import least_time, seconds_of
    from dicot.model.fewlabels import FewLabelClassifier, Head
    from dicot.store.vectors import TABLES, check_out, read_vectors, write_columns
    from dicot.use.features import LEVELS, VECTOR
    from dicot.use.segments import agreed, segment_labels
    from dicot.use.segments import segment as cut

    check_out(out, TABLES)
    with opt.checking_options():
        seconds_of(least or "5s", "--least")  # before anything is read
    if head is not None and features not in (None, VECTOR):
        raise WrongCallError(f"--head knows vectors only, and --features is {features}. Leave --features out.")
    told = labels or head
    if told is not None and clusters is not None:
        raise WrongCallError("--clusters is for stretches without labels. Leave it out.")
    allowance = opt.leaving_out(strict)
    by_vector = VECTOR if head is not None else features
    seen = judged(by_vector, vectors, read_vectors(vectors, finite=True), data, allowance)
    known, kind, levels = seen.known, seen.kind, seen.levels
    with naming(vectors):
        place = known.places()
    # Vectors of another program have start and end in seconds, and do not say how they were cut.
    has_rate = known.source is None or known.source.rate is not None
    with opt.checking_options():
        shortest = least_time(least, "--least", "5s", has_rate)
    if shortest is None:  # as long as two windows, which is about what five seconds are
        shortest = 2.0 * float(np.median(place[2] - place[1]))
    unit = "seconds" if has_rate else "time steps"
    if head is not None:
        loaded = Head.load(head)
        opt.check_models(head, loaded.model, loaded.n_features, vectors, known)
        p, classes = loaded.predict_proba(known.x), loaded.classes
    elif labels is not None:
        given = opt.labels_of(vectors, known, labels)
        with naming(labels):
            by = {VECTOR: (known.x,), LEVELS: (levels,)}.get(kind, (known.x, levels))
            models = [FewLabelClassifier().fit(part, given) for part in by]
        p, classes = models[0].label_distributions_, tuple(models[0].classes_)
        p = agreed(p, models[1].label_distributions_) if len(models) > 1 else p
    with naming(vectors):
        if told is None:
            x, beside = (levels, None) if kind == LEVELS else (known.x, levels)
            table = cut(x, *place, levels=beside, groups=known.group, least=shortest, clusters=clusters)
        else:
            table = segment_labels(p, classes, *place, least=shortest)
    title = "cluster" if told is None else "label"
    lasting = (table["end"] - table["start"]).groupby(table[title]).agg(["size", "sum"])
    shown = lasting.sort_values("sum", ascending=False, kind="stable").head(20)
    show_columns({title: shown.index, "stretches": shown["size"], unit: shown["sum"].round(1)})
    typer.echo(f"{len(known)} windows: {len(table)} stretches, {len(lasting)} {title}(s); judged by: {kind}.")
    write_columns(out, dated(table, known))
    typer.echo(f"Wrote {out}")
    opt.end(allowance)


def dated(table: "DataFrame", known: "Vectors") -> "dict[str, Array]":
    """Return the columns of stretches, with UTC times where the recordings have them."""
    import numpy as np
    import pandas as pd

    columns = {str(name): table[name].to_numpy() for name in table}
    if began := known.begun():
        zero = np.array([began.get(str(name), np.nan) for name in columns["recording"]])
        times = {name: pd.to_datetime((zero + columns[name]) * 1e6, unit="us") for name in ("start", "end")}
        utc = {f"{name}_time": values.round("us").to_numpy("M8[us]") for name, values in times.items()}
        columns = {**{name: columns.pop(name) for name in ("recording", "start", "end")}, **utc, **columns}
    return columns
