"""Everything that is known about the windows: vectors, map, columns, neighbours, labels and series."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicot.core import __version__
from dicot.core.errors import InputError, listed, naming
from dicot.data.cases import Array
from dicot.data.inspection import decimate
from dicot.data.labels import as_text
from dicot.explorer.kept import Overview, Say, read_or_make
from dicot.explorer.labelling import HandLabels
from dicot.explorer.recording import Chances, Recordings
from dicot.model.deployed import open_model
from dicot.model.fewlabels import FewLabelClassifier
from dicot.store.modelplace import places_of_model
from dicot.store.search import EmbeddingIndex
from dicot.store.series import AbsentSeriesError, RecordedSeries, Series, series_of
from dicot.store.vectors import SECONDS, Vectors, read_vectors
from dicot.use.explained import windows_of_shape
from dicot.use.labels.accuracy import ClassScore, honest_accuracy
from dicot.use.labels.agreement import agreement
from dicot.use.labels.doubt import probably_wrong, too_few
from dicot.use.labels.suggestion import reason, suggest
from dicot.use.why import Why, explain, model_behind, nearest_labelled, target_of

SERIES_ROWS = 64  # of one request
LABEL_ROWS = 20_000  # of one request
WINDOW_POINTS = 1000  # per channel
CONTEXT_POINTS = 2000  # per channel
MANY = 2000  # windows from which an accuracy is measured once, not five times over: it takes 20 s for 20,000
DIGITS = 6  # of a value that is drawn

Codes = NDArray[np.int32] | NDArray[np.float32] | NDArray[np.float64]


class Colouring(NamedTuple):
    """What points may be coloured by: categories with a number for each window, or numbers."""

    title: str
    values: Codes  # (N,) int32, -1 for none; or numbers, NaN where it is not known
    categories: list[str] | None = None
    kind: str = "number"  # of what has no categories: "time" is in seconds since 1970

    def about(self, name: str) -> dict[str, Any]:
        """Return what the page must know of a column of this name."""
        if self.categories is None:
            return {"name": name, "title": self.title, "kind": self.kind}
        return {"name": name, "title": self.title, "kind": "category", "categories": self.categories}


class Prediction(NamedTuple):
    """What a classifier said when it was last asked."""

    label: NDArray[np.str_]  # (N,)
    confidence: NDArray[np.float32]  # (N,)
    chances: Chances
    sentence: str
    warnings: tuple[str, ...]
    scores: tuple[ClassScore, ...]  # of each class, empty where no label could be hidden
    confusion: tuple[tuple[float, ...], ...]  # (K, K) hidden labels by what was answered

    def told(self) -> dict[str, Any]:
        """Return what the page says of it."""
        classes = []
        for score in self.scores:
            recall, precision = _known(score.recall), _known(score.precision)
            classes.append({"label": str(score.label), "cases": score.cases, "recall": recall, "precision": precision})
        return {
            "sentence": self.sentence,
            "warnings": list(self.warnings),
            "classes": classes,
            "confusion": self.confusion,
        }


@final
class ExplorerWorkspace:
    """All windows of a file of vectors, as the explorer shows them; several threads may ask at once.

    Without `series` their values are not at hand. `others` are labels of other people, which are only read, and `model`
    is where the model is that made the vectors. Without it that is looked for at the `usual_models` and in the box.
    """

    def __init__(
        self,
        title: str,
        known: Vectors,
        overview: Overview,
        labels: HandLabels,
        series: Series | None = None,
        others: Mapping[str, HandLabels] | None = None,
        model: Path | None = None,
        usual_models: Sequence[str | Path] = (),
    ) -> None:
        self.title = title
        self.known = known
        self.overview = overview
        self.labels = labels
        self.series = series
        self.others = dict(others or {})
        self._model = model
        self._usual_models = usual_models
        self.index = EmbeddingIndex(known.x, **known.columns())
        texts = {"group": known.group, "recording": known.recording}
        self._fixed = {name: _coded(name.capitalize(), values) for name, values in texts.items() if values is not None}
        self.recordings: Recordings | None = None
        if isinstance(series, RecordedSeries) and known.placed:
            self.recordings = Recordings(known, series, labels)
        self._prediction: Prediction | None = None
        self._embedder: Any = None  # loaded at the first question why
        self._classifying = Lock()

    def __len__(self) -> int:
        return len(self.known)

    def about(self) -> dict[str, Any]:
        """Return what a page must know before anything else."""
        return {
            "title": self.title,
            "n": len(self),
            "channels": list(self.series.channels) if self.series else [],
            "rate": self.series.rate if self.series else None,
            "series": self.series is not None,
            "recordings": self.recordings is not None,
            "columns": [make().about(name) for name, make in self.columns().items()],
            "labels": self.labels.given().names,
            "stores": self.stores(),
            "limits": {"series_rows": SERIES_ROWS, "label_rows": LABEL_ROWS},
            "version": __version__,
        }

    def columns(self) -> dict[str, Callable[[], Colouring]]:
        """Return what makes each column that there is, in the order of a menu."""
        known, labels = self.known, self.labels
        columns: dict[str, Callable[[], Colouring]] = {}
        if labels.names():
            columns["label"] = lambda: Colouring("Label", labels.current_codes(), labels.names())
        prediction = self._prediction
        if prediction is not None:  # numbered as the labels are, so that colours agree
            columns["prediction"] = lambda: Colouring("Prediction", labels.codes(prediction.label), labels.names())
            columns["confidence"] = lambda: Colouring("Confidence", prediction.confidence)
        for name, other in self.others.items():
            columns[f"by {name}"] = partial(self._others_labels, name, other)
            columns[f"with {name}"] = partial(self._agreement, name, other)
        columns |= self._overview_columns()
        for name, coded in self._fixed.items():
            columns[name] = partial(Colouring, *coded)
        start, time = known.start, known.start_time
        if start is not None:
            columns["start"] = lambda: Colouring("Start", start.astype(np.float64))
        if time is not None:
            columns["time"] = lambda: Colouring("Time (UTC)", _since_1970(time), kind="time")
        return columns

    def _overview_columns(self) -> dict[str, Callable[[], Colouring]]:
        overview = self.overview
        numbers = [str(number + 1) for number in range(overview.n_clusters)]
        columns: dict[str, Callable[[], Colouring]] = {}
        columns["cluster"] = lambda: Colouring("Cluster", overview.cluster, numbers)
        outlier = overview.outlier
        if outlier is not None:
            columns["outlier"] = lambda: Colouring("Outlier score", outlier)
        return columns

    def _others_labels(self, name: str, other: HandLabels) -> Colouring:
        return Colouring(f"Label: {name}", self.labels.codes(other.by_hand()), self.labels.names())

    def _agreement(self, name: str, other: HandLabels) -> Colouring:
        """Say of every window whether somebody else gives it the same label."""
        mine, theirs = self.labels.by_hand(), other.by_hand()
        cases = [(mine == "") & (theirs == ""), theirs == "", mine == "", mine == theirs]
        codes = np.select(cases, [-1, 2, 3, 0], 1).astype(np.int32)
        return Colouring(f"Agreement: {name}", codes, ["same", "differs", "only here", f"only {name}"])

    def stores(self) -> list[dict[str, Any]]:
        """Return how far the labels of others agree with those that are written to."""
        mine = self.labels.by_hand()
        stores = []
        for name, other in self.others.items():
            theirs = other.by_hand()
            store: dict[str, Any] = {"name": name, "both": 0}
            if ((mine != "") & (theirs != "")).any():
                found = agreement(mine, theirs)
                store |= {"both": found.both, "same": found.same, "kappa": _known(found.kappa), "sentence": str(found)}
            stores.append(store)
        return stores

    def describe(self, row: int, label: str) -> dict[str, Any]:
        """Return what is known of a window in words and numbers."""
        cells = {name: values[row] for name, values in self.known.columns().items()}
        texts = {name: as_text(cells.get(name)) or None for name in ("recording", "group")}
        times = {name: cells.get(name) for name in SECONDS}
        times = {name: None if time is None or np.isnan(time) else time for name, time in times.items()}
        return {**texts, **times, "label": label or None}

    def windows(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Return the series of some windows, with what is known of them."""
        labels = self.labels.given().all
        windows = []
        for row in rows:
            values = None if self.series is None else self.series.window(row)
            channels = [] if values is None else plain(decimate(values, WINDOW_POINTS))
            windows.append({"row": row, **self.describe(row, str(labels[row])), "channels": channels})
        return windows

    def context(self, row: int) -> dict[str, Any]:
        """Return the recording around a window."""
        recording = self.describe(row, "")["recording"]
        around = None if self.series is None else self.series.surroundings(row)
        if around is None:
            reason = None if self.series is None else self.series.lost.get(str(recording))
            raise InputError(reason or f"The recording of row {row} is not at hand. Name what was embedded: --data.")
        time = around.time.astype(np.float64)
        first, last = around.first, around.last
        if len(time) > CONTEXT_POINTS:
            edges = time[[first, last]]
            time = time[np.arange(CONTEXT_POINTS) * len(time) // CONTEXT_POINTS]
            first, last = (max(0, int(np.searchsorted(time, edge, side="right")) - 1) for edge in edges)
        return {
            "row": row,
            "recording": recording,
            "time": time.tolist(),
            "window": [first, last],
            "channels": plain(decimate(around.values, CONTEXT_POINTS)),
        }

    def along(self, number: int, least: float | None = None) -> dict[str, Any]:
        """Return what labels and predictions say along a recording; a prediction lasts at least so many seconds."""
        chances = None if self._prediction is None else self._prediction.chances
        return self.whole().said(number, chances, least)

    def whole(self) -> Recordings:
        """Return the recordings for the large view; an error where they are not at hand."""
        if self.recordings is None:
            raise InputError("The recordings of these windows are not at hand. Name what was embedded: --data.")
        return self.recordings

    def neighbours(self, row: int, k: int) -> tuple[list[int], list[float]]:
        """Return the k windows most like one, and their cosine distances; what overlaps it is left out."""
        distances, rows = self.index.query(self.index.vectors([row])[0], k, leave_out=self.index.overlapping(row))
        return rows.tolist(), distances.tolist()

    def find(self, recording: str, time: float) -> int:
        """Return the row of the window at this time of a recording."""
        return self.index.row_at(recording, time)

    def labelled(self) -> dict[str, Any]:
        """Return the labels that were given by hand, and the names that some window has."""
        given = self.labels.given()
        labels = {str(row): given.hand[row] for row in sorted(given.hand)}
        return {"labels": labels, "names": given.names, "can_undo": given.can_undo}

    def suggest(self, k: int, hidden: NDArray[np.bool_] | None = None) -> dict[str, Any]:
        """Return rows to label next, and by what they were chosen; of `hidden` ones (N,) none is suggested."""
        given = self.labels.to_learn_from()
        named = given[given != ""]
        x, rows = self.known.x, np.arange(len(self))
        if hidden is not None:  # labels that are not shown count all the same
            rows = np.flatnonzero(~hidden | (given != ""))
            x, given = x[rows], given[rows]
        if not (given == "").any():
            return {"rows": [], "reason": "coverage"}
        chosen = suggest(x, given if len(named) else None, k)
        return {"rows": rows[chosen].tolist(), "reason": reason(len(named), len(np.unique(named)))}

    def doubts(self) -> dict[str, Any]:
        """Return labels that are probably wrong and were not confirmed, the most doubtful first, and a sentence."""
        with self._classifying:
            given, known = self.labels.given().all, self.known
            _, groups = known.held_together(2, given != "") or ("", None)
            found = probably_wrong(known.x, given, groups)
        confirmed = self.labels.confirmed()
        doubts = [
            {
                "row": doubt.row,
                "label": doubt.label,
                "given": doubt.given,
                "suggestion": doubt.predicted,
                "confidence": doubt.probability,
            }
            for doubt in found
            if doubt.row not in confirmed
        ]
        sentences = [f"Of {np.count_nonzero(given != ''):,} labels, {len(doubts):,} differ from what the others say."]
        if doubts:
            sentences.append("The number is how probable the label is.")
        sentences.append(too_few(given))
        return {"doubts": doubts, "sentence": " ".join(filter(None, sentences))}

    def why(self, row: int) -> dict[str, Any]:
        """Return what made the difference to a window, and the nearest windows that have a label."""
        series = self.series
        values = None if series is None else series.window(row)
        if series is None or values is None:
            raise InputError(f"The series of row {row} is not at hand. Name what was embedded: --data.")
        labels = self.labels.given().all
        overlapping = self.index.overlapping(row)
        with self._classifying:
            embedder = self._loaded_embedder()
            order = embedder.preparation_.channel_order(series.channels) or list(range(len(values)))
            target = target_of(self.known.x, row, labels, overlapping)
            references = windows_of_shape(series, target.rows, values.shape, order)
            found = explain(embedder, values[order], target, reference=references)
        effect = np.zeros_like(found.effect)
        effect[order] = found.effect / (float(np.abs(found.effect).max()) or 1.0)
        nearest = zip(*nearest_labelled(self.known.x, row, labels, overlapping), strict=True)
        return {
            "row": row,
            "effect": np.round(effect, 3).tolist(),
            "edges": (found.edges / found.edges[-1]).tolist(),
            "sentence": self._because(row, found, [series.channels[place] for place in order]),
            "nearest": [{"row": near, "distance": away, "label": labels[near]} for near, away in nearest],
        }

    def _loaded_embedder(self) -> Any:
        """Return the model that made the vectors, read once."""
        if self._embedder is None:
            try:
                path = model_behind(self.known.model, self._model, usual=self._usual_models)
                self._embedder = open_model(path)
            except InputError as error:
                raise InputError(f"{error} Start again: dicot explore {self.title} --model MODEL.") from error
        return self._embedder

    def _because(self, row: int, found: Why, names: Sequence[str]) -> str:
        """Say in a sentence which channel and stretch of time made the most of it."""
        ((channel, piece),) = found.strongest(1)
        edges, unit = found.edges.astype(float), "time steps"
        start, end = self.known.start, self.known.end
        if start is not None and end is not None:
            edges = start[row] + (end[row] - start[row]) * edges / edges[-1]
            unit = "s"
        place = f"{names[channel]} from {edges[piece]:.6g} to {edges[piece + 1]:.6g} {unit}"
        sentence = f"{found.target[0].upper()}{found.target[1:]}: {found.value:.3g}. Most of it is {place}"
        if found.channels is None or len(names) == 1:
            return f"{sentence}."
        return f"{sentence}, and of whole channels {names[int(found.channels.argmax())]}."

    def classify(self) -> Prediction:
        """Predict a label for every window from those that have one; it is shown from now on."""
        with self._classifying:
            given = self.labels.to_learn_from()
            _check_enough(given)
            known = self.known
            model = FewLabelClassifier().fit(known.x, given)
            together = known.held_together(2, given != "") or known.held_together(2) or known.held_together(1)
            unit, groups = together or ("group", None)
            repeats = 5 if len(self) <= MANY else 1
            accuracy = honest_accuracy(known.x, given, groups, suggested=True, repeats=repeats, group_name=unit)
            chances = model.label_distributions_
            self._prediction = Prediction(
                label=model.transduction_.astype(str),
                confidence=chances.max(axis=1).astype(np.float32),
                chances=(chances, model.classes_.astype(str).tolist()),
                sentence=f"{accuracy} {accuracy.measured()}".strip(),
                warnings=accuracy.warnings,
                scores=accuracy.per_class,
                confusion=accuracy.confusion if accuracy.n_scored else (),
            )
            return self._prediction

    def frame(self, rows: Sequence[int]) -> pd.DataFrame:
        """Return some windows: row, and what the file and the label store say of each."""
        chosen = np.array(rows, np.intp)
        columns = {name: values[chosen] for name, values in self.known.columns().items() if name != "label"}
        labels = self.labels.given().all[chosen]
        return pd.DataFrame({"row": chosen, **columns, "label": labels})

    def table(self, rows: Sequence[int]) -> str:
        """Return some windows as a .csv, with their labels and, where they are known, predictions."""
        table = self.frame(rows)
        if self._prediction is not None:
            table["prediction"] = self._prediction.label[list(rows)]
        safe = table.map(lambda cell: harmless(cell) if isinstance(cell, str) else cell)
        return str(safe.to_csv(index=False, lineterminator="\n"))


def _check_enough(labels: NDArray[np.str_]) -> None:
    """Refuse labels that a classifier cannot be fitted to, or that leave nothing to predict."""
    classes = np.unique(labels[labels != ""])
    if len(classes) < 2:
        there = f"is only {str(classes[0])!r}" if len(classes) else "is none"
        raise InputError(f"Two labels are needed, and there {there}. Label some windows of at least two kinds.")
    if (labels != "").all():
        raise InputError("Every window has a label: there is nothing left to predict.")


def _since_1970(times: Array) -> NDArray[np.float64]:
    """Return seconds of datetimes, NaN where there is none."""
    return np.where(np.isnat(times), np.nan, times.astype("datetime64[us]").astype(np.int64) / 1e6)


def _known(share: float) -> float | None:
    return None if np.isnan(share) else share


def harmless(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would take for a formula and run; numbers stay as they are."""
    risky = text[:1] in ("=", "+", "-", "@", "\t", "\r", "\n")
    return f"'{text}" if risky and not re.fullmatch(r"[+-]?\d+(\.\d+)?", text) else text


def plain(values: Array) -> list[list[float | None]]:
    """Return values (C, T) as JSON has them: six digits of each channel's range, and null where one is missing."""
    channels = []
    for channel in values.astype(np.float64):
        finite = channel[np.isfinite(channel)]
        size = float(np.ptp(finite)) if len(finite) else 0.0
        digits = DIGITS - int(np.floor(np.log10(size))) if size > 0 else 2 * DIGITS
        numbers = np.round(channel, min(max(digits, 0), 15)).tolist()
        if len(finite) < len(channel):
            numbers = [number if np.isfinite(number) else None for number in numbers]
        channels.append(numbers)
    return channels


def _coded(title: str, values: Array) -> Colouring:
    """Number the names of values in the order of the values, -1 for none."""
    names, inverse = np.unique(values, return_inverse=True)
    texts = as_text(names).tolist()
    places = {text: number for number, text in enumerate(text for text in texts if text)}
    return Colouring(title, np.array([places.get(text, -1) for text in texts], np.int32)[inverse], list(places))


def open_workspace(
    path: Path,
    *,
    data: str | None = None,
    options: Mapping[str, Any] | None = None,
    rate: float | None = None,
    labels: Path | None = None,
    others: Sequence[Path] = (),
    model: Path | None = None,
    map_kind: str = "tsne",
    say: Say = lambda sentence: None,
) -> ExplorerWorkspace:
    """Read vectors with what is kept beside them, the labels given by hand, and where their series are.

    `data`, `options` and `rate` go to `series_of`. `labels` is a store that is written to, by default one beside the
    vectors; `others` are only shown. `model` made the vectors. `say` is told in sentences what is done.
    """
    known = read_vectors(path, finite=True)
    if not len(known):
        raise InputError(f"{path} holds no vector. Embed something first.")
    store = path.with_name(f"{path.stem}.labels.sqlite") if labels is None else labels
    with naming(store):
        given = HandLabels(store, known)
        lost = given.given().lost
    if lost:
        say(f"Warning: {len(lost)} label(s) of {store} are on no window of {path}; the first is on {lost[0]!r}.")
    theirs = {name: _others(place, known) for name, place in _named(others).items()}
    with naming(path):
        series: Series | None = None
        try:
            series = series_of(known, data, options or {}, rate, path)
            say(f"Series: {listed(list(series.channels))}")
            if series.lost:
                said = f"{len(series.lost)} recording(s) are not drawn: {listed(list(series.lost))}."
                say(f"Warning: {said} {next(iter(series.lost.values()))}")
        except AbsentSeriesError as error:
            if data is not None:
                raise
            say(f"Series: not at hand. {error}")
        classes = np.unique(given.given().all)
        overview = read_or_make(path, known, int(np.count_nonzero(classes != "")), say, map_kind)
        usual = places_of_model(path, known.source)
        workspace = ExplorerWorkspace(path.name, known, overview, given, series, theirs, model, usual)
    say(f"Labels: {store}{'' if store.exists() else ', made at the first label'}")
    return workspace


def _named(stores: Sequence[Path]) -> dict[str, Path]:
    """Call stores by their names without the suffix, or by their paths where two have the same."""
    stems = [place.stem for place in stores]
    return {stem if stems.count(stem) == 1 else str(place): place for stem, place in zip(stems, stores, strict=True)}


def _others(place: Path, known: Vectors) -> HandLabels:
    """Open the labels of somebody else, which must be there."""
    if not place.is_file():
        raise InputError(f"There is no label store {place}. The first --labels is written to; others must exist.")
    with naming(place):
        given = HandLabels(place, known, read_only=True)
        given.given()  # what is no store is refused before the map is made
    return given
