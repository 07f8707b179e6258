"""How embeddings are scored: arrays in, numbers out. Nothing here imports torch."""

from dicot.protocols.base import Features, Protocol
from dicot.protocols.clustering import KMeansClustering
from dicot.protocols.forest import ForestProbe
from dicot.protocols.metrics import Metric, find_metric
from dicot.protocols.neighbours import NearestNeighbour
from dicot.protocols.probe import FewLabels, FittedProbe, LinearProbe, fit_probe
from dicot.protocols.registry import PROTOCOLS, find_protocol
from dicot.protocols.ridge import RidgeProbe

__all__ = [
    "PROTOCOLS",
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
    "find_metric",
    "find_protocol",
    "fit_probe",
]
