"""dicot outliers: the windows that lie farthest from normal ones."""

import fnmatch
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicot.cli import options as opt
from dicot.cli.tables import check_plot, draw, show_columns
from dicot.core.errors import InputError

if TYPE_CHECKING:
    from dicot.data.cases import Array
    from dicot.store.vectors import Vectors

Features = Annotated[
    str | None,
    typer.Option(help="Judge by: vector, levels (of each channel; read from the recordings) or both, the default."),
]
Labels = Annotated[Path | None, typer.Option(help="A file of labels; default: those in VECTORS.")]


def outliers(
    vectors: opt.VectorsArgument,
    reference: Annotated[Path | None, typer.Option(help="Vectors of normal windows; default: VECTORS.")] = None,
    label: Annotated[
        str | None,
        typer.Option("--reference-label", help="Normal are the windows with these labels: walk,run or walk*."),
    ] = None,
    but: Annotated[str | None, typer.Option(help="Normal are all windows without these labels.")] = None,
    group: Annotated[
        str | None, typer.Option("--reference-group", help="Normal are the windows of these groups or recordings.")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            "--reference-time",
            metavar="FROM..TO",
            help="Normal are the windows in this time: seconds, or dates in UTC; one side may be empty.",
        ),
    ] = None,
    labels: Labels = None,
    features: Features = None,
    n_neighbors: Annotated[int, typer.Option("--neighbours", "-k", help="Nearest normal windows to compare with.")] = 5,
    alpha: Annotated[float, typer.Option("--alarm", help="The share of false alarms to allow.")] = 0.05,
    top: Annotated[int, typer.Option(min=1, help="How many to list.")] = 20,
    out: Annotated[Path | None, typer.Option(help="A .csv or .parquet for all windows.")] = None,
    plot: opt.Plot = None,
    data: opt.Series = None,
) -> None:
    """List the windows of VECTORS that lie farthest from normal ones: distance and conformal p-value.

    Windows that overlap or touch are one hit, shown by the farthest. A distance is the mean to the nearest normal
    windows; by the vector alone, as a multiple of how far these lie from each other. A p-value is the share of held-out
    normal windows that lie at least as far out. Whole groups are held out, or else recordings, where there are enough:
    then a p-value is larger by how much these differ, so that --alarm holds roughly for new ones too.
    """
    import numpy as np

    from dicot.core.errors import naming
    from dicot.store.vectors import TABLES, check_out, read_vectors, write_columns
    from dicot.use.events import first_hits
    from dicot.use.features import VECTOR, judged_by
    from dicot.use.outliers import EmbeddingOutlierDetector, compare_with, distances_and_p

    if out is not None:
        check_out(out, TABLES)
    check_plot(plot, data if plot else None)
    chosen = [one for one in (label, but, group, time) if one is not None]
    if reference is not None and chosen:
        raise InputError("--reference names a file of normal windows, and other options some of VECTORS. Give one.")
    if labels is not None and label is None and but is None:
        raise InputError("--labels is for --reference-label and --but, which name labels. Give one of them.")
    known = read_vectors(vectors, finite=True)
    kind, levels = levels_for(features, vectors, known, data)
    alone = kind == VECTOR
    distance_of = "relative" if alone else "mean"  # chosen: python -m benchmarks.events --outliers --choose
    detector = EmbeddingOutlierDetector(n_neighbors=n_neighbors, alpha=alpha, distance=distance_of, standardise=alone)
    if reference is None:
        normal = _normal(vectors, known, labels, label, but, group, time) if chosen else np.ones(len(known), bool)
        with naming(vectors):
            together = _held_together(known, normal)
            (x,) = [known.x] if kind == VECTOR else judged_by(kind, known.x, levels, normal)
            distance, p = compare_with(detector, x, normal, None if together is None else together[1])
        typer.echo(
            f"Reference: {normal.sum()} of {len(known)} windows of {vectors}. They are dealt out to parts "
            f"({_how(together)}), and each part is compared with the others; all other windows with all of them."
            if chosen
            else f"No --reference: {vectors} is dealt out to parts ({_how(together)}), and each part is compared with "
            "the others, which are taken as normal."
        )
        if together is None and known.recording is not None:
            opt.warn(f"{vectors} has fewer than 3 recordings: what lasts longer than a window may hide itself.")
    else:
        rest = read_vectors(reference, finite=True)
        both = rest.model is not None and known.model is not None
        if rest.x.shape[1] != known.x.shape[1] or (both and rest.model != known.model):
            raise InputError(
                f"{reference} and {vectors} were made by different models: distances between their vectors mean "
                "nothing. Embed both by the same model."
            )
        if kind == VECTOR:
            usual, x = rest.x, known.x
        else:
            own = levels_for(kind, reference, rest, None)[1]
            usual, x = judged_by(kind, rest.x, own, slice(None), (known.x, levels))
        with naming(reference):
            together = rest.held_together(2)
            detector.fit(usual, groups=None if together is None else together[1])
            distance, p = distances_and_p(detector, x)
        typer.echo(
            f"Reference: {len(detector.reference_)} windows of {reference}; {len(detector.calibration_)} others are "
            f"held out for p-values ({_how(together)})."
        )
        if together is None and rest.recording is not None:
            opt.warn(f"{reference} has one recording: in others there may be more false alarms than --alarm says.")
    typer.echo(f"Judged by: {kind}.")
    ranked = np.lexsort((-distance, p)).tolist()
    listed = first_hits(ranked, known.places() if known.placed else None, top)
    shown = {name: values[listed] for name, values in known.columns().items()}
    far = {"distance": [f"{distance[row]:.4f}" for row in listed], "p": [f"{p[row]:.4f}" for row in listed]}
    show_columns({"row": listed, **shown, **far})
    flagged = p <= alpha
    but_more = "" if together is None else f", or more where a few {together[0]}s differ far more than the others"
    typer.echo(
        f"{flagged.sum()} of {len(known)} windows have p <= {alpha:g}; about {alpha * len(known):.1f} would if all "
        f"were normal{but_more}."
    )
    if out is not None:
        part = {} if known.part is None else {"part": known.part}
        write_columns(out, {**part, **known.columns(), "distance": distance, "p": p, "alarm": flagged})
        typer.echo(f"Wrote {out}")
    if plot is not None:
        lead = [
            f"The {len(listed)} hits among {len(known)} windows that lie farthest from normal ones, farthest first. p "
            "is the share of held-out normal windows that lie at least as far out"
            + ("." if together is None else f", with an allowance for how {together[0]}s differ.")
        ]
        drawn = {row: {"p": f"{p[row]:.4f}", "distance": f"{distance[row]:.4f}"} for row in listed}
        draw(plot, f"Outliers of {vectors.name}", lead, vectors, known, drawn, data)


def levels_for(features: str | None, path: Path, known: "Vectors", data: str | None) -> "tuple[str, Array | None]":
    """Return what is judged by, and the level statistics of all windows where these are among it.

    Where nothing is said and the recordings are not at hand, it is the vector alone, with a warning.
    """
    from dicot.core.errors import lookup
    from dicot.core.progress import Bar
    from dicot.store.series import AbsentSeriesError, series_of
    from dicot.use.features import BOTH, FEATURES, VECTOR, level_statistics

    if features is not None:
        lookup(FEATURES, features, "--features")
    if features == VECTOR:
        return VECTOR, None
    try:
        series = series_of(known, data, {}, path=path)
        if series.lost:
            raise AbsentSeriesError(next(iter(series.lost.values())))
    except AbsentSeriesError as error:
        if features is not None:
            raise InputError(f"--features {features} needs the recordings. {error}") from error
        opt.warn(f"Judged by the vectors alone, without levels and ranges: {error}")
        return VECTOR, None

    def windows() -> Any:
        with Bar("levels", len(known)) as bar:
            for row in range(len(known)):
                bar.update(row)
                if (window := series.window(row)) is None:
                    raise InputError(f"Row {row} of {path}: {next(iter(series.lost.values()))}")
                yield window

    return features or BOTH, level_statistics(windows())


def _normal(
    path: Path,
    known: "Vectors",
    labels: Path | None,
    label: str | None,
    but: str | None,
    group: str | None,
    time: str | None,
) -> "Array":
    """Return which windows are normal (N,): all conditions that were given hold."""
    import numpy as np

    from dicot.core.errors import did_you_mean
    from dicot.data.labels import as_text

    normal = np.ones(len(known), bool)
    own = [] if label is None and but is None else [as_text(opt.labels_of(path, known, labels))]
    units = [as_text(values) for values in (known.group, known.recording) if values is not None]
    for option, said, columns in (
        ("--reference-label", label, own),
        ("--but", but, own),
        ("--reference-group", group, units),
    ):
        for_these, there = np.zeros(len(known), bool), {text for column in columns for text in column.tolist() if text}
        for name in opt.names_in(said):
            if not (meant := fnmatch.filter(there, name)):
                raise InputError(f"{path} has no window of {option} {name[:40]!r}. {did_you_mean(name, there)}")
            for_these |= np.logical_or.reduce([np.isin(column, meant) for column in columns])
        if said is not None:
            normal &= ~for_these if option == "--but" else for_these
    if time is not None:
        low, dots, high = (part.strip() for part in time.partition(".."))
        try:
            for text, seconds, dates in ((low, known.start, known.start_time), (high, known.end, known.end_time)):
                if text:
                    plain = text.replace(".", "", 1).isdigit()
                    values = seconds if plain else dates
                    at: Any = float(text) if plain else np.datetime64(text.removesuffix("Z"), "us")
                    if values is None or not dots:
                        raise ValueError
                    normal &= values >= at if text is low else values <= at
        except ValueError as error:
            raise InputError(
                f"--reference-time takes FROM..TO in seconds, or in UTC where {path} has dates, such as 0..600 or "
                f"2026-03-02..2026-03-09; got {time[:60]!r}."
            ) from error
    if not normal.any():
        raise InputError(f"No window of {path} is normal by these options together. Leave some out.")
    return normal


def _held_together(known: "Vectors", normal: "Array") -> "tuple[str, Array] | None":
    """Return what belongs together, where the normal windows have at least three of it."""
    import numpy as np

    for one in (known, replace(known, group=None)):
        together = one.held_together(3)
        if together is not None and len(np.unique(together[1][normal])) >= 3:
            return together
    return None


def _how(together: "tuple[str, Array] | None") -> str:
    return "one by one" if together is None else f"whole {together[0]}s"
