"""The linear probe, with all labels or with few: how far a linear classifier gets on frozen embeddings."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from dicot.errors import InputError
from dicot.protocols.base import Features, Floats, Labels, Protocol, check_classes, check_pair, mean_scores
from dicot.protocols.metrics import CLASSIFICATION_METRICS, classification_scores
from dicot.protocols.subsets import (
    DRAWS,
    MAX_CASES,
    Rows,
    Seed,
    SubsetSeed,
    capped,
    check_per_class,
    check_subsets,
    fixed_per_class,
    stratified_fraction,
    subset_seeds,
    subset_text,
)

TOLERANCE = 1e-4  # of scikit-learn's stopping rule, as published
MAX_STEPS = 1_000_000


@dataclass(frozen=True, eq=False)
class FittedProbe:
    """Standardisation followed by one linear score per class (a single one for two classes)."""

    classes: Labels  # (K,)
    scaler: StandardScaler
    weights: Floats  # (K, F), or (1, F) for two classes
    intercepts: Floats  # (K,), or (1,)

    def decision_function(self, x: Floats) -> Floats:
        """Map (N, F) to (N, K) scores; for two classes to (N,), positive for the second."""
        scores: Floats = self.scaler.transform(x) @ self.weights.T + self.intercepts
        return scores[:, 0] if len(self.classes) == 2 else scores

    def predict(self, x: Floats) -> Labels:
        """Return the class with the highest score."""
        scores = self.decision_function(x)
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        predicted: Labels = self.classes[chosen]
        return predicted


def fit_probe(train: Features, *, tolerance: float = TOLERANCE, max_cases: int = MAX_CASES) -> FittedProbe:
    """Standardise, then fit one binary logistic regression per class against the rest, by scikit-learn.

    The published tolerance ends short of the minimum, so where it ends is part of the protocol: another solver, or the
    minimum itself, gives up to 2 % of the cases another label. Hence the same solver for any number of cases.
    """
    check_classes(train, "A linear probe")
    train = capped(train, max_cases)
    classes = np.unique(train.y)
    scaler = StandardScaler()
    x = scaler.fit_transform(train.x)
    # D-58: recent scikit-learn has no multi_class argument and would fit a multinomial model instead.
    positives = classes[1:] if len(classes) == 2 else classes
    models = [
        LogisticRegression(C=1.0, solver="lbfgs", tol=tolerance, max_iter=MAX_STEPS).fit(x, train.y == positive)
        for positive in positives
    ]
    weights, intercepts = (np.concatenate([getattr(m, part) for m in models]) for part in ("coef_", "intercept_"))
    return FittedProbe(classes, scaler, weights, intercepts)


class LinearProbe(Protocol):
    """The probe on all training labels. Deterministic: the seed plays no part."""

    metrics = CLASSIFICATION_METRICS
    name = "linear"
    description = "linear probe: one-vs-rest logistic regression on all training labels"

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        check_pair(train, test)
        return classification_scores(test.y, fit_probe(train).predict(test.x))


class FewLabels(Protocol):
    """The probe on a small labelled subset: a fraction of every class or a fixed number of cases.

    The subset is drawn `draws` times in a run, anew with each seed; `subset_seed="paper"` takes the authors' instead.
    """

    metrics = CLASSIFICATION_METRICS

    def __init__(
        self,
        *,
        fraction: float | None = None,
        per_class: int | None = None,
        subset_seed: SubsetSeed = "run",
        draws: int = DRAWS,
    ) -> None:
        if (fraction is None) == (per_class is None):
            raise InputError(f"Give either fraction or per_class; got fraction={fraction}, per_class={per_class}.")
        if fraction is not None and not 0 < fraction <= 1:
            raise InputError(f"fraction must lie in (0, 1]; got {fraction}.")
        if per_class is not None:
            check_per_class(per_class)
        check_subsets(subset_seed, draws)
        self.fraction = fraction
        self.per_class = per_class
        self.subset_seed = subset_seed
        self.draws = draws

    @property
    def name(self) -> str:
        amount = f"{100 * self.fraction:g}pct" if self.fraction is not None else f"{self.per_class}"
        return f"few_{amount}" + ("_paper" if self.subset_seed == "paper" else "")

    @property
    def description(self) -> str:
        amount = (
            f"{100 * self.fraction:g} % of the training labels"
            if self.fraction is not None
            else f"{self.per_class} labelled case(s) per class"
        )
        return f"linear probe on {amount}, {subset_text(self.subset_seed, self.draws)}"

    def as_published(self) -> "FewLabels":
        return FewLabels(fraction=self.fraction, per_class=self.per_class, subset_seed="paper")

    def without_draws(self, y: Labels) -> Protocol:
        return LinearProbe() if len(self._rows(y, 0)) == len(y) else self

    def _rows(self, y: Labels, seed: Seed) -> Rows:
        if self.fraction is not None:
            return stratified_fraction(y, self.fraction, seed)
        assert self.per_class is not None  # the constructor saw to it
        return fixed_per_class(y, self.per_class, seed)

    def subsets(self, train: Features, seed: int) -> Iterator[Features]:
        """Yield the labelled cases that the probe sees, draw by draw, in the run with this seed."""
        for draw in subset_seeds(self.subset_seed, seed, self.draws):
            yield train.rows(self._rows(train.y, draw))

    def score_draws(self, train: Features, test: Features, *, seed: int) -> list[dict[str, float]]:
        check_pair(train, test)
        predicted = (fit_probe(subset).predict(test.x) for subset in self.subsets(train, seed))
        return [classification_scores(test.y, labels) for labels in predicted]

    def score(self, train: Features, test: Features, *, seed: int) -> dict[str, float]:
        return mean_scores(self.score_draws(train, test, seed=seed))
