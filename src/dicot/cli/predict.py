"""dicot predict: a saved classifier on new recordings, without learning anything from them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.cli.embed import embed_recorded, load_embedder
from dicot.cli.paths import check_data, check_inputs, check_model, check_outputs
from dicot.cli.sources import DataSource
from dicot.cli.tables import show_columns
from dicot.core.errors import InputError

if TYPE_CHECKING:
    from dicot.data.cases import Array
    from dicot.store.vectors import MadeOf


def predict(
    head: Annotated[Path, typer.Argument(help="What `dicot classify --save` wrote.")],
    data: Annotated[str, typer.Argument(metavar="RECORDINGS", help="A folder, a pattern or a file of recordings.")],
    out: Annotated[Path, typer.Option(help="A .parquet, one row per window.")],
    reading: opt.ReadingOptions,
    ranges: Annotated[Path | None, typer.Option(help="A .csv of runs of equal predictions.")] = None,
    append: Annotated[bool, typer.Option("--append", help="Embed only what is new.")] = False,
    model: Annotated[str | None, typer.Option(help="Where HEAD's model is now, if it was moved.")] = None,
    device: opt.Device = "auto",
    overwrite: opt.Overwrite = False,
) -> None:
    """Predict the label of every window of RECORDINGS by a classifier that was saved; nothing is learnt from them.

    HEAD knows its model and how recordings are cut. The table has recording, start and end of each window, the label
    that is predicted, the probability of each class, p_CLASS, and the vectors, for `dicot monitor`, `explore` and
    `outliers`. A run that was killed is continued by the same command.
    """
    asked = reading.by_group().reading
    from dicot.model.box import in_box

    check_inputs("classifier", head)
    check_data(data)
    if model is not None:
        check_model(in_box(model))
    # What --append adds to is there, and stays.
    check_outputs(None if append else out, ranges, overwrite=overwrite, inputs=(head,))

    import numpy as np

    from dicot.core.errors import naming
    from dicot.model.fewlabels import Head
    from dicot.store.vectors import COLUMNS, MadeOf, check_out, read_vectors, write_columns, write_vectors
    from dicot.use.segments import label_runs
    from dicot.use.stretches import dated
    from dicot.use.why import model_behind

    check_out(out, (".parquet",))
    if ranges is not None:
        check_out(ranges, (".csv",))
    kept = Head.load(head)
    with naming(head):
        made = None if kept.source is None else MadeOf.from_dict(kept.source)
        path = model_behind(kept.model, model or (None if made is None else made.at or None))
    embedder = load_embedder(path, device, missing=asked.get("missing"))
    source = DataSource(data, None, _as_trained(made) | asked, allowance=reading.allowance)
    if not source.recorded:
        raise InputError(f"{head} was trained with cases, not with recordings. Say how to cut these: --window.")
    like = None if made is None or made.channels is None else (made.channels, made.rate)
    columns: dict[str, Array] = {}

    def more(x: "Array") -> "dict[str, Array]":
        chances = kept.predict_proba(x)
        columns["predicted"] = np.array(kept.classes)[chances.argmax(axis=1)]
        columns.update({f"p_{name}": chances[:, number] for number, name in enumerate(kept.classes)})
        return columns

    done = embed_recorded(embedder, path, source, out, append, like=like, more=more)
    known = read_vectors(out)
    if not done.added:  # by another classifier, it may be
        arrays = {COLUMNS[name]: values for name, values in known.columns().items()}
        write_vectors(out, {"": {"X": known.x, **arrays}}, known.source, more(known.x))
    names, counts = np.unique(columns["predicted"], return_counts=True)
    show_columns({"class": names, "windows": counts})
    if ranges is not None:
        chances = np.stack([columns[f"p_{name}"] for name in kept.classes], axis=1)
        merged = label_runs(chances, kept.classes, *known.places())
        write_columns(ranges, dated(merged, known))
        typer.echo(f"Wrote {ranges}: {len(merged)} ranges")
    opt.end(reading.allowance)


def _as_trained(made: "MadeOf | None") -> dict[str, Any]:
    """Return how new recordings are read: as those of the classifier, but for labels and who they are of.

    A group stays where a column has it: it may tell the recordings of a file apart.
    """
    if made is None or made.kind != "recordings":
        return {}
    told = {"label", "names", "table", "table_unit", *(["group"] if {"names", "table"} & made.options.keys() else [])}
    channels = {} if made.channels is None else {"channels": list(made.channels)}
    return {name: value for name, value in made.options.items() if name not in told} | channels
