"""How embeddings, and where these do not tell networks, are scored. PROTOCOLS is where a protocol is registered."""

from collections.abc import Callable
from functools import partial

from dicot.judge.protocols.base import AnyProtocol, Features, Metric, Protocol
from dicot.judge.protocols.embeddings import KMeansClustering, Probe
from dicot.judge.protocols.network import FineTuning, ModelProtocol, TrainingTime

__all__ = ["Features", "Metric", "ModelProtocol", "Probe", "Protocol"]

# A new one is one file and one line here, or an entry that a user makes.
PROTOCOLS: dict[str, Callable[[], Protocol]] = {
    "linear": partial(Probe, "linear"),
    "ridge": partial(Probe, "ridge"),
    "forest": partial(Probe, "forest"),
    "forest_5": partial(Probe, "forest", per_class=5),
    "trees": partial(Probe, "trees"),
    "trees_5": partial(Probe, "trees", per_class=5),
    "few_1pct": partial(Probe, "linear", fraction=0.01),
    "forest_1pct": partial(Probe, "forest", fraction=0.01, draws=1),  # ten forests take ten times as long
    "few_1": partial(Probe, "linear", per_class=1),
    "few_5": partial(Probe, "linear", per_class=5),
    "few_10": partial(Probe, "linear", per_class=10),
    "semi_1pct": partial(Probe, "semi", fraction=0.01),
    "semi_1": partial(Probe, "semi", per_class=1),
    "semi_5": partial(Probe, "semi", per_class=5),
    "semi_10": partial(Probe, "semi", per_class=10),
    "knn_5": partial(Probe, "knn", per_class=5),
    "knn_10": partial(Probe, "knn", per_class=10),
    "knn_50": partial(Probe, "knn", per_class=50),
    "knn_100": partial(Probe, "knn", per_class=100),
    "knn_500": partial(Probe, "knn", per_class=500),
    "knn_all": partial(Probe, "knn"),
    "clustering": KMeansClustering,
}
# Those that score a network, and need one.
MODEL_PROTOCOLS: dict[str, Callable[[], ModelProtocol]] = {
    "finetune-1": partial(FineTuning, 0.01),
    "finetune-10": partial(FineTuning, 0.1),
    "finetune-100": partial(FineTuning, 1.0),
    "finetune-1-gradual": partial(FineTuning, 0.01, tuning="gradual"),
    "finetune-10-gradual": partial(FineTuning, 0.1, tuning="gradual"),
    "finetune-100-gradual": partial(FineTuning, 1.0, tuning="gradual"),
    "cost": TrainingTime,
}


def every_protocol() -> dict[str, Callable[[], AnyProtocol]]:
    """Both kinds by name; read anew each time, because others may register more."""
    return {**PROTOCOLS, **MODEL_PROTOCOLS}


def find_metric(name: str) -> Metric:
    """Return the metric that a registered protocol declares; one that a table has of another is printed as usual."""
    declared = (metric for make in every_protocol().values() for metric in make().metrics)
    return next((metric for metric in declared if metric.name == name), Metric(name))
