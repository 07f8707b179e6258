"""dicot predict: a saved classifier on new recordings, without learning anything from them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, final

import typer

from dicot.cli import options as opt
from dicot.cli.exitcodes import end
from dicot.cli.paths import check_data, check_inputs, check_model, check_outputs
from dicot.cli.tables import show_columns


@final
@dataclass(frozen=True)
class PredictionOptions:
    """What is written, and what happens to a file that is there."""

    ranges: Annotated[Path | None, typer.Option(help="A .csv of runs of equal predictions.")] = None
    append: Annotated[bool, typer.Option("--append", help="Embed only what is new.")] = False
    overwrite: opt.Overwrite = False

    def check(self, out: Path, head: Path) -> None:
        # What --append adds to is there, and stays.
        replaced = None if self.append else out
        check_outputs(replaced, self.ranges, overwrite=self.overwrite, inputs=(head,))

        from dicot.store.vectors import check_out

        check_out(out, (".parquet",))
        if self.ranges is not None:
            check_out(self.ranges, (".csv",))


def predict(
    head: Annotated[Path, typer.Argument(help="What `dicot classify --save` wrote.")],
    data: Annotated[
        str,
        typer.Argument(metavar="RECORDINGS", help="A folder, a pattern or a file of recordings."),
    ],
    out: Annotated[Path, typer.Option(help="A .parquet, one row per window.")],
    output: PredictionOptions,
    reading: opt.ReadingOptions,
    model: Annotated[str | None, typer.Option(help="Where HEAD's model is now, if it was moved.")] = None,
    device: opt.Device = "auto",
) -> None:
    """Predict the label of every window of RECORDINGS by a classifier that was saved; nothing is learned from them.

    HEAD knows its model and how recordings are cut. The table has recording, start and end of each window, the label
    that is predicted, the probability of each class, p_CLASS, and the vectors, for `dicot monitor`, `explore` and
    `outliers`. A run that was killed is continued by the same command.
    """
    options = reading.by_group().reading
    check_inputs("classifier", head)
    check_data(data)

    from dicot.model.box import in_box
    from dicot.store.source import DataSource
    from dicot.store.vectors import write_columns
    from dicot.use.modelchoice import ChosenModel, EmbedderOptions
    from dicot.use.predictions import SavedClassifier, predict_into
    from dicot.use.stretches import dated

    if model is not None:
        check_model(in_box(model))
    output.check(out, head)
    classifier = SavedClassifier.load(head, model)
    chosen = ChosenModel(classifier.model, EmbedderOptions(device, missing=options.get("missing")))
    options = classifier.reading() | options
    source = DataSource(data, None, options, allowance=reading.allowance)
    predictions = predict_into(out, classifier, source, chosen, append=output.append, say=typer.echo)

    names, counts = predictions.counts()
    show_columns({"class": names, "windows": counts})
    if output.ranges is not None:
        ranges = predictions.ranges()
        write_columns(output.ranges, dated(ranges, predictions.vectors))
        typer.echo(f"Wrote {output.ranges}: {len(ranges)} ranges")
    end(reading.allowance)
