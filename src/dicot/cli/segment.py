"""dicot segment: recordings into stretches of one activity."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, final

import typer

from dicot.cli import options as opt
from dicot.cli.exitcodes import end
from dicot.cli.paths import check_inputs, check_outputs, check_table
from dicot.cli.settings import checking_options
from dicot.cli.tables import show_columns, write_table
from dicot.core.errors import WrongCallError

LONGEST_LIST = 20  # clusters or labels


@final
@dataclass(frozen=True)
class StretchOptions:
    """What stretches are called, and how long they are at least."""

    least: Annotated[
        str | None,
        typer.Option(help="Least length of a stretch, such as 5s, the default; in time steps where no rate is known."),
    ] = None
    labels: Annotated[Path | None, typer.Option(help="A file of labels: stretches get one of these.")] = None
    head: Annotated[
        Path | None,
        typer.Option(help="What `dicot classify --save` wrote, in place of labels."),
    ] = None
    clusters: Annotated[int | None, typer.Option(min=1, help="Without labels: how many clusters at most.")] = None

    def check(self, features: str | None) -> None:
        if self.labels is not None and self.head is not None:
            raise WrongCallError("--labels and --head both say what the labels are. Give one of them.")
        check_inputs("file", self.labels)
        check_inputs("classifier", self.head)

        from dicot.data.reading import seconds_of
        from dicot.use.features import VECTOR

        with checking_options():
            seconds_of(self.least or "5s", "--least")
        if self.head is not None and features not in (None, VECTOR):
            raise WrongCallError(f"--head knows vectors only, and --features is {features}. Leave --features out.")
        if self.clusters is not None and (self.labels or self.head) is not None:
            raise WrongCallError("--clusters is for stretches without labels. Leave it out.")


def segment(
    vectors: opt.VectorsArgument,
    out: Annotated[Path, typer.Option(help="A .csv or .parquet for the stretches.")],
    options: StretchOptions,
    judging: opt.JudgingOptions,
    overwrite: opt.Overwrite = False,
) -> None:
    """Cut the recordings of VECTORS into stretches of one activity.

    Without labels: where the vectors change; stretches that are alike get the same cluster number. With labels or a
    head: by the classifier's probabilities along time, without stretches that are shorter than --least.
    """
    check_inputs("vectors", vectors)
    options.check(judging.features)
    inputs = (vectors, options.labels, options.head)
    check_outputs(out, overwrite=overwrite, inputs=inputs)
    check_table(out)

    from dicot.use.features import VECTOR
    from dicot.use.stretches import cluster_stretches, dated, label_stretches, least_length

    if options.head is not None:
        judging = opt.JudgingOptions(VECTOR, judging.data, judging.strict)
    windows = judging.read(vectors)
    with checking_options():
        least, unit = least_length(windows, options.least)
    name = "cluster" if (options.labels or options.head) is None else "label"
    if name == "cluster":
        table = cluster_stretches(windows, least, options.clusters)
    else:
        table = label_stretches(windows, least, labels=options.labels, head=options.head)

    lengths = (table["end"] - table["start"]).groupby(table[name]).agg(["size", "sum"])
    shown = lengths.sort_values("sum", ascending=False, kind="stable").head(LONGEST_LIST)
    show_columns({name: shown.index, "stretches": shown["size"], unit: shown["sum"].round(1)})
    typer.echo(f"{len(windows)} windows: {len(table)} stretches, {len(lengths)} {name}(s); judged by: {windows.kind}.")
    write_table(out, dated(table, windows.vectors))
    end(judging.series.allowance)
