"""How embeddings are scored: arrays in, numbers out. Nothing here imports torch."""

from collections.abc import Callable

from dicot.protocols.base import Features, Protocol, Score
from dicot.protocols.clustering import KMeansClustering
from dicot.protocols.forest import ForestProbe
from dicot.protocols.names import find_protocol
from dicot.protocols.neighbours import NearestNeighbour
from dicot.protocols.probe import FewLabels, FittedProbe, LinearProbe, fit_probe
from dicot.protocols.ridge import RidgeProbe

PROTOCOLS: dict[str, Callable[[], Protocol]] = {
    "linear": LinearProbe,
    "ridge": RidgeProbe,
    "forest": ForestProbe,
    "few_1pct": lambda: FewLabels(fraction=0.01),
    "few_5": lambda: FewLabels(per_class=5),
    "few_10": lambda: FewLabels(per_class=10),
    "knn_5": lambda: NearestNeighbour(per_class=5),
    "knn_10": lambda: NearestNeighbour(per_class=10),
    "knn_50": lambda: NearestNeighbour(per_class=50),
    "knn_100": lambda: NearestNeighbour(per_class=100),
    "knn_500": lambda: NearestNeighbour(per_class=500),
    "knn_all": lambda: NearestNeighbour(per_class=None),
    "clustering": KMeansClustering,
}

__all__ = [
    "PROTOCOLS",
    "Features",
    "FewLabels",
    "FittedProbe",
    "ForestProbe",
    "KMeansClustering",
    "LinearProbe",
    "NearestNeighbour",
    "Protocol",
    "RidgeProbe",
    "Score",
    "find_protocol",
    "fit_probe",
]
