"""What contrast across the batch needs: other cases."""

from dicot.core.errors import InputError


def require_negatives(n_cases: int, method: str, *, what: str) -> None:
    """Refuse a training set or batch of one case: it has no negatives, and BatchNorm cannot normalise one vector."""
    if n_cases < 2:
        remedy = "Use a larger batch_size" if what == "batch" else "Pass more cases, or cut this one into windows"
        got = f"{n_cases}" if what == "batch" else f"{n_cases} (n_samples={n_cases})"  # scikit-learn's word for cases
        raise InputError(f"{method} tells the cases of a batch apart, so a {what} needs 2 cases; got {got}. {remedy}.")
