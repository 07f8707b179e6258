"""Fine-tuning: all weights of a pretrained encoder trained further, with a part of the labels."""

from dicot.bench.fitted import Fitted, ModelProtocol
from dicot.bench.loading import scored
from dicot.data import Split
from dicot.errors import InputError
from dicot.protocols.metrics import CLASSIFICATION_METRICS, classification_scores
from dicot.protocols.subsets import PAPER_SUBSET_SEED, stratified_fraction

EPOCHS = 50
# The authors train 50 epochs on four of the large sets and 5 on the two where that would take longest (D-97).
MAX_STEPS = 10_000


class FineTuning(ModelProtocol):
    """Mean over time and one linear layer on top, for every contender alike (D-57).

    The labelled cases are those of the few-label probes: the same subset for all runs (D-40). Batches have the size of
    the pretraining of the data set's family.
    """

    metrics = CLASSIFICATION_METRICS
    trains = True

    def __init__(self, fraction: float) -> None:
        if not 0 < fraction <= 1:
            raise InputError(f"fraction must lie in (0, 1]; got {fraction}.")
        self.fraction = fraction

    @property
    def name(self) -> str:
        return f"finetune-{100 * self.fraction:g}"

    @property
    def description(self) -> str:
        return f"encoder and linear layer trained further with {100 * self.fraction:g} % of the training labels"

    def score(self, fitted: Fitted, data: Split, *, seed: int, steps: int | None = None) -> dict[str, float]:
        from dicot.classifier import TimeSeriesClassifier
        from dicot.train import paper_recipe

        assert data.test is not None
        train, test = scored(data.train), scored(data.test)
        assert train.y is not None and test.y is not None
        known = train.subset(stratified_fraction(train.y, self.fraction, PAPER_SUBSET_SEED))
        batch_size = paper_recipe(data.family, len(known), known.n_times).batch_size
        usual = min(MAX_STEPS, EPOCHS * max(1, len(known) // batch_size))
        classifier = TimeSeriesClassifier(
            fitted.model,
            steps=usual if steps is None else min(steps, usual),
            batch_size=batch_size,
            random_state=seed,
            device=fitted.model.device,
            verbose=False,
        )
        predicted = classifier.fit(known.x, known.y).predict(test.x)
        return classification_scores(test.y, predicted)
