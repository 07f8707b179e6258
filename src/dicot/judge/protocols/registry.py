"""Protocols by name. A new one is one file and one line here, or an entry that a user makes."""

from collections.abc import Callable

from dicot.judge.protocols.base import Protocol
from dicot.judge.protocols.clustering import KMeansClustering
from dicot.judge.protocols.few_labels import FewLabels
from dicot.judge.protocols.forest import ForestProbe
from dicot.judge.protocols.metrics import REGISTRIES
from dicot.judge.protocols.neighbours import NearestNeighbour
from dicot.judge.protocols.probe import LinearProbe
from dicot.judge.protocols.ridge import RidgeProbe

PROTOCOLS: dict[str, Callable[[], Protocol]] = {
    "linear": LinearProbe,
    "ridge": RidgeProbe,
    "forest": ForestProbe,
    "few_1pct": lambda: FewLabels(fraction=0.01),
    "forest_1pct": lambda: FewLabels(fraction=0.01, probe="forest", draws=1),  # ten forests take ten times as long
    "few_1": lambda: FewLabels(per_class=1),
    "few_5": lambda: FewLabels(per_class=5),
    "few_10": lambda: FewLabels(per_class=10),
    "semi_1pct": lambda: FewLabels(fraction=0.01, probe="semi"),
    "semi_1": lambda: FewLabels(per_class=1, probe="semi"),
    "semi_5": lambda: FewLabels(per_class=5, probe="semi"),
    "semi_10": lambda: FewLabels(per_class=10, probe="semi"),
    "knn_5": lambda: NearestNeighbour(per_class=5),
    "knn_10": lambda: NearestNeighbour(per_class=10),
    "knn_50": lambda: NearestNeighbour(per_class=50),
    "knn_100": lambda: NearestNeighbour(per_class=100),
    "knn_500": lambda: NearestNeighbour(per_class=500),
    "knn_all": lambda: NearestNeighbour(per_class=None),
    "clustering": KMeansClustering,
}
REGISTRIES.append(PROTOCOLS)
