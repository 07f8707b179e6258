"""The page of one evaluation: the verdict and what to do first, then the scores, the series, the map, the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from dicot.judge.protocols import Features
from dicot.judge.protocols.base import Labels
from dicot.judge.protocols.linear import fit_linear
from dicot.judge.protocols.subsets import stratified_cap
from dicot.judge.report.figures import confusion, dots, loss_curve
from dicot.judge.report.frame import shown_metrics
from dicot.judge.report.page import Opening, render
from dicot.judge.report.parts import Part, drawn
from dicot.judge.report.scores import evaluation_table, merged
from dicot.judge.report.sketches import Cases, channel_names, class_series, hover_map, series_text, shades
from dicot.judge.report.tables import text_table
from dicot.judge.report.verdict import Trial, Verdict, verdict_table
from dicot.use.projection import tsne

POINTS = 2000  # of the map


@dataclass(frozen=True, eq=False)
class Hero:
    """The contender that is looked at: its embeddings of the labelled cases, and its training where it had one."""

    name: str
    train: Features
    test: Features
    losses: Sequence[float] = ()
    rates: Sequence[float] = ()


@dataclass(frozen=True, eq=False)
class ShownCases:
    """The labelled cases themselves, in the order of the embeddings, and what channels and classes are called."""

    train: Cases
    test: Cases
    channels: Sequence[str] | None = None
    classes: Mapping[object, str] = field(default_factory=dict)  # by label; others are their own names

    def named(self, labels: Labels) -> NDArray[np.str_]:
        """Give the names of labels."""
        return np.array([self.classes.get(label, str(label)) for label in labels.tolist()])


def evaluation_page(
    title: str,
    trial: Trial,
    found: Verdict,
    hero: Hero,
    shown: ShownCases,
    *,
    steps: Sequence[tuple[str, str]] = (),
    facts: Mapping[str, object] | None = None,
    fixed: Sequence[str] = (),
    protocols: Mapping[str, str] | None = None,
    contenders: Mapping[str, str] | None = None,
    warning: str = "",
) -> str:
    """Show what was found, all scores, the classes, and of one contender its map, confusion matrix and training.

    `steps` are what to do next, as (why, command); `fixed` names the contenders that are the same for every seed;
    `protocols` and `contenders` say what each is.
    """
    parts = [
        *_scores(trial, fixed, protocols or {}),
        *_who(contenders or {}),
        *_pictures(hero, shown),
        *_training(hero),
    ]
    opening = Opening(found.sentence, found.more, tuple(steps))
    return render(title, drawn(parts), facts, warning, opening)


def _scores(trial: Trial, fixed: Sequence[str], protocols: Mapping[str, str]) -> list[Part]:
    data = trial.data
    first = data[data.metric.isin(shown_metrics(data))]
    parts = [Part("Scores", evaluation_table(first, fixed, protocols)), _overview(first)]
    if (table := verdict_table(trial)) is not None:
        parts.append(Part("Does training help? Protocol by protocol", table))
    macro = data[data.metric.str.startswith("macro_f1") & ~data.metric.isin(first.metric)]
    if len(macro):
        parts.append(Part("Macro F1, which counts every class alike", evaluation_table(macro, fixed)))
    return parts


def _overview(data: pd.DataFrame) -> Part:
    """Show the first protocol's first metric as dots."""
    rows, _ = merged(data)
    protocol, metric = rows.protocol.iloc[0], rows.metric.iloc[0]
    own = rows[(rows.protocol == protocol) & (rows.metric == metric)]
    values = {name: rows.value.dropna().tolist() for name, rows in own.groupby("contender", sort=False)}
    runs = " Large dots: means; small dots: runs." if own.groupby("contender").size().max() > 1 else ""
    text = f"Beside each its mean. The axis spans these scores and need not begin at 0.{runs}"
    return Part(f"{protocol}: {metric}", figures={"dots": partial(dots, values, metric)}, text=text)


def _who(contenders: Mapping[str, str]) -> list[Part]:
    """Say what each contender is."""
    if not contenders:
        return []
    table = text_table("contender", [(name, [what]) for name, what in contenders.items()], ["what it is"], "")
    return [Part("Who is who", table)]


def _pictures(hero: Hero, shown: ShownCases) -> list[Part]:
    train, test = shown.named(hero.train.y), shown.named(hero.test.y)
    classes = np.union1d(train, test)
    look, channels = shades(classes), channel_names(shown.train.shape[1], shown.channels)
    guesses = shown.named(fit_linear(hero.train).predict(hero.test.x))
    flat = tsne(hero.test.x, seed=0, rows=stratified_cap(hero.test.y, POINTS))
    tips = [
        f"test case {row}, class {test[row]}" + ("" if guesses[row] == test[row] else f", taken for {guesses[row]}")
        for row in flat.rows.tolist()
    ]
    where = (flat.points, test[flat.rows], tips, shown.test[flat.rows], channels, look)
    wrong = (guesses != test)[flat.rows]
    matrix = confusion_matrix(test, guesses, labels=classes)
    about = (
        f"{flat.title}. Point at a case, or tap it: what it is and its series appear below the map, a panel for each "
    )
    about += "channel. Ringed: the linear probe with all training labels is wrong about it."
    return [
        Part(
            "Some series of each class",
            figures={"series": partial(class_series, shown.train, train, channels, look)},
            text=series_text(train, shown.train.shape[1]),
        ),
        Part(
            f"Map of the test cases by {hero.name}",
            figures={"map": partial(hover_map, *where, wrong, flat.title)},
            text=about,
        ),
        Part(
            f"Confusion of the linear probe on {hero.name}",
            figures={"confusion": partial(confusion, matrix, classes.tolist())},
            text="Test cases, all training labels.",
        ),
    ]


def _training(hero: Hero) -> list[Part]:
    if not len(hero.losses):
        return []
    figures = {"training": partial(loss_curve, hero.losses, hero.rates)}
    return [Part(f"Training of {hero.name}", figures=figures, text=f"{len(hero.losses)} steps.")]
