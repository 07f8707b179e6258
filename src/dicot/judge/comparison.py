"""What `dicot evaluate` compares, on which parts of the data, and what is kept of it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dicot.core.errors import InputError, WrongCallError, listed
from dicot.data import Split, Windows, hold_out
from dicot.data.collection import labelled_cases
from dicot.data.datasets import card, is_path
from dicot.data.labels import labelled, name_of_groups
from dicot.data.splits import shared_groups
from dicot.judge.evaluation import Contender, Evaluation, contender, saved, with_controls, with_own_classifier
from dicot.judge.evaluation.contenders import registered
from dicot.judge.evaluation.scoring import cases_for
from dicot.judge.report.frame import frame
from dicot.judge.report.ranking import Ranking, Trial
from dicot.judge.report.verdict import Verdict, verdict
from dicot.judge.result import BASELINE
from dicot.methods import METHODS
from dicot.model.estimator import TimeSeriesEmbedder
from dicot.model.files import model_hash
from dicot.model.presets import BEST, INSTANT, PAPER, PRESETS, find_preset, preset_name
from dicot.store.embedding import embed_recordings
from dicot.store.source import DataSource
from dicot.store.vectors import MadeOf, write_vectors

RIVAL = "minirocket"  # beside presets, where aeon is installed
BY_FOREST = ("stats-spectrum", "forest")  # beside presets: statistics and spectrum, and their own classifier
CONTROL = "random"  # the only one beside what is compared by default, to keep the time short
NO_GROUPS = (
    "the data name no groups (people, devices, recordings), so windows of one recording may be in both parts and "
    "scores too high. Name the column with --group, or store an array `group` in the .npz."
)


@dataclass(frozen=True)
class NamedContenders:
    """The methods or presets that were named, or the usual presets."""

    names: tuple[str, ...]  # of contenders
    methods: tuple[str, ...]  # of each
    preset: str | None = None  # of methods that were named

    @classmethod
    def of(cls, methods: Sequence[str], presets: Sequence[str]) -> "NamedContenders":
        """Find what is meant; presets have their own methods."""
        usual = [preset_name(None, methods[0])] if methods else [INSTANT.name, BEST.name]
        found = [find_preset(name) for name in presets or usual]
        if not methods:
            # The paper's preset is called by its method.
            names = tuple(one.method if one.name == PAPER.name else one.name for one in found)
            return cls(names, tuple(one.method for one in found))
        if len(found) > 1:
            names_of_presets = ", ".join(one.name for one in found)
            raise WrongCallError(f"--method is for one preset; got {names_of_presets}. Leave one out.")
        names = tuple(METHODS) if tuple(methods) == ("all",) else tuple(methods)
        return cls(names, names, found[0].name)

    def contenders(self, settings: dict[str, Any], method_params: dict[str, Any]) -> list[Contender]:
        """Make contenders of them; beside presets stand rivals that need no training."""
        if method_params and len(self.names) > 1:
            raise WrongCallError(
                f"{', '.join(method_params)}: a setting of one method, and there are {', '.join(self.names)}. Name "
                "one with --method or --preset."
            )
        if self.preset is not None:
            settings = {**settings, "preset": self.preset}
        subjects = [contender(name, method_params=method_params, **settings) for name in self.names]
        if self.preset is None:
            if find_spec("aeon") is not None:
                subjects.append(contender(RIVAL, **settings))
            subjects.append(with_own_classifier(*BY_FOREST))
        return subjects


def saved_contender(path: Path, model: TimeSeriesEmbedder) -> Contender:
    """A saved model, by the name of its folder."""
    name = path.resolve().name
    return saved(f"saved {name}" if name in registered() else name, model)


def compared_by_default(subjects: Sequence[Contender], n_cases: int, settings: dict[str, Any]) -> list[Contender]:
    """Leave out a preset that cannot train on so few cases, and add the untrained controls."""
    able = [one for one in subjects if can_train(one, n_cases, settings)]
    added = with_controls(able)[len(able) :]
    return [*able, *(one for one in added if one.name.split(" ")[0] == CONTROL)]


def can_train(one: Contender, n_cases: int, settings: dict[str, Any]) -> bool:
    """Tell whether a preset differs from the others with so many cases: `best` is `instant` where they are few."""
    if one.classical or settings.keys() & {"steps", "encoder", "dim"}:
        return True
    return n_cases >= find_preset(str(one.settings["preset"])).fewest


def announcement(everyone: Sequence[Contender], protocols: Sequence[str], n_seeds: int) -> str:
    """What is compared, how many fits that is, and what takes long."""
    n_fits = sum(1 if one.fixed else n_seeds for one in everyone)
    seeds = f", {n_seeds} seeds" if n_seeds > 1 else ""
    work = f"{n_fits} fits{seeds}, scored by {len(protocols)} protocol(s)"
    names = listed([one.name for one in everyone])
    text = f"Comparing {len(everyone)} contenders ({work}: {listed(protocols)}): {names}"
    for one in everyone:
        preset = PRESETS.get(one.name)
        # Controls have the settings of a preset too, and do not train.
        if preset is not None and preset.minutes:
            text += f". {one.name} trains for at most {preset.minutes:g} minutes per seed"
    return text


@dataclass(frozen=True)
class ScoredData:
    """The data of a comparison: whole, and as a training and a test part."""

    source: DataSource
    policies: dict[str, Any]  # how cases were prepared
    whole: Split
    split: Split
    unit: str  # what a group is called: a subject, a recording
    warning: str

    @classmethod
    def read(cls, source: DataSource, policies: dict[str, Any], holdout: float, split_seed: int) -> "ScoredData":
        """Read DATA; where they have no test part, hold out a share of the cases, whole groups where there are any."""
        if source.corpus is not None:
            raise InputError(f"{source.data} is a corpus. Evaluate the recordings that it was built of.")
        if not source.recorded:
            whole = source.split((holdout, split_seed), **policies)
        elif "label" in source.options:
            whole = Split(source.windows(), name=Path(source.data).expanduser().resolve().name)
        else:
            raise WrongCallError(f"Recordings of {source.data} are scored by labels. Name their column with --label.")

        split, warning = whole, ""
        column = source.options.get("group")
        if split.test is None:
            parts = hold_out(whole.train, holdout, split_seed, column=column)
            split = replace(parts, family=whole.family, name=whole.name)
            warning = NO_GROUPS if split.train.group is None else ""
        unit = name_of_groups(split.train.group, split.train.recording, column)
        both = shared_groups(split)
        if both:
            warning = f"{len(both)} {unit}(s) have cases in both parts, so scores may be too high: {listed(both)}."
        return cls(source, policies, whole, split, unit, warning)

    def sizes(self) -> str:
        """How many cases there are, and of what shape."""
        train, test = self.split.train, self.split.test
        assert test is not None
        text = f"{len(train)} training and {len(test)} test cases, "
        text += f"{train.n_channels} channel(s), {train.n_times} time steps"
        counts = [len(part) - int(labelled(part.y).sum()) for part in (train, test) if part.y is not None]
        if any(counts):
            text += f"; {counts[0]} training and {counts[-1]} test cases have no label and are not scored"
        return text

    def class_names(self) -> dict[object, str]:
        """What the classes of a data set by name are called, where its card says so; other labels are names."""
        y = self.split.train.y
        if is_path(self.source.data) or y is None or y.dtype.kind not in "iu":
            return {}
        return dict(enumerate(card(self.source.data).labels))


def policies_of(model: TimeSeriesEmbedder) -> dict[str, Any]:
    """How the data are made what a fitted model takes, by its own rules."""
    preparation = model.preparation_
    policies = {name: getattr(preparation, name) for name in ("unequal", "missing")}
    policies = {name: value for name, value in policies.items() if value != "error"}
    if preparation.unequal == "resample":
        policies["length"] = preparation.n_times
    return policies


@dataclass(frozen=True)
class ComparedContenders:
    """An evaluation of some contenders beside controls, and what it comes to."""

    data: ScoredData
    subjects: Sequence[Contender]  # what was asked about
    everyone: Sequence[Contender]  # these, and what stands beside them
    evaluation: Evaluation
    is_by_default: bool  # nothing was named, so the best of the subjects is kept

    @cached_property
    def trial(self) -> Trial:
        split = self.data.split
        assert split.test is not None
        test = labelled_cases(split.test)
        groups = test.group if test.group is not None else test.recording
        scores = frame(row for result in self.evaluation.results for row in result.tidy())
        # Whether training pays is asked of what is trained here.
        roles = {one.name: BASELINE if one.learned_elsewhere else one.role for one in self.everyone}
        return Trial(scores, roles, self.evaluation.right, groups, len(test), self.data.unit)

    @cached_property
    def verdict(self) -> Verdict:
        return verdict(self.trial)

    @cached_property
    def hero(self) -> str:
        """Whose model and vectors are kept: of several models the best by the first protocol."""
        if not self.is_by_default:
            return self.subjects[0].name
        models = [one.name for one in self.subjects if not one.classical]
        for protocol, metric in list(self.trial.measures().items())[:1]:
            ranked = Ranking.of(self.trial, protocol, metric).names
            return next((name for name in ranked if name in models), models[0])
        return models[0]

    @property
    def model(self) -> Any:
        """The model that is kept; None where its fit failed."""
        return self.evaluation.models.get(self.hero)

    def write_vectors(self, out: Path) -> Iterator[Path]:
        """Write the vectors of all cases beside the model, in the order of DATA, with what finds their series."""
        model, source, whole = self.evaluation.models[self.hero], self.data.source, self.data.whole
        path = out / "vectors.npz"
        maker = model_hash(out / "model") if hasattr(model, "save_pretrained") else self.hero
        embed = _embedding(model)
        if source.recorded:
            options = {"channels": whole.train.channels, **source.options}
            embed_recordings(embed, maker, path, source.data, options, allowance=source.allowance)
        else:
            parts = {"": whole.train} if whole.test is None else {"train": whole.train, "test": whole.test}
            vectors: dict[str, dict[str, Any]] = {}
            for name, part in parts.items():
                columns = {"X": embed(part), "y": part.y, "group": part.group}
                vectors[name] = {key: values for key, values in columns.items() if values is not None}
            # A file's cases are found as it holds them.
            options = source.options if is_path(source.data) else self.data.policies
            write_vectors(path, vectors, MadeOf.of_cases(source.data, options, whole.train.channels, maker))
        yield path


def _embedding(model: Any) -> Callable[[Windows], Any]:
    def embed(windows: Windows) -> Any:
        return model.transform(cases_for(model, windows)).astype("float32")

    return embed
