"""The page of one evaluation: one table, and the pictures of one contender."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from dicot.protocols import Features, Score, fit_probe
from dicot.report.comparison import SHOWN, comparison
from dicot.report.curves import loss_curve
from dicot.report.figures import bars, confusion
from dicot.report.html import render
from dicot.report.parts import Part
from dicot.report.projection import tsne
from dicot.report.scatter import embedding_map


def evaluation_page(
    title: str,
    facts: Mapping[str, object],
    scores: Sequence[Score],
    hero: str,
    train: Features,
    test: Features,
    history: tuple[Sequence[float], Sequence[float]],
    *,
    fixed: Sequence[str] = (),
    warning: str = "",
) -> str:
    """All scores, and of the contender `hero` its loss and rate, its map and its confusion matrix.

    `fixed` names the contenders that are the same for every seed.
    """
    return render(
        title,
        [
            _table(scores, fixed),
            _overview(scores),
            *_training(hero, history),
            _map(hero, test),
            _confusion(hero, train, test),
        ],
        facts,
        warning,
    )


def _table(scores: Sequence[Score], fixed: Sequence[str]) -> Part:
    return Part("Scores", comparison(scores, metrics=SHOWN, fixed=fixed).turned("protocol, metric"))


def _overview(scores: Sequence[Score]) -> Part:
    """The first protocol's first metric as bars."""
    protocol, metric = scores[0].protocol, scores[0].metric
    values: dict[str, list[float]] = {}
    for score in scores:
        if (score.protocol, score.metric) == (protocol, metric):
            found = values.setdefault(score.contender, [])
            found += [score.value] if score.error is None else []
    text = "random and calibrated are encoders without training; raw-mean and raw-flat use no encoder at all."
    return Part(f"{protocol}: {metric}", figures={"bars": bars(values, metric)}, text=text)


def _training(hero: str, history: tuple[Sequence[float], Sequence[float]]) -> list[Part]:
    losses, rates = history
    if not len(losses):
        return []
    figures = {"training": loss_curve(losses, rates)}
    return [Part(f"Training of {hero}", figures=figures, text=f"{len(losses)} steps.")]


def _map(hero: str, test: Features) -> Part:
    flat = tsne(test.x, test.y, seed=0)
    figures = {"map": embedding_map(flat.points, test.y[flat.rows], flat.title)}
    return Part(f"Map of the test cases by {hero}", figures=figures)


def _confusion(hero: str, train: Features, test: Features) -> Part:
    labels: list[object] = np.union1d(train.y, test.y).tolist()
    matrix: NDArray[np.int64] = confusion_matrix(test.y, fit_probe(train).predict(test.x), labels=labels)
    figures = {"confusion": confusion(matrix, labels)}
    return Part(f"Confusion of the linear probe on {hero}", figures=figures, text="Test cases, all training labels.")
