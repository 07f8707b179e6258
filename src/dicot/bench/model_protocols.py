"""The protocols of a benchmark: those that score embeddings, and those that score a fitted network."""

from collections.abc import Callable

from dicot.bench.cost import FitCost
from dicot.bench.finetuning import FineTuning
from dicot.bench.fitted import ModelProtocol
from dicot.protocols import PROTOCOLS, Protocol
from dicot.protocols.metrics import REGISTRIES

MODEL_PROTOCOLS: dict[str, Callable[[], ModelProtocol]] = {
    "finetune-1": lambda: FineTuning(0.01),
    "finetune-10": lambda: FineTuning(0.1),
    "finetune-100": lambda: FineTuning(1.0),
    "cost": FitCost,
}
REGISTRIES.append(MODEL_PROTOCOLS)
TRAINING = {name for name, make in MODEL_PROTOCOLS.items() if make().trains}
ALONE = {name for name, make in MODEL_PROTOCOLS.items() if make().alone}


def every_protocol() -> dict[str, Callable[[], Protocol] | Callable[[], ModelProtocol]]:
    """Both kinds by name; read anew each time, because others may register more."""
    return {**PROTOCOLS, **MODEL_PROTOCOLS}
