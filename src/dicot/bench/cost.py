"""What a fit costs: time and memory as the values of a protocol, so that they are recorded like any other."""

from dicot.bench.fitted import Fitted, ModelProtocol
from dicot.data import Split
from dicot.protocols.metrics import COST_METRICS


class FitCost(ModelProtocol):
    """Milliseconds per step over the whole training, whatever was built on the way included.

    Memory is what the tensors on a GPU took at most, on a CPU by how much the process grew; it is left out where
    neither can be told. A control takes no steps and has no time per step.
    """

    metrics = COST_METRICS
    alone = True
    name = "cost"
    description = "time per step and peak memory of the fit"

    def score(self, fitted: Fitted, data: Split, *, seed: int, steps: int | None = None) -> dict[str, float]:
        history = fitted.model.history_
        values = {"fit_seconds": fitted.seconds}
        if len(history):
            values["step_ms"] = 1e3 * history.seconds / len(history)
        if fitted.peak_memory:
            values["peak_mib"] = fitted.peak_memory / 2**20
        return values
