"""The report of one evaluation: the verdict and what to do first, then the scores, the series, the map, the run."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from dicot.core.errors import InputError
from dicot.core.storage import write_atomic
from dicot.data import Split
from dicot.data.collection import labelled_cases
from dicot.judge.evaluation import Evaluation
from dicot.judge.evaluation.scoring import embed_labelled
from dicot.judge.protocols import Features, every_protocol
from dicot.judge.protocols.base import Labels, stratified_cap
from dicot.judge.protocols.embeddings import fit_linear
from dicot.judge.report.figures import SERIES, class_series, confusion, loss_curve, map_panels
from dicot.judge.report.frame import shown_metrics
from dicot.judge.report.page import Part, drawn, render
from dicot.judge.report.ranking import Trial
from dicot.judge.report.scorefile import write_scores
from dicot.judge.report.scores import evaluation_table
from dicot.judge.report.tables import Table, text_table
from dicot.judge.report.verdict import Verdict
from dicot.judge.report.wording import verdict_table, worded
from dicot.use.labels.accuracy import class_scores, constant_scores, is_uneven
from dicot.use.projection import tsne

POINTS = 2000  # of the map
Embedded = tuple[Features, Features]  # the labelled cases of both parts


def write_evaluation(
    out: Path,
    split: Split,
    hero: str,
    result: Evaluation,
    trial: Trial,
    found: Verdict,
    *,
    steps: Sequence[tuple[str, str]],
    facts: Mapping[str, object],
    contenders: Mapping[str, str],
    classes: Mapping[object, str],
    warning: str = "",
) -> Iterator[Path]:
    """Write scores.csv, the model of `hero` and report.html into the folder; yield each path once it is written.

    `steps` are what to do next, as (why, command). `contenders` says what each is, `classes` what labels are called.
    """
    write_scores(out / "scores.csv", result.results)
    yield out / "scores.csv"
    if (error := result.error(hero)) is not None:
        raise InputError(f"{hero} failed, so there is no report: {error}")
    times = {(one.contender, one.seed): one.fit_seconds for one in result.results if one.error is None}
    told = {**facts, "seconds to fit": ", ".join(f"{name} {seconds:.1f}" for (name, _), seconds in times.items())}
    model: Any = result.models[hero]
    training = []
    if hasattr(model, "save_pretrained"):
        yield model.save_pretrained(out / "model")
        told |= {"recipe": model.recipe_, "settings": model.method_params_ or "none"}
        n_steps = len(model.history_.loss)
        if n_steps:
            figures = {"training": partial(loss_curve, model.history_.loss, model.history_.lr)}
            training.append(Part(f"Training of {hero}", figures=figures, text=f"{n_steps} steps."))
    embedded = result.embeddings.get(hero) or embed_labelled(model, split)
    scored = score_parts(trial, result.fixed, contenders, called(embedded[1].y, classes))
    cases = case_parts(split, hero, embedded, classes)
    wording = worded(found)
    parts = [Part("", lead=(wording.sentence, *wording.more)), *scored, *cases, *training]
    page = render(f"{hero} on {split.name}", drawn(parts), told, warning, steps)
    write_atomic(out / "report.html", page.encode())
    yield out / "report.html"


def protocol_texts(data: pd.DataFrame) -> dict[str, str]:
    known = every_protocol()
    return {name: known[name]().description for name in data.protocol.unique() if name in known}


def score_parts(trial: Trial, fixed: Sequence[str], contenders: Mapping[str, str], truth: Labels) -> Iterator[Part]:
    """Show all scores, what training adds by each protocol, and who is who; `truth` has the labels of the test cases.

    Macro averages come first where a class is rare: accuracy is high there though the class is never found.
    """
    data = trial.data
    first = data[data.metric.isin(shown_metrics(data))]
    macro = data[data.metric.str.startswith("macro_f1") & ~data.metric.isin(first.metric)]
    names, counts = np.unique(truth, return_counts=True)
    accuracy, macro_f1 = constant_scores(counts)
    usual = names[int(counts.argmax())]
    lead: tuple[str, ...] = (
        f"Always answering {str(usual)!r}, the most frequent class, would score: accuracy {100 * accuracy:.1f} %, "
        f"macro F1 {100 * macro_f1:.1f} %.",
    )
    rare_first = is_uneven(counts) and len(macro) > 0
    if rare_first:
        lead = (f"Some classes are rare, so look at macro F1 first. {lead[0]}",)
        yield Part("Macro F1, which counts every class alike", evaluation_table(macro, fixed), lead=lead)
        lead = ()
    yield Part("Scores", evaluation_table(first, fixed, protocol_texts(data)), lead=lead)
    if (table := verdict_table(trial)) is not None:
        yield Part("Does training help? Protocol by protocol", table)
    if len(macro) and not rare_first:
        yield Part("Macro F1, which counts every class alike", evaluation_table(macro, fixed))
    about = ((name, [what]) for name, what in contenders.items())
    yield Part("Who is who", text_table("contender", about, ["what it is"], ""))


def case_parts(split: Split, hero: str, embedded: Embedded, names: Mapping[object, str]) -> Iterator[Part]:
    """Show some series of each class, and the map and the confusion matrix of one contender."""
    x, y = labelled_cases(split.train).x, embedded[0].y
    train, test = called(y, names), called(embedded[1].y, names)
    classes = np.union1d(train, test)
    channels = split.train.channels or [f"channel {i}" for i in range(1, x.shape[1] + 1)]
    series = partial(class_series, x, train, channels, classes)
    yield Part("Some series of each class", figures={"series": series}, text=SERIES)
    guesses = called(fit_linear(embedded[0]).predict(embedded[1].x), names)
    flat = tsne(embedded[1].x, seed=0, rows=stratified_cap(embedded[1].y, POINTS))
    wrong = flat.points[(guesses != test)[flat.rows]]
    drawn_map = partial(map_panels, {flat.title: (flat.points, test[flat.rows])}, classes, wrong)
    text = "Ringed: the linear probe with all training labels is wrong about it. `dicot explore` shows the series."
    yield Part(f"Map of the test cases by {hero}", figures={"map": drawn_map}, text=text)
    counts = confusion_matrix(test, guesses, labels=classes)
    yield Part(f"Each class by the linear probe on {hero}", class_table(classes.tolist(), counts))
    matrix = partial(confusion, counts, classes.tolist())
    text = "Test cases, all training labels."
    yield Part(f"Confusion of the linear probe on {hero}", figures={"confusion": matrix}, text=text)


def called(labels: Labels, names: Mapping[object, str]) -> NDArray[np.str_]:
    """Return what labels (N,) are called."""
    return np.array([names.get(label, str(label)) for label in labels.tolist()])


def class_table(classes: Sequence[str], counts: Any) -> Table:
    """Show how often each class is found, and how often it is right where it is the answer."""

    def percent(share: float) -> str:
        return "not known" if np.isnan(share) else f"{100 * share:.1f}"

    rows = (
        (str(score.label), [f"{score.cases:.0f}", percent(score.recall), percent(score.precision)])
        for score in class_scores(classes, counts)
    )
    columns = ["test cases", "found (recall), %", "right (precision), %"]
    return text_table("class", rows, columns, "All training labels.")
