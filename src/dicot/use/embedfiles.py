"""Files of vectors: DATA of any kind embedded into one, and whether one that is there is up to date."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import final

from dicot.core.errors import InputError
from dicot.core.storage import only_writer
from dicot.data.cases import Array
from dicot.data.datasets import load_parts
from dicot.data.readers import Content
from dicot.store.embedding import (
    EmbeddingRun,
    embed_recordings,
    is_current,
    lost_by_renewal,
)
from dicot.store.folder import Corpus
from dicot.store.modelplace import model_beside
from dicot.store.shards import made_of_corpus
from dicot.store.source import DataSource, Say, be_silent, recordings_sentence
from dicot.store.vectors import COLUMNS, MadeOf, RowFile, source_of, write_vectors
from dicot.use.modelchoice import ChosenModel, Embedder, EmbedderOptions, hash_at

Like = tuple[tuple[str, ...], float | None]  # channels and rate


def embed_into(
    out: Path,
    source: DataSource,
    model: ChosenModel,
    *,
    append: bool = False,
    say: Say = be_silent,
) -> None:
    """Embed DATA into a .parquet or .npz, and say what was done.

    append : of recordings, keep the vectors that the file has and embed only what is new
    """
    if source.corpus is not None:
        _embed_corpus(out, source.corpus, model, say)
    elif source.recorded:
        embed_recordings_into(out, source, model, append=append, say=say)
    else:
        _embed_cases(out, source, model, say)


def embed_recordings_into(
    out: Path,
    source: DataSource,
    model: ChosenModel,
    *,
    append: bool = False,
    like: Like | None = None,
    more: Callable[[Array], Mapping[str, Array]] = lambda vectors: {},
    say: Say = be_silent,
) -> EmbeddingRun:
    """Embed recordings; `like` and `more` are those of `embed_recordings`."""
    data = source.data
    recordings = data if source.files is None else source.files
    embed = partial(embed_recordings, append=append, allowance=source.allowance, like=like, more=more)
    if model.is_there:
        embedder = model.embedder
        options = source.as_fitted(embedder)
        run = embed(embedder.transform, model.hash, out, recordings, options, model_at=model.name)
    else:
        run = embed(None, "", out, recordings, source.options, fit=model.fit_to_stream)

    say(recordings_sentence(data, run.recordings, run.channels, run.rate))
    if run.continued:
        say(f"Continued: {run.continued} of {run.files} files were finished before.")
    if append and not run.added:
        say(f"Nothing is new: {out} has all {run.there} windows of {data}")
        return run
    say(f"{data}: {run.added} cases -> {run.n_features} features")
    before = f", {run.there} windows before and {run.added} new ones" if run.there else ""
    say(f"Wrote {out}{before}")
    return run


def _embed_corpus(out: Path, corpus: Corpus, model: ChosenModel, say: Say) -> None:
    embedder = model.fit_to_corpus(corpus)
    vectors = embedder.transform_into(corpus, partial(RowFile, out), layout="nct").read()
    columns = {COLUMNS[name]: values for name, values in corpus.columns().items()}
    made = made_of_corpus(corpus, model.hash)
    if made is not None:
        made = replace(made, at=model.name)
    write_vectors(out, {"": {"X": vectors, **columns}}, made)
    say(f"{corpus.name}: {vectors.shape[0]} cases -> {vectors.shape[1]} features")
    say(f"Wrote {out}")


def _embed_cases(out: Path, source: DataSource, model: ChosenModel, say: Say) -> None:
    """Embed cases of a file or data set, of which the default is fitted on the training part."""
    data = source.data
    options = source.as_fitted(model.embedder) if model.is_there else source.options
    contents = load_parts(data, **options)
    first = next(iter(contents.values()))
    with only_writer(out):
        embedder = model.embedder if model.is_there else model.fit_to_cases(first)
        parts = {}
        for name, content in contents.items():
            if content.about:
                say(f"Read {data}: {content.about}")
            vectors = _embedded_cases(out, embedder, content)
            say(f"{data}{name and ' '}{name}: {vectors.shape[0]} cases -> {vectors.shape[1]} features")
            columns = {"X": vectors, "y": content.y, "group": content.group}
            parts[name] = {key: values for key, values in columns.items() if values is not None}
        made = MadeOf.of_cases(data, options, first.channels, model.hash)
        write_vectors(out, parts, replace(made, at=model.name))
    say(f"Wrote {out}")


def _embedded_cases(out: Path, embedder: Embedder, content: Content) -> Array:
    """Embed cases, their channels in the order of the model."""
    cases = content.X
    if content.channels is not None:
        order = embedder.preparation_.channel_order(content.channels)
        if order is not None:
            cases = [case[order] for case in content.X]
    # Files are read into (channels, time), whatever layout the model was fitted with.
    rows: Array = embedder.transform_into(cases, partial(RowFile, out), layout="nct").read()
    return rows


@final
@dataclass(frozen=True)
class Renewal:
    """Whether vectors that are there must be made anew, and by which model."""

    is_needed: bool
    model: ChosenModel | None  # None: the default, fitted anew


def plan_renewal(
    out: Path,
    source: DataSource,
    options: EmbedderOptions,
    model: ChosenModel | None = None,
    *,
    say: Say = be_silent,
) -> Renewal:
    """Tell whether vectors in `out` are up to date; where renewing them would lose something, this is an error.

    Where no model is named, the one that is kept beside the vectors is used again: a classifier of theirs goes with it,
    and a new fit would replace it.
    """
    made = source_of(out)
    if made is None or not made.is_of(source.data):
        raise InputError(
            f"{out} is there already, and not made of {source.data}. Move it, use another folder, or say --overwrite "
            "to replace it."
        )
    folder = model_beside(out)
    is_named = model is not None
    if model is None and hash_at(folder) == made.model:
        model = ChosenModel(folder, options, say=say)

    # A model that was fitted on named channels takes these, whether they are asked for or not.
    reading = source.options if model is None else source.as_fitted(model.embedder)
    wanted = made.model if model is None else model.hash
    # Of cases nothing records what became of missing values.
    tells_missing = source.recorded or options.missing is None
    if tells_missing and is_current(made, wanted, source.data, reading, source.allowance):
        say(f"Vectors: {out} is up to date.")
        return Renewal(False, model)

    renewed_by = hash_at(folder) if model is None else wanted
    _refuse_loss(out, lost_by_renewal(made, renewed_by or "", source.data, reading))
    say(f"Vectors: {out} is made anew from {source.data}. Labels given by hand stay in their own file.")
    if model is not None and not is_named:
        say(f"Model: {folder}, as before. To fit a new one: --overwrite.")
    return Renewal(True, model)


def _refuse_loss(out: Path, lost: str) -> None:
    """Refuse to make vectors anew where that would lose what they have."""
    if lost:
        look = f"dicot explore {shlex.quote(str(out))}"
        raise InputError(
            f"{out} is there already. It {lost}. To look at it as it is: {look}; to replace it, say --overwrite."
        )
