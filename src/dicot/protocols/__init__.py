"""How embeddings are scored: arrays in, numbers out. Nothing here imports torch."""

from dicot.protocols.base import AUTHORS, PER_SEED, SUBSETS, Features, Protocol, SubsetSeed
from dicot.protocols.clustering import KMeansClustering
from dicot.protocols.few_labels import FewLabels
from dicot.protocols.forest import ForestProbe
from dicot.protocols.metrics import Metric, find_metric
from dicot.protocols.neighbours import NearestNeighbour
from dicot.protocols.probe import FittedProbe, LinearProbe, fit_probe
from dicot.protocols.registry import PROTOCOLS, find_protocol
from dicot.protocols.ridge import RidgeProbe

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
    "find_protocol",
    "fit_probe",
]
