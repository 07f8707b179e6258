"""Protocols by name. A new one is one file and one line here, or an entry that a user makes."""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from dicot.core.errors import InputError
from dicot.judge.protocols.base import Protocol
from dicot.judge.protocols.clustering import KMeansClustering
from dicot.judge.protocols.few_labels import FewLabels
from dicot.judge.protocols.forest import ForestProbe
from dicot.judge.protocols.metrics import REGISTRIES
from dicot.judge.protocols.neighbours import NearestNeighbour
from dicot.judge.protocols.probe import LinearProbe
from dicot.judge.protocols.ridge import RidgeProbe

T = TypeVar("T")

AMOUNT = re.compile(r"(?:\d+(?:pct)?|all)$")  # of labels, at the end of a name

PROTOCOLS: dict[str, Callable[[], Protocol]] = {
    "linear": LinearProbe,
    "ridge": RidgeProbe,
    "forest": ForestProbe,
    "few_1pct": lambda: FewLabels(fraction=0.01),
    "forest_1pct": lambda: FewLabels(
        fraction=0.01, probe="forest", draws=1
    ),  # ten forests would take ten times as long
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


def find_protocol(registry: Mapping[str, T], name: str) -> T:
    """Return the entry called `name`; an unknown name raises an error that suggests those it may stand for.

    These are the name spelled most alike and the protocols with as many labels: "nn_5" may be few_5 or knn_5.
    """
    if name in registry:
        return registry[name]
    amount = AMOUNT.findall(name)
    meant = [known for known in registry if amount and AMOUNT.findall(known) == amount]
    meant += get_close_matches(name, registry, n=1)
    guess = f"Did you mean {' or '.join(map(repr, dict.fromkeys(meant)))}? " if meant else ""
    raise InputError(f"Unknown protocol {name!r}. {guess}Known: {', '.join(registry)}.")
