"""How embeddings are scored: arrays in, numbers out. Nothing here imports torch."""

from dicot.judge.protocols.base import AUTHORS, PER_SEED, SUBSETS, Features, Protocol, SubsetSeed
from dicot.judge.protocols.clustering import KMeansClustering
from dicot.judge.protocols.few_labels import FewLabels
from dicot.judge.protocols.forest import ForestProbe
from dicot.judge.protocols.metrics import Metric, find_metric
from dicot.judge.protocols.neighbours import NearestNeighbour
from dicot.judge.protocols.probe import FittedProbe, LinearProbe, fit_probe
from dicot.judge.protocols.registry import PROTOCOLS
from dicot.judge.protocols.ridge import RidgeProbe

__all__ = [
    "AUTHORS",
    "PER_SEED",
    "PROTOCOLS",
    "SUBSETS",
    "Features",
    "FewLabels",
    "FittedProbe",
    "ForestProbe",
    "KMeansClustering",
    "LinearProbe",
    "Metric",
    "NearestNeighbour",
    "Protocol",
    "RidgeProbe",
    "SubsetSeed",
    "find_metric",
    "fit_probe",
]
