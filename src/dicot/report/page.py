"""The page: one template, one style sheet; and the page of one evaluation."""

import re
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from dicot.errors import need_extra
from dicot.projection import tsne
from dicot.protocols import Features, fit_probe
from dicot.report.figures import bars, confusion, embedding_map, loss_curve
from dicot.report.parts import Part, drawn
from dicot.report.scores import comparison
from dicot.report.tables import LONG_TEXT


def render(title: str, parts: Sequence[Part], facts: Mapping[str, object] | None = None, banner: str = "") -> str:
    """Make the page: title, a warning if there is one, the facts of the run (version, seed, command ...), the parts."""
    need_jinja2()
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("dicot.report"), autoescape=True)
    environment.filters["code"] = _code
    page = environment.get_template("page.html")
    text: str = page.render(title=title, parts=parts, facts=facts or {}, banner=banner, long_text=LONG_TEXT)
    return text


def _code(text: str) -> str:
    """Show what stands between two backticks as code, everything as the text that it is."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def need_jinja2() -> None:
    """Raise an error where it is not installed, before any work is done for a page."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise need_extra("jinja2", "report", "A page") from error


def evaluation_page(
    title: str,
    facts: Mapping[str, object],
    data: pd.DataFrame,
    hero: str,
    train: Features,
    test: Features,
    history: tuple[Sequence[float], Sequence[float]],
    *,
    fixed: Sequence[str] = (),
    warning: str = "",
) -> str:
    """Show all scores, and of the contender `hero` its loss and rate, its map and its confusion matrix.

    `data` is the tidy frame of the scores; `fixed` names the contenders that are the same for every seed.
    """
    parts = [Part("Scores", comparison(data, fixed).turned("protocol, metric")), _overview(data)]
    losses, rates = history
    if len(losses):
        figures = {"training": partial(loss_curve, losses, rates)}
        parts.append(Part(f"Training of {hero}", figures=figures, text=f"{len(losses)} steps."))
    parts += [_map(hero, test), _confusion(hero, train, test)]
    return render(title, drawn(parts), facts, warning)


def _overview(data: pd.DataFrame) -> Part:
    """Show the first protocol's first metric as bars."""
    protocol, metric = data.protocol.iloc[0], data.metric.iloc[0]
    own = data[(data.protocol == protocol) & (data.metric == metric)]
    values = {name: rows.value.dropna().tolist() for name, rows in own.groupby("contender", sort=False)}
    text = "random and calibrated are encoders without training; raw-mean and raw-flat use no encoder at all."
    return Part(f"{protocol}: {metric}", figures={"bars": partial(bars, values, metric)}, text=text)


def _map(hero: str, test: Features) -> Part:
    flat = tsne(test.x, test.y, seed=0)
    figures = {"map": partial(embedding_map, flat.points, test.y[flat.rows], flat.title)}
    return Part(f"Map of the test cases by {hero}", figures=figures)


def _confusion(hero: str, train: Features, test: Features) -> Part:
    labels: list[object] = np.union1d(train.y, test.y).tolist()
    matrix: NDArray[np.int64] = confusion_matrix(test.y, fit_probe(train).predict(test.x), labels=labels)
    figures = {"confusion": partial(confusion, matrix, labels)}
    return Part(f"Confusion of the linear probe on {hero}", figures=figures, text="Test cases, all training labels.")
