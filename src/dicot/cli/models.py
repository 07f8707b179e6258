"""Which model embeds DATA: one that is named, one that is kept beside vectors, or the default, fitted on DATA."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import typer

from dicot.core.errors import InputError

if TYPE_CHECKING:
    from dicot.data import Windows
    from dicot.data.readers import Content
    from dicot.data.stream import RecordingStream
    from dicot.model.deployed import OnnxEmbedder
    from dicot.model.estimator import TimeSeriesEmbedder
    from dicot.store.embedding import FittedModel
    from dicot.store.folder import Corpus

ENOUGH_WINDOWS = 500  # to fit a model on whose vectors of new windows compare with those of the reference
DEFAULT = "instant"  # the preset that is fitted on DATA where no model is named


@final
@dataclass(frozen=True)
class ChosenModel:
    """The model of a command that embeds: it is there, or it is the default, which is yet to be fitted on DATA."""

    path: Path  # where it is, or where it will be kept
    load: "Callable[..., TimeSeriesEmbedder | OnnxEmbedder]"  # takes a device
    device: str
    is_there: bool = True
    missing: str | None = None
    overwrite: bool = False  # a model that was fitted to other windows

    def for_corpus(self, corpus: "Corpus") -> "TimeSeriesEmbedder | OnnxEmbedder":
        """Load the model, fitted before to windows of a corpus where it is the default."""
        if not self.is_there:
            from dicot.model.default import sample_corpus

            self._fit(sample_corpus(corpus))
        return self.load(device=self.device)

    def fit_to_cases(self, content: "Content") -> "TimeSeriesEmbedder | OnnxEmbedder":
        """Fit the default to cases of a file or data set."""
        from dicot.model.default import sample_cases

        self._fit(sample_cases(content, self.missing), unequal="pad")
        return self.load(device=self.device)

    def fit_to_stream(self, stream: "RecordingStream") -> "FittedModel":
        """Fit the default to recordings that are about to be embedded."""
        from dicot.data.cutting import no_window
        from dicot.model.default import sample_stream
        from dicot.model.deployed import hash_of
        from dicot.store.embedding import FittedModel

        windows = sample_stream(stream)
        if windows is None:
            raise no_window(stream.cut.length, max(stream.lengths.values()))
        self._fit(windows)
        embedder = self.load(device=self.device)
        return FittedModel(embedder.transform, hash_of(self.path), str(self.path.absolute()))

    def _fit(self, windows: "Windows", unequal: str = "error") -> None:
        from dicot.model.default import fit_default

        how: dict[str, Any] = {"missing": self.missing, "unequal": unequal, "device": self.device}
        outcome = fit_default(self.path, windows, overwrite=self.overwrite, **how)
        typer.echo(f"Model {DEFAULT}, {len(windows):,} windows: {outcome}")


def default_model(
    out: Path,
    load: "Callable[..., TimeSeriesEmbedder | OnnxEmbedder]",
    *,
    device: str,
    missing: str | None,
    overwrite: bool,
) -> ChosenModel:
    """Choose the default for these vectors. It is kept beside them, in place of the one that made those there now."""
    from dicot.store.modelplace import check_model_beside, model_beside

    check_model_beside(out)
    folder = model_beside(out)
    replaces_own = out.exists() and made_by(out) == hash_at(folder)
    return ChosenModel(
        folder,
        partial(load, folder.absolute()),
        device,
        is_there=False,
        missing=missing,
        overwrite=overwrite or replaces_own,
    )


def model_to_append_with(out: Path) -> Path | None:
    """Find the model of vectors that are appended to; None where there are neither vectors nor a model yet."""
    from dicot.store.modelplace import model_beside, places_of_model
    from dicot.store.vectors import read_source
    from dicot.use.why import model_behind

    kept = model_beside(out)
    if not out.exists():
        return kept if hash_at(kept) else None
    source = read_source(out)
    if source is None or not source.model:
        return None
    try:
        return model_behind(source.model, usual=places_of_model(out, source))
    except InputError as error:
        raise InputError(
            f"{out} was made by the model {source.model[:12]}, which is neither in {kept} nor in the box. Put it back, "
            "or name it (--model). To embed everything anew, write --overwrite in place of --append."
        ) from error


def made_by(vectors: Path) -> str | None:
    """Return the hash of the model that made vectors, where they say it."""
    from dicot.store.vectors import read_source

    source = read_source(vectors)
    return None if source is None else source.model or None


def doubt_about_fit(reference: Path, model: str | None) -> str:
    """Return why a difference from a reference proves nothing: its model was fitted on its own few windows.

    Empty where there is no such doubt. Vectors of fitted windows keep all differences between these, and those of new
    windows lose what the fit did not see. Of recordings that are alike, such a fit on 120 windows gave an alarm each
    time, and on 720 none (eight trials each).
    """
    import json

    from dicot.store.modelplace import CONFIG, model_beside

    folder = model_beside(reference)
    if model is None or hash_at(folder) != model:
        return ""
    n_windows = json.loads((folder / CONFIG).read_bytes())["data"]["n_cases"]
    if n_windows >= ENOUGH_WINDOWS:
        return ""
    unfitted = reference.with_stem(f"{reference.stem}-dicot-base")
    return (
        f"The model of {reference} was fitted on its own {n_windows} windows, too few to tell a change from the fit. "
        f"Embed both by a model that is not fitted: dicot embed dicot-base DATA --out {unfitted}"
    )


def hash_at(folder: Path) -> str | None:
    """Return the hash of the model in a folder; None where there is none, or a damaged one."""
    from dicot.core.errors import ModelFileError
    from dicot.model.deployed import hash_of

    try:
        return hash_of(folder)
    except ModelFileError:
        return None
