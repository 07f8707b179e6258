"""Which model embeds DATA: one that is named, one that is kept beside vectors, or the default, fitted on DATA.

An .onnx file embeds where torch is not installed, so what needs torch is imported where it is used.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Union, final

from dicot.core.errors import InputError, ModelFileError, WrongCallError
from dicot.data import Windows
from dicot.data.cutting import no_window
from dicot.data.readers import Content
from dicot.data.stream import RecordingStream
from dicot.model.box import BOX
from dicot.model.deployed import OnnxEmbedder, hash_of
from dicot.model.presets import DEFAULT_PRESET
from dicot.store.embedding import FittedModel
from dicot.store.folder import Corpus
from dicot.store.modelplace import check_model_beside, model_beside, places_of_model
from dicot.store.source import SUGGESTED_WINDOW, Say, be_silent
from dicot.store.vectors import read_source
from dicot.use.why import model_behind

if TYPE_CHECKING:
    from dicot.model.estimator import TimeSeriesEmbedder

Embedder = Union["TimeSeriesEmbedder", OnnxEmbedder]


@final
@dataclass(frozen=True)
class EmbedderOptions:
    """How a model is loaded for embedding."""

    device: str = "auto"
    precision: str | None = None  # tf32 or bf16, on a GPU
    missing: str | None = None  # what happens to missing values; None: as when the model was fitted
    verbose: bool = False

    def load(self, path: Path) -> Embedder:
        """Load a folder, or an .onnx file; only torch takes a device and a precision."""
        if path.suffix == ".onnx":
            if self.device not in ("auto", "cpu") or self.precision is not None:
                raise WrongCallError(
                    "A device and a precision are torch's; an .onnx file runs on the CPU. Leave them out."
                )
            embedder: Embedder = OnnxEmbedder(path)
        else:
            from dicot.model.estimator import TimeSeriesEmbedder

            embedder = TimeSeriesEmbedder.from_pretrained(path, device=self.device)
            features = dict(embedder.features or {})
            if self.precision is not None:
                features["precision"] = self.precision
            embedder.set_params(verbose=self.verbose, features=features)
        if self.missing is not None:
            embedder.preparation_ = replace(embedder.preparation_, missing=self.missing)
        return embedder


@final
@dataclass(frozen=True)
class ChosenModel:
    """The model that embeds DATA: it is there, or it is the default, which is yet to be fitted on DATA."""

    path: Path  # where it is, or where it will be kept
    options: EmbedderOptions
    is_there: bool = True
    overwrite: bool = False  # a model that was fitted to other windows
    say: Say = be_silent

    @cached_property
    def embedder(self) -> Embedder:
        """Load the model; the default only once it is fitted."""
        return self.options.load(self.path.absolute())

    @property
    def usual_window(self) -> int:
        """Return the time steps of the windows that it was fitted on; SUGGESTED_WINDOW where it is yet to be fitted."""
        return self.embedder.preparation_.n_times if self.is_there else SUGGESTED_WINDOW

    @property
    def hash(self) -> str:
        return hash_of(self.path)

    @property
    def name(self) -> str:
        """Say where it is, for what is made by it: its name in the box, or its path."""
        in_box = (name for name, path in BOX.items() if path == self.path)
        return next(in_box, str(self.path.absolute()))

    def fit_to_corpus(self, corpus: Corpus) -> Embedder:
        """Fit the default to windows of a corpus; a model that is there stays as it is."""
        if not self.is_there:
            from dicot.model.default import sample_corpus

            self._fit(sample_corpus(corpus))
        return self.embedder

    def fit_to_cases(self, content: Content) -> Embedder:
        """Fit the default to cases of a file or data set."""
        from dicot.model.default import sample_cases

        self._fit(sample_cases(content, self.options.missing), unequal="pad")
        return self.embedder

    def fit_to_stream(self, stream: RecordingStream) -> FittedModel:
        """Fit the default to recordings that are about to be embedded."""
        from dicot.model.default import sample_stream

        windows = sample_stream(stream)
        if windows is None:
            raise no_window(stream.cut.length, max(stream.lengths.values()))
        self._fit(windows)
        return FittedModel(self.embedder.transform, self.hash, str(self.path.absolute()))

    def _fit(self, windows: Windows, unequal: str = "error") -> None:
        from dicot.model.default import fit_default

        outcome = fit_default(
            self.path,
            windows,
            missing=self.options.missing,
            unequal=unequal,
            device=self.options.device,
            overwrite=self.overwrite,
        )
        self.say(f"Model {DEFAULT_PRESET}, {len(windows):,} windows: {outcome}")


def default_model(out: Path, options: EmbedderOptions, *, overwrite: bool = False, say: Say = be_silent) -> ChosenModel:
    """Choose the default for these vectors. It is kept beside them, in place of the one that made those there now."""
    check_model_beside(out)
    folder = model_beside(out)
    replaces_own = out.exists() and made_by(out) == hash_at(folder)
    return ChosenModel(folder, options, is_there=False, overwrite=overwrite or replaces_own, say=say)


def model_to_append_with(out: Path) -> Path | None:
    """Find the model of vectors that are appended to; None where there are neither vectors nor a model yet."""
    folder = model_beside(out)
    if not out.exists():
        return folder if hash_at(folder) else None
    source = read_source(out)
    if source is None or not source.model:
        return None
    try:
        return model_behind(source.model, usual=places_of_model(out, source))
    except InputError as error:
        raise InputError(
            f"{out} was made by the model {source.model[:12]}, which is neither in {folder} nor in the box. Put it "
            "back, or name it (--model). To embed everything anew, write --overwrite in place of --append."
        ) from error


def made_by(vectors: Path) -> str | None:
    """Return the hash of the model that made vectors, where they say it."""
    source = read_source(vectors)
    return None if source is None else source.model or None


def hash_at(folder: Path) -> str | None:
    """Return the hash of the model in a folder; None where there is none, or a damaged one."""
    try:
        return hash_of(folder)
    except ModelFileError:
        return None
