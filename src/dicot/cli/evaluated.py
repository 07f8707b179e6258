"""What `dicot evaluate` writes: a page, scores, the model, vectors that know what they were made of, and embeddings."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dicot import __version__
from dicot.cli import options as opt
from dicot.core.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from dicot.cli.advice import Step
    from dicot.data import Split
    from dicot.judge.evaluation import Evaluation
    from dicot.judge.report.verdict import Trial, Verdict


@dataclass(frozen=True)
class PageTexts:
    """What a page says beside the scores."""

    steps: "Sequence[Step]"
    contenders: Mapping[str, str]  # what each is
    classes: Mapping[object, str]  # names by label
    warning: str


def write_report(
    out: Path, split: "Split", hero: str, result: "Evaluation", trial: "Trial", found: "Verdict", page: PageTexts
) -> None:
    """Write report.html, scores.csv and the model into the folder."""
    from dicot.core.storage import write_atomic
    from dicot.data.collection import labelled_cases
    from dicot.judge.bench.exchange import write_table
    from dicot.judge.evaluation.run import embed_labelled
    from dicot.judge.report.evaluation import Hero, ShownCases, evaluation_page

    write_table(out / "scores.csv", result.results)
    typer.echo(f"Wrote {out / 'scores.csv'}")
    if (error := result.error(hero)) is not None:
        raise InputError(f"{hero} failed, so there is no report: {error}")
    model = result.models[hero]
    facts = _facts(split, result)
    history: tuple[list[float], list[float]] = ([], [])
    if is_embedder(model):
        history = (model.history_.loss, model.history_.lr)
        facts |= {"recipe": model.recipe_, "settings": model.method_params_ or "none"}
        typer.echo(f"Wrote {model.save_pretrained(out / 'model')}")
    assert split.test is not None
    train, test = labelled_cases(split.train), labelled_cases(split.test)
    text = evaluation_page(
        f"{hero} on {split.name}",
        trial,
        found,
        Hero(hero, *(result.embeddings.get(hero) or embed_labelled(model, split)), *history),
        ShownCases(train.x, test.x, train.channels, page.classes),
        steps=page.steps,
        facts=facts,
        fixed=result.fixed,
        protocols=descriptions(trial.data),
        contenders=page.contenders,
        warning=page.warning,
    )
    write_atomic(out / "report.html", text.encode())
    typer.echo(f"Wrote {out / 'report.html'}")


def identity(hero: str, model: object, folder: Path) -> str:
    """What made the vectors: the hash of the model that was saved, or the name of what has none."""
    from dicot.model.pretrained import model_hash

    return model_hash(folder) if is_embedder(model) else hero


def cases_source(
    data: str, layout: str, policies: dict[str, Any], table: dict[str, Any], split: "Split", model: str
) -> dict[str, Any]:
    """How the cases of the vectors are found again: those of a file as it holds them, others by the same policies."""
    from dicot.data.datasets import is_path
    from dicot.store.vectors.series import source_of_cases

    columns = {**table, **({"layout": layout} if layout != "nct" else {})}
    return source_of_cases(data, columns if is_path(data) else policies, split.train.channels, model)


def recordings_source(data: str, options: dict[str, Any], split: "Split", model: str) -> dict[str, Any]:
    """How the recordings of the vectors are found again, as `dicot embed` says it."""
    from dicot.data.contents import facts_of
    from dicot.data.folders import named_recordings
    from dicot.data.reading import window_stride
    from dicot.store.vectors import source_of_recordings
    from dicot.store.vectors.recordings import USUAL

    windows = split.train
    facts = {name: facts_of(file) for name, file in named_recordings(data).items()}
    channels = list(windows.channels or ())
    options = {**USUAL, "channels": channels, **options}
    stride = window_stride(options["stride"], windows.n_times, windows.rate)
    return source_of_recordings(data, options, facts, channels, windows.rate, windows.n_times, stride, model)


def write_vectors_file(path: Path, split: "Split", model: Any, source: dict[str, Any]) -> None:
    """Write the vectors of all cases, in the order of DATA."""
    from dicot.judge.evaluation.run import cases_for
    from dicot.store.vectors import write_vectors

    parts = {"": split.train} if split.test is None else {"train": split.train, "test": split.test}
    known = {
        name: {
            "X": model.transform(cases_for(model, part)).astype("float32"),
            **opt.given(y=part.y, group=part.group, recording=part.recording, start=part.start, end=part.end),
        }
        for name, part in parts.items()
    }
    write_vectors(path, known, source)
    typer.echo(f"Wrote {path}")


def _facts(split: "Split", result: "Evaluation") -> dict[str, object]:
    times = {(one.contender, one.seed): one.fit_seconds for one in result.results if one.error is None}
    return {
        "data set": f"{split.name}, {sizes(split)} (fingerprint {split.train.fingerprint()})",
        "training and test part": split.how,
        "seconds to fit": ", ".join(f"{name} {seconds:.1f}" for (name, _), seconds in times.items()),
        "version": f"dicot {__version__}",
        "command": shlex.join(["dicot", *sys.argv[1:]]),
    }


def write_features_file(path: Path, split: "Split", result: "Evaluation") -> None:
    """Write the embeddings of the labelled test cases, of each contender's first fit that did not fail."""
    from dicot.data.collection import labelled_cases
    from dicot.judge.report.maps import write_features

    if not result.embeddings:
        raise InputError(f"Every contender failed, so there are no embeddings for {path}.")
    assert split.test is not None
    labels = labelled_cases(split.test).y
    assert labels is not None
    embeddings = {name: test.x.astype("float32") for name, (_, test) in result.embeddings.items()}
    write_features(path, split.name, labels, embeddings)
    typer.echo(f"Wrote the test embeddings of {', '.join(embeddings)} to {path}")


def sizes(split: "Split") -> str:
    from dicot.data.collection import labelled

    assert split.test is not None
    train, test = split.train, split.test
    text = (
        f"{len(train)} training and {len(test)} test cases, {train.n_channels} channel(s), {train.n_times} time steps"
    )
    counts = [len(part) - int(labelled(part.y).sum()) for part in (train, test) if part.y is not None]
    if any(counts):
        text += f"; {counts[0]} training and {counts[-1]} test cases have no label and are not scored"
    return text


def descriptions(data: "pd.DataFrame") -> dict[str, str]:
    """What each protocol of the scores is, as it says itself."""
    from dicot.judge.evaluation import every_protocol

    known = every_protocol()
    return {name: known[name]().description for name in data.protocol.unique() if name in known}


def is_embedder(model: object) -> bool:
    from dicot.model.estimator import TimeSeriesEmbedder

    return isinstance(model, TimeSeriesEmbedder)
